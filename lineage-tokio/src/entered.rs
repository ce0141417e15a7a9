//! Which spans are entered on this thread, and with which scopes.
//!
//! A span may be entered on several threads at once, and several times on one, so a scope belongs
//! to none but the pair of both: each thread keeps its own list of (layer, span, scope), newest
//! last, and nothing else reads or writes it. An exit takes the newest entry of its span. The list
//! is a handful of entries deep and its memory is kept, so a poll allocates nothing.
//!
//! A layer that is swapped out by `reload` (or dropped otherwise) sees no further exit, so its
//! entries would stay, and with them an epoch that has no business on the thread. Every layer
//! counts its drop in [`LAYERS_DROPPED`]; a thread that sees the count change removes the entries
//! of layers that are no longer [`LIVE`], each with W07, before it does anything else here.
//!
//! Protocol: `LIVE` is changed under its lock, *then* the count is raised (`Release`). A thread
//! that loads the new count (`Acquire`) and takes the lock sees the layer gone. A thread that loads
//! the old count works as if the layer were still there, and finds out at its next event.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use lineage_core::id::{Attribution, LaunchEpoch};
use lineage_core::observation::MisuseKind;
use lineage_core::{Epoch, raw};

/// How many layers were dropped in this process.
static LAYERS_DROPPED: AtomicU64 = AtomicU64::new(0);

/// The layers that are alive.
static LIVE: Mutex<Vec<u64>> = Mutex::new(Vec::new());

/// Entries that a thread has room for from the start: deeper nesting allocates once.
const ROOM: usize = 16;

/// Identity of one layer: two subscribers of one process number their spans alike.
#[derive(Debug)]
pub(crate) struct LayerKey(u64);

impl LayerKey {
    /// Registers a layer.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let key = NEXT.fetch_add(1, Ordering::Relaxed);
        LIVE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(key);
        Self(key)
    }
}

impl Drop for LayerKey {
    fn drop(&mut self) {
        LIVE.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|live| *live != self.0);
        LAYERS_DROPPED.fetch_add(1, Ordering::Release);
    }
}

struct Entry {
    layer: u64,
    span: u64,
    epoch: Option<LaunchEpoch>,
    scope: raw::Entered,
}

impl Entry {
    fn is(&self, layer: &LayerKey, span: u64) -> bool {
        self.span == span && self.layer == layer.0
    }
}

thread_local! {
    static ENTERED: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
    /// What `LAYERS_DROPPED` was when this thread last swept. Apart from the list, since it needs
    /// no destructor and is read in every poll.
    static SWEPT_AT: Cell<u64> = const { Cell::new(0) };
}

/// A span with an epoch is entered on this thread.
pub(crate) fn enter(layer: &LayerKey, span: u64, epoch: &Epoch) {
    sweep();
    let scope = raw::enter(epoch);
    let kept = ENTERED.try_with(|entered| {
        let Ok(mut entries) = entered.try_borrow_mut() else {
            return false;
        };
        if entries.capacity() == 0 {
            entries.reserve_exact(ROOM);
        }
        entries.push(Entry {
            layer: layer.0,
            span,
            epoch: epoch.id(),
            scope,
        });
        true
    });
    if kept != Ok(true) {
        // The thread's own storage is gone: it is ending. Without an entry nobody would leave.
        raw::exit(scope);
    }
}

/// A span is exited on this thread. One that was entered without an epoch, or before its layer was
/// swapped in, has no entry, and nothing is to be done.
#[inline]
pub(crate) fn exit(layer: &LayerKey, span: u64) {
    sweep();
    let found = ENTERED.try_with(|entered| {
        let mut entries = entered.try_borrow_mut().ok()?;
        // Nearly always the newest.
        if entries.last().is_some_and(|entry| entry.is(layer, span)) {
            return entries.pop();
        }
        let place = entries.iter().rposition(|entry| entry.is(layer, span))?;
        Some(entries.remove(place))
    });
    if let Ok(Some(entry)) = found {
        raw::exit(entry.scope);
    }
}

/// Removes what layers left behind on this thread that are gone. Every carrier calls it too, so
/// that a thread is put right even where no layer took the place of the old one.
#[inline]
pub(crate) fn sweep() {
    if !cfg!(feature = "record") {
        return;
    }
    let dropped = LAYERS_DROPPED.load(Ordering::Acquire);
    if SWEPT_AT.get() != dropped {
        remove_stale(dropped);
    }
}

#[cold]
fn remove_stale(dropped: u64) {
    SWEPT_AT.set(dropped);
    let stale = ENTERED.try_with(|entered| {
        let mut entries = entered.try_borrow_mut().ok()?;
        let live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        let stale = entries.extract_if(.., |entry| !live.contains(&entry.layer));
        Some(stale.collect::<Vec<_>>())
    });
    for entry in stale.ok().flatten().unwrap_or_default() {
        raw::exit(entry.scope);
        let attribution = entry.epoch.map_or(Attribution::None, Attribution::Epoch);
        raw::misuse(MisuseKind::ScopeUnbalanced, attribution, 0);
    }
}
