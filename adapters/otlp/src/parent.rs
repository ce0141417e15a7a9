//! Whose child an epoch is, where OpenTelemetry is used without tracing.

use lineage_core::Epoch;
use lineage_core::id::W3cParent;
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, TraceContextExt as _};

/// Makes an epoch the child of the OpenTelemetry span that is current here; `false` if there is
/// none, or the epoch has a parent already. For epochs that no tracing span declares:
///
/// ```
/// let request = lineage_core::Epoch::declare("generate");
/// lineage_otlp::child_of_current(&request);
/// ```
pub fn child_of_current(epoch: &Epoch) -> bool {
    child_of(epoch, Context::current().span().span_context())
}

pub(crate) fn child_of(epoch: &Epoch, span: &SpanContext) -> bool {
    span.is_valid()
        && epoch.set_parent(W3cParent {
            trace_id: u128::from_be_bytes(span.trace_id().to_bytes()),
            span_id: u64::from_be_bytes(span.span_id().to_bytes()),
            flags: span.trace_flags().to_u8(),
        })
}
