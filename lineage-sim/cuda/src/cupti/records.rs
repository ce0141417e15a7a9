//! Records of calls, waits, contexts, streams and events, by the layouts of the configured version.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lineage_sim_model::Absence;

use crate::config::config;
use crate::cupti::activity::{Domain, kind};
use crate::cupti::buffers::{Sink, Slot};
use crate::cupti::client::{self, Client};
use crate::cupti::layout::{
    self, api, context, context_switch, cuda_event, external, stream, synchronization,
};
use crate::cupti::time::Stamp;
use crate::cupti::writer::Writer;
use crate::faults::{CallRecordFault, faults};
use crate::threads::{ThreadState, Tops};

pub(crate) use crate::cupti::device_record::{
    DeviceRecord, Owner, Peer, Shape, copy_kind, records_kernels,
};
#[allow(unused_imports, reason = "opened by graph launches")]
pub(crate) use crate::cupti::host_record::{GraphRecord, HostFunctionRecord};
pub(crate) use crate::cupti::overhead::Overhead;

/// `CUPTI_INVALID_STREAM_ID`, `CUPTI_SYNCHRONIZATION_INVALID_VALUE`.
pub(crate) const INVALID_ID: u32 = u32::MAX;

/// `CUpti_ChannelType`.
pub(crate) const CHANNEL_COMPUTE: u32 = 1;
pub(crate) const CHANNEL_COPY: u32 = 2;

/// The size of a record of a kind, by the configured version; none for kinds that are not written.
pub(crate) fn size_of_kind(of: u32) -> Option<usize> {
    size_in_version(of, config().cupti_version)
}

/// The size of a record of a kind in a version.
pub(crate) fn size_in_version(of: u32, version: u32) -> Option<usize> {
    let record = match of {
        kind::MEMCPY => &layout::memcpy::RECORD,
        kind::MEMCPY2 => &layout::memcpy_peer::RECORD,
        kind::MEMSET => &layout::memset::RECORD,
        kind::KERNEL | kind::CONCURRENT_KERNEL => &layout::kernel::RECORD,
        kind::DRIVER | kind::RUNTIME => &api::RECORD,
        kind::CONTEXT => &context::RECORD,
        kind::STREAM => &stream::RECORD,
        kind::OVERHEAD => &layout::overhead::RECORD,
        kind::CUDA_EVENT => &cuda_event::RECORD,
        kind::SYNCHRONIZATION => &synchronization::RECORD,
        kind::EXTERNAL_CORRELATION => &external::RECORD,
        kind::GRAPH_TRACE => &layout::graph_trace::RECORD,
        kind::GRAPH_HOST_NODE => &layout::graph_host_node::RECORD,
        kind::CONTEXT_SWITCH => &layout::context_switch::RECORD,
        kind::HOST_LAUNCH => &layout::host_launch::RECORD,
        _ => return None,
    };
    record.bytes(version)
}

/// The id of a thread in records, as the client has chosen it.
pub(crate) fn thread_id(thread: &ThreadState, client: &Client) -> u32 {
    match client.recording.thread_id_type.load(Ordering::Acquire) {
        0 => thread.pthread_id,
        _ if faults().reuse_thread_ids == 1 => thread.reused_id,
        _ => thread.id,
    }
}

/// One API call's record, with the external correlation records before it.
pub(crate) struct ApiRecord {
    pub(crate) domain: Domain,
    pub(crate) id: u32,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) correlation_id: u32,
    pub(crate) result: u32,
    /// What goes wrong with it; the external ids before it are written all the same.
    pub(crate) fault: Option<CallRecordFault>,
}

