//! What happened to an epoch is told with it: where it happened, and with both ends of a handoff.

use lineage_core::fault::FaultCode;
use lineage_core::row::LooseFault;
use opentelemetry::KeyValue;
use opentelemetry::trace::Event;
use opentelemetry_sdk::trace::SpanData;

use super::support::*;
use crate::attributes as names;
use crate::spans::{Detail, TextKind, Texts, Volume};

fn everything() -> Session {
    Session::new(Volume::of_all(Detail::Everything))
}

/// Names and times of a span's events.
fn events(span: &SpanData) -> Vec<(&str, u64)> {
    let of = |event: &'_ Event| {
        let since = event.timestamp.duration_since(std::time::UNIX_EPOCH);
        since.expect("after 1970").as_nanos() as u64 - 1_000_000
    };
    let events = span.events.events.iter();
    events
        .map(|event| (event.name.as_ref(), of(event)))
        .collect()
}

fn said(attributes: &[KeyValue], name: &str) -> Option<String> {
    let mut found = attributes.iter().filter(|it| it.key.as_str() == name);
    found.next().map(|it| it.value.as_str().into_owned())
}

fn fault(id: u64, ns: u64) -> LooseFault {
    LooseFault {
        process: Default::default(),
        code: FaultCode::W07,
        epoch: Some(epoch(id, 1)),
        at: Some(at(ns)),
        count: 1,
        detail: "held across an await".to_owned(),
    }
}

#[test]
fn both_ends_of_a_handoff_are_told_whichever_came_first() {
    for sent_first in [true, false] {
        let mut session = everything();
        session.declare(1, 100);
        if sent_first {
            session.sent(9, 1, 200, 7).received(9, 1, 350, 8);
        } else {
            session.received(9, 1, 350, 8).sent(9, 1, 200, 7);
        }
        session.retire(1, 400).progress(1_000);
        let request = session.span(epoch(1, 1));
        assert_eq!(events(request), [(names::EVENT_HANDOFF, 350)]);
        let attributes = &request.events.events[0].attributes;
        let of = |name| said(attributes, name);
        assert_eq!(of(names::HANDOFF_CARRIER).as_deref(), Some("envelope"));
        assert_eq!(of(names::HANDOFF_NS).as_deref(), Some("150"));
        assert_eq!(of(names::HANDOFF_FROM).as_deref(), Some("7"));
        assert_eq!(of(names::THREAD_ID).as_deref(), Some("8"));
        assert_eq!(of(names::HANDOFF_SITE).as_deref(), Some("src/queue.rs:3:5"));
        assert!(session.spans.handoffs.is_empty(), "nothing is left behind");
    }
}

#[test]
fn what_happened_to_a_batch_is_told_with_the_step_in_which_it_did() {
    let mut session = everything();
    session.declare(1, 50).merge(2, &[1], 100);
    session.sent(1, 2, 110, 7).received(1, 2, 120, 8);
    session.step(epoch(2, 2), 200);
    session.sent(2, 2, 210, 7).received(2, 2, 220, 8);
    session.progress(250);
    session.step(epoch(2, 3), 300);
    session.sent(3, 2, 310, 7).received(3, 2, 320, 8);
    session.retire(2, 400).retire(1, 400).progress(1_000);
    for (version, at) in [(1, 120), (2, 220), (3, 320)] {
        let step = session.span(epoch(2, version));
        assert_eq!(events(step), [(names::EVENT_HANDOFF, at)]);
        let (start, _) = times(step);
        assert!(start <= at);
    }
}

#[test]
fn a_fault_of_a_batch_is_counted_on_its_step_and_its_members() {
    let mut session = everything();
    session.declare(1, 50).merge(2, &[1], 100);
    session.spans.fault(&fault(2, 150));
    session.step(epoch(2, 2), 200);
    session.retire(2, 400).retire(1, 400).progress(1_000);
    let (first, second) = (session.span(epoch(2, 1)), session.span(epoch(2, 2)));
    assert_eq!(number(first, names::FAULT_COUNT), Some(1));
    assert_eq!(events(first), [(names::EVENT_FAULT, 150)]);
    assert_eq!(number(second, names::FAULT_COUNT), None);
    let request = session.span(epoch(1, 1));
    assert_eq!(number(request, names::FAULT_COUNT), None);
    assert_eq!(number(request, names::SHARED_FAULT_COUNT), Some(1));
}

#[test]
fn a_batch_says_that_a_member_was_slow_before_it_says_that_one_was_sampled() {
    let mut session = Session::new(Volume::default());
    session
        .declare(1, 50)
        .child_of(1, 0x11, 0x1, 1)
        .declare(2, 50);
    session.merge(3, &[1, 2], 100).kernel(epoch(3, 1), 300, 400);
    session.spans.fault(&fault(2, 150));
    session.retire(1, 500).retire(2, 500).retire(3, 500);
    session.progress(1_000);
    assert_eq!(text(session.span(epoch(1, 1)), names::DETAIL), "sampled");
    assert_eq!(text(session.span(epoch(3, 1)), names::DETAIL), "fault");
}

#[test]
fn what_a_fault_says_is_redacted() {
    let mut session = everything();
    session.spans.texts = Texts::new(Some(Box::new(|kind, _| {
        (kind == TextKind::FaultDetail).then(|| "hidden".into())
    })));
    let note = session.spans.fault(&fault(1, 150));
    assert_eq!(note.detail, "hidden");
    assert_eq!(
        session.spans.clean_detail("cuLaunchKernel on thread 7"),
        "hidden"
    );
}
