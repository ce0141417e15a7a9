//! Observations and rows become spans: a state machine without clock, thread or I/O.
//!
//! # What becomes a span
//!
//! ```text
//! the server's own span                       trace of the request
//! └─ request        an epoch: what was declared
//!    ├─ part        a fork of it
//!    ├─ step        a later version of it, where it is no batch
//!    │  └─ operation
//!    ├─ operation   launched under it
//!    └─ participation ──link──► batch         its part in one step of a batch
//!
//! batch ──links──► every participation        one step of a batch: a trace of its own
//! └─ operation                                a kernel, copy or set that the step launched
//! ```
//!
//! A batch serves many requests, and a span has one parent: so the batch is nobody's child, and each
//! member has a span in its own trace that stands for its part in it. From a request one walks over
//! participation and link to the batch and to its kernels, and back the same way.
//!
//! Each step of a batch is a trace of its own: a batch may go on for hours, and a trace that does so
//! is never complete, neither for a collector that decides at the tail nor in a viewer.
//!
//! # When it is decided
//!
//! A request's head may have decided: then its spans are made as soon as all is known that they
//! say. Otherwise they are held until everything it caused is over, and decided then
//! ([`Detail::SumsAndLate`]). A step is made in full if any of its members is. What is held is bounded;
//! beyond that the oldest is decided by what is known.

mod build;
mod decide;
mod epoch;
mod finish;
mod links;
mod operation;
mod past;
mod scan;
mod sums;
#[cfg(test)]
mod tests;
mod text;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use lineage_core::fault::FaultCode;
use lineage_core::id::{EpochId, HandoffId, HostNanos, LaunchEpoch};
use lineage_core::observation::{
    CarrierKind, Event, Mark, Marked, Observation, Received, Sent, Site, Stepped,
};
use lineage_core::row::{LooseFault, Row};
use opentelemetry::KeyValue;
use opentelemetry_sdk::trace::SpanData;
use rustc_hash::FxHashMap;
use uuid::Uuid;

pub use decide::{Detail, RootSampler, Threshold, Volume};
pub use text::{MAX_TEXT_BYTES, TextKind};

pub(crate) use build::{kind_name, signed};
pub(crate) use epoch::Place;
pub(crate) use operation::OperationKey;
pub(crate) use text::{Redact, Texts};

use self::build::Frame;
use self::decide::TooLong;
use self::epoch::{Declared, Epoch, Moment};
use self::operation::FromRow;
use self::past::Past;
use crate::attributes as names;
use crate::ids::Ids;

/// Handoffs that are under way and threads whose names are known, at most.
const REMEMBERED: usize = 65_536;

/// What [`Spans`] are made with.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) process: Uuid,
    pub(crate) unix_offset_ns: i64,
    pub(crate) volume: Volume,
    /// What may be held until it is decided, in bytes.
    pub(crate) hold_bytes: usize,
    /// How many epochs may be held.
    pub(crate) hold_epochs: usize,
}

/// What became spans, and what did not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpanCounts {
    /// Spans of requests, and of parts of them.
    pub requests: u64,
    /// Spans of steps, of batches or of what is none.
    pub steps: u64,
    /// Spans of a member's part in a batch's step.
    pub participations: u64,
    /// Spans of operations.
    pub operations: u64,
    /// Operations that are in sums only: nothing asked for more.
    pub operations_summed: u64,
    /// Operations of work that its head did not sample.
    pub operations_not_sampled: u64,
    /// Operations without times, or with times that run backwards: no span can stand for them.
    pub operations_without_times: u64,
    /// Operations whose epoch's records are lost: there is no span that could be their parent.
    pub operations_without_epoch: u64,
    /// Epochs that their head did not sample.
    pub epochs_not_sampled: u64,
    /// Epochs that were decided before all was known of them, to stay within the bounds.
    pub decided_early: u64,
    /// Members of batches whose span is not known, because their records are lost.
    pub members_unknown: u64,
    /// Parent spans that became known only when the epoch's trace had been exported: a link instead.
    pub parents_too_late: u64,
    /// Bytes held at present until it is decided, roughly.
    pub held_bytes: u64,
}

