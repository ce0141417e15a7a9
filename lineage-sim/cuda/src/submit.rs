//! From a call to an operation in a stream.

use std::sync::Arc;

use crate::abi::RawOperation;
use crate::call::{self, Call};
use crate::clock::now_ns;
use crate::cupti::records::{DeviceRecord, Owner, Shape};
use crate::device::{self, Item};
use crate::objects::Stream;
use crate::operation::{Operation, Work};

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
}

/// Puts an operation into a stream. Returns the number by which [`device::wait`] knows it.
pub(crate) fn submit(call: &Call<'_>, stream: &Arc<Stream>, request: Request) -> u64 {
    call.operations.set(call.operations.get() + 1);
    let correlation_id = call.device_correlation_id();
    let owner = Owner {
        context_id: stream.context_id,
        stream_id: stream.id,
        correlation_id,
        runtime_correlation_id: call.runtime_correlation_id,
        now_ns: now_ns(),
    };
    let record = request
        .shape
        .and_then(|shape| DeviceRecord::open(call.thread, &owner, shape));
    let truth = RawOperation {
        ordinal: call::next_operation(),
        call_ordinal: call.ordinal,
        name: request.name.map_or(std::ptr::null(), str::as_ptr),
        name_bytes: request.name.map_or(0, str::len),
        label: 0,
        bytes: request.bytes,
        call_start_ns: call.start_ns,
        start_ns: 0,
        end_ns: 0,
        kind: request.kind,
        has_label: 0,
        thread_id: call.thread.id,
        stream_id: stream.id,
        context_id: stream.context_id,
        correlation_id,
        result: 0,
        padding: 0,
    };
    let operation = Operation {
        work: request.work,
        bytes: request.bytes,
        stream_id: stream.id,
        stream_error: stream.error.clone(),
        record,
        truth,
    };
    device::enqueue(stream, Item::Operation(Box::new(operation)))
}
