//! An operation's life with its names, apart from the rows it was judged from.

use std::collections::BTreeMap;
use std::sync::Arc;

use lineage_core::id::{LaunchEpoch, ProcessOrdinal};
use lineage_core::observation::{ActivityKind, Declared, OverheadKind, Parented};
use lineage_core::readiness::Dependency;
use lineage_core::row::{Binding, Row, Template};
use lineage_core::verdict::{Expected, Lateness, Life, LongBecause, Verdict, VerdictKind};
use lineage_validator::printable;

use crate::arguments::Diagnose;
use crate::text::{duration, thousands};

/// An epoch's name and trace.
#[derive(Debug, Default, Clone)]
struct EpochName {
    name: Option<Arc<str>>,
    trace: Option<String>,
}

/// Which rows are asked for.
pub(super) struct Wanted<'a> {
    arguments: &'a Diagnose,
    epochs: BTreeMap<(ProcessOrdinal, u64), EpochName>,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(arguments: &'a Diagnose) -> Self {
        Self {
            arguments,
            epochs: BTreeMap::new(),
        }
    }

    pub(super) fn declared(&mut self, process: ProcessOrdinal, of: &Declared) {
        let epoch = self.epochs.entry((process, of.epoch.id.get())).or_default();
        epoch.name = Some(of.name.clone());
    }

    pub(super) fn parented(&mut self, process: ProcessOrdinal, of: &Parented) {
        let epoch = self.epochs.entry((process, of.epoch.id.get())).or_default();
        epoch.trace = Some(format!("{:032x}", of.parent.trace_id));
    }

    fn epoch(&self, row: &Row) -> Option<(LaunchEpoch, Option<&EpochName>)> {
        match row.binding {
            Binding::Bound(epoch) => {
                let key = (row.process, epoch.id.get());
                Some((epoch, self.epochs.get(&key)))
            }
            _ => None,
        }
    }

    /// Whether a row is one of those.
    pub(super) fn has(&self, row: &Row) -> bool {
        let Diagnose {
            request,
            epoch,
            kernel,
            ..
        } = self.arguments;
        let bound = self.epoch(row);
        let name = row.operation.as_ref().and_then(|of| of.name.as_deref());
        let by_kernel = kernel
            .as_ref()
            .is_none_or(|text| name.is_some_and(|name| has_parts(name, text)));
        let by_epoch = epoch.is_none_or(|wanted| {
            bound.is_some_and(|(epoch, _)| {
                let version = wanted.1.is_none_or(|of| of == epoch.version.get());
                epoch.id.get() == wanted.0 && version
            })
        });
        let by_request = request.as_ref().is_none_or(|text| {
            let (_, Some(of)) = bound.unzip() else {
                return false;
            };
            of.is_some_and(|of| {
                let name = of
                    .name
                    .as_deref()
                    .is_some_and(|name| name.contains(text.as_str()));
                let trace = of.trace.as_deref();
                name || trace.is_some_and(|trace| trace.starts_with(&text.to_ascii_lowercase()))
            })
        });
        by_kernel && by_epoch && by_request
    }
}

/// Whether a name has the parts of this text between its `…`, in their order: as names are shown, and so
/// typed, where they are cut.
fn has_parts(name: &str, text: &str) -> bool {
    let mut rest = name;
    text.split('…').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Names of epochs.
pub(super) struct Names<'a>(&'a Wanted<'a>);

impl<'a> Names<'a> {
    pub(super) const fn of(wanted: &'a Wanted<'a>) -> Self {
        Self(wanted)
    }
}

/// A stretch, in words.
#[derive(Debug, Clone)]
pub(super) struct ToldSegment {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) kind: VerdictKind,
    pub(super) stage: &'static str,
    pub(super) words: String,
    pub(super) evidence: Option<String>,
    pub(super) settle: Vec<&'static str>,
}

/// What cost nothing, in words.
#[derive(Debug, Clone)]
pub(super) struct ToldCovered {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) words: String,
}

/// An operation's life, in words.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) process: u32,
    pub(super) epoch: Option<String>,
    pub(super) operation: String,
    pub(super) whole_ns: u64,
    pub(super) segments: Vec<ToldSegment>,
    pub(super) covered: Vec<ToldCovered>,
    pub(super) complete: bool,
    pub(super) not_before_ns: Option<u64>,
    pub(super) partial: Vec<&'static str>,
    pub(super) usual: Option<(u64, usize)>,
    pub(super) long_because: Option<LongBecause>,
    /// From its start to its end.
    pub(super) ran_ns: Option<u64>,
    pub(super) call: Option<String>,
}

