//! The sink: a session's observations and rows go in, spans, metrics and logs go out.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use lineage_core::id::HostNanos;
use lineage_core::observation::Observation;
use lineage_core::row::{Binding, LooseFault, Row};
use lineage_core::source::{Progress, SessionInfo, Sink, SinkError};
use lineage_core::totals::Totals;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

use crate::builder::{Inspect, OtlpBuilder};
use crate::config::SettingsError;
use crate::cpu::this_thread_ns;
use crate::logs::{FaultLog, faults_of};
use crate::metrics::{Figures, Meter};
use crate::pipeline::{ExportCounters, ExportCounts, Pipeline, Signal};
use crate::resource::origin;
use crate::spans::{FaultNote, Settings, SpanCounts, Spans, Texts};

/// Exports a session's lineage over OTLP: a [`Sink`] for `Lineage::builder().sink(…)`.
///
/// Nothing that a collector does or does not do is felt by the program: what the session's drain
/// thread makes is put into a bounded queue, which a thread of its own empties.
#[must_use = "it exports nothing until it is given to a session"]
pub struct Otlp {
    pub(crate) made_from: OtlpBuilder,
    handle: OtlpHandle,
    running: Option<Running>,
}

/// Reads what became of an export, from any thread and for as long as one likes.
#[derive(Debug, Clone, Default)]
pub struct OtlpHandle {
    export: Arc<OnceLock<ExportCounters>>,
    spans: Arc<Mutex<SpanCounts>>,
}

impl OtlpHandle {
    /// What was exported, and what became of it.
    pub fn export(&self) -> ExportCounts {
        self.export
            .get()
            .map_or_else(ExportCounts::default, ExportCounters::snapshot)
    }

    /// What became spans, and what did not. As of the session's last progress.
    pub fn spans(&self) -> SpanCounts {
        *self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Otlp {
    /// An export that is set in code.
    pub fn builder() -> OtlpBuilder {
        OtlpBuilder::default()
    }

    /// An export as the standard variables of the environment say (`OTEL_EXPORTER_OTLP_ENDPOINT` and
    /// so on); without any it goes to the collector on this machine.
    ///
    /// # Errors
    ///
    /// If a variable has a value that cannot be used.
    pub fn from_env() -> Result<Self, SettingsError> {
        Ok(OtlpBuilder::from_env()?.build())
    }

    pub(crate) fn new(made_from: OtlpBuilder) -> Self {
        Self {
            made_from,
            handle: OtlpHandle::default(),
            running: None,
        }
    }

    /// What tells how the export goes, while it runs and afterwards.
    pub fn handle(&self) -> OtlpHandle {
        self.handle.clone()
    }
}

impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Otlp")
            .field("made_from", &self.made_from)
            .field("runs", &self.running.is_some())
            .finish_non_exhaustive()
    }
}

struct Running {
    out: Out,
    spans: Spans,
    meter: Meter,
    faults: FaultLog,
    totals: Totals,
    started_unix_ns: u64,
    started: Instant,
    metrics_every: Duration,
    metrics_told: Instant,
}

/// Where encoded items go.
struct Out {
    pipeline: Pipeline,
    switched_off: [bool; 3],
    encoded: Vec<u8>,
}

impl Sink for Otlp {
    fn begin(&mut self, session: &SessionInfo) -> Result<(), SinkError> {
        let settings = &self.made_from.settings;
        if settings.disabled {
            return Ok(());
        }
        let error = |why: &dyn fmt::Display| SinkError::new(format!("the OTLP export: {why}"));
        let started = session.started_unix_ns;
        let unix_offset_ns = started
            .and_then(|unix| i64::try_from(i128::from(unix) - i128::from(session.started.0)).ok());
        let (Some(started_unix_ns), Some(unix_offset_ns)) = (started, unix_offset_ns) else {
            return Err(error(&"the wall clock is not known, or stands before 1970"));
        };
        let added = [
            &settings.resource_attributes[..],
            &self.made_from.resource_attributes[..],
        ]
        .concat();
        let origin = origin(
            session,
            unix_offset_ns,
            settings.service_name.as_deref(),
            &added,
        );
        let pipeline = Pipeline::start(settings, &origin).map_err(|why| error(&why))?;
        // A sink begins once.
        let _ = self.handle.export.set(pipeline.counters());
        let spans = Settings {
            process: session.process,
            unix_offset_ns,
            volume: self.made_from.volume_or_environments(),
            hold_bytes: self.made_from.hold_bytes,
            hold_epochs: self.made_from.hold_epochs,
        };
        self.running = Some(Running {
            out: Out {
                pipeline,
                switched_off: Signal::ALL.map(|signal| settings.is_switched_off(signal)),
                encoded: Vec::new(),
            },
            spans: Spans::new(spans, Texts::new(self.made_from.redact.take())),
            meter: Meter::default(),
            faults: FaultLog::default(),
            totals: Totals::default(),
            started_unix_ns,
            started: Instant::now(),
            metrics_every: settings.metric_interval,
            metrics_told: Instant::now(),
        });
        Ok(())
    }

