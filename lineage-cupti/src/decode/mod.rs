//! From CUPTI's buffers to observations.
//!
//! Works on a whole buffer at a time, on the session's drain thread, by `cuptiActivityGetNextRecord`
//! alone: how long a record is depends on the library's version, and only the library knows. Each
//! record is read by the prefix that all versions share ([`layout`](crate::sys::layout)).

use std::ffi::c_void;
use std::sync::Arc;

use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::{
    ActivityKind, ApiDomain, ApiRecord, Event, ExternalRecord, Footprint, Operation, OperationsDue,
    Placement,
};

use crate::sys::NextRecord;
use crate::sys::codes::{NO_CHANNEL, kind, overhead_kind, result, version};
use crate::sys::layout::{self, Record};
use crate::work;

mod loaded;
mod names;
mod order;
#[cfg(test)]
mod tests;

pub(crate) use loaded::LoadedNames;
pub(crate) use names::Names;

use order::OrderDecoder;

/// No record that is read here is longer.
const LONGEST_RECORD: usize = 512;
/// External ids that wait for their API record. It follows at once, so few ever do.
const WAITING: usize = 64;

/// What a buffer held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Records that were walked over.
    pub(crate) records: u64,
    /// Of these, records of kinds that are not known here, or cut short.
    pub(crate) undecodable: u64,
    /// Ends of buffers that held incomplete records: each stands for at least one record.
    pub(crate) tails: u64,
}

/// Decodes the buffers of one session.
pub(crate) struct Decoder {
    session: u32,
    version: u32,
    own_kind: u32,
    names: Names,
    loaded: &'static LoadedNames,
    /// Number of the buffer that is decoded.
    lent: u64,
    waiting: Vec<ExternalRecord>,
    /// Where what explains is collected.
    order: Option<OrderDecoder>,
}

impl Decoder {
    /// A decoder for records of this version of the library.
    pub(crate) fn new(
        session: u32,
        version: u32,
        own_kind: u32,
        names: Names,
        loaded: &'static LoadedNames,
        explain: bool,
    ) -> Self {
        Self {
            session,
            version,
            own_kind,
            names,
            loaded,
            lent: 0,
            waiting: Vec::with_capacity(WAITING),
            order: explain.then(|| OrderDecoder::new(session, version)),
        }
    }

