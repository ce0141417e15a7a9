//! Records of what held up a call.

use crate::cupti::activity::{self, kind};
use crate::cupti::layout::overhead;
use crate::cupti::records::{CHANNEL_COMPUTE, for_each_client, thread_id};
use crate::cupti::time::{self, Stamp};
use crate::cupti::writer::Writer;
use crate::threads::ThreadState;

/// Something that held up a call, from when it began.
pub(crate) struct Overhead {
    start: Stamp,
}

/// `CUpti_ActivityOverheadKind`.
const COMPILER: u32 = 1;
const LAZY_LOADING: u32 = 5 << 16;
const COMMAND_BUFFER_FULL: u32 = 6 << 16;

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
        let data = [channel + 1, CHANNEL_COMPUTE];
        self.write(thread, correlation_id, COMMAND_BUFFER_FULL, Some(data));
    }

    /// `channel`: `CUpti_ActivityOverheadCommandBufferFullData`, channel and its kind.
    fn write(
        self,
        thread: &ThreadState,
        correlation_id: u32,
        overhead_kind: u32,
        channel: Option<[u32; 2]>,
    ) {
        let end = time::stamp();
        for_each_client(thread, kind::OVERHEAD, |client, sink, bytes| {
            let (Some(start_ns), Some(end_ns)) = (self.start.get(client), end.get(client)) else {
                return;
            };
            let data = match channel {
                // Before 12.4 records have no place for it.
                Some(channel) if bytes > overhead::OVERHEAD_DATA => allocate(channel),
                _ => std::ptr::null_mut(),
            };
            let is_written = sink.write(bytes, 1, |place| {
                let mut writer = Writer(place);
                writer.u32(0, kind::OVERHEAD);
                writer.u32(overhead::OVERHEAD_KIND, overhead_kind);
                writer.u32(overhead::OBJECT_KIND, OBJECT_THREAD);
                writer.u32(overhead::OBJECT_PROCESS_ID, std::process::id());
                writer.u32(overhead::OBJECT_THREAD_ID, thread_id(thread, client));
                writer.u64(overhead::START, *start_ns);
                writer.u64(overhead::END, *end_ns);
                writer.u32(overhead::CORRELATION_ID, correlation_id);
                writer.u64(overhead::OVERHEAD_DATA, data.expose_provenance() as u64);
            });
            if !is_written {
                // SAFETY: null, or from `malloc`; and no client will free it.
                unsafe { libc::free(data.cast()) };
            }
        });
    }
}

/// For the client, which frees it.
fn allocate(channel: [u32; 2]) -> *mut [u32; 2] {
    // SAFETY: allocates as many bytes as are written, if it allocates.
    unsafe {
        let data = libc::malloc(size_of_val(&channel)).cast::<[u32; 2]>();
        if !data.is_null() {
            data.write(channel);
        }
        data
    }
}
