//! Texts that come again and again, each written once a segment.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::how::{self, Hows};

/// Names that a segment has room for; a full segment is followed by another.
pub(crate) const MAX_NAMES: usize = 1 << 20;
/// Bytes of names that a segment has room for.
pub(crate) const MAX_NAME_BYTES: usize = 64 << 20;

/// Bytes of the longest text that is a name; an entry with a longer one is kept as JSON.
pub(crate) const MAX_NAME: usize = 1 << 16;

/// The names of a segment that is being written.
#[derive(Debug, Default)]
pub(crate) struct Names {
    places: FxHashMap<Arc<str>, u32>,
    /// Of the few ways in which a row's stages are known.
    hows: FxHashMap<Hows, u32>,
    /// Those that are not on disk yet, in order.
    new: Vec<Arc<str>>,
    bytes: usize,
    new_bytes: usize,
}

impl Names {
    /// Place of a name.
    pub(crate) fn place(&mut self, name: &Arc<str>) -> u32 {
        match self.places.get(name) {
            Some(place) => *place,
            None => self.add(Arc::clone(name)),
        }
    }

    /// Place of a name that is not shared.
    pub(crate) fn place_of(&mut self, name: &str) -> u32 {
        match self.places.get(name) {
            Some(place) => *place,
            None => self.add(Arc::from(name)),
        }
    }

    /// Place of how a row's stages are known.
    pub(crate) fn place_of_hows(&mut self, hows: &Hows) -> u32 {
        if let Some(place) = self.hows.get(hows) {
            return *place;
        }
        let place = self.place_of(&how::to_text(hows));
        self.hows.insert(*hows, place);
        place
    }

    fn add(&mut self, name: Arc<str>) -> u32 {
        let place = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        self.bytes += name.len();
        self.new_bytes += name.len();
        self.new.push(Arc::clone(&name));
        self.places.insert(name, place);
        place
    }

    /// Takes those that are not on disk yet.
    pub(crate) fn take_new(&mut self) -> Vec<Arc<str>> {
        self.new_bytes = 0;
        std::mem::take(&mut self.new)
    }

    /// How many names are not on disk yet, and their bytes.
    pub(crate) fn new_names(&self) -> (usize, usize) {
        (self.new.len(), self.new_bytes)
    }

    /// Whether another segment is due. With room to spare, since a batch is not divided.
    pub(crate) fn is_full(&self) -> bool {
        self.places.len() >= MAX_NAMES || self.bytes >= MAX_NAME_BYTES
    }
}
