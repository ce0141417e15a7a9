//! Epochs that never launched, and handoffs that never arrived.

mod correlator_support;

use correlator_support::*;
use lineage_core::fault::FaultCode;
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::{Event, LinkKind, Linked, Mark, Retired, RetiredAs, Stepped};

/// A live session in which launches can be seen.
fn device() -> Event {
    started(1, 1)
}

/// Flushes after which nothing of a retired epoch can still be in a ring.
fn aged(ns: u64) -> [Event; 2] {
    [flushed(ns), flushed(ns + 100)]
}

#[test]
fn an_epoch_that_retires_without_a_launch_is_l04() {
    let mut run = Run::new();
    run.see([device(), declared(1, 3, 1_000), retired(3, 2_000)]);
    assert_eq!(
        run.loose(),
        [],
        "its call may still lie in another thread's ring"
    );
    run.see([flushed(3_000)]);
    assert_eq!(run.loose(), []);
    run.see([flushed(4_000)]);
    assert_eq!(run.loose(), [FaultCode::L04]);
    assert_eq!(
        (run.faults[0].epoch, run.faults[0].at),
        (Some(epoch(3)), Some(at(2_000)))
    );
    run.end();
    assert_eq!(run.faults.len(), 1, "it is said once");
    assert_eq!(run.totals().lost, 0, "no join is lost by it");
    let epochs = run.totals().epochs;
    assert_eq!((epochs.declared, epochs.retired, epochs.live), (1, 1, 0));
}

#[test]
fn a_launch_that_was_recorded_in_another_ring_counts() {
    let mut run = Run::new();
    run.see([
        device(),
        declared(1, 3, 1_000),
        retired(3, 2_000),
        flushed(3_000),
    ]);
    run.see([call(2, 100, 1_500, 3), flushed(4_000), flushed(5_000)]);
    run.end();
    assert!(!run.loose().contains(&FaultCode::L04));
}

#[test]
fn a_call_that_failed_is_a_launch_all_the_same() {
    let mut failed = call_of(1, 100, 1_500, of(3));
    failed.result = 700;
    let run = ended([
        device(),
        declared(1, 3, 1_000),
        failed.into(),
        retired(3, 2_000),
    ]);
    assert_eq!(run.loose(), []);
}

#[test]
fn a_cancelled_epoch_need_not_launch() {
    let cancelled = Retired {
        epoch: epoch(4),
        how: RetiredAs::Cancelled,
        at: at(2_000),
    };
    let run = ended([
        device(),
        declared(1, 3, 1_000),
        marked(1, 3, Mark::Cancelled, 1_500),
        retired(3, 2_000),
        declared(1, 4, 1_000),
        cancelled.into(),
    ]);
    assert_eq!(run.loose(), []);
}

#[test]
fn without_device_evidence_no_launch_can_be_seen_and_none_is_missed() {
    let run = ended([declared(1, 3, 1_000), retired(3, 2_000)]);
    assert_eq!(run.loose(), []);
}

#[test]
fn a_member_whose_batch_launched_has_launched() {
    let batch = |merge_first: bool| {
        let mut events = vec![
            device(),
            declared(1, 1, 100),
            declared(1, 2, 110),
            declared(2, 9, 200),
        ];
        let links = [
            linked(9, 1, LinkKind::Merge, 210),
            linked(9, 2, LinkKind::Merge, 220),
        ];
        let launch = [
            call(2, 100, 300, 9),
            retired(1, 400),
            retired(2, 400),
            retired(9, 400),
        ];
        if merge_first {
            events.extend(links.into_iter().chain(launch));
        } else {
            events.extend(launch.into_iter().chain(links));
        }
        events.extend(aged(500));
        events
    };
    for merge_first in [true, false] {
        let mut run = Run::new();
        run.see(batch(merge_first));
        run.end();
        assert!(!run.loose().contains(&FaultCode::L04), "{:?}", run.faults);
    }
}

