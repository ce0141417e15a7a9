//! Host functions registered for kernels, by name.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use lineage_sim_model::Collective;

use crate::abi::{self, RawKernel, RawKernelFunction};
use crate::config::{config, is_virtual};
use crate::sync::{lock, read, write};

/// What is registered under one name.
pub(crate) struct Kernel {
    pub(crate) function: Option<RawKernelFunction>,
    pub(crate) user: *mut c_void,
    drop_user: Option<unsafe extern "C" fn(*mut c_void)>,
    duration_ns: u64,
    pub(crate) label_argument: Option<u32>,
    /// That parameter is the device address of the label.
    pub(crate) label_is_behind: bool,
    pub(crate) registers_per_thread: u32,
    /// See [`lineage_sim_model::Programmatic`].
    pub(crate) triggers_after_ns: Option<u64>,
    pub(crate) waits_after_ns: u64,
    pub(crate) collective: Option<Collective>,
}

/// Registers of each thread of a kernel, 32 where nobody said anything about it.
pub(crate) fn registers_per_thread(kernel: Option<&Kernel>) -> u32 {
    kernel.map_or(32, |kernel| kernel.registers_per_thread)
}

// SAFETY: whoever registers promises that the function may be called with its pointer on the
// device's thread, and that the pointer may be dropped on any.
unsafe impl Send for Kernel {}
// SAFETY: as above; only the device's thread calls.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// How long a launch takes at least.
    pub(crate) fn duration_ns(&self) -> u64 {
        match self.duration_ns {
            // With the virtual clock nothing else says how long it takes.
            u64::MAX if self.function.is_some() && !is_virtual() => 0,
            u64::MAX => config().default_kernel_ns,
            duration_ns => duration_ns,
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if let Some(drop_user) = self.drop_user {
            // SAFETY: the last holder goes, so no launch uses the pointer any more.
            unsafe { drop_user(self.user) }
        }
    }
}

fn registered() -> &'static RwLock<HashMap<String, Arc<Kernel>>> {
    static REGISTERED: OnceLock<RwLock<HashMap<String, Arc<Kernel>>>> = OnceLock::new();
    REGISTERED.get_or_init(Default::default)
}

static NEXT_COLLECTIVE: AtomicU64 = AtomicU64::new(1);

/// Registers a kernel; replaces one of the same name for launches that follow.
///
/// # Safety
///
/// The name must be valid to read, and the rest as [`RawKernel`] says.
pub(crate) unsafe fn register(raw: &RawKernel) -> i32 {
    // SAFETY: by this function's own contract.
    let name = unsafe { std::slice::from_raw_parts(raw.name, raw.name_bytes) };
    let Ok(name) = std::str::from_utf8(name) else {
        return abi::INVALID_ARGUMENT;
    };
    if name.is_empty() || name.contains('\0') {
        return abi::INVALID_ARGUMENT;
    }
    let kernel = Kernel {
        function: raw.function,
        user: raw.user,
        drop_user: raw.drop_user,
        duration_ns: raw.duration_ns,
        label_argument: (raw.label_argument != u32::MAX).then_some(raw.label_argument),
        label_is_behind: raw.label_is_behind != 0,
        registers_per_thread: raw.registers_per_thread,
        triggers_after_ns: (raw.triggers_after_ns != u64::MAX).then_some(raw.triggers_after_ns),
        waits_after_ns: raw.waits_after_ns,
        collective: (raw.collective_size > 0).then(|| Collective {
            key: NEXT_COLLECTIVE.fetch_add(1, Ordering::Relaxed),
            size: raw.collective_size,
        }),
    };
    let replaced = write(registered()).insert(name.to_owned(), Arc::new(kernel));
    // Outside the lock: dropping runs the registrant's code.
    drop(replaced);
    abi::OK
}

pub(crate) fn find(name: &str) -> Option<Arc<Kernel>> {
    read(registered()).get(name).cloned()
}

/// The one copy of a kernel's name that lives as long as the process, for the truth.
pub(crate) fn intern(name: &str) -> &'static str {
    static NAMES: OnceLock<Mutex<HashSet<&'static str>>> = OnceLock::new();
    let mut names = lock(NAMES.get_or_init(Default::default));
    if let Some(name) = names.get(name) {
        return name;
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    name
}
