//! Deterministic ids: the same work has the same ids whenever and however often it is exported, so
//! that what is sent twice is seen to be the same.
//!
//! An id is SipHash-1-3 of what identifies the thing, keyed by the process's UUID.

use std::hash::Hasher as _;

use lineage_core::id::LaunchEpoch;
use opentelemetry::{SpanId, TraceId};
use siphasher::sip128::{Hasher128 as _, SipHasher13};
use uuid::Uuid;

use crate::spans::OperationKey;

/// Ids of one process's spans.
#[derive(Debug, Clone, Copy)]
pub struct Ids(SipHasher13);

/// What an id is of, so that no two kinds share one.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Of {
    Trace = 1,
    Epoch = 2,
    Participation = 3,
    Operation = 4,
}

impl Ids {
    /// Those of this process.
    pub fn new(process: Uuid) -> Self {
        Self(SipHasher13::new_with_key(process.as_bytes()))
    }

    fn of(self, what: Of, parts: &[u64]) -> u128 {
        let mut hasher = self.0;
        hasher.write_u8(what as u8);
        parts
            .iter()
            .for_each(|part| hasher.write(&part.to_le_bytes()));
        hasher.finish128().as_u128()
    }

    fn span(self, what: Of, parts: &[u64]) -> SpanId {
        // 0 is no valid id; what is one in 2^64 costs nothing.
        SpanId::from((self.of(what, parts) as u64).max(1))
    }

    /// The trace of work that belongs to no other trace: that of a request without a parent, or
    /// of one step of a batch.
    pub fn trace(self, epoch: LaunchEpoch) -> TraceId {
        TraceId::from(self.of(Of::Trace, &parts(epoch)).max(1))
    }

    /// The span of an epoch at a version.
    pub fn epoch(self, epoch: LaunchEpoch) -> SpanId {
        self.span(Of::Epoch, &parts(epoch))
    }

    /// The span of a member's part in one step of a batch.
    pub fn participation(self, batch: LaunchEpoch, member: LaunchEpoch) -> SpanId {
        let ([batch, step], [member, version]) = (parts(batch), parts(member));
        self.span(Of::Participation, &[batch, step, member, version])
    }

    /// The span of an operation.
    pub(crate) fn operation(self, key: &OperationKey) -> SpanId {
        self.span(Of::Operation, &key.parts())
    }
}

fn parts(epoch: LaunchEpoch) -> [u64; 2] {
    [epoch.id.get(), u64::from(epoch.version.get())]
}
