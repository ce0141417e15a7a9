//! What is in an envelope, with recording.

use lineage_core::HasEpoch as _;
use lineage_core::carrier::Carrier;
use lineage_core::id::LaunchEpoch;

use crate::entered;

/// Why the value is there: what takes it out consumes the envelope.
const WHOLE: &str = "an envelope has its content until it is taken apart or dropped";

#[derive(Clone)]
pub(super) struct Content<T> {
    // `Some` until it is taken apart or dropped.
    whole: Option<(T, Carrier)>,
}

impl<T> Content<T> {
    pub(super) fn new(value: T, carrier: Carrier) -> Self {
        Self {
            whole: Some((value, carrier)),
        }
    }

    pub(super) fn take_apart(mut self) -> (T, Carrier) {
        self.whole.take().expect(WHOLE)
    }

    pub(super) fn value(&self) -> &T {
        &self.whole.as_ref().expect(WHOLE).0
    }

    pub(super) fn value_mut(&mut self) -> &mut T {
        &mut self.whole.as_mut().expect(WHOLE).0
    }

    pub(super) fn epoch(&self) -> Option<LaunchEpoch> {
        self.whole.as_ref().and_then(|(_, carrier)| carrier.epoch())
    }
}

/// Nobody opened it: what its destructor launches is its epoch's.
impl<T> Drop for Content<T> {
    fn drop(&mut self) {
        if let Some((value, carrier)) = self.whole.take() {
            entered::sweep();
            carrier.abandon_with(value);
        }
    }
}