/// A fault as it leaves the process.
#[derive(Debug)]
pub(crate) struct FaultNote {
    pub(crate) code: FaultCode,
    pub(crate) at: Option<HostNanos>,
    pub(crate) epoch: Option<LaunchEpoch>,
    pub(crate) place: Option<Place>,
    pub(crate) count: u64,
    pub(crate) detail: String,
}

/// Where and when a carrier was made.
#[derive(Debug)]
struct UnderWay {
    at: HostNanos,
    tid: u64,
    site: Option<Arc<str>>,
}

impl UnderWay {
    /// What the event at its other end says of it.
    fn attributes(self, received: HostNanos) -> Vec<KeyValue> {
        let took_ns = received.0.saturating_sub(self.at.0);
        let mut attributes = vec![
            KeyValue::new(names::HANDOFF_NS, build::signed(took_ns)),
            KeyValue::new(names::HANDOFF_FROM, build::signed(self.tid)),
        ];
        attributes.extend(
            self.site
                .map(|site| KeyValue::new(names::HANDOFF_SITE, site)),
        );
        attributes
    }
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Spans {
    frame: Frame,
    ids: Ids,
    volume: Volume,
    hold_bytes: usize,
    hold_epochs: usize,
    late: TooLong,
    slow: TooLong,
    texts: Texts,
    /// By number, which is roughly their order in time.
    epochs: BTreeMap<u64, Epoch>,
    past: Past,
    handoffs: FxHashMap<HandoffId, UnderWay>,
    threads: FxHashMap<u64, Arc<str>>,
    /// What is held, as of the last look, and what came since.
    held_bytes: usize,
    grown_bytes: usize,
    /// Entry of the newest call of which a row has come.
    newest_call: HostNanos,
    read_until: HostNanos,
    settled_before: HostNanos,
    counts: SpanCounts,
    out: Vec<SpanData>,
}

impl Spans {
    pub(crate) fn new(settings: Settings, texts: Texts) -> Self {
        Self {
            frame: Frame::new(settings.unix_offset_ns),
            ids: Ids::new(settings.process),
            late: TooLong::new(settings.volume.late),
            slow: TooLong::new(settings.volume.slow),
            volume: settings.volume,
            hold_bytes: settings.hold_bytes,
            hold_epochs: settings.hold_epochs,
            texts,
            epochs: BTreeMap::new(),
            past: Past::default(),
            handoffs: FxHashMap::default(),
            threads: FxHashMap::default(),
            held_bytes: 0,
            grown_bytes: 0,
            newest_call: HostNanos(0),
            read_until: HostNanos(0),
            settled_before: HostNanos(0),
            counts: SpanCounts::default(),
            out: Vec::new(),
        }
    }

    pub(crate) fn counts(&self) -> SpanCounts {
        SpanCounts {
            held_bytes: (self.held_bytes + self.grown_bytes) as u64,
            ..self.counts
        }
    }

    pub(crate) fn frame(&self) -> &Frame {
        &self.frame
    }

    /// The spans since the last time.
    pub(crate) fn drain(&mut self) -> std::vec::Drain<'_, SpanData> {
        self.out.drain(..)
    }

    /// The name of an epoch's kind, where it is known still.
    pub(crate) fn epoch_name(&self, epoch: LaunchEpoch) -> Option<&Arc<str>> {
        let epoch = self.epochs.get(&epoch.id.get())?;
        epoch.declared.as_ref().map(|declared| &declared.name)
    }