    /// Decodes all records of a buffer, the `lent`th that was lent.
    ///
    /// # Safety
    /// `start` is a buffer that CUPTI completed with `valid` bytes in it, nobody writes to it, and
    /// `next` is the `cuptiActivityGetNextRecord` of that CUPTI. The names that its records point to
    /// are there for as long as the decoder's [`LoadedNames`] lets them be read. It is decoded or [counted](count_records) once: some records own memory.
    pub(crate) unsafe fn buffer(
        &mut self,
        next: NextRecord,
        start: *mut u8,
        valid: usize,
        lent: u64,
        out: &mut dyn FnMut(Event),
    ) -> Tally {
        self.lent = lent;
        let each = |record: Record<'_>| {
            // SAFETY: the caller vouches for the names that records point to.
            let decoded = unsafe { self.record(record, out) };
            // SAFETY: each record is seen once.
            unsafe { free_what_it_owns(record, self.version) };
            decoded.is_some()
        };
        // SAFETY: the caller's word.
        let tally = unsafe { walk(next, start, valid, each) };
        // Their API record is in no buffer that follows: CUPTI writes the two together.
        for external in self.waiting.drain(..) {
            out(external.into());
        }
        tally
    }

    /// # Safety
    /// Names that the record points to are there for as long as they may be read.
    unsafe fn record(&mut self, record: Record<'_>, out: &mut dyn FnMut(Event)) -> Option<()> {
        match record.kind()? {
            kind::DRIVER => self.api(record, Some(ApiDomain::Driver), out),
            kind::RUNTIME => self.api(record, Some(ApiDomain::Runtime), out),
            kind::INTERNAL_LAUNCH_API => self.api(record, None, out),
            kind::EXTERNAL_CORRELATION => self.external(record, out),
            kind::CONCURRENT_KERNEL | kind::KERNEL => {
                // SAFETY: the caller's word.
                let operation = unsafe { self.kernel(record) }?;
                self.placed(&operation, record.u32(layout::kernel::CHANNEL_ID)?, out);
                out(operation.into());
                Some(())
            }
            kind::MEMCPY => {
                let operation = self.copy(record)?;
                self.placed(&operation, record.u32(layout::memcpy::CHANNEL_ID)?, out);
                out(operation.into());
                Some(())
            }
            kind::MEMCPY2 => {
                let operation = self.peer_copy(record)?;
                self.placed(
                    &operation,
                    record.u32(layout::memcpy_peer::CHANNEL_ID)?,
                    out,
                );
                out(operation.into());
                Some(())
            }
            kind::MEMSET => {
                let operation = self.set(record)?;
                self.placed(&operation, record.u32(layout::memset::CHANNEL_ID)?, out);
                out(operation.into());
                Some(())
            }
            kind::GRAPH_TRACE => {
                let operation = self.graph(record)?;
                out(operation.into());
                Some(())
            }
            other => {
                // SAFETY: the record's data is CUPTI's, and not freed yet.
                let full = unsafe { full_channel(record, self.version) };
                self.order.as_mut()?.record(other, record, full, out)
            }
        }
    }

    /// On which channel an operation was, where that is collected.
    fn placed(&self, operation: &Operation, channel: u32, out: &mut dyn FnMut(Event)) {
        if self.order.is_some() && channel != NO_CHANNEL {
            out(Placement {
                session: self.session,
                correlation: operation.correlation,
                graph_node: operation.graph_node,
                channel,
            }
            .into());
        }
    }

    /// `domain` is `None` for a launch outside any public function.
    fn api(
        &mut self,
        record: Record<'_>,
        domain: Option<ApiDomain>,
        out: &mut dyn FnMut(Event),
    ) -> Option<()> {
        use layout::api as at;
        let cbid = record.u32(at::CBID)?;
        let correlation = CorrelationId(record.u32(at::CORRELATION_ID)?);
        let start = HostNanos::from_cupti(record.u64(at::START)?);
        let (end, result) = (record.u64(at::END)?, record.u32(at::RETURN_VALUE)?);
        let tid = u64::from(record.u32(at::THREAD_ID)?);
        let (api, due) = match domain {
            Some(domain) => (
                self.names.api(domain, cbid),
                work::function(domain, cbid).map_or(OperationsDue::None, |function| {
                    function.work.due_by_record()
                }),
            ),
            None => (self.names.internal_launch(), OperationsDue::Any),
        };
        self.waiting.retain_mut(|external| {
            let mine = external.correlation == correlation;
            if mine {
                external.beside = start;
                out(external.clone().into());
            }
            !mine
        });
        out(ApiRecord {
            session: self.session,
            api,
            correlation,
            tid,
            start,
            end: HostNanos::from_cupti(end),
            result,
            due,
        }
        .into());
        Some(())
    }

    /// Kept back until its API record comes, whose start it needs.
    fn external(&mut self, record: Record<'_>, out: &mut dyn FnMut(Event)) -> Option<()> {
        use layout::external as at;
        let kind = record.u32(at::EXTERNAL_KIND)?;
        let external = ExternalRecord {
            session: self.session,
            kind,
            own_kind: kind == self.own_kind,
            external_id: record.u64(at::EXTERNAL_ID)?,
            correlation: CorrelationId(record.u32(at::CORRELATION_ID)?),
            beside: None,
        };
        if self.waiting.len() == WAITING {
            out(self.waiting.remove(0).into());
        }
        self.waiting.push(external);
        Some(())
    }

    /// # Safety
    /// The record's name is there for as long as it may be read.
    unsafe fn kernel(&mut self, record: Record<'_>) -> Option<Operation> {
        use layout::kernel as at;
        let three = |offset: usize| -> Option<[u32; 3]> {
            Some([
                record.u32(offset)?,
                record.u32(offset + 4)?,
                record.u32(offset + 8)?,
            ])
        };
        let name = record.address(at::NAME)?;
        let mut operation = self.operation(record, ActivityKind::Kernel, &KERNEL)?;
        operation.queued = HostNanos::from_cupti(record.u64(at::QUEUED)?);
        operation.submitted = HostNanos::from_cupti(record.u64(at::SUBMITTED)?);
        operation.grid = three(at::GRID)?;
        operation.block = three(at::BLOCK)?;
        let cluster = three(at::CLUSTER)?;
        operation.footprint = footprint(
            u32::from(record.u16(at::REGISTERS_PER_THREAD)?),
            [
                record.u32(at::STATIC_SHARED_MEMORY)?,
                record.u32(at::DYNAMIC_SHARED_MEMORY)?,
            ],
            cluster,
        );
        let names = &mut self.names;
        operation.name = self.loaded.read(self.lent, || {
            // SAFETY: the name may be read now, so by the caller's word it is there.
            unsafe { names.kernel(name) }
        });
        Some(operation)
    }

    fn copy(&self, record: Record<'_>) -> Option<Operation> {
        use layout::memcpy as at;
        let mut operation = self.operation(record, ActivityKind::Copy, &MEMCPY)?;
        operation.bytes = record.u64(at::BYTES)?;
        operation.name = Some(self.names.copy(record.u8(at::COPY_KIND)?));
        if self.version >= version::CUDA_12_8 {
            // 0 is what a copy has that belongs to no batch.
            let count = record.u64(at::COPY_COUNT)?.max(1);
            operation.copies = u32::try_from(count).unwrap_or(u32::MAX);
        }
        Some(operation)
    }

    fn peer_copy(&self, record: Record<'_>) -> Option<Operation> {
        use layout::memcpy_peer as at;
        let mut operation = self.operation(record, ActivityKind::Copy, &MEMCPY_PEER)?;
        operation.bytes = record.u64(at::BYTES)?;
        operation.name = Some(self.names.copy(record.u8(at::COPY_KIND)?));
        Some(operation)
    }

    fn set(&self, record: Record<'_>) -> Option<Operation> {
        let mut operation = self.operation(record, ActivityKind::Set, &MEMSET)?;
        operation.bytes = record.u64(layout::memset::BYTES)?;
        operation.name = Some(self.names.set());
        Some(operation)
    }

    /// The whole of a graph launch.
    fn graph(&self, record: Record<'_>) -> Option<Operation> {
        use layout::graph_trace as at;
        let graph = record.u32(at::GRAPH_ID)?;
        Some(Operation {
            session: self.session,
            kind: ActivityKind::Graph,
            correlation: CorrelationId(record.u32(at::CORRELATION_ID)?),
            device: record.u32(at::DEVICE_ID)?,
            context: record.u32(at::CONTEXT_ID)?,
            stream: record.u32(at::STREAM_ID)?,
            queued: None,
            submitted: None,
            start: HostNanos::from_cupti(record.u64(at::START)?),
            end: HostNanos::from_cupti(record.u64(at::END)?),
            name: None,
            graph_node: None,
            graph: (graph != 0).then_some(graph),
            bytes: 0,
            copies: 1,
            grid: [0; 3],
            block: [0; 3],
            footprint: None,
        })
    }

    /// What all operations have.
    fn operation(&self, record: Record<'_>, kind: ActivityKind, at: &Common) -> Option<Operation> {
        let graph_node = record.u64(at.graph_node_id)?;
        let graph = record.u32(at.graph_id)?;
        Some(Operation {
            session: self.session,
            kind,
            correlation: CorrelationId(record.u32(at.correlation_id)?),
            device: record.u32(at.device_id)?,
            context: record.u32(at.context_id)?,
            stream: record.u32(at.stream_id)?,
            queued: None,
            submitted: None,
            start: HostNanos::from_cupti(record.u64(at.start)?),
            end: HostNanos::from_cupti(record.u64(at.end)?),
            name: None::<Arc<str>>,
            graph_node: (graph_node != 0).then_some(graph_node),
            graph: (graph != 0).then_some(graph),
            bytes: 0,
            copies: 1,
            grid: [0; 3],
            block: [0; 3],
            footprint: None,
        })
    }
}

