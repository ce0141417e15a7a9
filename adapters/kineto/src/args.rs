//! What an event's `args` hold, as far as a join or a reader of it needs them.

use lineage_import::is_request_key;

use crate::fields::{Malformed, Members, Text, Value};
use crate::number::is_not_finite;

/// Members of `args`, as they stand in the text; `null` is the same as none.
#[derive(Debug, Default)]
pub(crate) struct Args<'t> {
    pub(crate) correlation: Option<Value<'t>>,
    /// `device`, or a peer-to-peer copy's `inDevice`.
    pub(crate) device: Option<Value<'t>>,
    /// `context`, or a peer-to-peer copy's `inContext`.
    pub(crate) context: Option<Value<'t>>,
    pub(crate) stream: Option<Value<'t>>,
    /// `bytes`.
    pub(crate) bytes: Option<Value<'t>>,
    pub(crate) queued: Option<Value<'t>>,
    pub(crate) graph: Option<Value<'t>>,
    pub(crate) graph_node: Option<Value<'t>>,
    pub(crate) grid: Option<Value<'t>>,
    pub(crate) block: Option<Value<'t>>,
    /// `registers per thread`.
    pub(crate) registers: Option<Value<'t>>,
    /// `shared memory` of a block, in bytes: declared and asked for together.
    pub(crate) shared: Option<Value<'t>>,
    /// The kernel's name, on HIP's launch calls.
    pub(crate) kernel: Option<Text<'t>>,
    pub(crate) synchronization_kind: Option<Text<'t>>,
    /// `wait_on_cuda_event_id`, or `event_id` of an event's record.
    pub(crate) event: Option<Value<'t>>,
    pub(crate) recorded_by: Option<Value<'t>>,
    /// `name`, of metadata.
    pub(crate) name: Option<Text<'t>>,
    pub(crate) request: Option<Value<'t>>,
    /// Values among all of them that are `NaN` or infinite.
    pub(crate) not_finite: u64,
}

impl<'t> Args<'t> {
    /// Reads the members of an `args` object.
    pub(crate) fn read(members: &mut Members<'t>) -> Result<Self, Malformed> {
        let mut args = Self::default();
        while let Some(key) = members.next_key()? {
            let value = members.value()?;
            if value == Value::Bare(b"null") {
                continue;
            }
            args.not_finite += u64::from(is_not_finite(value));
            match (key.as_ref(), value) {
                (b"correlation", _) => args.correlation = Some(value),
                (b"device", _) => args.device = Some(value),
                (b"inDevice", _) => args.device = args.device.or(Some(value)),
                (b"context", _) => args.context = Some(value),
                (b"inContext", _) => args.context = args.context.or(Some(value)),
                (b"stream", _) => args.stream = Some(value),
                (b"bytes", _) => args.bytes = Some(value),
                (b"queued", _) => args.queued = Some(value),
                (b"graph id", _) => args.graph = Some(value),
                (b"graph node id", _) => args.graph_node = Some(value),
                (b"grid", _) => args.grid = Some(value),
                (b"block", _) => args.block = Some(value),
                (b"registers per thread", _) => args.registers = Some(value),
                (b"shared memory", _) => args.shared = Some(value),
                (b"kernel", Value::Text(text)) => args.kernel = Some(text),
                (b"cuda_sync_kind", Value::Text(text)) => args.synchronization_kind = Some(text),
                (b"wait_on_cuda_event_id" | b"event_id", _) => args.event = Some(value),
                (b"wait_on_cuda_event_record_corr_id", _) => args.recorded_by = Some(value),
                (b"name", Value::Text(text)) => args.name = Some(text),
                (key, _) if is_request_key(key) => args.request = Some(value),
                _ => {}
            }
        }
        Ok(args)
    }
}
