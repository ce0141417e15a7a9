//! What really happened: kept here, read by the loader, out of reach of driver and CUPTI calls.

use std::sync::Mutex;

use crate::abi::{RawCall, RawOperation};
use crate::config::config;
use crate::sync::lock;

struct Kept<T> {
    items: Vec<T>,
    not_kept: u64,
}

// SAFETY: the pointers inside lead to names that live as long as the process.
unsafe impl<T> Send for Kept<T> {}

impl<T: Copy> Kept<T> {
    const fn new() -> Self {
        Self {
            items: Vec::new(),
            not_kept: 0,
        }
    }

    fn push(&mut self, item: T) {
        if (self.items.len() as u64) < config().truth_capacity {
            self.items.push(item);
        } else {
            self.not_kept += 1;
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
pub(crate) fn operations() -> Vec<RawOperation> {
    lock(&OPERATIONS).items.clone()
}

pub(crate) fn calls() -> Vec<RawCall> {
    lock(&CALLS).items.clone()
}

/// Operations and calls that were not kept.
pub(crate) fn not_kept() -> (u64, u64) {
    (lock(&OPERATIONS).not_kept, lock(&CALLS).not_kept)
}

pub(crate) fn clear() {
    *lock(&OPERATIONS) = Kept::new();
    *lock(&CALLS) = Kept::new();
}
