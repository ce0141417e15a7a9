//! From a request one walks to all of its kernels.

use lineage_core::evidence::Why;
use lineage_core::id::{Attribution, HostNanos};
use lineage_core::observation::LinkKind;
use lineage_core::row::{RowGraph, Template, TemplateNode};
use opentelemetry::trace::{SpanId, TraceId};

use super::support::*;
use crate::attributes as names;
use crate::spans::{Detail, Volume};

fn everything() -> Session {
    Session::new(Volume::of_all(Detail::Everything))
}

#[test]
fn a_request_has_its_kernels_under_it() {
    let mut session = everything();
    session.declare(5, 1_000).child_of(5, 0xabc, 0xdef, 1);
    session
        .kernel(epoch(5, 1), 2_000, 2_500)
        .kernel(epoch(5, 1), 2_600, 2_700);
    session.retire(5, 2_300).progress(3_000);

    let request = session.span(epoch(5, 1));
    assert_eq!(request.span_context.trace_id(), TraceId::from(0xabc));
    assert_eq!(request.parent_span_id, SpanId::from(0xdef));
    assert!(request.parent_span_is_remote && request.span_context.is_sampled());
    assert_eq!(
        times(request),
        (1_000, 2_700),
        "to the end of its last kernel"
    );
    assert_eq!(request.name, "generate");
    assert_eq!(number(request, names::OPERATIONS), Some(2));
    assert_eq!(number(request, names::DEVICE_TIME_NS), Some(600));
    assert_eq!(number(request, names::LAUNCH_DELAY_MAX_NS), Some(100));
    assert_eq!(text(request, names::EPOCH_ENDED), "done");

    let kernels = session.of_kind("operation");
    assert_eq!(kernels.len(), 2);
    for (kernel, expected) in kernels.iter().zip([(2_000, 2_500), (2_600, 2_700)]) {
        assert_eq!(kernel.parent_span_id, request.span_context.span_id());
        assert_eq!(kernel.span_context.trace_id(), TraceId::from(0xabc));
        assert!(!kernel.parent_span_is_remote);
        assert_eq!(times(kernel), expected);
        assert_eq!(kernel.name, "gemv");
        assert_eq!(text(kernel, names::JOINED_BY), "external+callback");
        assert_eq!(text(kernel, names::CUDA_API), "cuLaunchKernel");
    }
    assert_ne!(place(kernels[0]), place(kernels[1]));
}

#[test]
fn a_replayed_kernel_tells_its_replay_and_who_captured_it() {
    let mut session = everything();
    let replayed = |replay, iteration, template| RowGraph {
        exec: Some(6),
        generation: 1,
        replay,
        iteration,
        template,
    };
    let node = TemplateNode {
        graph: 5,
        node: 0x5_0000_0001,
        order: 1,
        capture: Attribution::Epoch(epoch(2, 3)),
        captured_by: None,
        at: HostNanos(50),
    };
    let known = replayed(Some(9), 2, Template::Known(node));
    let why = Why::ExecUpdated;
    let unknown = replayed(None, 1, Template::Unknown { why });
    session.declare(5, 1_000);
    session.replayed(epoch(5, 1), 2_000, 2_500, known);
    session.replayed(epoch(5, 1), 2_600, 2_700, unknown);
    session.retire(5, 2_800).progress(3_000);
    let kernels = session.of_kind("operation");
    let said = |kernel, name| number(kernel, name);
    let first = kernels[0];
    assert_eq!(said(first, names::EPOCH_ID), Some(5), "who replayed it");
    assert_eq!(said(first, names::CUDA_GRAPH_EXEC), Some(6));
    assert_eq!(said(first, names::GRAPH_REPLAY), Some(9));
    assert_eq!(said(first, names::GRAPH_ITERATION), Some(2));
    assert_eq!(text(first, names::GRAPH_TEMPLATE), "known");
    let node = said(first, names::CUDA_GRAPH_TEMPLATE_NODE);
    assert_eq!(node, Some(0x5_0000_0001));
    let capture = [names::CAPTURE_EPOCH_ID, names::CAPTURE_EPOCH_VERSION];
    assert_eq!(capture.map(|name| said(first, name)), [Some(2), Some(3)]);
    let second = kernels[1];
    assert_eq!(text(second, names::GRAPH_TEMPLATE), "exec_updated");
    let left_out = [names::GRAPH_REPLAY, names::GRAPH_ITERATION];
    assert_eq!(left_out.map(|name| said(second, name)), [None, None]);
    assert_eq!(capture.map(|name| said(second, name)), [None, None]);
}