/// Writes the record of a call for one client.
pub(crate) fn write_api(
    thread: &ThreadState,
    client: &'static Client,
    record: &ApiRecord,
    tops: &Tops,
) {
    let tops: Vec<_> = if client.recording.has(kind::EXTERNAL_CORRELATION) {
        tops.iter()
            .enumerate()
            .filter_map(|(kind, top)| Some((kind as u32, (*top)?)))
            .collect()
    } else {
        Vec::new()
    };
    let (Some(external_bytes), Some(api_bytes)) = (
        size_of_kind(kind::EXTERNAL_CORRELATION),
        size_of_kind(record.domain.activity_kind()),
    ) else {
        return;
    };
    let before = tops.len() * external_bytes;
    if record.fault == Some(CallRecordFault::Dropped) {
        client.delivery.count_dropped(1);
    }
    let (api_bytes, api_records) = match record.fault {
        Some(_) => (0, 0),
        None => (api_bytes, 1),
    };
    if tops.is_empty() && api_records == 0 {
        return;
    }
    let _ = Sink::of(thread, client).write(before + api_bytes, tops.len() + api_records, |place| {
        for ((external_kind, id), place) in tops.iter().zip(place.chunks_mut(external_bytes)) {
            let mut writer = Writer(place);
            writer.u32(0, kind::EXTERNAL_CORRELATION);
            writer.u32(external::EXTERNAL_KIND, *external_kind);
            writer.u64(external::EXTERNAL_ID, *id);
            writer.u32(external::CORRELATION_ID, record.correlation_id);
        }
        // Nothing is left of it where the record is missing.
        let mut writer = Writer(&mut place[before..]);
        writer.u32(0, record.domain.activity_kind());
        writer.u32(api::CBID, record.id);
        writer.u64(api::START, record.start_ns);
        writer.u64(api::END, record.end_ns);
        writer.u32(api::PROCESS_ID, std::process::id());
        writer.u32(api::THREAD_ID, thread_id(thread, client));
        writer.u32(api::CORRELATION_ID, record.correlation_id);
        writer.u32(api::RETURN_VALUE, record.result);
    });
}

/// `CUpti_ActivitySynchronizationType`.
#[derive(Clone, Copy)]
pub(crate) enum Synchronization {
    Event = 1,
    StreamWaitEvent = 2,
    Stream = 3,
    Context = 4,
}

pub(crate) struct SynchronizationRecord {
    pub(crate) of: Synchronization,
    pub(crate) start: Stamp,
    pub(crate) end: Stamp,
    pub(crate) correlation_id: u32,
    pub(crate) context_id: u32,
    pub(crate) stream_id: u32,
    /// The event's id and the number of its newest record call.
    pub(crate) event: Option<(u32, u64)>,
    pub(crate) result: u32,
}

pub(crate) fn write_synchronization(thread: &ThreadState, record: &SynchronizationRecord) {
    let fails = record.result != 0;
    let (event_id, event_sync_id) = record.event.unwrap_or((INVALID_ID, u64::from(INVALID_ID)));
    for_each_client(thread, kind::SYNCHRONIZATION, |client, sink, bytes| {
        if fails && !client.recording.has_all_synchronizations() {
            return;
        }
        let [start_ns, end_ns] =
            [&record.start, &record.end].map(|stamp| stamp.get(client).copied().unwrap_or(0));
        let _ = sink.write(bytes, 1, |place| {
            let mut writer = Writer(place);
            writer.u32(0, kind::SYNCHRONIZATION);
            writer.u32(synchronization::TYPE, record.of as u32);
            writer.u64(synchronization::START, start_ns);
            writer.u64(synchronization::END, end_ns);
            writer.u32(synchronization::CORRELATION_ID, record.correlation_id);
            writer.u32(synchronization::CONTEXT_ID, record.context_id);
            writer.u32(synchronization::STREAM_ID, record.stream_id);
            writer.u32(synchronization::EVENT_ID, event_id);
            writer.u64(synchronization::EVENT_SYNC_ID, event_sync_id);
            writer.u32(synchronization::RETURN_VALUE, record.result);
        });
    });
}

pub(crate) fn write_context(
    thread: &ThreadState,
    context_id: u32,
    device: u32,
    default_stream_id: u32,
) {
    for_each_client(thread, kind::CONTEXT, |_, sink, bytes| {
        let _ = sink.write(bytes, 1, |place| {
            let mut writer = Writer(place);
            writer.u32(0, kind::CONTEXT);
            writer.u32(context::CONTEXT_ID, context_id);
            writer.u32(context::DEVICE_ID, device);
            // CUPTI_ACTIVITY_COMPUTE_API_CUDA
            writer.u16(context::COMPUTE_API_KIND, 1);
            writer.u16(context::NULL_STREAM_ID, default_stream_id as u16);
            writer.u64(context::PROCESS_ID, u64::from(std::process::id()));
        });
    });
}

/// The context that a neighbour is said to have: no record tells of it.
const NEIGHBOUR_CONTEXT_ID: u32 = 0x4000_0000;

