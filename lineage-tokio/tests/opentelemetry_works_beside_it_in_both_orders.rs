//! tracing-opentelemetry keeps its own data in the same spans. Neither layer starts the other's
//! span, hides its context or waits for its locks, whichever comes first.
#![cfg(feature = "record")]

mod common;

use common::{current, recorded};
use lineage_tokio::{LineageExt as _, SpanExt as _};
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, TracerProvider as _,
};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use tracing::{Dispatch, Instrument as _, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::prelude::*;

const TRACE: u128 = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
const PARENT: u64 = 0xfeed_beef_cafe_f00d;

fn remote_parent() -> opentelemetry::Context {
    opentelemetry::Context::new().with_remote_span_context(SpanContext::new(
        TraceId::from(TRACE),
        SpanId::from(PARENT),
        TraceFlags::SAMPLED,
        true,
        TraceState::default(),
    ))
}

fn check(
    make: impl FnOnce(&lineage_core::Lineage, opentelemetry_sdk::trace::SdkTracer) -> Dispatch,
) {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    let (expected, report) = recorded(|lineage| {
        let dispatch = make(lineage, provider.tracer("test"));
        tracing::dispatcher::with_default(&dispatch, || {
            let request = info_span!("request", launch_epoch = tracing::field::Empty);
            let expected = request.launch_epoch().expect("the layer is there");
            assert!(expected.is_some());
            // Asking for the epoch did not start the OpenTelemetry span either.
            request
                .set_parent(remote_parent())
                .expect("the span has not been started");
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .expect("a runtime");
            runtime.block_on(
                async {
                    for _ in 0..3 {
                        assert_eq!(current(), expected);
                        let context = tracing::Span::current().context();
                        assert_eq!(
                            context.span().span_context().trace_id(),
                            TraceId::from(TRACE)
                        );
                        info_span!("child").in_scope(|| assert_eq!(current(), expected));
                        tokio::task::yield_now().await;
                    }
                }
                .instrument(request.clone()),
            );
            assert_eq!(current(), None);
            expected.expect("declared")
        })
    });
    provider.force_flush().expect("the exporter is in memory");
    let spans = exporter
        .get_finished_spans()
        .expect("the exporter is in memory");
    let requests: Vec<_> = spans.iter().filter(|span| span.name == "request").collect();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].parent_span_id, SpanId::from(PARENT));
    assert_eq!(requests[0].span_context.trace_id(), TraceId::from(TRACE));
    let children = spans.iter().filter(|span| {
        span.name == "child" && span.parent_span_id == requests[0].span_context.span_id()
    });
    assert_eq!(children.count(), 3);
    assert_eq!(report.declared().len(), 1);
    assert_eq!(report.declaration(expected).epoch, expected);
    assert_eq!(report.misuses(), []);
}

#[test]
fn lineage_first() {
    check(|lineage, tracer| {
        tracing_subscriber::registry()
            .with(lineage.layer())
            .with(tracing_opentelemetry::layer().with_tracer(tracer))
            .into()
    });
}

#[test]
fn opentelemetry_first() {
    check(|lineage, tracer| {
        tracing_subscriber::registry()
            .with(tracing_opentelemetry::layer().with_tracer(tracer))
            .with(lineage.layer())
            .into()
    });
}
