//! Epochs that never launched, and handoffs that never arrived.

mod correlator_support;

use correlator_support::*;
use lineage_core::fault::FaultCode;
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::{
    Event, Gap, LinkKind, Linked, Mark, Retired, RetiredAs, Scope, Stepped,
};
use lineage_core::row::Binding;

/// A live session in which launches can be seen.
fn device() -> Event {
    started(1, 1)
}

/// Flushes after which nothing of a retired epoch can still be in a ring.
fn aged(ns: u64) -> [Event; 2] {
    [flushed(ns), flushed(ns + 100)]
}

#[test]
fn an_epoch_that_was_handed_on_and_retires_without_a_launch_is_l04() {
    let mut run = Run::new();
    run.see([
        device(),
        declared(1, 3, 1_000),
        sent(1, 1, 3, 1_100),
        received(2, 1, 3, 1_200),
        retired(3, 2_000),
    ]);
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

/// Rings are read one after the other: a batch's before that of the thread that declared a member.
#[test]
fn a_member_that_is_declared_in_a_ring_that_is_read_later_is_linked_all_the_same() {
    let merged = Linked {
        epoch: epoch(9),
        from: epoch(1),
        kind: LinkKind::Merge,
        at: at(300),
    };
    let run = ended([
        device(),
        declared(2, 9, 200),
        merged.into(),
        call(2, 100, 400, 9),
        retired(9, 500),
        declared(1, 1, 100),
        sent(1, 1, 1, 110),
        received(2, 1, 1, 190),
        retired(1, 600),
        flushed(1_000),
        flushed(2_000),
    ]);
    let found: Vec<_> = run.faults.iter().map(|fault| fault.code).collect();
    assert!(!found.contains(&FaultCode::L04), "{found:?}");
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
        [FaultCode::L04],
        "the work that was asked for is the member's"
    );
    assert_eq!(run.faults[0].epoch, Some(epoch(1)));

    // What lives at the end is under way.
    let run = ended(start.clone());
    assert_eq!(run.loose(), []);
    assert_eq!(run.totals().epochs.undecided, 1);

    // What ended by then is decided, whatever the order of ids.
    let mut run = Run::new();
    run.see(start).see([retired(9, 700)]).end();
    assert_eq!(run.loose(), [FaultCode::L04]);
    assert_eq!(run.totals().epochs.undecided, 0);
}

