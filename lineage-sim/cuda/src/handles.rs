//! Handles: numbers that look like pointers, looked up in a table, so that a wrong one is an
//! error and never a wild access.

use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

use crate::sync::{read, write};

/// A handle as it crosses the C boundary.
pub(crate) type Handle = *mut c_void;

/// A handle that is kept: raw pointers are neither `Send` nor `Sync`, numbers are.
pub(crate) type HandleNumber = u64;

pub(crate) struct Registry<T> {
    /// Upper half of every handle of this kind, so that kinds never mix.
    tag: u64,
    next: AtomicU64,
    live: OnceLock<RwLock<Live<T>>>,
}

type Live<T> = HashMap<HandleNumber, Arc<T>, BuildHasherDefault<HandleHasher>>;

/// Handles are counted up, so that mixing their digits is enough: every call looks several of them up.
#[derive(Default)]
pub(crate) struct HandleHasher(u64);

impl Hasher for HandleHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

impl<T> Registry<T> {
    pub(crate) const fn new(tag: u64) -> Self {
        Self {
            tag,
            next: AtomicU64::new(1),
            live: OnceLock::new(),
        }
    }

    fn live(&self) -> &RwLock<Live<T>> {
        self.live.get_or_init(Default::default)
    }

    /// A handle that is not yet in the table.
    pub(crate) fn reserve(&self) -> HandleNumber {
        self.tag << 32 | self.next.fetch_add(1, Ordering::Relaxed) << 4
    }

    pub(crate) fn insert(&self, number: HandleNumber, value: Arc<T>) {
        write(self.live()).insert(number, value);
    }

    pub(crate) fn get(&self, handle: Handle) -> Option<Arc<T>> {
        self.get_number(number(handle))
    }

    pub(crate) fn get_number(&self, number: HandleNumber) -> Option<Arc<T>> {
        read(self.live()).get(&number).cloned()
    }

    pub(crate) fn remove(&self, handle: Handle) -> Option<Arc<T>> {
        write(self.live()).remove(&number(handle))
    }

    /// Every value, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        read(self.live()).values().cloned().collect()
    }

    /// Removes every value that the condition selects.
    pub(crate) fn remove_where(&self, condition: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut live = write(self.live());
        live.extract_if(|_, value| condition(value))
            .map(|(_, value)| value)
            .collect()
    }
}

pub(crate) fn number(handle: Handle) -> HandleNumber {
    handle.addr() as u64
}

pub(crate) fn handle(number: HandleNumber) -> Handle {
    std::ptr::without_provenance_mut(number as usize)
}