#[test]
fn members_of_a_batch_walk_over_links_and_back() {
    let mut session = everything();
    session
        .declare(1, 100)
        .declare(2, 200)
        .child_of(2, 0x22, 0x2, 1);
    session.merge(3, &[1, 2], 300).kernel(epoch(3, 1), 500, 600);
    session
        .step(epoch(3, 2), 700)
        .kernel(epoch(3, 2), 900, 1_000);
    session.retire(1, 1_100).retire(2, 1_200).retire(3, 1_300);
    session.progress(2_000);

    let (first, second) = (session.span(epoch(1, 1)), session.span(epoch(2, 1)));
    assert_eq!(
        first.parent_span_id,
        SpanId::INVALID,
        "nobody is its parent"
    );
    assert_eq!(second.span_context.trace_id(), TraceId::from(0x22));
    for (version, began, end, kernel) in [(1, 300, 600, 500), (2, 700, 1_000, 900)] {
        let batch = session.span(epoch(3, version));
        assert_eq!(batch.parent_span_id, SpanId::INVALID);
        assert_eq!(times(batch), (began, end));
        assert_eq!(number(batch, names::MEMBERS), Some(2));
        let mut expected = Vec::new();
        for member in [first, second] {
            let participations = session.of_kind("participation");
            let mut own = participations.iter().filter(|span| {
                span.parent_span_id == member.span_context.span_id()
                    && number(span, names::BATCH_VERSION) == Some(i64::from(version))
            });
            let own = own
                .next()
                .expect("a participation of each member in each step");
            assert_eq!(
                own.span_context.trace_id(),
                member.span_context.trace_id(),
                "in the member's own trace"
            );
            assert_eq!(links(own, "batch"), [place(batch)]);
            assert_eq!(times(own), (began, end));
            expected.push(place(own));
        }
        assert_eq!(links(batch, "member"), expected);
        let kernels = session.of_kind("operation");
        let mut under = kernels
            .iter()
            .filter(|kernel| kernel.parent_span_id == batch.span_context.span_id());
        let under_it = under.next().expect("its kernel");
        assert_eq!(times(under_it).0, kernel);
        assert_eq!(
            under_it.span_context.trace_id(),
            batch.span_context.trace_id()
        );
        assert!(under.next().is_none());
    }
    let (step_1, step_2) = (session.span(epoch(3, 1)), session.span(epoch(3, 2)));
    assert_ne!(
        step_1.span_context.trace_id(),
        step_2.span_context.trace_id(),
        "each step is a trace of its own"
    );
    assert_eq!(links(step_2, "previous_step"), [place(step_1)]);
    assert_eq!(session.out.len(), 2 + 2 + 4 + 2);
    for request in [first, second] {
        assert_eq!(number(request, names::OPERATIONS), Some(0));
        assert_eq!(number(request, names::SHARED_OPERATIONS), Some(2));
        assert_eq!(number(request, names::SHARED_DEVICE_TIME_NS), Some(200));
        assert_eq!(number(request, names::SHARE_DEVICE_TIME_NS), Some(100));
        assert_eq!(number(request, names::SHARED_STEPS), Some(2));
    }
}

#[test]
fn a_fork_is_a_part_of_its_request_and_a_member_as_any_other() {
    let mut session = everything();
    session.declare(1, 100).child_of(1, 0x11, 0x1, 1);
    session
        .declare_named(2, "prefill", 200)
        .link(2, epoch(1, 1), LinkKind::Fork);
    session.merge(3, &[2], 300).kernel(epoch(3, 1), 500, 600);
    session.kernel(epoch(2, 1), 350, 360);
    session.retire(1, 400).retire(2, 700).retire(3, 800);
    session.progress(2_000);

    let (request, part) = (session.span(epoch(1, 1)), session.span(epoch(2, 1)));
    assert_eq!(text(part, names::SPAN), "part");
    assert_eq!(part.parent_span_id, request.span_context.span_id());
    assert_eq!(part.span_context.trace_id(), TraceId::from(0x11));
    assert_eq!(times(part), (200, 700));
    let participation = session.of_kind("participation")[0];
    assert_eq!(participation.parent_span_id, part.span_context.span_id());
    assert_eq!(participation.span_context.trace_id(), TraceId::from(0x11));
    assert_eq!(
        times(request),
        (100, 600),
        "its part's and its batch's work is its own"
    );
    assert_eq!(session.out.len(), 6);
}

