//! What is held is bounded, and what is decided early says so.

use lineage_core::fault::FaultCode;

use super::support::*;
use crate::attributes as names;
use crate::spans::{Detail, Volume};

#[test]
fn what_cannot_be_held_is_decided_by_what_is_known() {
    let mut session = Session::holding(Volume::default(), 64 << 10, 10_000);
    let faulty = epoch(2, 1);
    for id in 1..=200 {
        session.declare(id, 100);
    }
    session.kernel_with(faulty, 300, 400, &[FaultCode::W03]);
    session.progress(1_000);
    let mut most = 0;
    for round in 0..50u64 {
        for id in 1..=200 {
            let start = 1_000 + round * 1_000 + id;
            session.kernel(epoch(id, 1), start, start + 1);
            most = most.max(session.spans.counts().held_bytes);
        }
        session.progress(1_000 + round * 1_000 + 500);
    }
    let counts = session.end();
    // 10,001 operations of about 300 bytes would be 3 MB; 200 epochs that live are 1 kB each.
    assert!(most < (64 << 10) + 200 * 1_100, "{most}");
    assert!(counts.decided_early > 0);
    assert_eq!(session.of_kind("request").len(), 200);
    let request = session.span(faulty);
    assert_eq!(text(request, names::DETAIL), "fault");
    assert!(value(request, names::DECIDED_EARLY).is_some());
    let in_full = session.of_kind("operation").len() as u64;
    assert_eq!(in_full + counts.operations_summed, 10_001);
    assert!(in_full >= 51, "all of the faulty one's, {in_full}");
    assert_eq!(number(request, names::OPERATIONS), Some(51));
}

#[test]
fn epochs_whose_end_is_never_told_do_not_pile_up() {
    let mut session = Session::holding(Volume::of_all(Detail::Everything), 1 << 30, 100);
    for id in 1..=1_000 {
        session
            .declare(id, id * 10)
            .kernel(epoch(id, 1), id * 10 + 5, id * 10 + 6);
        session.progress(id * 10 + 9);
        assert!(session.spans.epochs.len() <= 101);
    }
    let counts = session.end();
    assert_eq!(counts.requests, 1_000);
    assert_eq!(counts.operations, 1_000);
    assert_eq!(text(session.span(epoch(1, 1)), names::EPOCH_ENDED), "live");
}

#[test]
fn members_whose_records_are_lost_are_counted_and_not_linked() {
    let mut session = Session::new(Volume::of_all(Detail::Everything));
    session.declare(1, 100);
    session.merge(3, &[1, 2], 300).kernel(epoch(3, 1), 500, 600);
    session.kernel(epoch(9, 1), 700, 800);
    let counts = session.end();
    let batch = session.span(epoch(3, 1));
    assert_eq!(links(batch, "member").len(), 1);
    assert_eq!(number(batch, names::MEMBERS), Some(2));
    assert_eq!(number(batch, names::MEMBERS_UNKNOWN), Some(1));
    assert_eq!(counts.members_unknown, 1);
    assert_eq!(
        counts.operations_without_epoch, 1,
        "of the epoch nobody declared"
    );
}

#[test]
fn a_batch_that_goes_on_for_long_holds_its_newest_step_only() {
    let mut session = Session::new(Volume::of_all(Detail::Everything));
    session.declare(1, 1).merge(2, &[1], 2);
    for version in 2..=5_000u32 {
        let ns = u64::from(version) * 1_000;
        session
            .step(epoch(2, version), ns)
            .kernel(epoch(2, version), ns + 200, ns + 300);
        session.progress(ns + 900);
        assert!(session.spans.epochs[&2].steps.len() <= 2);
    }
    let counts = session.end();
    assert_eq!((counts.steps, counts.participations), (5_000, 5_000));
    assert_eq!(counts.operations, 4_999);
}
