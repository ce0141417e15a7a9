//! Records of what held up a call.

use std::sync::atomic::Ordering;

use crate::clock;
use crate::cupti::activity::{self, kind};
use crate::cupti::buffers::Sink;
use crate::cupti::client::Client;
use crate::cupti::layout::overhead;
use crate::cupti::records::{CHANNEL_COMPUTE, for_each_client, size_of_kind, thread_id};
use crate::cupti::time::{self, Stamp};
use crate::cupti::writer::Writer;
use crate::threads::ThreadState;

/// Something that held up a call, from when it began.
pub(crate) struct Overhead {
    start: Stamp,
}

/// `CUpti_ActivityOverheadKind`.
const COMPILER: u32 = 1;
const BUFFER_FLUSH: u32 = 1 << 16;
const INSTRUMENTATION: u32 = 2 << 16;
const RESOURCE: u32 = 3 << 16;
const LAZY_LOADING: u32 = 5 << 16;
const COMMAND_BUFFER_FULL: u32 = 6 << 16;
const BUFFER_REQUEST: u32 = 7 << 16;

/// `CUPTI_ACTIVITY_OBJECT_THREAD`.
const OBJECT_THREAD: u32 = 2;

impl Overhead {
    /// None when overhead is not recorded.
    pub(crate) fn begin() -> Option<Self> {
        activity::is_enabled(kind::OVERHEAD).then(|| Self {
            start: time::stamp(),
        })
    }

    /// A module's text was compiled.
    pub(crate) fn compiler(self, thread: &ThreadState, correlation_id: u32) {
        self.write(thread, correlation_id, COMPILER, None);
    }

    /// A function was loaded at its first launch.
    pub(crate) fn lazy_loading(self, thread: &ThreadState, correlation_id: u32) {
        self.write(thread, correlation_id, LAZY_LOADING, None);
    }

    /// The call waited for room in its channel.
    pub(crate) fn command_buffer_full(
        self,
        thread: &ThreadState,
        correlation_id: u32,
        channel: u32,
    ) {
        // What is left of the buffer comes first: nothing, by NVIDIA's comment.
        let data = [0, channel + 1, CHANNEL_COMPUTE];
        self.write(thread, correlation_id, COMMAND_BUFFER_FULL, Some(data));
    }

    /// CUPTI prepared for a new context.
    pub(crate) fn resource(self, thread: &ThreadState, correlation_id: u32) {
        self.write(thread, correlation_id, RESOURCE, None);
    }

    /// CUPTI's own part of a call.
    pub(crate) fn instrumentation(self, thread: &ThreadState, correlation_id: u32) {
        self.write(thread, correlation_id, INSTRUMENTATION, None);
    }

    /// CUPTI handed buffers back, on the calling thread.
    pub(crate) fn flush(self, thread: &ThreadState) {
        self.write(thread, 0, BUFFER_FLUSH, None);
    }

    /// `channel`: `CUpti_ActivityOverheadCommandBufferFullData`: room left, channel and its kind.
    fn write(
        self,
        thread: &ThreadState,
        correlation_id: u32,
        overhead_kind: u32,
        channel: Option<[u32; 3]>,
    ) {
        let end = time::stamp();
        for_each_client(thread, kind::OVERHEAD, |client, sink, _| {
            let (Some(start_ns), Some(end_ns)) = (self.start.get(client), end.get(client)) else {
                return;
            };
            let times_ns = [*start_ns, *end_ns];
            let thread_id = thread_id(thread, client);
            write(
                &sink,
                thread_id,
                times_ns,
                correlation_id,
                overhead_kind,
                channel,
            );
        });
    }
}

/// A client was asked for a buffer. The record is that client's only, and not of a call.
pub(crate) fn buffer_request(client: &Client, sink: &Sink, times_ns: [u64; 2]) {
    if client.recording.has(kind::OVERHEAD) {
        let thread_id = match client.recording.thread_id_type.load(Ordering::Acquire) {
            0 => clock::pthread_id(),
            _ => clock::thread_id(),
        };
        write(sink, thread_id, times_ns, 0, BUFFER_REQUEST, None);
    }
}

fn write(
    sink: &Sink,
    thread_id: u32,
    [start_ns, end_ns]: [u64; 2],
    correlation_id: u32,
    overhead_kind: u32,
    channel: Option<[u32; 3]>,
) {
    let Some(bytes) = size_of_kind(kind::OVERHEAD) else {
        return;
    };
    let data = match channel {
        Some(channel) if bytes > overhead::OVERHEAD_DATA => allocate(channel),
        // Both the place for it and the kind came with 12.4.
        Some(_) => return,
        None => std::ptr::null_mut(),
    };
    let is_written = sink.write(bytes, 1, |place| {
        let mut writer = Writer(place);
        writer.u32(0, kind::OVERHEAD);
        writer.u32(overhead::OVERHEAD_KIND, overhead_kind);
        writer.u32(overhead::OBJECT_KIND, OBJECT_THREAD);
        writer.u32(overhead::OBJECT_PROCESS_ID, std::process::id());
        writer.u32(overhead::OBJECT_THREAD_ID, thread_id);
        writer.u64(overhead::START, start_ns);
        writer.u64(overhead::END, end_ns);
        writer.u32(overhead::CORRELATION_ID, correlation_id);
        writer.u64(overhead::OVERHEAD_DATA, data.expose_provenance() as u64);
    });
    if !is_written {
        // SAFETY: null, or from `malloc`; and no client will free it.
        unsafe { libc::free(data.cast()) };
    }
}

/// For the client, which frees it.
fn allocate(channel: [u32; 3]) -> *mut [u32; 3] {
    // SAFETY: allocates as many bytes as are written, if it allocates.
    unsafe {
        let data = libc::malloc(size_of_val(&channel)).cast::<[u32; 3]>();
        if !data.is_null() {
            data.write(channel);
        }
        data
    }
}
