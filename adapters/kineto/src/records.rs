//! From events to records: which fields go where, and what is done where one cannot be used.

use lineage_core::id::ProcessOrdinal;
use lineage_import::{
    Activity, ActivityKind, ApiCall, CollectError, Collector, EventRecord, Footprint, NameId,
    Range, RangeKind, Skip, Synchronization, SynchronizationKind,
};

use crate::args::Args;
use crate::category::Category;
use crate::event::Event;
use crate::fields::{Members, Text, Value};
use crate::number::{NumberFault, microseconds, whole};

/// What CUPTI says where there is no stream.
const NO_STREAM: u32 = u32::MAX;

/// When an event began and ended, in nanoseconds since the trace's base.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) start_ns: Option<u64>,
    pub(crate) end_ns: Option<u64>,
}

/// Gives records to a collector.
pub(crate) struct Records {
    pub(crate) collector: Collector,
    /// The file's only process.
    pub(crate) process: ProcessOrdinal,
    /// Values that are `NaN` or infinite, where a number belongs.
    pub(crate) not_finite: u64,
    /// Kernels with a time at which they were queued.
    pub(crate) queued: u64,
}

impl Records {
    /// Takes an event that is of interest, with the end that its `E` gave, if it had one.
    pub(crate) fn take(
        &mut self,
        event: &Event<'_>,
        end: Option<Value<'_>>,
    ) -> Result<(), CollectError> {
        let args = &event.args;
        self.not_finite += args.not_finite;
        let times = self.times(event, end);
        match event.category {
            Category::Api => self.api(event, times),
            Category::Kernel => self.activity(ActivityKind::Kernel, event, times),
            Category::Copy => self.activity(ActivityKind::Copy, event, times),
            Category::Set => self.activity(ActivityKind::Set, event, times),
            Category::Synchronization => self.synchronization(event, times),
            Category::EventRecord => self.event_record(args),
            Category::Annotation => self.range(event, times),
            Category::Other => Ok(()),
        }
    }

    fn api(&mut self, event: &Event<'_>, times: Times) -> Result<(), CollectError> {
        let args = &event.args;
        let Some(correlation) = self.correlation(args.correlation) else {
            return Ok(());
        };
        let tid = self.thread(event.thread);
        let name = self.name(event.name);
        let kernel = args.kernel.map(|kernel| self.name(Some(kernel)));
        self.collector.api(ApiCall {
            process: self.process,
            correlation,
            tid,
            start_ns: times.start_ns,
            end_ns: times.end_ns,
            result: 0,
            name,
            kernel,
        })
    }

    fn activity(
        &mut self,
        kind: ActivityKind,
        event: &Event<'_>,
        times: Times,
    ) -> Result<(), CollectError> {
        let args = &event.args;
        let Some(correlation) = self.correlation(args.correlation) else {
            return Ok(());
        };
        if let Some(queued) = args.queued {
            self.queued += u64::from(whole(queued) != Ok(0));
        }
        let device = self.field(args.device.or(event.process)).unwrap_or(0);
        let context = self.field(args.context).unwrap_or(0);
        let stream = self.field(args.stream.or(event.thread.map(after_word)));
        let bytes = self.field(args.bytes).unwrap_or(0);
        let graph_node = self.field(args.graph_node).filter(|&node| node != 0);
        let graph = self.field(args.graph).filter(|&graph| graph != 0);
        let grid = self.dimensions(args.grid);
        let block = self.dimensions(args.block);
        let registers: Option<u16> = self.field(args.registers);
        let shared: Option<u32> = self.field(args.shared);
        let name = event.name.map(|name| self.name(Some(name)));
        self.collector.activity(Activity {
            process: self.process,
            correlation,
            kind,
            device,
            context,
            stream: stream.unwrap_or(NO_STREAM),
            queued_ns: None,
            submitted_ns: None,
            start_ns: times.start_ns,
            end_ns: times.end_ns,
            name,
            graph_node,
            graph,
            bytes,
            copies: 1,
            grid,
            block,
            // Kineto says nothing of clusters.
            footprint: registers
                .zip(shared)
                .map(|(registers, shared_bytes)| Footprint {
                    registers_per_thread: u32::from(registers),
                    shared_bytes,
                    blocks_per_cluster: None,
                }),
        })
    }

    fn synchronization(&mut self, event: &Event<'_>, times: Times) -> Result<(), CollectError> {
        let args = &event.args;
        let Some(correlation) = self.correlation(args.correlation) else {
            return Ok(());
        };
        let kind = match args.synchronization_kind.or(event.name).map(Text::raw) {
            Some(b"Event Sync") => SynchronizationKind::Event,
            Some(b"Stream Wait Event") => SynchronizationKind::StreamWait,
            Some(b"Stream Sync") => SynchronizationKind::Stream,
            Some(b"Context Sync") => SynchronizationKind::Context,
            _ => SynchronizationKind::Unknown,
        };
        let wait = Synchronization {
            process: self.process,
            correlation,
            kind,
            start_ns: times.start_ns,
            end_ns: times.end_ns,
            context: self.field(args.context),
            stream: self.field(args.stream),
            event: self.field(args.event),
            event_sync: None,
            recorded_by: self.field(args.recorded_by),
        };
        self.collector.synchronization(wait)
    }

