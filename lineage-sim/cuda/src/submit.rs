//! From a call to an operation in a stream.

use std::sync::Arc;

use lineage_sim_model::OperationKey;

use crate::call::{self, Call, Numbers};
use crate::cupti::records::{DeviceRecord, Owner, Shape};
use crate::device::{self, Entry, Item};
use crate::objects::Stream;
use crate::operation::{Asked, Operation, Work};
use crate::threads::ThreadState;

/// What a call asks for.
pub(crate) struct Request {
    /// `OPERATION_…` of the private interface.
    pub(crate) kind: u32,
    /// The kernel's name.
    pub(crate) name: Option<&'static str>,
    pub(crate) bytes: u64,
    pub(crate) work: Work,
    /// None when its kind is not recorded.
    pub(crate) shape: Option<Shape>,
    /// What the model of the device is told. How long it lasts is said when it begins.
    pub(crate) model: lineage_sim_model::Work,
    pub(crate) parameter_bytes: u32,
    pub(crate) priority: Option<i32>,
}

/// Which node of which exec an operation is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodePlace {
    /// The exec's id.
    pub(crate) graph_id: u32,
    /// Counts the launches of the exec, from 1.
    pub(crate) launch: u32,
    pub(crate) node_id: u64,
    /// The node from which the exec's was cloned or last updated; its graph is in the upper half.
    pub(crate) source_node_id: u64,
    /// The call that was captured as that node.
    pub(crate) capture_call_ordinal: u64,
}

/// Puts an operation into a stream. Returns the key by which [`device::wait`] knows it.
pub(crate) fn submit(call: &Call<'_>, stream: &Arc<Stream>, request: Request) -> OperationKey {
    let (model, parameter_bytes, priority) = (
        request.model.clone(),
        request.parameter_bytes,
        request.priority,
    );
    call.operations.set(call.operations.get() + 1);
    let (item, number) = operation(call.thread, call.numbers(), stream, request, None);
    let entry = Entry {
        item,
        work: model,
        number,
        parameter_bytes,
        waits_for: None,
        priority,
    };
    device::enqueue(Some(call), stream, entry)
}

/// The operation that a request becomes, and its number; its record is opened here.
pub(crate) fn operation(
    thread: &ThreadState,
    call: Numbers,
    stream: &Stream,
    request: Request,
    node: Option<NodePlace>,
) -> (Item, u64) {
    let correlation_id = call.device_correlation_id;
    let owner = Owner {
        context_id: stream.context_id,
        stream_id: stream.id,
        correlation_id,
        runtime_correlation_id: call.runtime_correlation_id,
        node,
    };
    let record = request
        .shape
        .and_then(|shape| DeviceRecord::open(thread, &owner, shape));
    let ordinal = call::next_operation();
    let operation = Operation {
        work: request.work,
        bytes: request.bytes,
        stream_id: stream.id,
        stream_error: stream.error.clone(),
        record,
        asked: Asked {
            ordinal,
            call_ordinal: call.ordinal,
            call_start_ns: call.start_ns,
            kind: request.kind,
            name: request.name,
            thread_id: thread.id,
            thread_ordinal: thread.ordinal,
            context_id: stream.context_id,
            correlation_id,
            node,
        },
        label: None,
        result: 0,
    };
    (Item::Operation(Box::new(operation)), ordinal)
}
