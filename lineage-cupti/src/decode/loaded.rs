//! Which names may still be read.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Guards the names that records point to: they belong to modules, and go with them.
///
/// A name is read under the lock, and whoever is about to let modules go says so under the same
/// lock, so that no name is read while its module goes. The lock is held for as long as one name
/// takes, never across a call of CUPTI's, the driver's or anybody else's.
pub(crate) struct LoadedNames {
    /// Names are here in buffers from this number on; [`NEVER`] while nothing is watched.
    from: Mutex<u64>,
}

const NEVER: u64 = u64::MAX;

impl LoadedNames {
    /// Without any name that may be read.
    pub(crate) const fn none() -> Self {
        Self {
            from: Mutex::new(NEVER),
        }
    }

    /// From now on unloading is watched: names may be read.
    pub(crate) fn watched(&self) {
        *self.lock() = 0;
    }

    /// From now on nobody says when modules go: no name is read any more.
    pub(crate) fn unwatched(&self) {
        *self.lock() = NEVER;
    }

    /// Modules may go that buffers lent before this one name.
    pub(crate) fn gone_before(&self, buffer: u64) {
        let mut from = self.lock();
        *from = (*from).max(buffer);
    }

    /// The first buffer whose names may be read.
    pub(crate) fn first(&self) -> u64 {
        *self.lock()
    }

    /// Reads a name that a record in this buffer points to, if it may be read.
    pub(crate) fn read<T>(&self, buffer: u64, read: impl FnOnce() -> Option<T>) -> Option<T> {
        let from = self.lock();
        if buffer < *from { None } else { read() }
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        // A number is right whatever happened to who held the lock.
        self.from.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(names: &LoadedNames) -> Vec<u64> {
        (0..6)
            .filter(|&buffer| names.read(buffer, || Some(())).is_some())
            .collect()
    }

    #[test]
    fn names_of_buffers_lent_before_an_unload_are_not_read() {
        let names = LoadedNames::none();
        assert!(readable(&names).is_empty(), "nothing is watched yet");
        names.watched();
        assert_eq!(readable(&names), [0, 1, 2, 3, 4, 5]);
        names.gone_before(4);
        names.gone_before(2);
        assert_eq!(names.first(), 4);
        assert_eq!(readable(&names), [4, 5], "what is gone stays gone");
        names.unwatched();
        names.gone_before(1);
        assert!(readable(&names).is_empty());
    }
}