/// What a kernel takes; `None` where a number cannot be one, as a negative one.
fn footprint(registers: u32, shared: [u32; 2], cluster: [u32; 3]) -> Option<Footprint> {
    let bytes = |of: u32| i32::try_from(of).ok().and(Some(of));
    let [declared, asked_for] = shared.map(bytes);
    let blocks = cluster.into_iter().try_fold(1_u32, |blocks, of| {
        // 0 where there are no clusters.
        blocks.checked_mul(of.max(1))
    });
    Some(Footprint {
        registers_per_thread: registers,
        // Two numbers of 31 bits.
        shared_bytes: declared? + asked_for?,
        blocks_per_cluster: Some(blocks?),
    })
}

/// Where the fields are that all operations have.
struct Common {
    start: usize,
    end: usize,
    device_id: usize,
    context_id: usize,
    stream_id: usize,
    correlation_id: usize,
    graph_node_id: usize,
    graph_id: usize,
}

macro_rules! common {
    ($name:ident, $module:ident) => {
        const $name: Common = Common {
            start: layout::$module::START,
            end: layout::$module::END,
            device_id: layout::$module::DEVICE_ID,
            context_id: layout::$module::CONTEXT_ID,
            stream_id: layout::$module::STREAM_ID,
            correlation_id: layout::$module::CORRELATION_ID,
            graph_node_id: layout::$module::GRAPH_NODE_ID,
            graph_id: layout::$module::GRAPH_ID,
        };
    };
}
common!(KERNEL, kernel);
common!(MEMCPY, memcpy);
common!(MEMCPY_PEER, memcpy_peer);
common!(MEMSET, memset);

