//! The bridge: the parent is filled when a span is first entered, and never before.

#![cfg(feature = "tracing-opentelemetry")]

use lineage_core::{Epoch, Lineage};
use lineage_otlp::{OpenTelemetryBridge, child_of_current};
use lineage_tokio::{LineageExt as _, SpanExt as _};
use opentelemetry::trace::{
    SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState, Tracer as _,
    TracerProvider as _,
};
use opentelemetry::{Context, trace};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use tracing::{Span, info_span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::prelude::*;

fn epoch_of(span: &Span) -> Epoch {
    span.epoch().expect("the layer is there")
}

#[test]
fn an_epoch_is_the_child_of_its_opentelemetry_span() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    let lineage = Lineage::builder()
        .service("test")
        .start()
        .expect("a session");
    let tracer = provider.tracer("test");
    // Each order of the three layers.
    let first = tracing_subscriber::registry()
        .with(tracing_opentelemetry::layer().with_tracer(tracer.clone()))
        .with(lineage.layer())
        .with(OpenTelemetryBridge::new());
    tracing::subscriber::with_default(first, || check(&exporter));
    let last = tracing_subscriber::registry()
        .with(OpenTelemetryBridge::new())
        .with(lineage.layer())
        .with(tracing_opentelemetry::layer().with_tracer(tracer.clone()));
    tracing::subscriber::with_default(last, || check(&exporter));

    // Without tracing-opentelemetry there is nothing to be a child of, and nothing fails.
    let without = tracing_subscriber::registry()
        .with(lineage.layer())
        .with(OpenTelemetryBridge::new());
    tracing::subscriber::with_default(without, || {
        let span = info_span!("request", launch_epoch = tracing::field::Empty);
        span.in_scope(|| ());
        assert_eq!(epoch_of(&span).parent(), None);
    });

    // Nor is tracing needed at all.
    let request = Epoch::declare("request");
    assert!(!child_of_current(&request));
    tracer.in_span("outer", |context| {
        assert!(child_of_current(&request));
        let parent = request.parent().expect("set");
        let span = context.span().span_context().clone();
        assert_eq!(TraceId::from(parent.trace_id), span.trace_id());
        assert_eq!(SpanId::from(parent.span_id), span.span_id());
        assert!(!child_of_current(&request), "the first one stays");
    });
    drop(request);
    lineage.shutdown(std::time::Duration::from_secs(5));
}

fn check(exporter: &InMemorySpanExporter) {
    exporter.reset();
    let remote = SpanContext::new(
        TraceId::from(0xabc),
        SpanId::from(0xdef),
        TraceFlags::SAMPLED,
        true,
        TraceState::NONE,
    );
    let request = info_span!("request", launch_epoch = tracing::field::Empty);
    let epoch = epoch_of(&request);
    assert_eq!(epoch.parent(), None, "not when the span is made");
    // So a parent from outside can be set still.
    request
        .set_parent(Context::new().with_remote_span_context(remote))
        .expect("the span has not started");
    request.in_scope(|| {
        // A span that inherits is not the epoch's parent.
        info_span!("inner").in_scope(|| ());
    });
    let parent = epoch.parent().expect("filled when it was entered");
    assert_eq!(parent.trace_id, 0xabc);
    assert!(parent.sampled());
    request.in_scope(|| assert_eq!(epoch.parent(), Some(parent)));
    drop(request);

    let spans = exporter.get_finished_spans().expect("exported");
    let exported = spans.iter().find(|span| span.name == "request");
    let exported = exported.expect("the request's span");
    assert_eq!(
        exported.span_context.span_id(),
        SpanId::from(parent.span_id)
    );
    assert_eq!(exported.parent_span_id, SpanId::from(0xdef));
    assert_eq!(exported.status, trace::Status::Unset);

    // What has a parent already keeps it.
    let request = info_span!("request", launch_epoch = tracing::field::Empty);
    let known = lineage_core::id::W3cParent {
        trace_id: 1,
        span_id: 2,
        flags: 0,
    };
    assert!(epoch_of(&request).set_parent(known));
    request.in_scope(|| ());
    assert_eq!(epoch_of(&request).parent(), Some(known));
}