#[test]
fn a_member_waits_for_its_batch_as_long_as_that_may_launch() {
    let start = [
        device(),
        declared(1, 1, 100),
        declared(2, 9, 200),
        linked(9, 1, LinkKind::Merge, 210),
        retired(1, 300),
    ];
    let mut run = Run::new();
    run.see(start.clone()).see(aged(400)).see(aged(600));
    assert_eq!(run.loose(), [], "the batch lives");
    run.see([retired(9, 700)]).see(aged(800));
    assert_eq!(
        run.loose(),
        [FaultCode::L04, FaultCode::L04],
        "neither launched"
    );

    // Or for the end.
    let run = ended(start);
    assert_eq!(run.loose(), [FaultCode::L04]);
    assert_eq!(run.faults[0].epoch, Some(epoch(1)));
}

#[test]
fn a_chain_of_links_is_followed_to_its_beginning() {
    let mut run = Run::new();
    run.see([
        device(),
        declared(1, 1, 100),
        declared(1, 2, 110),
        declared(1, 3, 120),
        linked(2, 1, LinkKind::Fork, 130),
        linked(3, 2, LinkKind::Merge, 140),
        retired(1, 200),
        retired(2, 200),
    ]);
    run.see(aged(300));
    run.see([call(1, 100, 500, 3), retired(3, 600)])
        .see(aged(700));
    run.end();
    assert!(!run.loose().contains(&FaultCode::L04));
}

#[test]
fn work_that_goes_on_under_a_fresh_id_retires_with_it() {
    let new = LaunchEpoch::from_numbers(2, 1).expect("in range");
    let events = |launches: bool| {
        let mut events = vec![
            device(),
            declared(1, 1, 100),
            Stepped {
                epoch: new,
                thread: thread(1),
                at: at(200),
            }
            .into(),
            Linked {
                epoch: new,
                from: epoch(1),
                kind: LinkKind::Continues,
                at: at(201),
            }
            .into(),
        ];
        if launches {
            events.push(call(1, 100, 300, 2));
        }
        events.push(retired(2, 400));
        events
    };
    let mut run = Run::new();
    run.see(events(false)).see(aged(500));
    assert_eq!(
        run.loose(),
        [FaultCode::L04, FaultCode::L04],
        "under either id"
    );
    let mut run = Run::new();
    run.see(events(true)).see(aged(500));
    assert_eq!(run.loose(), []);
    assert_eq!(run.totals().epochs.live, 0);
}

#[test]
fn a_handoff_that_never_arrived_shows_when_its_epoch_retires() {
    let mut run = Run::new();
    run.see([
        declared(1, 3, 1_000),
        sent(1, 1, 3, 1_010),
        sent(1, 2, 3, 1_020),
        sent(1, 4, 3, 1_030),
        received(2, 1, 3, 1_100),
        abandoned(4, 3, 1_110),
        retired(3, 2_000),
    ]);
    run.see(aged(3_000));
    assert_eq!(run.loose(), [FaultCode::L05]);
    assert_eq!(
        (run.faults[0].epoch, run.faults[0].at),
        (Some(epoch(3)), Some(at(1_020)))
    );
    assert!(
        run.faults[0].detail.contains("handoff 2"),
        "{}",
        run.faults[0].detail
    );
    let handoffs = run.totals().handoffs;
    assert_eq!(
        (handoffs.sent, handoffs.received, handoffs.abandoned),
        (3, 1, 1)
    );
    assert_eq!(run.totals().lost, 1);
}

#[test]
fn a_handoffs_ends_may_be_seen_in_either_order() {
    let run = ended([
        declared(1, 3, 1_000),
        received(2, 1, 3, 1_100),
        sent(1, 1, 3, 1_010),
        abandoned(2, 3, 1_200),
        sent(1, 2, 3, 1_020),
        retired(3, 2_000),
    ]);
    assert_eq!(run.loose(), []);
}

#[test]
fn a_handoff_still_under_way_is_decided_at_the_end() {
    let mut run = Run::new();
    run.see([declared(1, 3, 1_000), sent(1, 1, 3, 1_010)])
        .see(aged(3_000));
    assert_eq!(run.loose(), []);
    run.end();
    assert_eq!(run.loose(), [FaultCode::L05]);
}