/// A neighbour had a device, and a context of this process has it again: the begin and the end of both switches.
pub(crate) fn write_absence(absence: &Absence, context_id: u32) {
    for client in client::all() {
        if !client.recording.has(kind::CONTEXT_SWITCH) {
            continue;
        }
        let Some(bytes) = size_of_kind(kind::CONTEXT_SWITCH) else {
            continue;
        };
        let sink = Sink::of_none(client);
        for (context_id, times_ns) in [
            (NEIGHBOUR_CONTEXT_ID, absence.leaves_ns),
            (context_id, absence.returns_ns),
        ] {
            // CUPTI_COMPUTE_ENGINE_CTX_SWITCH_OPERATION_START and END
            for (operation, at_ns) in (1..).zip(times_ns) {
                let at_ns = client.clock.of_device_ns(absence.device, at_ns);
                let _ = sink.write(bytes, 1, |place| {
                    let mut writer = Writer(place);
                    writer.u32(0, kind::CONTEXT_SWITCH);
                    writer.u32(context_switch::CONTEXT_ID, context_id);
                    writer.u64(context_switch::TIMESTAMP, at_ns);
                    writer.u32(context_switch::OPERATION, operation);
                });
            }
        }
    }
}

pub(crate) fn write_stream(
    thread: &ThreadState,
    context_id: u32,
    stream_id: u32,
    priority: i32,
    flags: u32,
    correlation_id: u32,
) {
    for_each_client(thread, kind::STREAM, |_, sink, bytes| {
        let _ = sink.write(bytes, 1, |place| {
            let mut writer = Writer(place);
            writer.u32(0, kind::STREAM);
            writer.u32(stream::CONTEXT_ID, context_id);
            writer.u32(stream::STREAM_ID, stream_id);
            writer.i32(stream::PRIORITY, priority);
            // CUPTI counts the kinds of stream from 1: default, then non-blocking.
            writer.u32(stream::FLAG, flags + 1);
            writer.u32(stream::CORRELATION_ID, correlation_id);
        });
    });
}

/// Each client that records a kind, its sink for this thread, and how long such a record is.
pub(crate) fn for_each_client(
    thread: &ThreadState,
    kind: u32,
    mut write: impl FnMut(&'static Client, Arc<Sink>, usize),
) {
    for client in client::all() {
        if client.recording.has(kind)
            && let Some(bytes) = size_of_kind(kind)
        {
            write(client, Sink::of(thread, client), bytes);
        }
    }
}

/// What is known of a record call of an event.
pub(crate) struct EventRecorded {
    pub(crate) device: u32,
    pub(crate) correlation_id: u32,
    pub(crate) context_id: u32,
    pub(crate) stream_id: u32,
    pub(crate) event_id: u32,
    /// Unique to this record call.
    pub(crate) sync_id: u64,
}

/// The records of an event's record call, while the device has not reached it.
pub(crate) struct EventRecord {
    slots: Vec<(&'static Client, Slot)>,
}

impl EventRecord {
    /// Writes the records, where their kind is on. What comes back is still to be told the device's time.
    pub(crate) fn open(thread: &ThreadState, recorded: &EventRecorded) -> Option<Self> {
        let fill = |place: &mut [u8]| {
            let mut writer = Writer(place);
            writer.u32(0, kind::CUDA_EVENT);
            writer.u32(cuda_event::CORRELATION_ID, recorded.correlation_id);
            writer.u32(cuda_event::CONTEXT_ID, recorded.context_id);
            writer.u32(cuda_event::STREAM_ID, recorded.stream_id);
            writer.u32(cuda_event::EVENT_ID, recorded.event_id);
            writer.u32(cuda_event::DEVICE_ID, recorded.device);
            writer.u64(cuda_event::EVENT_SYNC_ID, recorded.sync_id);
        };
        let mut slots = Vec::new();
        for_each_client(thread, kind::CUDA_EVENT, |client, sink, bytes| {
            if !client.recording.event_timestamps.load(Ordering::Acquire) {
                let _ = sink.write(bytes, 1, fill);
            } else if let Some(slot) = sink.open(bytes, 1) {
                slot.update(fill);
                slots.push((client, slot));
            }
        });
        (!slots.is_empty()).then_some(Self { slots })
    }

    /// The device has reached it.
    pub(crate) fn reached(self, device: u32, at_ns: u64) {
        for (client, slot) in self.slots {
            let at_ns = client.clock.of_device_ns(device, at_ns);
            slot.complete(|place| Writer(place).u64(cuda_event::DEVICE_TIMESTAMP, at_ns));
        }
    }
}
