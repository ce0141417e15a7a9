//! For users of tracing-opentelemetry: whose child an epoch is.

use std::sync::OnceLock;

use opentelemetry::trace::TraceContextExt as _;
use tracing_core::dispatcher::WeakDispatch;
use tracing_core::span::Id;
use tracing_core::{Dispatch, Subscriber};
use tracing_subscriber::layer::{self, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::parent::child_of;

/// A [`tracing_subscriber::Layer`] that makes the epoch of a span a child of the span that
/// `tracing-opentelemetry` makes of it.
///
/// Put it beside both others; the order does not matter:
///
/// ```
/// use lineage_core::Lineage;
/// use lineage_otlp::OpenTelemetryBridge;
/// use lineage_tokio::LineageExt as _;
/// use opentelemetry::trace::TracerProvider as _;
/// use tracing_subscriber::prelude::*;
///
/// let lineage = Lineage::builder().service("llm").start()?;
/// let tracer = opentelemetry_sdk::trace::SdkTracerProvider::default().tracer("llm");
/// let subscriber = tracing_subscriber::registry()
///     .with(tracing_opentelemetry::layer().with_tracer(tracer))
///     .with(lineage.layer())
///     .with(OpenTelemetryBridge::new());
/// # tracing::subscriber::with_default(subscriber, || {});
/// # Ok::<(), lineage_core::StartError>(())
/// ```
///
/// It asks when a span is entered for the first time, and never before: to ask for a span's
/// OpenTelemetry context starts the span, after which no parent from outside can be set. So
/// `span.set_parent(…)` comes before the first poll, as tracing-opentelemetry asks for anyway.
///
/// An epoch that has a parent already, as from `lineage-tower`, keeps it. A span without an epoch of
/// its own costs one look at its extensions.
#[derive(Debug, Default)]
#[must_use = "a layer does nothing until it is part of a subscriber"]
pub struct OpenTelemetryBridge {
    dispatch: OnceLock<WeakDispatch>,
}

/// The span was asked about.
struct Asked;

impl OpenTelemetryBridge {
    /// A bridge for one subscriber.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<S> Layer<S> for OpenTelemetryBridge
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_register_dispatch(&self, subscriber: &Dispatch) {
        // A layer belongs to one subscriber.
        let _ = self.dispatch.set(subscriber.downgrade());
    }

    fn on_enter(&self, id: &Id, context: layer::Context<'_, S>) {
        let Some(span) = context.span(id) else {
            return;
        };
        let Some(epoch) = lineage_tokio::declared_by(&span) else {
            return;
        };
        if span.extensions().get::<Asked>().is_some() {
            return;
        }
        span.extensions_mut().replace(Asked);
        if epoch.parent().is_some() {
            return;
        }
        let dispatch = self.dispatch.get().and_then(WeakDispatch::upgrade);
        let context =
            dispatch.and_then(|dispatch| tracing_opentelemetry::get_otel_context(id, &dispatch));
        if let Some(context) = context {
            child_of(&epoch, context.span().span_context());
        }
    }
}
