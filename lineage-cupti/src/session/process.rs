//! What is done once per process: the library, the hook, the atfork handler, the clock.
//!
//! All of it while a session [claims](state::claim) the process, so one thread at a time.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::{external, state};
use crate::sys::{Library, LoadError};

/// The process's CUPTI, once it is loaded. A second one beside it could not work.
static LOADED: OnceLock<Library> = OnceLock::new();
/// Whether the timestamp callback is registered. Registering it again has shifted times of later
/// records by 1e14 ns (pytorch issue 192021), so it is done once, and what it calls can change.
static CLOCK_REGISTERED: AtomicBool = AtomicBool::new(false);
static ATFORK_REGISTERED: AtomicBool = AtomicBool::new(false);
/// Whether the core's boundary hook is ours.
static HOOKED: AtomicBool = AtomicBool::new(false);

/// Loads CUPTI, or answers the one that is loaded.
pub(super) fn library(path: Option<&Path>) -> Result<&'static Library, LoadError> {
    if let Some(library) = LOADED.get() {
        return Ok(library);
    }
    let library = match path {
        Some(path) => Library::load_from(path),
        None => Library::load(),
    }?;
    Ok(LOADED.get_or_init(|| library))
}

/// Registers the timestamp callback, if it is not yet. Answers CUPTI's code.
pub(super) fn register_clock(library: &Library) -> u32 {
    if CLOCK_REGISTERED.load(Relaxed) {
        return 0;
    }
    // SAFETY: the callback has this signature and lives for good.
    let code = unsafe { (library.functions().activity_register_timestamp_callback)(timestamp) };
    CLOCK_REGISTERED.store(code == 0, Relaxed);
    code
}

/// Sets the boundary hook, if it is not yet. Answers whether the hook is ours.
pub(super) fn hook() -> bool {
    if !HOOKED.load(Relaxed) {
        let ours = lineage_core::hook::set_boundary_hook(&external::HOOK).is_ok();
        HOOKED.store(ours, Relaxed);
    }
    HOOKED.load(Relaxed)
}

/// Sets the atfork handler, if it is not yet.
pub(super) fn watch_forks() {
    if ATFORK_REGISTERED.load(Relaxed) {
        return;
    }
    // SAFETY: the handler only stores to atomics, which is all that is allowed in the child of a
    // fork of a process with threads.
    let code = unsafe { libc::pthread_atfork(None, None, Some(forked_child)) };
    // It fails only for want of memory; then the next session tries again.
    ATFORK_REGISTERED.store(code == 0, Relaxed);
}

/// `CUpti_TimestampCallbackFunc`: the session's clock, which so is CUPTI's.
unsafe extern "C" fn timestamp() -> u64 {
    state::guarded(0, state::now)
}

unsafe extern "C" fn forked_child() {
    state::mark_forked_child();
    lineage_core::hook::mark_forked_child();
}
