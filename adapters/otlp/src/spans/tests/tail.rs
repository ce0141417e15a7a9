//! What is exported of which work.

use std::time::Duration;

use lineage_core::fault::FaultCode;
use lineage_core::observation::LinkKind;

use super::support::*;
use crate::attributes as names;
use crate::spans::{Detail, RootSampler, Threshold, Volume};

fn at_the_tail() -> Volume {
    Volume {
        late: Threshold::Over(Duration::from_nanos(1_000)),
        slow: Threshold::Over(Duration::from_micros(10)),
        ..Volume::default()
    }
}

/// A request in a batch with another one; its last kernel ends at this time.
fn two_in_a_batch(session: &mut Session, first: u64, ends: [u64; 2]) {
    let [a, b, batch] = [first, first + 1, first + 2];
    session.declare(a, 100).declare(b, 100);
    session
        .merge(batch, &[a, b], 300)
        .kernel(epoch(batch, 1), 500, 600);
    session.retire(batch, 700);
    session
        .kernel(epoch(a, 1), 800, ends[0])
        .kernel(epoch(b, 1), 800, ends[1]);
    session.retire(a, 900).retire(b, 900);
}

#[test]
fn sums_only_where_nothing_is_late_slow_or_faulty() {
    let mut session = Session::new(at_the_tail());
    two_in_a_batch(&mut session, 1, [850, 860]);
    session.progress(20_000);
    assert_eq!(session.out.len(), 2, "one span for each request");
    for request in session.of_kind("request") {
        assert_eq!(text(request, names::DETAIL), "sums");
        assert_eq!(number(request, names::OPERATIONS), Some(1));
        assert_eq!(number(request, names::SHARED_OPERATIONS), Some(1));
    }
    assert_eq!(session.end().operations_summed, 3);
}

#[test]
fn a_slow_request_keeps_its_kernels_though_nobody_knew_beforehand() {
    let mut session = Session::new(at_the_tail());
    two_in_a_batch(&mut session, 1, [850, 20_000]);
    // Long before it is known, all that can be decided is.
    session.progress_to(1_000, 850);
    assert!(session.out.is_empty());
    session.progress(30_000);

    let (fast, slow) = (session.span(epoch(1, 1)), session.span(epoch(2, 1)));
    assert_eq!(text(fast, names::DETAIL), "sums");
    assert_eq!(text(slow, names::DETAIL), "slow");
    let batch = session.span(epoch(3, 1));
    let participations = session.of_kind("participation");
    assert_eq!(participations.len(), 1);
    assert_eq!(
        participations[0].parent_span_id,
        slow.span_context.span_id()
    );
    // What has no participation is linked by its own span: no link leads nowhere.
    assert_eq!(
        links(batch, "member"),
        [place(fast), place(participations[0])]
    );
    let kernels = session.of_kind("operation");
    assert_eq!(
        kernels.len(),
        2,
        "the batch's and its own, not the fast one's"
    );
    assert_eq!(session.end().operations_summed, 1);
}

#[test]
fn a_late_kernel_and_a_fault_keep_all_that_their_request_did() {
    let mut session = Session::new(at_the_tail());
    session.declare(1, 100);
    // Called at 200: late by 100 over the limit.
    let call_at = 200;
    session.kernel(epoch(1, 1), 400, 450);
    session.retire(1, 500);
    session.declare(2, 100);
    session.kernel_with(epoch(2, 1), call_at + 100, 450, &[FaultCode::W03]);
    session.retire(2, 500);
    session.progress(30_000);
    assert_eq!(text(session.span(epoch(1, 1)), names::DETAIL), "sums");
    let faulty = session.span(epoch(2, 1));
    assert_eq!(text(faulty, names::DETAIL), "fault");
    assert_eq!(number(faulty, names::FAULT_COUNT), Some(1));
    assert_eq!(session.of_kind("operation").len(), 1);

    let mut session = Session::new(Volume {
        late: Threshold::Over(Duration::from_nanos(99)),
        ..at_the_tail()
    });
    session
        .declare(1, 100)
        .kernel(epoch(1, 1), 400, 450)
        .retire(1, 500);
    session.progress(30_000);
    assert_eq!(text(session.span(epoch(1, 1)), names::DETAIL), "late");
    assert_eq!(session.of_kind("operation").len(), 1);
}

#[test]
fn a_late_part_makes_the_request_late() {
    let mut session = Session::new(at_the_tail());
    session.declare(1, 100).declare(2, 200);
    session.link(2, epoch(1, 1), LinkKind::Fork);
    session.kernel(epoch(1, 1), 400, 450).retire(1, 500);
    session.kernel_with(epoch(2, 1), 600, 700, &[FaultCode::T01]);
    session.progress(1_000);
    assert!(session.out.is_empty(), "its part is not over");
    session.retire(2, 800).progress(2_000);
    assert_eq!(text(session.span(epoch(1, 1)), names::DETAIL), "fault");
    assert_eq!(session.of_kind("operation").len(), 2);
}

#[test]
fn what_the_head_did_not_sample_is_never_exported() {
    let mut session = Session::new(Volume::of_all(Detail::Everything));
    session.declare(1, 100).child_of(1, 0x11, 0x1, 0);
    session.declare(2, 100).child_of(2, 0x22, 0x2, 1);
    session.merge(3, &[1, 2], 300).kernel(epoch(3, 1), 500, 600);
    session.kernel_with(epoch(1, 1), 700, 800, &[FaultCode::W03]);
    session.merge(4, &[1], 350).kernel(epoch(4, 1), 900, 950);
    let counts = session.end();
    assert_eq!(
        session.out.len(),
        4,
        "one request, its part, the batch, its kernel"
    );
    let batch = session.span(epoch(3, 1));
    // The batch names it all the same, and says that it was not sampled.
    let flags: Vec<bool> = batch
        .links
        .links
        .iter()
        .map(|link| link.span_context.is_sampled())
        .collect();
    assert_eq!(flags, [false, true]);
    assert_eq!(counts.operations_not_sampled, 2);
    assert_eq!(
        counts.epochs_not_sampled, 2,
        "the request, and the batch of it alone"
    );
}

#[test]
fn a_parent_that_comes_after_the_trace_was_exported_is_a_link() {
    let mut session = Session::new(Volume::of_all(Detail::Everything));
    session
        .declare(1, 100)
        .kernel(epoch(1, 1), 300, 400)
        .progress(500);
    let kernel = place(session.of_kind("operation")[0]);
    session
        .child_of(1, 0x11, 0x1, 1)
        .retire(1, 600)
        .progress(700);
    let request = session.span(epoch(1, 1));
    assert_eq!(request.span_context.trace_id(), kernel.0);
    assert_eq!(links(request, "asked_by"), [(0x11.into(), 0x1.into())]);
    assert_eq!(session.end().parents_too_late, 1);
}

#[test]
fn roots_are_sampled_as_opentelemetry_says() {
    for (roots, spans) in [
        (RootSampler::AlwaysOn, 2),
        (RootSampler::AlwaysOff, 0),
        (RootSampler::Ratio(1.0), 2),
        (RootSampler::Ratio(0.0), 1),
        (RootSampler::Undecided, 1),
    ] {
        let mut session = Session::new(Volume {
            roots,
            ..at_the_tail()
        });
        session.declare(1, 100).kernel(epoch(1, 1), 300, 400);
        session.end();
        assert_eq!(session.out.len(), spans, "{roots:?}");
    }
}
