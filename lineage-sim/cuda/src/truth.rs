//! What really happened: kept here, read by the loader, out of reach of driver and CUPTI calls.

use std::collections::VecDeque;
use std::sync::Mutex;

use crate::abi::{self, RawCall, RawOperation};
use crate::config::config;
use crate::sync::lock;

struct Kept<T> {
    items: VecDeque<T>,
    not_kept: u64,
}

// SAFETY: the pointers inside lead to names that live as long as the process.
unsafe impl<T> Send for Kept<T> {}

impl<T: Copy> Kept<T> {
    const fn new() -> Self {
        Self {
            items: VecDeque::new(),
            not_kept: 0,
        }
    }

    fn push(&mut self, item: T) {
        let mode = config().truth_mode;
        if mode == abi::TRUTH_OFF {
            return;
        }
        if (self.items.len() as u64) < config().truth_capacity {
            self.items.push_back(item);
            return;
        }
        self.not_kept += 1;
        // A ring keeps the newest, everything else the oldest.
        if mode == abi::TRUTH_RING && self.items.pop_front().is_some() {
            self.items.push_back(item);
        }
    }
}

static OPERATIONS: Mutex<Kept<RawOperation>> = Mutex::new(Kept::new());
static CALLS: Mutex<Kept<RawCall>> = Mutex::new(Kept::new());

pub(crate) fn push_operation(operation: RawOperation) {
    lock(&OPERATIONS).push(operation);
}

pub(crate) fn push_call(call: RawCall) {
    lock(&CALLS).push(call);
}

/// A copy, so that nothing is locked while the reader works.
pub(crate) fn operations() -> VecDeque<RawOperation> {
    lock(&OPERATIONS).items.clone()
}

pub(crate) fn calls() -> VecDeque<RawCall> {
    lock(&CALLS).items.clone()
}

/// Takes everything away.
pub(crate) fn drain() -> (VecDeque<RawOperation>, VecDeque<RawCall>) {
    (
        std::mem::take(&mut lock(&OPERATIONS).items),
        std::mem::take(&mut lock(&CALLS).items),
    )
}

/// Operations and calls that were not kept.
pub(crate) fn not_kept() -> (u64, u64) {
    (lock(&OPERATIONS).not_kept, lock(&CALLS).not_kept)
}

pub(crate) fn clear() {
    *lock(&OPERATIONS) = Kept::new();
    *lock(&CALLS) = Kept::new();
}