impl Told {
    pub(super) fn new(life: &Life, rows: &[Row], names: &Names<'_>) -> Self {
        let row = &rows[life.row];
        let epoch = names.0.epoch(row).map(|(epoch, name)| {
            let number = format!("epoch {}.{}", epoch.id.get(), epoch.version.get());
            match name.and_then(|of| of.name.as_deref()) {
                Some(name) => format!("{} ({number})", printable(name)),
                None => number,
            }
        });
        let call = row
            .call
            .as_ref()
            .map(|call| printable(&call.api.to_string()));
        let segments = life.segments.iter().map(|segment| ToldSegment {
            from_ns: segment.from.0,
            to_ns: segment.to.0,
            kind: segment.verdict.kind(),
            stage: segment.stage.words(),
            words: words(&segment.verdict, row, rows, call.as_deref()),
            evidence: segment.source.map(source_name),
            settle: match &segment.verdict {
                Verdict::Unresolved(doubt) => doubt.settle(),
                _ => Vec::new(),
            },
        });
        let covered = life.covered.iter().map(|of| ToldCovered {
            from_ns: of.from.0,
            to_ns: of.to.0,
            words: format!("{} while {} ran", of.stage.words(), named(of.by, rows)),
        });
        let readiness = life.readiness;
        Self {
            process: row.process.0,
            epoch,
            operation: operation(row),
            whole_ns: life.whole_ns(),
            segments: segments.collect(),
            covered: covered.collect(),
            complete: readiness.is_some_and(|of| of.is_complete()),
            not_before_ns: readiness.and_then(|of| of.not_before).map(|(at, _)| at.0),
            partial: readiness
                .map(|of| of.partial.iter().map(|of| of.because()).collect())
                .unwrap_or_default(),
            usual: life.usual,
            long_because: life.long_because,
            ran_ns: row.operation.as_ref().and_then(|of| {
                let (start, end) = (of.start?, of.end?);
                end.0.checked_sub(start.0)
            }),
            call,
        }
    }
}

/// A time's source, as the ledger names it.
fn source_name(source: lineage_core::evidence::TimeSource) -> String {
    let value = serde_json::to_value(source).ok();
    let name = value.and_then(|value| value.as_str().map(str::to_owned));
    name.unwrap_or_default()
}

/// What a row is, for a person.
fn operation(row: &Row) -> String {
    let Some(of) = &row.operation else {
        return "a call without an operation".to_owned();
    };
    let kind = match of.kind {
        ActivityKind::Kernel => "kernel",
        ActivityKind::Copy => "copy",
        ActivityKind::Set => "set",
        ActivityKind::Graph => "graph launch",
        _ => "operation",
    };
    let name = of
        .name
        .as_deref()
        .map_or_else(|| kind.to_owned(), printable);
    let mut out = format!("{name}, stream {}", of.stream);
    if let Some(graph) = of.graph {
        out += &format!(" of graph {graph}");
    }
    if let Some(graph) = &row.graph {
        if let Some(replay) = graph.replay {
            out += &format!(", replay {}", thousands(replay));
        }
        if let Template::Known(node) = &graph.template
            && let Some(epoch) = node.capture.epoch()
        {
            out += &format!(" (captured by epoch {})", epoch.id.get());
        }
    }
    out
}

fn short(row: usize, rows: &[Row]) -> String {
    rows.get(row)
        .map_or_else(|| "other work".to_owned(), operation)
}

/// A copy waited for its engine, a kernel for room.
fn device_wait(row: usize, rows: &[Row]) -> String {
    let name = short(row, rows);
    let running = rows.get(row).and_then(|row| row.operation.as_ref());
    let Some(kernel) = running.filter(|of| of.kind == ActivityKind::Kernel) else {
        return format!("device busy with {name}");
    };
    let count = |of: [u32; 3]| thousands(of.into_iter().map(u64::from).product());
    let mut takes = format!("{} threads", count(kernel.block));
    if let Some(footprint) = kernel.footprint {
        takes += &format!(", {} registers each", footprint.registers_per_thread);
        if footprint.shared_bytes > 0 {
            let bytes = thousands(u64::from(footprint.shared_bytes));
            takes += &format!(" and {bytes} bytes of shared memory");
        }
    }
    let blocks = count(kernel.grid);
    format!("device full of {name}, which left no room: {blocks} blocks of {takes}")
}