/// Counts the records of a buffer that is not to be decoded, and frees what they own.
///
/// # Safety
/// As for [`Decoder::buffer`], but for the names.
pub(crate) unsafe fn count_records(
    next: NextRecord,
    start: *mut u8,
    valid: usize,
    version: u32,
) -> Tally {
    let each = |record: Record<'_>| {
        // SAFETY: each record is seen once.
        unsafe { free_what_it_owns(record, version) };
        true
    };
    // SAFETY: the caller's word.
    unsafe { walk(next, start, valid, each) }
}

/// Calls `each` for every complete record; it answers whether it could read it.
///
/// # Safety
/// `start` is a buffer that CUPTI completed with `valid` bytes in it, nobody writes to it, and
/// `next` is the `cuptiActivityGetNextRecord` of that CUPTI.
unsafe fn walk(
    next: NextRecord,
    start: *mut u8,
    valid: usize,
    mut each: impl FnMut(Record<'_>) -> bool,
) -> Tally {
    let mut tally = Tally::default();
    let mut record: *mut u8 = std::ptr::null_mut();
    loop {
        // SAFETY: the buffer is CUPTI's own, and `record` is null or what CUPTI answered last.
        let code = unsafe { next(start, valid, &mut record) };
        match code {
            result::SUCCESS => {}
            result::MAX_LIMIT_REACHED => return tally,
            // Incomplete records, in a buffer that was returned by force; or a buffer that cannot
            // be walked any further. Either way what follows is lost, and counted.
            _ => {
                tally.tails += 1;
                return tally;
            }
        }
        let offset = (record as usize).wrapping_sub(start as usize);
        if record.is_null() || offset >= valid {
            tally.tails += 1;
            return tally;
        }
        let length = (valid - offset).min(LONGEST_RECORD);
        // SAFETY: `offset + length <= valid`, so the bytes are inside the buffer, which nobody
        // writes to while the slice lives.
        let bytes = unsafe { std::slice::from_raw_parts(record.cast_const(), length) };
        tally.records += 1;
        if !each(Record::new(bytes)) {
            tally.undecodable += 1;
        }
    }
}

/// The channel whose command buffer was full, of an overhead record that says so.
///
/// # Safety
/// The record came from CUPTI, and what it owns is not freed yet.
unsafe fn full_channel(record: Record<'_>, version: u32) -> Option<u32> {
    use layout::{command_buffer_full, overhead};
    let is_full = version >= version::CUDA_12_4
        && record.kind() == Some(kind::OVERHEAD)
        && record.u32(overhead::OVERHEAD_KIND) == Some(overhead_kind::COMMAND_BUFFER_FULL);
    let address = record
        .address(overhead::OVERHEAD_DATA)
        .filter(|_| is_full)?;
    let data = (address as *const u8).wrapping_add(command_buffer_full::CHANNEL_ID);
    // SAFETY: by its kind the record points to this struct (layout test), or to nothing.
    (address != 0).then(|| unsafe { data.cast::<u32>().read_unaligned() })
}

/// An overhead record's data is its reader's to free, whether it was of use or not
/// (`cupti_activity.h`, `CUpti_ActivityOverhead3`).
///
/// # Safety
/// The record came from CUPTI, and is passed here once.
unsafe fn free_what_it_owns(record: Record<'_>, version: u32) {
    if version < version::CUDA_12_4 || record.kind() != Some(kind::OVERHEAD) {
        return;
    }
    if let Some(address @ 1..) = record.address(layout::overhead::OVERHEAD_DATA) {
        // SAFETY: CUPTI allocated it with `malloc` and left it to the reader.
        unsafe { libc::free(address as *mut c_void) };
    }
}
