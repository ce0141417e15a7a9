//! The spans themselves. The only place that fills `SpanData`, whose fields change with
//! OpenTelemetry's releases.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use lineage_core::evidence::Why;
use lineage_core::id::{HostNanos, LaunchEpoch, W3cParent};
use lineage_core::observation::ActivityKind;
use lineage_core::row::{RowGraph, Template, TemplateNode};
use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use super::epoch::{Moment, Moments, Place};
use super::operation::Operation;
use crate::attributes as names;

/// What all spans of a session share.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// Unix time less the session's, in nanoseconds.
    pub(crate) unix_offset_ns: i64,
    pub(crate) scope: InstrumentationScope,
}

impl Frame {
    pub(crate) fn new(unix_offset_ns: i64) -> Self {
        let scope = InstrumentationScope::builder(names::SCOPE_NAME)
            .with_version(env!("CARGO_PKG_VERSION"))
            .with_schema_url(names::SCHEMA_URL)
            .build();
        Self {
            unix_offset_ns,
            scope,
        }
    }

    pub(crate) fn unix_ns(&self, at: HostNanos) -> u64 {
        at.0.saturating_add_signed(self.unix_offset_ns)
    }

    pub(crate) fn time(&self, at: HostNanos) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.unix_ns(at))
    }
}

/// A span that is being made.
pub(crate) struct Draft {
    data: SpanData,
}

impl Draft {
    pub(crate) fn new(
        frame: &Frame,
        place: Place,
        parent: SpanId,
        name: Cow<'static, str>,
        start: HostNanos,
        end: HostNanos,
    ) -> Self {
        let context = context(place, true, false);
        Self {
            data: SpanData {
                span_context: context,
                parent_span_id: parent,
                parent_span_is_remote: false,
                span_kind: SpanKind::Internal,
                name,
                start_time: frame.time(start),
                end_time: frame.time(end),
                attributes: Vec::with_capacity(16),
                dropped_attributes_count: 0,
                events: SpanEvents::default(),
                links: SpanLinks::default(),
                status: Status::Unset,
                instrumentation_scope: frame.scope.clone(),
            },
        }
    }

    /// Its parent is a span of somebody else's.
    pub(crate) fn remote_parent(mut self) -> Self {
        self.data.parent_span_is_remote = true;
        self
    }

    pub(crate) fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.data.attributes.push(KeyValue::new(name, value));
    }

    /// Numbers of the semantic conventions are signed; ours never come near the limit.
    pub(crate) fn number(&mut self, name: &'static str, value: u64) {
        self.set(name, signed(value));
    }

    /// A number that is left out where it is 0.
    pub(crate) fn count(&mut self, name: &'static str, value: u64) {
        if value > 0 {
            self.number(name, value);
        }
    }

    pub(crate) fn epoch(&mut self, epoch: LaunchEpoch) {
        self.number(names::EPOCH_ID, epoch.id.get());
        self.number(names::EPOCH_VERSION, u64::from(epoch.version.get()));
    }

    /// Links beyond any limit of the SDK's: a batch names all its members.
    pub(crate) fn link(&mut self, context: SpanContext, why: &'static str, more: Vec<KeyValue>) {
        let mut attributes = vec![KeyValue::new(names::LINK, why)];
        attributes.extend(more);
        self.data
            .links
            .links
            .push(Link::new(context, attributes, 0));
    }

    pub(crate) fn asked_by(&mut self, spans: &[W3cParent], dropped: u32) {
        for span in spans {
            self.link(remote(*span), "asked_by", Vec::new());
        }
        self.data.links.dropped_count = dropped;
    }

    pub(crate) fn moments(&mut self, frame: &Frame, moments: &Moments) {
        let event = |moment: &Moment| {
            Event::new(
                moment.name,
                frame.time(moment.at),
                moment.attributes.clone(),
                0,
            )
        };
        self.data.events.events = moments.kept.iter().map(event).collect();
        self.data.events.dropped_count = moments.dropped;
    }

    pub(crate) fn finish(self) -> SpanData {
        self.data
    }
}

/// As OTLP has it: no value of ours comes near the limit.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn context(place: Place, sampled: bool, is_remote: bool) -> SpanContext {
    let flags = if sampled {
        TraceFlags::SAMPLED
    } else {
        TraceFlags::NOT_SAMPLED
    };
    SpanContext::new(place.trace, place.span, flags, is_remote, TraceState::NONE)
}

fn remote(span: W3cParent) -> SpanContext {
    let place = Place {
        trace: TraceId::from(span.trace_id),
        span: SpanId::from(span.span_id),
    };
    context(place, span.sampled(), true)
}