#[test]
fn a_cancelled_link_of_a_chain_does_not_hide_that_its_end_lives() {
    let mut run = Run::new();
    run.see([
        device(),
        declared(1, 3, 100),
        declared(1, 4, 110),
        declared(1, 6, 120),
        linked(6, 4, LinkKind::Merge, 130),
        linked(4, 3, LinkKind::Merge, 140),
        marked(1, 4, Mark::Cancelled, 150),
        retired(3, 200),
        retired(4, 200),
    ]);
    run.see(aged(300));
    assert_eq!(run.loose(), []);
    run.end();
    assert_eq!((run.loose(), run.totals().epochs.undecided), (vec![], 1));
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
fn a_handoff_whose_epoch_lives_at_the_end_is_under_way() {
    let mut run = Run::new();
    run.see([declared(1, 3, 1_000), sent(1, 1, 3, 1_010)])
        .see(aged(3_000));
    run.end();
    assert_eq!(run.loose(), []);
    assert_eq!((run.totals().handoffs.under_way, run.totals().lost), (1, 0));

    // It was forgotten if its epoch ended without it.
    let run = ended([
        declared(1, 3, 1_000),
        sent(1, 1, 3, 1_010),
        retired(3, 2_000),
    ]);
    assert_eq!(run.loose(), [FaultCode::L05]);
    assert_eq!((run.totals().handoffs.under_way, run.totals().lost), (0, 1));
}

#[test]
fn an_epoch_that_ended_where_it_was_declared_is_only_counted() {
    let without_work = |events: Vec<Event>| {
        let events = [device(), declared(1, 3, 1_000)].into_iter().chain(events);
        let run = ended(events.chain([retired(3, 2_000)]));
        let epochs = run.totals().epochs;
        (run.loose(), epochs.ended_without_gpu_work, epochs.undecided)
    };
    assert_eq!(without_work(vec![]), (vec![], 1, 0), "an early return");
    let dropped = vec![sent(1, 1, 3, 1_100), abandoned(1, 3, 1_200)];
    assert_eq!(
        without_work(dropped),
        (vec![], 1, 0),
        "dropped with its work"
    );

    let forgotten = vec![sent(1, 1, 3, 1_100)];
    let both = vec![FaultCode::L05, FaultCode::L04];
    assert_eq!(without_work(forgotten), (both, 0, 0));
    let boundary = Scope {
        boundary: true,
        ..scope_of(1, of(3), 1, 1_100, 1_200)
    };
    let entered = without_work(vec![boundary.clone().into()]);
    assert_eq!(entered, (vec![FaultCode::L04], 0, 0));
    let scope = Scope {
        boundary: false,
        ..boundary
    };
    assert_eq!(without_work(vec![scope.into()]), (vec![], 1, 0));
    let stepped = Stepped {
        epoch: LaunchEpoch::from_numbers(3, 2).expect("in range"),
        thread: thread(1),
        at: at(1_100),
    };
    assert_eq!(
        without_work(vec![stepped.into()]),
        (vec![FaultCode::L04], 0, 0)
    );
}

#[test]
fn what_a_gap_may_have_swallowed_is_not_missed() {
    let with_gap = |count: u64, until: Option<u64>| {
        let gap = Gap {
            thread: thread(7),
            count,
            not_before: None,
            not_after: until.map(at),
        };
        let run = ended([
            device(),
            declared(1, 3, 1_000),
            sent(1, 1, 3, 1_100),
            retired(3, 2_000),
            gap.into(),
        ]);
        let missed = run.loose().into_iter();
        let missed: Vec<FaultCode> = missed.filter(|code| *code != FaultCode::L07).collect();
        let totals = run.totals();
        (missed, totals.handoffs.undecided, totals.epochs.undecided)
    };
    let both = vec![FaultCode::L05, FaultCode::L04];
    assert_eq!(with_gap(5, Some(999)), (both.clone(), 0, 0), "before both");
    assert_eq!(
        with_gap(5, Some(1_050)),
        (vec![FaultCode::L05], 0, 1),
        "before it was sent"
    );
    assert_eq!(with_gap(5, Some(1_150)), (vec![], 1, 1));
    assert_eq!(with_gap(5, None), (vec![], 1, 1));
    assert_eq!(with_gap(0, None), (both, 0, 0), "nothing was lost");
}

/// Thousands of requests in one batch, some of them in two, cancelled before and after the launch; the
/// batch's work is on two streams of two devices.
#[test]
fn a_batch_of_thousands_has_launched_for_all_that_were_in_it() {
    const MEMBERS: u64 = 2_000;
    let (whole, small, never) = (9_001, 9_002, 9_003);
    let cancelled = |id, ns| {
        Event::from(Retired {
            epoch: epoch(id),
            how: RetiredAs::Cancelled,
            at: at(ns),
        })
    };
    let mut run = Run::new();
    run.see([device()]);
    for id in 1..=MEMBERS + 1 {
        run.see([
            declared(1, id, 100 + id),
            sent(1, id, id, 3_000 + id),
            received(2, id, id, 6_000 + id),
        ]);
    }
    for id in [whole, small, never] {
        run.see([declared(2, id, 10_000)]);
    }
    run.see((1..=MEMBERS).map(|id| linked(whole, id, LinkKind::Merge, 11_000)));
    run.see([2, 3].map(|id| linked(small, id, LinkKind::Merge, 11_000)));
    run.see([linked(never, MEMBERS + 1, LinkKind::Merge, 11_000)]);
    // Before the launch, after it, and never.
    run.see([cancelled(1, 12_000)]);
    for (correlation, batch) in [(100, whole), (101, whole), (102, small)] {
        let from = 20_000 + u64::from(correlation) * 100;
        run.see([
            call(2, correlation, from, batch),
            external(batch, correlation, from),
            api(2, correlation, from),
            scope(2, batch, u64::from(correlation), from - 5, from + 20),
        ]);
        let mut kernel = kernel_of(correlation, from + 50, from + 90);
        (kernel.device, kernel.stream) = (correlation % 2, 7 + correlation);
        run.see([kernel.into()]);
    }
    run.see([cancelled(2, 40_000)]);
    run.see((3..=MEMBERS + 1).map(|id| retired(id, 50_000)));
    run.see([whole, small, never].map(|id| retired(id, 50_000)));
    run.see(aged(60_000)).end();
    let bound: Vec<_> = run.rows.iter().map(|row| row.binding).collect();
    let expected = [whole, whole, small].map(|id| Binding::Bound(epoch(id)));
    assert_eq!(bound, expected);
    let l04: Vec<_> = run
        .faults
        .iter()
        .filter(|fault| fault.code == FaultCode::L04)
        .filter_map(|fault| fault.epoch)
        .collect();
    assert_eq!(l04, [epoch(MEMBERS + 1)], "its batch never launched");
    assert!(run.totals().is_clean());
}
