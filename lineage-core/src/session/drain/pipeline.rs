//! Rings and sources, correlator, memory, sinks: one pass after the other, all on one thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use uuid::Uuid;

use super::rings::Rings;
use crate::correlator::Correlator;
use crate::hot;
use crate::id::HostNanos;
use crate::observation::{DeviceSession, DropSite, Dropped, Event, Observation, SchedulerSession};
use crate::row::{LooseFault, Row};
use crate::session::{DeviceEvidence, LineageBuilder, Report, SchedulerEvidence};
use crate::source::{EvidenceSource, NoEvidence, Progress, Sink, SinkError};
use crate::totals::Totals;

/// Observations that are handed on before the rings are read again.
const ROUND: usize = 1024;

/// Observations that may wait for the correlator, about 200 bytes each. While more do, rings and
/// sources are left alone, and count what they cannot hold.
const BACKLOG: usize = 1 << 18;

struct Sources {
    device: Option<Box<dyn EvidenceSource>>,
    scheduler: Option<Box<dyn EvidenceSource>>,
}

impl Sources {
    fn all(&mut self) -> impl Iterator<Item = &mut Box<dyn EvidenceSource>> {
        [&mut self.device, &mut self.scheduler]
            .into_iter()
            .flatten()
    }
}

pub(super) struct Pipeline {
    process: Uuid,
    rings: Rings,
    /// Each is asked in turn, the device first.
    sources: Sources,
    correlator: Correlator,
    sinks: Vec<Box<dyn Sink>>,
    memory: Memory,
    device: DeviceEvidence,
    scheduler: SchedulerEvidence,
    /// When the pass began after which nothing was left over: all that was recorded before went to
    /// the correlator.
    read_until: HostNanos,
    /// What waits for the correlator.
    backlog: VecDeque<Observation>,
    batch: Vec<Observation>,
    rows: Vec<Row>,
    faults: Vec<LooseFault>,
}