fn named(dependency: Dependency, rows: &[Row]) -> String {
    match dependency.row {
        Some(row) => short(row, rows),
        None => "what it waited for".to_owned(),
    }
}

fn words(verdict: &Verdict, row: &Row, rows: &[Row], call: Option<&str>) -> String {
    let call = call.unwrap_or("the call");
    let function = |function: &Option<Arc<str>>| {
        function
            .as_deref()
            .map_or_else(|| "a call".to_owned(), printable)
    };
    match verdict {
        Verdict::ApplicationLate => "application late: not ready by its own marks".to_owned(),
        Verdict::SubmitterLate(lateness) => {
            let how = match lateness {
                Lateness::Preempted => "its thread was preempted".to_owned(),
                Lateness::Blocked => "its thread was blocked, until it was woken".to_owned(),
                Lateness::Asleep { function } => {
                    format!("its thread waited in {}", printable(function))
                }
                Lateness::WithoutProcessor {
                    not_before,
                    not_after,
                } => format!(
                    "its thread was ready to run and had no processor for at least that long, at some time in {}",
                    duration(not_after.0.saturating_sub(not_before.0))
                ),
                Lateness::OffProcessor => "its thread was off its processor".to_owned(),
                Lateness::BusyWith(epoch) => {
                    format!("its thread was busy with epoch {}", epoch.id.get())
                }
                _ => "what its thread did is not recorded".to_owned(),
            };
            format!("submitter late: {how}")
        }
        Verdict::BatchWait => "waiting for its batch to form".to_owned(),
        Verdict::HostWork => "host work: its thread ran".to_owned(),
        Verdict::HostSyncWait { function: of } => {
            format!("its thread waited for the device in {}", function(of))
        }
        Verdict::Allocation { function: of } => format!("allocation: {}", function(of)),
        Verdict::ApiSlow { cause, typical_ns } => {
            let cause = match cause {
                Some(OverheadKind::DriverCompiler) => ": the driver compiled",
                Some(OverheadKind::ModuleLoading) => ": a module was loaded",
                Some(OverheadKind::LazyFunctionLoading) => ": the function was loaded",
                Some(OverheadKind::CommandBufferFull) => ": the command buffer was full",
                Some(OverheadKind::UnifiedMemoryInit) => ": managed memory was set up",
                Some(OverheadKind::Tracer) => ": the tracer itself",
                Some(_) => ": an overhead of another kind",
                None => "",
            };
            let usual =
                typical_ns.map_or_else(String::new, |ns| format!(" (usually {})", duration(ns)));
            format!("{call} slow{cause}{usual}")
        }
        Verdict::SubmitWait => "queued, and not yet submitted".to_owned(),
        Verdict::DependencyWait(dependency) => format!(
            "waiting for {}: {}",
            dependency.kind.words(),
            named(*dependency, rows)
        ),
        Verdict::FalseDependency { row, channel } => format!(
            "false dependency: {} was ahead in channel {channel}",
            short(*row, rows)
        ),
        Verdict::DeviceWait { row } => device_wait(*row, rows),
        Verdict::Executing => operation(row),
        Verdict::LongerThanItsKind {
            typical_ns,
            samples,
        } => format!(
            "{}: longer than its kind (usually {}, of {} runs)",
            operation(row),
            duration(*typical_ns),
            thousands(*samples as u64)
        ),
        Verdict::Expected(Expected::UsualCall { typical_ns }) => {
            format!("{call} (usually {})", duration(*typical_ns))
        }
        Verdict::Expected(Expected::Dispatch) => "dispatch".to_owned(),
        Verdict::Expected(Expected::NotDueYet) => {
            "not due yet: the application expected it to start later".to_owned()
        }
        Verdict::Expected(Expected::Covered(by)) => {
            format!("covered: {} ran", named(*by, rows))
        }
        Verdict::Unresolved(doubt) => format!("unresolved: {}", doubt.words()),
        _ => verdict.kind().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_a_part_of_it_or_as_it_is_shown_where_it_is_cut() {
        let name = "void at::native::elementwise_kernel<128, 4, at::native::gpu>";
        for text in [
            "elementwise",
            "",
            "void at::native::elem…",
            "at…4, at…gpu>",
            "…gpu",
        ] {
            assert!(has_parts(name, text), "{text}");
        }
        for text in ["gemm", "gpu…elementwise", "elementwise…elementwise"] {
            assert!(!has_parts(name, text), "{text}");
        }
    }
}
