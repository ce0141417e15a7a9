//! Whose request a row was, and each request's share of what the device did.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::id::{EpochId, LaunchEpoch, ProcessOrdinal};
use crate::observation::{Event, Observation};
use crate::row::{Binding, Row};

/// What the device did for one request, alone and in batches.
///
/// A batch's kernel serves all of its members at once, and nothing observed divides it: a member's
/// *share* is 1/n of each operation's duration, where the operation serves n requests. It is a rule of
/// accounting and no measurement. All sums are of durations on the device; operations that overlap
/// count in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The process.
    pub process: ProcessOrdinal,
    /// The request, at the version by which it was served first.
    pub request: LaunchEpoch,
    /// Operations that served no other request.
    pub operations: u64,
    /// The sum of their durations, in nanoseconds.
    pub device_time_ns: u64,
    /// Operations that served others as well.
    pub shared_operations: u64,
    /// The sum of their durations in full, in nanoseconds.
    pub shared_device_time_ns: u64,
    /// The sum of the 1/n of each of them, each rounded down to a nanosecond.
    pub share_device_time_ns: u64,
    /// Operations among all of these without a usable start and end: they count, and no time does.
    pub without_times: u64,
}

/// Which epochs serve which, over every link.
#[derive(Debug, Default)]
pub(super) struct Served(HashMap<(ProcessOrdinal, EpochId), Vec<LaunchEpoch>>);

impl Served {
    pub(super) fn of(observations: &[Observation]) -> Self {
        let mut served: HashMap<_, Vec<LaunchEpoch>> = HashMap::new();
        for observation in observations {
            if let Event::Linked(link) = &observation.event {
                // A retry is the same work under the same id.
                if link.epoch.id != link.from.id {
                    let epoch = (observation.process, link.epoch.id);
                    served.entry(epoch).or_default().push(link.from);
                }
            }
        }
        Self(served)
    }

    /// The epochs that this one serves and that serve no other, each once.
    pub(super) fn requests_of(
        &self,
        process: ProcessOrdinal,
        epoch: LaunchEpoch,
    ) -> Vec<LaunchEpoch> {
        let (mut requests, mut seen, mut open) = (Vec::new(), HashSet::new(), vec![epoch]);
        while let Some(epoch) = open.pop() {
            if !seen.insert(epoch.id) {
                continue;
            }
            match self.0.get(&(process, epoch.id)) {
                Some(members) => open.extend(members),
                None => requests.push(epoch),
            }
        }
        requests.sort_unstable();
        requests
    }
}

/// What the device did for each request, in order of process and request.
pub(super) fn shares(observations: &[Observation], rows: &[Row]) -> Vec<Share> {
    let served = Served::of(observations);
    let mut requests: HashMap<(ProcessOrdinal, EpochId), Vec<LaunchEpoch>> = HashMap::new();
    let mut shares: BTreeMap<(ProcessOrdinal, EpochId), Share> = BTreeMap::new();
    for row in rows {
        let (Binding::Bound(epoch), Some(operation)) = (row.binding, &row.operation) else {
            continue;
        };
        let of_epoch = requests
            .entry((row.process, epoch.id))
            .or_insert_with(|| served.requests_of(row.process, epoch));
        let members = of_epoch.len() as u64;
        let times = operation.start.zip(operation.end);
        let duration_ns = times.and_then(|(start, end)| end.0.checked_sub(start.0));
        for &request in &*of_epoch {
            let share = shares
                .entry((row.process, request.id))
                .or_insert_with(|| Share::none(row.process, request));
            share.without_times += u64::from(duration_ns.is_none());
            let duration_ns = duration_ns.unwrap_or(0);
            let (operations, sum_ns) = match members {
                1 => (&mut share.operations, &mut share.device_time_ns),
                _ => {
                    share.share_device_time_ns += duration_ns / members;
                    (
                        &mut share.shared_operations,
                        &mut share.shared_device_time_ns,
                    )
                }
            };
            *operations += 1;
            *sum_ns = sum_ns.saturating_add(duration_ns);
        }
    }
    shares.into_values().collect()
}

impl Share {
    const fn none(process: ProcessOrdinal, request: LaunchEpoch) -> Self {
        Self {
            process,
            request,
            operations: 0,
            device_time_ns: 0,
            shared_operations: 0,
            shared_device_time_ns: 0,
            share_device_time_ns: 0,
            without_times: 0,
        }
    }
}
