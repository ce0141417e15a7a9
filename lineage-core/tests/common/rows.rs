//! Rows written by hand, of which nothing is known but what a test is about.

use lineage_core::evidence::{Evidence, Why};
use lineage_core::id::{CorrelationId, HostNanos, ProcessOrdinal};
use lineage_core::observation::{ActivityKind, Operation};
use lineage_core::row::{Binding, JoinSources, Row, Stages};

/// Of this binding, with neither call nor operation.
pub(crate) fn row(binding: Binding) -> Row {
    let unknown = Evidence::Unknown {
        why: Why::NotCollected,
    };
    Row {
        process: ProcessOrdinal(0),
        call: None,
        operation: None,
        graph: None,
        binding,
        sources: JoinSources::default(),
        stages: Stages {
            declared: unknown,
            ready: unknown,
            scope_enter: unknown,
            api_enter: unknown,
            api_exit: unknown,
            queued: unknown,
            submitted: unknown,
            start: unknown,
            end: unknown,
        },
        faults: Vec::new(),
        after_retirement: false,
        supersedes: false,
    }
}

/// A kernel without a name, from when to when.
pub(crate) fn kernel(device: u32, start: u64, end: u64) -> Operation {
    Operation {
        session: 1,
        kind: ActivityKind::Kernel,
        correlation: CorrelationId(1),
        device,
        context: 1,
        stream: 7,
        queued: None,
        submitted: None,
        start: Some(HostNanos(start)),
        end: Some(HostNanos(end)),
        name: None,
        graph_node: None,
        graph: None,
        bytes: 0,
        copies: 1,
        grid: [1; 3],
        block: [1; 3],
        footprint: None,
    }
}