    fn observations(&mut self, batch: &[Observation]) -> Result<(), SinkError> {
        if let Some(running) = &mut self.running {
            batch.iter().for_each(|it| running.spans.observe(it));
        }
        Ok(())
    }

    fn rows(&mut self, rows: &[Row], faults: &[LooseFault]) -> Result<(), SinkError> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        for row in rows {
            running.measure(row);
            for mut note in faults_of(row) {
                note.detail = running.spans.clean_detail(&note.detail);
                running.log(note);
            }
            running.spans.row(row);
        }
        for fault in faults {
            let note = running.spans.fault(fault);
            running.log(note);
        }
        running.ship(&mut self.made_from.inspect);
        Ok(())
    }

    fn progress(&mut self, progress: &Progress<'_>) -> Result<(), SinkError> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        running.totals.clone_from(progress.totals);
        let is_last = progress.read_until == HostNanos(u64::MAX);
        if is_last {
            running.spans.end();
        } else {
            running
                .spans
                .progress(progress.read_until, progress.settled_before);
        }
        running.ship(&mut self.made_from.inspect);
        // `finish` tells them once more.
        if !is_last && running.metrics_told.elapsed() >= running.metrics_every {
            running.tell_metrics();
        }
        *self
            .handle
            .spans
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = running.spans.counts();
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        let Some(mut running) = self.running.take() else {
            return Ok(());
        };
        running.spans.end();
        running.ship(&mut self.made_from.inspect);
        running.tell_metrics();
        let counts = running
            .out
            .pipeline
            .shutdown(self.made_from.shutdown_within);
        let lost = [&counts.spans, &counts.metrics, &counts.log_records]
            .map(|signal| signal.lost.total() + signal.refused);
        if lost.iter().any(|&lost| lost > 0) {
            let [spans, metrics, logs] = lost;
            let last = counts.last_error.map_or_else(String::new, |error| {
                format!("; the last thing that went wrong: {}", error.text)
            });
            return Err(SinkError::new(format!(
                "the OTLP export lost {spans} spans, {metrics} metrics and {logs} log records{last}"
            )));
        }
        Ok(())
    }
}

impl Running {
    /// Hands on the spans that are made.
    fn ship(&mut self, inspect: &mut Option<Box<Inspect>>) {
        for span in self.spans.drain() {
            if let Some(inspect) = inspect {
                inspect(&span);
            }
            self.out.put(Signal::Traces, &Span::from(span));
        }
    }

    fn measure(&mut self, row: &Row) {
        let (Binding::Bound(epoch), Some(operation)) = (row.binding, &row.operation) else {
            return;
        };
        let (Some(start), Some(end)) = (operation.start, operation.end) else {
            return;
        };
        let entered = row.stages.api_enter.at();
        let delay_ns = entered.and_then(|entered| start.0.checked_sub(entered.0));
        let name = self.spans.epoch_name(epoch);
        let duration_ns = end.0.saturating_sub(start.0);
        self.meter
            .operation(name, operation.kind, delay_ns, duration_ns);
    }

    fn log(&mut self, mut note: FaultNote) {
        if note.place.is_none() {
            note.place = note.epoch.and_then(|of| self.spans.place_or_past(of));
        }
        let frame = self.spans.frame();
        let at = note.at.map(|at| frame.unix_ns(at));
        if let Some(record) = self.faults.record(&note, at, self.now_unix_ns()) {
            self.out.put(Signal::Logs, &record);
        }
    }

    /// The wall clock, as it stood when the session started and went on since.
    fn now_unix_ns(&self) -> u64 {
        let since = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.started_unix_ns.saturating_add(since)
    }

    fn tell_metrics(&mut self) {
        let export = self.out.pipeline.counters().snapshot();
        let drain = this_thread_ns().map(|ns| ("drain", ns));
        let exporter = (export.cpu_ns > 0).then_some(("export", export.cpu_ns));
        let cpu_ns: Vec<_> = drain.into_iter().chain(exporter).collect();
        let figures = Figures {
            totals: &self.totals,
            export: &export,
            spans: self.spans.counts(),
            cpu_ns: &cpu_ns,
            started_unix_ns: self.started_unix_ns,
            now_unix_ns: self.now_unix_ns(),
        };
        for metric in self.meter.collect(&figures) {
            self.out.put(Signal::Metrics, &metric);
        }
        self.faults.start_over();
        self.metrics_told = Instant::now();
    }
}

impl Out {
    /// Encodes an item and offers it. What does not fit is counted where it is dropped.
    fn put(&mut self, signal: Signal, item: &impl Message) {
        if self.switched_off[signal.index()] {
            return;
        }
        self.encoded.clear();
        // A vector grows as it must: this cannot fail.
        if item.encode(&mut self.encoded).is_ok() {
            self.pipeline.offer(signal, &self.encoded);
        }
    }
}
