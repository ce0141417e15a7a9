//! Records of what orders work and of what a thread's time went into: waits, events, streams,
//! contexts, overheads. Only the tiers that explain collect them.

use std::collections::BTreeMap;

use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::{
    Event, EventRecord, Overhead, OverheadKind, StreamDescribed, StreamKind, Synchronization,
    SynchronizationKind,
};

use crate::sys::codes::{
    self, NOT_APPLICABLE, OVERHEAD_OF_A_THREAD, overhead_kind, stream_flag, synchronization_type,
    version,
};
use crate::sys::layout::{Record, context, cuda_event, overhead, stream, synchronization};

/// Streams whose context is not described yet.
const WAITING_STREAMS: usize = 1024;
/// Contexts that are remembered; a process makes one a device, seldom more.
const CONTEXTS: usize = 1024;

/// Decodes them, and knows on which device each context is.
#[derive(Debug)]
pub(super) struct OrderDecoder {
    session: u32,
    version: u32,
    devices: BTreeMap<u32, u32>,
    waiting: Vec<StreamDescribed>,
}

impl OrderDecoder {
    pub(super) fn new(session: u32, version: u32) -> Self {
        Self {
            session,
            version,
            devices: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    /// `None` for a record that is too short, or that nobody described. `full_channel` is what an
    /// overhead record points to.
    pub(super) fn record(
        &mut self,
        kind: u32,
        record: Record<'_>,
        full_channel: Option<u32>,
        out: &mut dyn FnMut(Event),
    ) -> Option<()> {
        match kind {
            codes::kind::SYNCHRONIZATION => out(self.wait(record)?.into()),
            codes::kind::CUDA_EVENT => out(self.event(record)?.into()),
            codes::kind::OVERHEAD => {
                if let Some(overhead) = self.overhead(record, full_channel)? {
                    out(overhead.into());
                }
            }
            codes::kind::STREAM => self.stream(record, out)?,
            codes::kind::CONTEXT => self.context(record, out)?,
            _ => return None,
        }
        Some(())
    }

    fn wait(&self, record: Record<'_>) -> Option<Synchronization> {
        use synchronization as at;
        let applies = |value: u32| (value != NOT_APPLICABLE).then_some(value);
        let mut event_sync = None;
        if self.version >= version::CUDA_12_8 {
            // 0 is what a wait has whose event was never recorded, and what CUPTI 13.5 writes where
            // the field does not apply.
            let sync = record.u64(at::CUDA_EVENT_SYNC_ID)?;
            event_sync = (sync != 0 && sync != u64::from(NOT_APPLICABLE)).then_some(sync);
        }
        Some(Synchronization {
            session: self.session,
            correlation: CorrelationId(record.u32(at::CORRELATION_ID)?),
            kind: match record.u32(at::TYPE)? {
                synchronization_type::EVENT => SynchronizationKind::Event,
                synchronization_type::STREAM_WAIT => SynchronizationKind::StreamWait,
                synchronization_type::STREAM => SynchronizationKind::Stream,
                synchronization_type::CONTEXT => SynchronizationKind::Context,
                _ => SynchronizationKind::Unknown,
            },
            start: HostNanos::from_cupti(record.u64(at::START)?),
            end: HostNanos::from_cupti(record.u64(at::END)?),
            context: applies(record.u32(at::CONTEXT_ID)?),
            stream: applies(record.u32(at::STREAM_ID)?),
            event: applies(record.u32(at::CUDA_EVENT_ID)?),
            event_sync,
            recorded_by: None,
        })
    }

    fn event(&self, record: Record<'_>) -> Option<EventRecord> {
        use cuda_event as at;
        let (mut event_sync, mut device) = (None, None);
        if self.version >= version::CUDA_12_8 {
            let sync = record.u64(at::CUDA_EVENT_SYNC_ID)?;
            event_sync = (sync != 0).then_some(sync);
            device = HostNanos::from_cupti(record.u64(at::DEVICE_TIMESTAMP)?);
        }
        Some(EventRecord {
            session: self.session,
            correlation: CorrelationId(record.u32(at::CORRELATION_ID)?),
            context: Some(record.u32(at::CONTEXT_ID)?),
            stream: Some(record.u32(at::STREAM_ID)?),
            event: Some(record.u32(at::EVENT_ID)?),
            event_sync,
            device,
        })
    }

    /// `Some(None)` for one without times, which says nothing of when.
    fn overhead(&self, record: Record<'_>, channel: Option<u32>) -> Option<Option<Overhead>> {
        use overhead as at;
        let number = record.u32(at::OVERHEAD_KIND)?;
        let kind = match number {
            overhead_kind::DRIVER_COMPILER => OverheadKind::DriverCompiler,
            overhead_kind::MODULE_LOADING => OverheadKind::ModuleLoading,
            overhead_kind::LAZY_FUNCTION_LOADING => OverheadKind::LazyFunctionLoading,
            overhead_kind::COMMAND_BUFFER_FULL => OverheadKind::CommandBufferFull,
            overhead_kind::UVM_ACTIVITY_INIT => OverheadKind::UnifiedMemoryInit,
            overhead_kind::BUFFER_FLUSH
            | overhead_kind::INSTRUMENTATION
            | overhead_kind::RESOURCE
            | overhead_kind::BUFFER_REQUEST => OverheadKind::Tracer,
            other => OverheadKind::Other(other),
        };
        let start = HostNanos::from_cupti(record.u64(at::START)?);
        let end = HostNanos::from_cupti(record.u64(at::END)?);
        let of_thread = record.u32(at::OBJECT_KIND)? == OVERHEAD_OF_A_THREAD;
        let thread = u64::from(record.u32(at::THREAD_ID)?);
        let correlation = if self.version >= version::CUDA_12_4 {
            record.u32(at::CORRELATION_ID)?
        } else {
            0
        };
        Some(start.zip(end).map(|(start, end)| Overhead {
            session: self.session,
            kind,
            correlation: (correlation != 0).then_some(CorrelationId(correlation)),
            thread: of_thread.then_some(thread),
            start,
            end,
            channel,
        }))
    }

    fn stream(&mut self, record: Record<'_>, out: &mut dyn FnMut(Event)) -> Option<()> {
        use stream as at;
        let described = StreamDescribed {
            session: self.session,
            device: 0,
            context: record.u32(at::CONTEXT_ID)?,
            stream: record.u32(at::STREAM_ID)?,
            kind: match record.u32(at::FLAG)? {
                stream_flag::DEFAULT => StreamKind::Blocking,
                stream_flag::NON_BLOCKING => StreamKind::NonBlocking,
                stream_flag::NULL => StreamKind::LegacyDefault,
                // What nobody described stays undescribed.
                _ => return Some(()),
            },
            made: None,
        };
        match self.devices.get(&described.context) {
            Some(&device) => out(StreamDescribed {
                device,
                ..described
            }
            .into()),
            None if self.waiting.len() < WAITING_STREAMS => self.waiting.push(described),
            None => return None,
        }
        Some(())
    }

    /// A context, with its default stream.
    fn context(&mut self, record: Record<'_>, out: &mut dyn FnMut(Event)) -> Option<()> {
        use context as at;
        let context = record.u32(at::CONTEXT_ID)?;
        let device = record.u32(at::DEVICE_ID)?;
        if self.devices.len() == CONTEXTS && !self.devices.contains_key(&context) {
            return None;
        }
        self.devices.insert(context, device);
        let default = StreamDescribed {
            session: self.session,
            device,
            context,
            stream: u32::from(record.u16(at::NULL_STREAM_ID)?),
            kind: StreamKind::LegacyDefault,
            made: None,
        };
        out(default.into());
        let of_context = self
            .waiting
            .extract_if(.., |waiting| waiting.context == context);
        for waiting in of_context {
            out(StreamDescribed { device, ..waiting }.into());
        }
        Some(())
    }
}