    /// The event's own time is not taken for the device's: Kineto does not say whether it is.
    fn event_record(&mut self, args: &Args<'_>) -> Result<(), CollectError> {
        let Some(correlation) = self.correlation(args.correlation) else {
            return Ok(());
        };
        let record = EventRecord {
            process: self.process,
            correlation,
            context: self.field(args.context),
            stream: self.field(args.stream),
            event: self.field(args.event),
            event_sync: None,
            device_ns: None,
        };
        self.collector.event_record(record)
    }

    fn range(&mut self, event: &Event<'_>, times: Times) -> Result<(), CollectError> {
        let Some(start_ns) = times.start_ns else {
            self.collector.skip(Skip::NoTime);
            return Ok(());
        };
        let name = event.name.map(Text::decode).unwrap_or_default();
        let text = self.collector.name(&name);
        let request = match event.args.request {
            Some(Value::Text(id)) => Some(self.collector.name(&id.decode())),
            Some(Value::Bare(id)) => Some(self.collector.name(&String::from_utf8_lossy(id))),
            _ => self.collector.request_in(text),
        };
        let tid = self.thread(event.thread);
        self.collector.range(Range {
            process: self.process,
            tid,
            text,
            start_ns,
            end_ns: times.end_ns,
            kind: RangeKind::Annotation,
            request,
        })
    }

    /// A name that a record must have; an empty one where it has none.
    fn name(&mut self, name: Option<Text<'_>>) -> NameId {
        let text = name.map(Text::decode).unwrap_or_default();
        self.collector.name(&text)
    }

    /// The id that joins, 0 for none. Where there is one that cannot be used, the record cannot be
    /// either: that is counted here, and `None` comes back.
    fn correlation(&mut self, value: Option<Value<'_>>) -> Option<u64> {
        let Some(value) = value else { return Some(0) };
        match whole(value) {
            Ok(-1) => Some(0),
            Ok(number) => match u64::try_from(number) {
                Ok(number) => Some(number),
                Err(_) if number < 0 => self.skip(Skip::BadNumber),
                Err(_) => self.skip(Skip::IdTooLarge),
            },
            Err(NumberFault::TooLarge) => self.skip(Skip::IdTooLarge),
            Err(NumberFault::NotANumber) => self.skip(Skip::WrongType),
            Err(NumberFault::NotFinite | NumberFault::NotWhole) => self.skip(Skip::BadNumber),
        }
    }

    fn skip(&mut self, why: Skip) -> Option<u64> {
        self.collector.skip(why);
        None
    }

    /// A thread's id. It may stand in quotes, and behind a word.
    fn thread(&mut self, value: Option<Value<'_>>) -> u64 {
        match value.map(after_word).map(whole) {
            // The low half of a `pthread_t` may have a sign, which Kineto itself drops elsewhere.
            Some(Ok(number)) if i64::try_from(number).is_ok_and(|number| number < 0) => {
                number.unsigned_abs() as u64
            }
            Some(Ok(number)) => u64::try_from(number).unwrap_or_else(|_| self.unusable()),
            Some(Err(_)) => self.unusable(),
            None => 0,
        }
    }

    fn unusable(&mut self) -> u64 {
        self.collector.skip(Skip::Field);
        0
    }

    /// A field that a record can do without. `-1` stands for none.
    fn field<N: TryFrom<i128>>(&mut self, value: Option<Value<'_>>) -> Option<N> {
        let number = whole(value?);
        let field = number.ok().and_then(|number| N::try_from(number).ok());
        if field.is_none() && number != Ok(-1) {
            self.collector.skip(Skip::Field);
        }
        field
    }

    /// The size of a grid or a block, as a list or as the text of one.
    fn dimensions(&mut self, value: Option<Value<'_>>) -> [u32; 3] {
        let mut all = [0; 3];
        let list = match value {
            None => return all,
            Some(Value::Array(list)) => list,
            Some(Value::Text(text)) if text.raw().starts_with(b"[") => text.raw(),
            Some(_) => {
                self.collector.skip(Skip::Field);
                return all;
            }
        };
        let mut elements = Members::of_array(list);
        for dimension in &mut all {
            match elements.next_element() {
                Ok(Some(element)) => *dimension = self.field(Some(element)).unwrap_or(0),
                Ok(None) => break,
                Err(_) => {
                    self.collector.skip(Skip::Field);
                    break;
                }
            }
        }
        all
    }

    /// When an event began and ended. What cannot be used is left unknown, and counted.
    fn times(&mut self, event: &Event<'_>, end: Option<Value<'_>>) -> Times {
        let Some(start) = self.nanoseconds(event.timestamp) else {
            return Times::default();
        };
        let end = match end {
            Some(end) => self.nanoseconds(Some(end)),
            None => self
                .nanoseconds(event.duration)
                .and_then(|duration| start.checked_add(duration)),
        };
        Times {
            start_ns: self.time(start),
            end_ns: end.and_then(|end| self.time(end)),
        }
    }

    fn nanoseconds(&mut self, value: Option<Value<'_>>) -> Option<i128> {
        let value = value.filter(|&value| value != Value::Bare(b"null"))?;
        let number = microseconds(value);
        if number.is_err() {
            self.collector.skip(Skip::Field);
        }
        number.ok()
    }

    fn time(&mut self, ns: i128) -> Option<u64> {
        let time = u64::try_from(ns).ok();
        if time.is_none() {
            self.collector.skip(Skip::Field);
        }
        time
    }
}

/// The number behind a word: `stream 7` is how 2021 wrote a stream.
fn after_word(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Text(text) => Value::Text(text.after_last_space()),
        other => other,
    }
}
