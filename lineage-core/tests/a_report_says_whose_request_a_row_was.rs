//! From a row to the requests it served: through batches of batches, forks and continuations.

use lineage_core::evidence::{Evidence, Why};
use lineage_core::id::{HostNanos, ProcessOrdinal};
use lineage_core::observation::{LinkKind, Linked, Observation};
use lineage_core::row::{Binding, JoinSources, Row, Stages, Unattributed};
use lineage_core::{LaunchEpoch, Report};

fn epoch(id: u64, version: u32) -> LaunchEpoch {
    LaunchEpoch::from_numbers(id, version).expect("in range")
}

fn row(binding: Binding) -> Row {
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

#[test]
fn a_report_says_whose_request_a_row_was() {
    let mut report = Report::empty(uuid::Uuid::nil());
    let mut link = |process, (id, version), (from_id, from_version), kind| {
        let event = Linked {
            epoch: epoch(id, version),
            from: epoch(from_id, from_version),
            kind,
            at: HostNanos(0),
        };
        let process = ProcessOrdinal(process);
        report.observations.push(Observation {
            process,
            event: event.into(),
        });
    };
    // Requests 1, 2 and 3; 3 was retried; 4 is a part of 2; 10 a batch of 1 and 4; 11 of 10 and 3.
    link(0, (3, 2), (3, 1), LinkKind::Retry);
    link(0, (4, 1), (2, 1), LinkKind::Fork);
    link(0, (10, 1), (1, 1), LinkKind::Merge);
    link(0, (10, 1), (4, 1), LinkKind::Merge);
    link(0, (11, 1), (10, 1), LinkKind::Merge);
    link(0, (11, 1), (3, 2), LinkKind::Merge);
    // Another process uses the same number for something else.
    link(1, (10, 1), (99, 1), LinkKind::Merge);

    let requests = |bound| report.requests_of(&row(Binding::Bound(bound)));
    assert_eq!(requests(epoch(1, 1)), [epoch(1, 1)]);
    assert_eq!(requests(epoch(4, 7)), [epoch(2, 1)]);
    // A later step of the batch serves the same members.
    assert_eq!(requests(epoch(10, 5)), [epoch(1, 1), epoch(2, 1)]);
    assert_eq!(
        requests(epoch(11, 1)),
        [epoch(1, 1), epoch(2, 1), epoch(3, 2)]
    );
    let nobody = Binding::Unattributed(Unattributed::Detached);
    assert_eq!(report.requests_of(&row(nobody)), []);
}