    pub(crate) fn observe(&mut self, observation: &Observation) {
        match &observation.event {
            Event::Declared(declared) => {
                let site = self.site(declared.site.as_ref());
                let name = self.texts.name(TextKind::EpochName, &declared.name);
                let first = LaunchEpoch::first(declared.epoch.id);
                let Some(epoch) = self.epoch(declared.epoch.id) else {
                    return;
                };
                epoch.declared = Some(Declared {
                    at: declared.at,
                    name,
                    tid: declared.thread.tid,
                    task: declared.task.map(|task| task.0),
                    site,
                });
                epoch.step(first, declared.at);
            }
            Event::Parented(parented) => {
                if let Some(epoch) = self.epoch(parented.epoch.id) {
                    if epoch.head.is_some() || epoch.decided.is_some() {
                        epoch.ask(parented.parent);
                        self.counts.parents_too_late += 1;
                    } else {
                        epoch.parent.get_or_insert(parented.parent);
                    }
                }
            }
            Event::SpanLinked(linked) => {
                if let Some(epoch) = self.epoch(linked.epoch.id) {
                    epoch.ask(linked.span);
                }
            }
            Event::Linked(linked) => self.link(linked),
            Event::Stepped(Stepped { epoch, at, .. }) => {
                if let Some(known) = self.epoch(epoch.id) {
                    known.step(*epoch, *at);
                }
            }
            Event::Marked(marked) => self.mark(marked),
            Event::Retired(retired) => {
                if let Some(epoch) = self.epoch(retired.epoch.id) {
                    epoch.retired = Some((retired.at, retired.how));
                }
            }
            Event::Sent(sent) => self.sent(sent),
            Event::Received(received) => self.received(received),
            Event::Abandoned(abandoned) => {
                self.handoffs.remove(&abandoned.handoff.id);
            }
            Event::ThreadStarted(started) => {
                if let Some(name) = &started.name {
                    let name = self.texts.name(TextKind::ThreadName, name);
                    if self.threads.len() >= REMEMBERED {
                        self.threads.clear();
                    }
                    self.threads.insert(started.thread.tid, name);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn row(&mut self, row: &Row) {
        match FromRow::new(row) {
            FromRow::Nothing => {}
            FromRow::WithoutTimes(of) => {
                self.counts.operations_without_times += 1;
                if let Some(epoch) = self.epoch(of.id) {
                    epoch.sums.add_without_times();
                }
            }
            FromRow::Operation(operation) => {
                let of = operation.epoch;
                let kind = operation.name.clone().unwrap_or_else(|| "unnamed".into());
                let delay_ns = operation.launch_delay_ns();
                let is_late = delay_ns.is_some_and(|ns| self.late.see(&kind, ns));
                if self.past.get(of.id).is_some() {
                    self.operation_of_past(&operation);
                    return;
                }
                self.grown_bytes += operation.held_bytes();
                let began = operation.asked_at();
                self.newest_call = self.newest_call.max(began);
                if let Some(epoch) = self.epoch(of.id) {
                    epoch.late |= is_late;
                    epoch.faulty |= !operation.faults.is_empty();
                    epoch.sums.add(&operation);
                    let step = epoch.step(of, began);
                    step.sums.add(&operation);
                    step.operations.push(*operation);
                }
                if self.grown_bytes > self.hold_bytes / 4 {
                    // More than a session's progress comes for: a parent span that is told at this
                    // very moment may come too late, and memory is bounded.
                    self.read_until = self.read_until.max(self.newest_call);
                    self.scan(false);
                }
            }
        }
    }

    /// A fault of no row: an event of its epoch, and a note.
    pub(crate) fn fault(&mut self, fault: &LooseFault) -> FaultNote {
        let detail = self.clean_detail(&fault.detail);
        // One that is not held is over, or was never declared: nothing is made for it here.
        if let (Some(of), Some(at)) = (fault.epoch, fault.at)
            && let Some(epoch) = self.epochs.get_mut(&of.id.get())
        {
            epoch.faulty = true;
            epoch.sums.faults += 1;
            // Its step, if that is held still.
            if let Some(step) = epoch.steps.iter_mut().find(|step| step.epoch == of) {
                step.sums.faults += 1;
            }
            epoch.moments.add(|| Moment {
                name: names::EVENT_FAULT,
                half_of: None,
                at,
                attributes: vec![
                    KeyValue::new(names::FAULT_CODE, fault.code.code()),
                    KeyValue::new(names::FAULT_DETAIL, detail.clone()),
                ],
            });
        }
        FaultNote {
            code: fault.code,
            at: fault.at,
            epoch: fault.epoch,
            place: fault.epoch.and_then(|epoch| self.place_or_past(epoch)),
            count: fault.count,
            detail,
        }
    }

    /// What a fault says, as it goes out.
    pub(crate) fn clean_detail(&self, detail: &str) -> String {
        self.texts.clean(TextKind::FaultDetail, detail).into_owned()
    }

    /// Where the span of an epoch is or will be, as far as that is known.
    pub(crate) fn place_or_past(&self, epoch: LaunchEpoch) -> Option<Place> {
        match self.past.get(epoch.id) {
            Some(past) => Some(past.place(epoch, self.ids)),
            None if self.epochs.contains_key(&epoch.id.get()) => Some(self.place(epoch)),
            None => None,
        }
    }

    /// An epoch that is not over yet; `None` if it is.
    fn epoch(&mut self, id: EpochId) -> Option<&mut Epoch> {
        if self.past.get(id).is_some() {
            return None;
        }
        Some(self.epochs.entry(id.get()).or_insert_with(Epoch::new))
    }

    fn site(&mut self, site: Option<&Site>) -> Option<Arc<str>> {
        let text: Arc<str> = site?.to_string().into();
        Some(self.texts.name(TextKind::CallSite, &text))
    }

    fn moment(&mut self, of: LaunchEpoch, moment: impl FnOnce() -> Moment) {
        if let Some(epoch) = self.epoch(of.id) {
            epoch.moments.add(moment);
        }
    }

    fn mark(&mut self, marked: &Marked) {
        let name = match marked.mark {
            Mark::Ready => names::EVENT_READY,
            Mark::Expected => names::EVENT_EXPECTED,
            Mark::BatchFormed => names::EVENT_BATCH_FORMED,
            Mark::Cancelled => names::EVENT_CANCELLED,
            _ => return,
        };
        let version = i64::from(marked.epoch.version.get());
        self.moment(marked.epoch, || Moment {
            name,
            half_of: None,
            at: marked.at,
            attributes: vec![KeyValue::new(names::EPOCH_VERSION, version)],
        });
    }

    fn sent(&mut self, sent: &Sent) {
        let under_way = UnderWay {
            at: sent.at,
            tid: sent.thread.tid,
            site: self.site(sent.site.as_ref()),
        };
        let of = sent.handoff.epoch.id.get();
        let received = self.epochs.get_mut(&of);
        // Rings are read one after the other, so its other end may have come already.
        if let Some(half) = received.and_then(|epoch| epoch.moments.half_of(sent.handoff.id)) {
            half.half_of = None;
            let attributes = under_way.attributes(half.at);
            half.attributes.extend(attributes);
            return;
        }
        if self.handoffs.len() >= REMEMBERED {
            // Those that are never received would fill it up; the moments of some are lost then.
            self.handoffs.clear();
        }
        self.handoffs.insert(sent.handoff.id, under_way);
    }

    fn received(&mut self, received: &Received) {
        let from = self.handoffs.remove(&received.handoff.id);
        self.moment(received.handoff.epoch, || {
            let carrier = carrier_name(received.handoff.carrier);
            let mut attributes = vec![
                KeyValue::new(names::HANDOFF_CARRIER, carrier),
                KeyValue::new(names::THREAD_ID, build::signed(received.thread.tid)),
            ];
            let half_of = from.is_none().then_some(received.handoff.id);
            attributes.extend(from.into_iter().flat_map(|it| it.attributes(received.at)));
            Moment {
                name: names::EVENT_HANDOFF,
                half_of,
                at: received.at,
                attributes,
            }
        });
    }

    fn thread_name(&self, tid: u64) -> Option<Arc<str>> {
        self.threads.get(&tid).cloned()
    }

    fn text(&mut self, kind: TextKind, text: &Arc<str>) -> Cow<'static, str> {
        Cow::Owned(self.texts.name(kind, text).as_ref().to_owned())
    }
}

fn carrier_name(kind: CarrierKind) -> &'static str {
    match kind {
        CarrierKind::Future => "future",
        CarrierKind::Task => "task",
        CarrierKind::Blocking => "blocking",
        CarrierKind::Envelope => "envelope",
        CarrierKind::Thread => "thread",
        CarrierKind::Pool => "pool",
        CarrierKind::Custom => "custom",
        CarrierKind::Stream => "stream",
        CarrierKind::Callback => "callback",
        _ => "other",
    }
}