#[test]
fn later_versions_of_a_request_are_steps_under_it() {
    let mut session = everything();
    session.declare(1, 100).kernel(epoch(1, 1), 300, 400);
    session.step(epoch(1, 2), 500).kernel(epoch(1, 2), 700, 800);
    session.retire(1, 900).progress(1_000);

    let (request, step) = (session.span(epoch(1, 1)), session.span(epoch(1, 2)));
    assert_eq!(step.parent_span_id, request.span_context.span_id());
    assert_eq!(times(step), (500, 800));
    let parents: Vec<SpanId> = session
        .of_kind("operation")
        .iter()
        .map(|kernel| kernel.parent_span_id)
        .collect();
    assert_eq!(
        parents,
        [request.span_context.span_id(), step.span_context.span_id()]
    );
}

#[test]
fn records_of_other_threads_may_come_in_any_order() {
    // The batch is known before its members are declared, and a kernel before either's parent.
    let mut session = everything();
    session.merge(3, &[1, 2], 300).kernel(epoch(3, 1), 500, 600);
    session.progress_to(350, 350);
    assert!(
        session.out.is_empty(),
        "the call is at 400, and not all is known by then"
    );
    session.declare(1, 100).child_of(1, 0x11, 0x1, 1);
    session.declare(2, 200).link(2, epoch(1, 1), LinkKind::Fork);
    session.retire(1, 700).retire(2, 700).retire(3, 700);
    session.progress(2_000);
    let batch = session.span(epoch(3, 1));
    let traces: Vec<TraceId> = links(batch, "member").iter().map(|link| link.0).collect();
    assert_eq!(traces, [TraceId::from(0x11), TraceId::from(0x11)]);
    // The request takes part twice, itself and by its fork; the kernel is one.
    let request = session.span(epoch(1, 1));
    assert_eq!(number(request, names::SHARED_OPERATIONS), Some(1));
    assert_eq!(number(request, names::SHARED_STEPS), Some(1));
    assert_eq!(number(request, names::SHARE_DEVICE_TIME_NS), Some(100));
}

#[test]
fn what_is_exported_twice_has_the_same_ids() {
    let run = || {
        let mut session = everything();
        session
            .declare(1, 100)
            .declare(2, 200)
            .merge(3, &[1, 2], 300);
        session
            .kernel(epoch(3, 1), 500, 600)
            .kernel(epoch(1, 1), 700, 800);
        session.end();
        session.out
    };
    assert_eq!(run(), run());
    let mut seen: Vec<_> = run().iter().map(place).collect();
    seen.sort_unstable_by_key(|(trace, span)| (trace.to_bytes(), span.to_bytes()));
    let all = seen.len();
    seen.dedup();
    assert_eq!((all, seen.len()), (7, 7), "and no two things share one");
}

#[test]
fn a_kernel_that_settles_after_its_request_is_exported_still_finds_it() {
    let mut session = everything();
    session
        .declare(1, 100)
        .child_of(1, 0x11, 0x1, 1)
        .retire(1, 200);
    session.merge(3, &[1], 150).retire(3, 250);
    session.progress(1_000);
    let request = place(session.span(epoch(1, 1)));
    let batch = place(session.span(epoch(3, 1)));
    session
        .kernel(epoch(1, 1), 5_000, 6_000)
        .kernel(epoch(3, 1), 7_000, 8_000);
    session.progress(9_000);
    let kernels = session.of_kind("operation");
    let under: Vec<_> = kernels
        .iter()
        .map(|kernel| (kernel.span_context.trace_id(), kernel.parent_span_id))
        .collect();
    assert_eq!(under, [request, batch]);
}

#[test]
fn more_members_than_the_sdk_has_room_for_links() {
    let mut session = everything();
    let members: Vec<u64> = (1..=1_000).collect();
    members.iter().for_each(|&member| {
        session.declare(member, 100);
    });
    session
        .merge(2_000, &members, 300)
        .kernel(epoch(2_000, 1), 500, 600);
    session.end();
    let batch = session.span(epoch(2_000, 1));
    assert_eq!(links(batch, "member").len(), 1_000);
    assert_eq!(batch.links.dropped_count, 0);
    assert_eq!(session.of_kind("participation").len(), 1_000);
}
