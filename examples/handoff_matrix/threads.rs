//! Threads that are looked at when they end: none may leave an epoch current.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use launch_lineage::Attribution;

/// The threads of one cell.
#[derive(Clone, Default)]
pub struct Threads(Arc<Seen>);

#[derive(Default)]
struct Seen {
    ended: AtomicU64,
    with_an_epoch: AtomicU64,
}

impl Threads {
    /// To be called by a thread that ends.
    pub fn ends(&self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
        if launch_lineage::current() != Attribution::None {
            self.0.with_an_epoch.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Calls [`ends`](Self::ends) when it is dropped, also by a panic.
    pub fn watch(&self) -> Watch {
        Watch(self.clone())
    }

    /// Has [`ends`](Self::ends) called when this thread's own state is dropped: for one that the
    /// carrier under test makes, which is in an epoch as long as its closure runs.
    pub fn watch_this_one(&self) {
        thread_local! {
            static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
        }
        WATCH.with(|watch| *watch.borrow_mut() = Some(self.watch()));
    }

    /// How many threads ended, and how many of them left an epoch current.
    pub fn ended(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.0.ended), load(&self.0.with_an_epoch))
    }
}

/// See [`Threads::watch`].
pub struct Watch(Threads);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.ends();
    }
}
