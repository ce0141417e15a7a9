//! What a request says of its parent, and how far that is believed.

use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName};
use lineage_core::Epoch;
use lineage_core::id::W3cParent;

/// The header, by the W3C's Trace Context recommendation.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A `traceparent` longer than this is not read. Version 00 has 55 bytes; later versions may append.
pub const MAX_TRACEPARENT_BYTES: usize = 256;

/// How far a request's `traceparent` is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Traceparent {
    /// It is not read.
    Ignored,
    /// It is recorded as a link. Anybody may send one, so it is no parent, and is not sent on.
    #[default]
    Linked,
    /// It is the epoch's parent: for services that only trusted clients reach.
    Trusted,
}

/// What was read and what was not. All counts are since the layer was made, over all its services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Requests that were given an epoch.
    pub requests: u64,
    /// `traceparent` headers that were taken, as a link or as the parent.
    pub traceparents: u64,
    /// Those that are not valid.
    pub malformed: u64,
    /// Those over [`MAX_TRACEPARENT_BYTES`].
    pub too_long: u64,
    /// Requests with more than one, of which none was taken.
    pub repeated: u64,
    /// Requests whose name leaves the route out, because there are too many routes.
    pub names_without_route: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: AtomicU64,
    traceparents: AtomicU64,
    malformed: AtomicU64,
    too_long: AtomicU64,
    repeated: AtomicU64,
    pub(crate) names_without_route: AtomicU64,
}

impl Counters {
    pub(crate) fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            requests: read(&self.requests),
            traceparents: read(&self.traceparents),
            malformed: read(&self.malformed),
            too_long: read(&self.too_long),
            repeated: read(&self.repeated),
            names_without_route: read(&self.names_without_route),
        }
    }
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Tells the epoch what the request says of its parent.
pub(crate) fn apply(policy: Traceparent, headers: &HeaderMap, epoch: &Epoch, counters: &Counters) {
    if policy == Traceparent::Ignored {
        return;
    }
    match read(headers) {
        Read::Nothing => {}
        Read::Valid(span) => {
            count(&counters.traceparents);
            match policy {
                Traceparent::Trusted => {
                    epoch.set_parent(span);
                }
                Traceparent::Linked | Traceparent::Ignored => epoch.link_span(span),
            }
        }
        Read::Malformed => count(&counters.malformed),
        Read::TooLong => count(&counters.too_long),
        Read::Repeated => count(&counters.repeated),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Read {
    Nothing,
    Valid(W3cParent),
    Malformed,
    TooLong,
    Repeated,
}

fn read(headers: &HeaderMap) -> Read {
    let mut values = headers.get_all(TRACEPARENT).iter();
    match (values.next(), values.next()) {
        (None, _) => Read::Nothing,
        (Some(_), Some(_)) => Read::Repeated,
        (Some(value), None) if value.len() > MAX_TRACEPARENT_BYTES => Read::TooLong,
        (Some(value), None) => {
            let parent = value.to_str().ok().and_then(W3cParent::parse);
            parent.map_or(Read::Malformed, Read::Valid)
        }
    }
}