/// The span of an operation.
pub(crate) fn operation(
    frame: &Frame,
    operation: &Operation,
    place: Place,
    parent: SpanId,
    name: Cow<'static, str>,
    thread_name: Option<StringValue>,
) -> SpanData {
    let key = &operation.key;
    let mut draft = Draft::new(frame, place, parent, name, key.start, key.end);
    draft.set(names::SPAN, "operation");
    draft.epoch(operation.epoch);
    draft.set(names::GPU_OPERATION, kind_name(operation.kind));
    draft.number(names::CUDA_CORRELATION_ID, key.correlation.0);
    draft.number(names::CUDA_SESSION, u64::from(key.session));
    draft.number(names::CUDA_DEVICE, u64::from(key.device));
    draft.number(names::CUDA_CONTEXT, u64::from(key.context));
    draft.number(names::CUDA_STREAM, u64::from(key.stream));
    if let Some(node) = key.graph_node {
        draft.number(names::CUDA_GRAPH_NODE, node);
    }
    if let Some(graph) = operation.graph {
        draft.number(names::CUDA_GRAPH, u64::from(graph));
    }
    if let Some(replay) = &operation.replay {
        draft.replay(replay);
    }
    draft.set(names::CUDA_API, operation.api.as_ref().to_owned());
    draft.number(names::THREAD_ID, operation.tid);
    if let Some(thread_name) = thread_name {
        draft.set(names::THREAD_NAME, thread_name);
    }
    if let Some(task) = operation.task {
        draft.number(names::TASK_ID, task);
    }
    for (name, at) in [
        (names::CALL_ENTER_UNIX_NS, operation.api_enter),
        (names::CALL_EXIT_UNIX_NS, operation.api_exit),
        (names::QUEUED_UNIX_NS, operation.queued),
        (names::SUBMITTED_UNIX_NS, operation.submitted),
    ] {
        if let Some(at) = at {
            draft.number(name, frame.unix_ns(at));
        }
    }
    if let Some(delay_ns) = operation.launch_delay_ns() {
        draft.number(names::LAUNCH_DELAY_NS, delay_ns);
    }
    draft.set(names::JOINED_BY, operation.joined_by);
    if operation.kind == ActivityKind::Kernel {
        draft.set(names::GPU_GRID, dimensions(operation.grid));
        draft.set(names::GPU_BLOCK, dimensions(operation.block));
    }
    draft.count(names::BYTES, operation.bytes);
    if operation.copies > 1 {
        draft.number(names::GPU_COPIES, u64::from(operation.copies));
    }
    if !operation.faults.is_empty() {
        let codes = operation.faults.iter().map(|fault| fault.code().into());
        draft.set(names::FAULTS, Value::Array(Array::String(codes.collect())));
    }
    if operation.after_retirement {
        draft.set(names::AFTER_RETIREMENT, true);
    }
    draft.finish()
}

impl Draft {
    /// Which replay it was, and who built its node.
    fn replay(&mut self, replay: &RowGraph) {
        if let Some(exec) = replay.exec {
            self.number(names::CUDA_GRAPH_EXEC, u64::from(exec));
        }
        if let Some(number) = replay.replay {
            self.number(names::GRAPH_REPLAY, number);
        }
        if replay.iteration > 1 {
            self.number(names::GRAPH_ITERATION, u64::from(replay.iteration));
        }
        let (how, node) = template(&replay.template);
        self.set(names::GRAPH_TEMPLATE, how);
        let Some(node) = node else { return };
        // A recording without ids has the place in the order only.
        if node.node != 0 {
            self.number(names::CUDA_GRAPH_TEMPLATE_NODE, node.node);
        }
        if let Some(epoch) = node.capture.epoch() {
            self.number(names::CAPTURE_EPOCH_ID, epoch.id.get());
            let version = u64::from(epoch.version.get());
            self.number(names::CAPTURE_EPOCH_VERSION, version);
        }
    }
}

/// How it is known who built a node, and the node if it is.
fn template(template: &Template) -> (&'static str, Option<&TemplateNode>) {
    match template {
        Template::Known(node) => ("known", Some(node)),
        Template::Inferred { node, .. } => ("inferred", Some(node)),
        Template::Unknown { why } => {
            let why = match why {
                Why::BeforeSession => "before_session",
                Why::ExecUpdated => "exec_updated",
                Why::NotVisible => "not_visible",
                Why::NotCollected => "not_collected",
                _ => "dropped",
            };
            (why, None)
        }
        _ => ("dropped", None),
    }
}

fn dimensions(sizes: [u32; 3]) -> Value {
    Value::Array(Array::I64(sizes.map(i64::from).to_vec()))
}

pub(crate) const fn kind_name(kind: ActivityKind) -> &'static str {
    match kind {
        ActivityKind::Kernel => "kernel",
        ActivityKind::Copy => "copy",
        ActivityKind::Set => "set",
        ActivityKind::Graph => "graph",
        _ => "other",
    }
}
