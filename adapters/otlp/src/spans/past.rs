//! Epochs whose spans are made: as much of them as what comes late needs.

use std::collections::VecDeque;

use lineage_core::id::{EpochId, LaunchEpoch};
use opentelemetry::TraceId;
use rustc_hash::FxHashMap;

use super::decide::Outcome;
use super::epoch::{Known, Place};
use crate::ids::Ids;

/// Epochs that are remembered, about 5 MiB. Batches form within seconds of their members' end.
const REMEMBERED: usize = 65_536;

/// One that is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gone {
    /// Its trace; `None` if each of its versions has a trace of its own.
    pub(crate) trace: Option<TraceId>,
    pub(crate) outcome: Outcome,
    /// Its records were lost, so it has no span.
    pub(crate) lost: bool,
}

impl Gone {
    pub(crate) fn place(&self, of: LaunchEpoch, ids: Ids) -> Place {
        Place {
            trace: self.trace.unwrap_or_else(|| ids.trace(of)),
            span: ids.epoch(of),
        }
    }

    pub(crate) fn known(&self, of: LaunchEpoch, ids: Ids) -> Known {
        if self.lost {
            Known::Lost
        } else {
            Known::Decided(self.place(of, ids), self.outcome)
        }
    }
}

/// The newest of them.
#[derive(Debug, Default)]
pub(crate) struct Past {
    known: FxHashMap<EpochId, Gone>,
    order: VecDeque<EpochId>,
}

impl Past {
    pub(crate) fn get(&self, id: EpochId) -> Option<&Gone> {
        self.known.get(&id)
    }

    pub(crate) fn add(&mut self, id: EpochId, gone: Gone) {
        if self.known.insert(id, gone).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}
