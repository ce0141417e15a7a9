//! What is in an envelope, without recording: the value.

use lineage_core::carrier::Carrier;
use lineage_core::id::LaunchEpoch;

#[derive(Clone)]
pub(super) struct Content<T>(T);

impl<T> Content<T> {
    pub(super) fn new(value: T, _: Carrier) -> Self {
        Self(value)
    }

    pub(super) fn take_apart(self) -> (T, Carrier) {
        (self.0, Carrier::default())
    }

    pub(super) fn value(&self) -> &T {
        &self.0
    }

    pub(super) fn value_mut(&mut self) -> &mut T {
        &mut self.0
    }

    pub(super) fn epoch(&self) -> Option<LaunchEpoch> {
        None
    }
}
