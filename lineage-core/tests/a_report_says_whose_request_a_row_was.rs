//! From a row to the requests it served: through batches of batches, forks and continuations.

use lineage_core::id::{HostNanos, ProcessOrdinal};
use lineage_core::observation::{LinkKind, Linked, Observation, Operation};
use lineage_core::row::{Binding, Row, Unattributed};
use lineage_core::{LaunchEpoch, Report};
use rows::{kernel, row};

#[path = "common/rows.rs"]
mod rows;

fn epoch(id: u64, version: u32) -> LaunchEpoch {
    LaunchEpoch::from_numbers(id, version).expect("in range")
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

/// A row of an operation of this epoch, on any stream and device, that ran so long.
fn ran(of: LaunchEpoch, device: u32, stream: u32, duration_ns: u64) -> Row {
    let operation = Operation {
        stream,
        ..kernel(device, 1_000, 1_000 + duration_ns)
    };
    Row {
        operation: Some(operation),
        ..row(Binding::Bound(of))
    }
}

#[test]
fn each_member_of_a_batch_has_an_equal_share_of_what_served_them_all() {
    const MEMBERS: u64 = 3_000;
    let mut report = Report::empty(uuid::Uuid::nil());
    let link = |batch, member| {
        Observation::live(Linked {
            epoch: epoch(batch, 1),
            from: epoch(member, 1),
            kind: LinkKind::Merge,
            at: HostNanos(0),
        })
    };
    // All are in the batch 5,000, on two streams of two devices; the first two in 5,001 as well, and
    // the first runs something of its own.
    report.observations = (1..=MEMBERS).map(|member| link(5_000, member)).collect();
    report.observations.extend([link(5_001, 1), link(5_001, 2)]);
    report.rows = vec![
        ran(epoch(5_000, 1), 0, 7, 6_000),
        ran(epoch(5_000, 2), 1, 13, 9_001),
        ran(epoch(5_001, 1), 0, 7, 101),
        ran(epoch(1, 1), 0, 7, 70),
    ];
    let mut timeless = ran(epoch(1, 1), 0, 7, 0);
    if let Some(operation) = &mut timeless.operation {
        operation.end = None;
    }
    report.rows.push(timeless);
    let shares = report.shares();
    assert_eq!(shares.len(), MEMBERS as usize);
    let of = |member| {
        let mut found = shares
            .iter()
            .filter(|share| share.request.id.get() == member);
        *found.next().expect("a share")
    };
    let first = of(1);
    assert_eq!((first.operations, first.device_time_ns), (2, 70));
    assert_eq!(first.without_times, 1);
    assert_eq!(first.shared_operations, 3);
    assert_eq!(first.shared_device_time_ns, 6_000 + 9_001 + 101);
    // 6,000 and 9,001 by 3,000, and 101 by 2, each rounded down.
    assert_eq!(first.share_device_time_ns, 2 + 3 + 50);
    assert_eq!(of(2).share_device_time_ns, 55);
    assert_eq!((of(2).operations, of(2).device_time_ns), (0, 0));
    assert_eq!(of(MEMBERS).share_device_time_ns, 5);
    assert_eq!(of(MEMBERS).shared_operations, 2);
}