impl Pipeline {
    pub(super) fn new(builder: LineageBuilder, process: Uuid, session: u32) -> Self {
        Self {
            process,
            rings: Rings::new(session),
            sources: Sources {
                device: builder.device,
                scheduler: builder.scheduler,
            },
            correlator: Correlator::new(builder.limits),
            sinks: builder.sinks,
            memory: Memory::new(builder.keep_in_memory),
            device: DeviceEvidence::NotAsked,
            scheduler: SchedulerEvidence::NotAsked,
            read_until: HostNanos(0),
            backlog: VecDeque::new(),
            batch: Vec::new(),
            rows: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// The device's source could not start: the session goes on without it, and says so.
    pub(super) fn device_is_absent(&mut self, absent: &NoEvidence) {
        self.sources.device = None;
        let why = absent.why.clone();
        let event = DeviceSession::Absent {
            why,
            at: HostNanos(hot::now()),
        };
        self.backlog.push_back(Observation::live(event));
    }

    /// The same for the scheduler's.
    pub(super) fn scheduler_is_absent(&mut self, absent: &NoEvidence) {
        self.sources.scheduler = None;
        let why = absent.why.clone();
        let event = SchedulerSession::Absent {
            why,
            at: HostNanos(hot::now()),
        };
        self.backlog.push_back(Observation::live(event));
    }

    /// Takes what the sources say of their own start, before the first ring is read: a call does not
    /// name its session, and belongs to the one that is known to run.
    pub(super) fn take_in_start(&mut self) {
        let Self {
            sources, backlog, ..
        } = self;
        for source in sources.all() {
            source.drain(&mut |observation| backlog.push_back(observation));
        }
    }

    /// One pass: everything that is there by now goes all the way. `true` if more came meanwhile
    /// than could be handed on.
    pub(super) fn collect(&mut self) -> bool {
        let began = HostNanos(hot::now());
        let left_over = self.backlog.len();
        self.take_in();
        let mut rounds = self.backlog.len().div_ceil(ROUND);
        while rounds > 0 {
            self.hand_on(ROUND);
            // Rings fill in milliseconds: they are read between rounds, so that a long backlog
            // costs memory, which is bounded here, and not records.
            self.take_in_rings();
            rounds -= 1;
        }
        // Where too much was waiting, the rings were not read.
        if left_over < BACKLOG {
            self.read_until = began;
        }
        !self.backlog.is_empty()
    }

    /// Tells the sinks how far the session has come.
    pub(super) fn tell_progress(&mut self) {
        let settled = self.correlator.oldest_open_call();
        let settled = settled.map_or(self.read_until, |oldest| oldest.min(self.read_until));
        self.tell(self.read_until, settled);
    }

    fn tell(&mut self, read_until: HostNanos, settled_before: HostNanos) {
        for at in 0..self.sinks.len() {
            let progress = Progress::new(self.correlator.totals(), read_until, settled_before);
            let outcome = self.sinks[at].progress(&progress);
            self.note_sink(outcome);
        }
    }

    fn take_in_rings(&mut self) {
        if self.backlog.len() < BACKLOG {
            self.rings.drain(&mut self.backlog);
        }
    }

    /// Takes what the rings and then what the sources hold: a flush that the device's source reports
    /// comes after all that the rings held when it returned. So where there is no room for what the
    /// rings hold, the sources are not asked either.
    fn take_in(&mut self) {
        if self.backlog.len() < BACKLOG {
            self.take_in_sources();
        }
        self.note_counter(&hot::AFTER_SHUTDOWN, DropSite::AfterShutdown);
        self.note_counter(&hot::NOT_DECLARED, DropSite::Declare);
    }

    fn take_in_sources(&mut self) {
        self.rings.drain(&mut self.backlog);
        let Self {
            sources,
            rings,
            backlog,
            ..
        } = self;
        for source in sources.all() {
            let mut decoded = 0;
            source.drain(&mut |observation| {
                backlog.push_back(observation);
                decoded += 1;
                if decoded % ROUND == 0 {
                    rings.drain(backlog);
                }
            });
        }
    }

    /// Asks the sources for their complete buffers.
    pub(super) fn flush(&mut self) {
        for source in self.sources.all() {
            source.flush();
        }
    }

    /// Ends in order: device evidence first, while the application's threads still record; then
    /// the rings, and the scheduler's evidence, which covers all that they hold; then what the
    /// correlator held back.
    pub(super) fn stop(&mut self, within: Duration) {
        self.collect();
        if let Some(mut source) = self.sources.device.take() {
            // Whatever waits: its last flush comes after them.
            self.rings.drain(&mut self.backlog);
            source.stop(within, &mut |observation| {
                self.backlog.push_back(observation)
            });
        }
        hot::RECORDING.store(0, Ordering::Release);
        self.rings.finish(&mut self.backlog);
        if let Some(mut source) = self.sources.scheduler.take() {
            source.stop(within, &mut |observation| {
                self.backlog.push_back(observation)
            });
        }
        self.take_in();
        while !self.backlog.is_empty() {
            self.hand_on(ROUND);
        }
        self.correlator.end();
        self.hand_on(0);
        let end = HostNanos(u64::MAX);
        self.tell(end, end);
        for at in 0..self.sinks.len() {
            let finished = self.sinks[at].finish();
            self.note_sink(finished);
        }
    }

    /// Hands on up to this many observations, and what the correlator makes of them.
    fn hand_on(&mut self, observations: usize) {
        let observations = observations.min(self.backlog.len());
        self.batch.extend(self.backlog.drain(..observations));
        for observation in &self.batch {
            match &observation.event {
                Event::DeviceSession(session) => {
                    self.device = device_evidence(session, &self.device);
                }
                Event::SchedulerSession(session) => learn(&mut self.scheduler, session),
                _ => {}
            }
            self.correlator.observe(observation);
        }
        self.correlator.drain(&mut self.rows, &mut self.faults);
        let mut outcomes = Vec::new();
        for sink in &mut self.sinks {
            if !self.batch.is_empty() {
                outcomes.push(sink.observations(&self.batch));
            }
            if !(self.rows.is_empty() && self.faults.is_empty()) {
                outcomes.push(sink.rows(&self.rows, &self.faults));
            }
        }
        self.memory
            .keep(&mut self.batch, &mut self.rows, &mut self.faults);
        for outcome in outcomes {
            self.note_sink(outcome);
        }
    }

    fn note_counter(&mut self, counter: &AtomicU64, site: DropSite) {
        let count = counter.swap(0, Ordering::Relaxed);
        if count > 0 {
            let at = HostNanos(hot::now());
            self.backlog
                .push_back(Observation::live(Dropped { site, count, at }));
        }
    }

    fn note_sink(&mut self, outcome: Result<(), SinkError>) {
        if outcome.is_err() {
            let at = HostNanos(hot::now());
            let dropped = Dropped {
                site: DropSite::Sink,
                count: 1,
                at,
            };
            self.correlator.observe(&Observation::live(dropped));
        }
    }

    pub(super) fn pending(&self) -> usize {
        self.correlator.pending()
    }

    pub(super) fn totals(&self) -> Totals {
        self.correlator.totals().clone()
    }

    pub(super) fn report(&self) -> Report {
        Report {
            process: self.process,
            observations: self.memory.observations.iter().cloned().collect(),
            rows: self.memory.rows.iter().cloned().collect(),
            faults: self.memory.faults.iter().cloned().collect(),
            totals: self.totals(),
            not_kept: self.memory.not_kept,
            device: self.device.clone(),
            scheduler: self.scheduler.clone(),
        }
    }
}

fn device_evidence(session: &DeviceSession, before: &DeviceEvidence) -> DeviceEvidence {
    match session {
        DeviceSession::Started {
            version,
            external_correlation,
            ..
        } => DeviceEvidence::Present {
            cupti_version: *version,
            external_correlation: *external_correlation,
        },
        DeviceSession::Absent { why, .. } => DeviceEvidence::Absent { why: why.clone() },
        DeviceSession::Ended { .. } | DeviceSession::Imported { .. } => before.clone(),
    }
}

/// Takes in what the scheduler's source says of itself.
fn learn(evidence: &mut SchedulerEvidence, session: &SchedulerSession) {
    if let SchedulerSession::Absent { why, .. } = session {
        *evidence = SchedulerEvidence::Absent { why: why.clone() };
        return;
    }
    if !matches!(evidence, SchedulerEvidence::Present { .. }) {
        *evidence = SchedulerEvidence::Present {
            watched: 0,
            run_queue_only: 0,
            unwatched: 0,
            why: None,
        };
    }
    let SchedulerEvidence::Present {
        watched,
        run_queue_only,
        unwatched,
        why: latest,
    } = evidence
    else {
        return;
    };
    match session {
        SchedulerSession::Watched { .. } => *watched += 1,
        SchedulerSession::RunQueueOnly { why, .. } => {
            *run_queue_only += 1;
            *latest = Some(why.clone());
        }
        SchedulerSession::Unwatched { why, .. } => {
            *unwatched += 1;
            *latest = Some(why.clone());
        }
        _ => {}
    }
}

/// The newest observations, rows and faults, as many of each as there is room for.
struct Memory {
    room: usize,
    observations: VecDeque<Observation>,
    rows: VecDeque<Row>,
    faults: VecDeque<LooseFault>,
    not_kept: u64,
}

impl Memory {
    fn new(room: usize) -> Self {
        let (observations, rows, faults) = Default::default();
        Self {
            room,
            observations,
            rows,
            faults,
            not_kept: 0,
        }
    }

    fn keep(
        &mut self,
        observations: &mut Vec<Observation>,
        rows: &mut Vec<Row>,
        faults: &mut Vec<LooseFault>,
    ) {
        fn keep<T>(room: usize, kept: &mut VecDeque<T>, new: &mut Vec<T>) -> u64 {
            kept.extend(new.drain(..));
            let surplus = kept.len().saturating_sub(room);
            kept.drain(..surplus);
            surplus as u64
        }
        self.not_kept += keep(self.room, &mut self.observations, observations)
            + keep(self.room, &mut self.rows, rows)
            + keep(self.room, &mut self.faults, faults);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{NoEvidence, SourceContext};

    const MARK: DropSite = DropSite::Undecodable;

    fn dropped(site: DropSite) -> Observation {
        Observation::live(Dropped {
            site,
            count: 1,
            at: HostNanos(1),
        })
    }

    /// Reports one thing whenever it is asked.
    struct Source;

    impl EvidenceSource for Source {
        fn start(&mut self, _: SourceContext) -> Result<(), NoEvidence> {
            Ok(())
        }

        fn drain(&mut self, out: &mut dyn FnMut(Observation)) {
            out(dropped(MARK));
        }

        fn flush(&mut self) {}

        fn stop(&mut self, _: Duration, out: &mut dyn FnMut(Observation)) {
            out(dropped(MARK));
        }
    }

    /// Else what it reports of a flush would come before records of the same time that wait in rings.
    #[test]
    fn a_source_is_not_asked_while_rings_have_to_wait() {
        let builder = LineageBuilder::default().device(Source);
        let mut pipeline = Pipeline::new(builder, Uuid::nil(), u32::MAX);
        let waiting = std::iter::repeat_with(|| dropped(DropSite::Sink)).take(BACKLOG);
        pipeline.backlog.extend(waiting);
        pipeline.take_in();
        assert!(pipeline.backlog.iter().all(|of| !is_mark(of)));
        pipeline.hand_on(1);
        pipeline.take_in();
        assert_eq!(pipeline.backlog.iter().filter(|of| is_mark(of)).count(), 1);
    }

    fn is_mark(of: &Observation) -> bool {
        matches!(of.event, Event::Dropped(Dropped { site: MARK, .. }))
    }
}
