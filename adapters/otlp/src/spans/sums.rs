//! Sums over the operations of an epoch: what is exported of it in any case.

use lineage_core::id::HostNanos;

use super::operation::Operation;

/// Sums over operations. Durations in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) operations: u64,
    pub(crate) without_times: u64,
    pub(crate) device_time_ns: u64,
    pub(crate) bytes: u64,
    pub(crate) launch_delay_max_ns: u64,
    pub(crate) launch_delay_sum_ns: u64,
    pub(crate) faults: u64,
    pub(crate) first_start: Option<HostNanos>,
    pub(crate) last_end: Option<HostNanos>,
}

impl Sums {
    pub(crate) fn add(&mut self, operation: &Operation) {
        let delay_ns = operation.launch_delay_ns().unwrap_or(0);
        self.merge(&Self {
            operations: 1,
            without_times: 0,
            device_time_ns: operation.duration_ns(),
            bytes: operation.bytes,
            launch_delay_max_ns: delay_ns,
            launch_delay_sum_ns: delay_ns,
            faults: u64::from(!operation.faults.is_empty()),
            first_start: Some(operation.key.start),
            last_end: Some(operation.key.end),
        });
    }

    pub(crate) fn add_without_times(&mut self) {
        self.operations += 1;
        self.without_times += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.operations += other.operations;
        self.without_times += other.without_times;
        self.device_time_ns = self.device_time_ns.saturating_add(other.device_time_ns);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.launch_delay_max_ns = self.launch_delay_max_ns.max(other.launch_delay_max_ns);
        self.launch_delay_sum_ns = self
            .launch_delay_sum_ns
            .saturating_add(other.launch_delay_sum_ns);
        self.faults += other.faults;
        self.first_start = self.first_start.into_iter().chain(other.first_start).min();
        self.last_end = self.last_end.max(other.last_end);
    }
}
