//! Tables for people.

use lineage_validator::{Counts, Finding, Validation, printable};

use super::examine::{Examined, Origin};
use super::{advice, joins};
use crate::input::{self, Read};
use crate::terminal::{FAULT, HEADING, SOUND, UNSURE};
use crate::text::{
    counted, duration, labelled, notes, printable_path, printable_text, table, thousands, wrap,
    wrap_list,
};

/// Columns of the labels on the left.
const LABEL: usize = 12;
/// Processes that are listed.
const PROCESSES: usize = 32;

/// What was examined, what came out, and each listed finding.
pub(super) fn file(examined: &Examined, width: usize) -> String {
    let validation = &examined.whole;
    let mut out = head(examined, width);
    if examined.processes.len() > 1 {
        out.push('\n');
        out += &processes(examined, width);
    }
    out.push('\n');
    out += &counts(examined, width);
    if !validation.fault_counts.is_empty() || !validation.session_faults.is_empty() {
        out += &faults(validation, width);
    }
    for finding in &validation.faults {
        out.push('\n');
        out += &one_finding(examined, finding, width);
    }
    if validation.not_listed > 0 {
        let more = counted(validation.not_listed, "more finding", "more findings");
        let wanted = validation
            .not_listed
            .saturating_add(validation.faults.len() as u64);
        out += &format!("\nand {more}: see them with `--list {wanted}`\n");
    }
    out.push('\n');
    out += &verdict(examined, width);
    out
}

fn head(examined: &Examined, width: usize) -> String {
    let mut out = format!("{HEADING}{}{HEADING:#}\n", printable_path(&examined.file));
    match &examined.origin {
        Origin::Ledger { read, .. } => out += &ledger_head(read, width),
        Origin::Import { holdings, .. } => {
            let mut said = vec![holdings.recorder.to_string()];
            said.extend(holdings.version.as_deref().map(printable_text));
            if let [only] = examined.processes.as_slice() {
                said.push(only.label());
            } else {
                said.push(counted(
                    examined.processes.len() as u64,
                    "process",
                    "processes",
                ));
            }
            let times = holdings.processes.iter();
            let first = times.clone().filter_map(|of| of.first_ns).min();
            let last = times.filter_map(|of| of.last_ns).max();
            if let (Some(first), Some(last)) = (first, last) {
                said.push(duration(last.saturating_sub(first)));
            }
            out += &labelled(2, "recording", LABEL, &said.join(", "), width);
            out += &notes(&input::notes(holdings), LABEL, width);
        }
    }
    out
}

fn ledger_head(read: &Read, width: usize) -> String {
    let header = &read.header;
    let said = format!(
        "{}, process {}, written by {}",
        printable(&header.service),
        header.process,
        printable(&header.writer)
    );
    let mut out = labelled(2, "recording", LABEL, &said, width);
    out += &notes(&read.notes(), LABEL, width);
    out
}

/// A line for each process, and one for all.
fn processes(examined: &Examined, width: usize) -> String {
    let wide = width >= 96;
    let line = |label: String, counts: &Counts| {
        let mut line = vec![label, thousands(counts.calls)];
        if wide {
            line.extend([counts.kernels, counts.memcpys, counts.memsets].map(thousands));
        } else {
            line.push(thousands(counts.operations()));
        }
        line.extend([counts.joined_operations(), counts.lost, counts.wrong].map(thousands));
        line
    };
    let each = examined.processes.iter().take(PROCESSES);
    let mut rows: Vec<Vec<String>> = each.map(|of| line(of.label(), &of.counts)).collect();
    let more = examined.processes.len().saturating_sub(PROCESSES);
    let all = if more > 0 {
        format!("all, {more} more among them")
    } else {
        "all".to_owned()
    };
    rows.push(line(all, &examined.whole.counts));
    let header: &[&str] = if wide {
        &[
            "process", "calls", "kernels", "copies", "sets", "joined", "lost", "wrong",
        ]
    } else {
        &["process", "calls", "operations", "joined", "lost", "wrong"]
    };
    table(header, &rows, width)
}

/// A count, with what it is made of beside it.
struct Line {
    label: &'static str,
    count: u64,
    parts: Vec<String>,
    /// Whether it is shown when it is 0.
    always: bool,
}

fn counts(examined: &Examined, width: usize) -> String {
    let lines: Vec<Line> = lines(examined)
        .into_iter()
        .filter(|line| line.always || line.count > 0 || !line.parts.is_empty())
        .collect();
    let digits = lines.iter().map(|line| thousands(line.count).len()).max();
    let digits = digits.unwrap_or(1);
    let indent = 2 + LABEL + 1 + digits + 2;
    let mut out = String::new();
    for line in &lines {
        let mut parts = wrap_list(&line.parts, width.saturating_sub(indent).max(20)).into_iter();
        let first = parts.next().unwrap_or_default();
        let text = format!(
            "  {:<LABEL$} {:>digits$}  {first}",
            line.label,
            thousands(line.count)
        );
        out += text.trim_end();
        out.push('\n');
        for more in parts {
            out += &format!("{:indent$}{more}\n", "");
        }
    }
    out
}

fn lines(examined: &Examined) -> Vec<Line> {
    let counts = &examined.whole.counts;
    let imported_without_epochs = matches!(examined.origin, Origin::Import { epochs: false, .. });
    let mut lines = Vec::new();
    let mut line = |label, count, parts: &[(u64, &str)], always| {
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts = parts.map(|(count, what)| format!("{} {what}", thousands(*count)));
        lines.push(Line {
            label,
            count,
            parts: parts.collect(),
            always,
        });
    };
    let records = if counts.api_calls == counts.calls {
        0
    } else {
        counts.api_calls
    };
    line(
        "calls",
        counts.calls,
        &[
            (records, "API records"),
            (counts.without_operation_due, "ask for no GPU work"),
        ],
        true,
    );
    let kinds = |kernels, copies, sets, graphs| {
        [
            (kernels, plural(kernels, "kernel", "kernels")),
            (copies, plural(copies, "copy", "copies")),
            (sets, plural(sets, "set", "sets")),
            (graphs, plural(graphs, "whole graph", "whole graphs")),
        ]
    };
    line(
        "operations",
        counts.operations(),
        &kinds(
            counts.kernels,
            counts.memcpys,
            counts.memsets,
            counts.graphs,
        ),
        true,
    );
    line(
        "joined",
        counts.joined_operations(),
        &kinds(
            counts.joined_kernels,
            counts.joined_memcpys,
            counts.joined_memsets,
            counts.joined_graphs,
        ),
        true,
    );
    let excused = counts.before_recording
        + counts.operations_after_recording
        + counts.calls_not_collected
        + counts.asked_for_by_no_call;
    line(
        "no call",
        counts.activity_without_launch,
        &[
            (counts.before_recording, "before the recording"),
            (
                counts.asked_for_by_no_call,
                "the driver's or the device's own",
            ),
            (counts.operations_after_recording, "after the recording"),
            (counts.calls_not_collected, "calls not collected"),
            (
                counts.activity_without_launch.saturating_sub(excused),
                "lost or undecided",
            ),
        ],
        false,
    );
    line(
        "no operation",
        counts.launch_without_activity,
        &[
            (counts.maybe_captured, "perhaps captured"),
            (counts.failed_calls, "failed"),
            (counts.maybe_without_operation, "perhaps empty"),
            (counts.after_recording, "after the recording"),
            (counts.operations_not_collected, "not collected"),
            (counts.calls_without_operation, "lost"),
        ],
        false,
    );
    line(
        "bound",
        counts.bound,
        &[
            (counts.bound_by_two_sources, "by two sources"),
            (counts.bound_by_external_only, "by external id only"),
            (counts.bound_by_callback_only, "by callback only"),
            (counts.bound_by_containment, "by containment"),
            (counts.unreachable, "not reached by a handoff"),
        ],
        !imported_without_epochs,
    );
    if !imported_without_epochs {
        let reasons: Vec<(u64, String)> = counts
            .unattributed
            .iter()
            .map(|(reason, count)| (*count, reason.replace('_', " ")))
            .collect();
        let reasons: Vec<(u64, &str)> = reasons
            .iter()
            .map(|(count, reason)| (*count, reason.as_str()))
            .collect();
        line("unattributed", counts.unattributed_rows(), &reasons, false);
    }
    if let Some(replays) = examined.replays {
        line(
            "graphs",
            replays.launches,
            &[
                (replays.kernels, "kernels in their launches"),
                (
                    replays.by_capture_order,
                    "with their template by capture order, inferred",
                ),
                (replays.ambiguous, "of an ambiguous template"),
            ],
            false,
        );
    }
    let by_template = counts.templates_known + counts.templates_unknown.values().sum::<u64>();
    if counts.graph_launches > 0 || by_template > 0 {
        let reasons = counts.templates_unknown.iter();
        let reasons: Vec<(u64, String)> = reasons
            .map(|(reason, count)| {
                (
                    *count,
                    format!("of unknown nodes: {}", reason.replace('_', " ")),
                )
            })
            .collect();
        let mut parts = vec![
            (by_template, "operations in their launches"),
            (counts.templates_known, "of nodes whose capture is known"),
        ];
        parts.extend(
            reasons
                .iter()
                .map(|(count, reason)| (*count, reason.as_str())),
        );
        line("graphs", counts.graph_launches, &parts, false);
    }
    line("pending", counts.pending, &[], false);
    line(
        "epochs",
        counts.epochs,
        &[
            (counts.after_retirement, "calls after their end"),
            (counts.ended_without_gpu_work, "ended without GPU work"),
        ],
        false,
    );
    line(
        "handoffs",
        counts.handoffs,
        &[
            (counts.handoffs_under_way, "under way"),
            (counts.handoffs_without_sender, "without a sender"),
        ],
        false,
    );
    if let Some(rows) = counts.rows {
        line(
            "rows",
            rows.given,
            &[
                (rows.agreeing, "confirmed"),
                (rows.differing, "contradicted"),
                (rows.superseded, "superseded"),
                (rows.missing, "missing"),
                (rows.extra, "extra"),
            ],
            false,
        );
    }
    line("lost", counts.lost, &[], true);
    line("wrong", counts.wrong, &[], true);
    lines
}

const fn plural(count: u64, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

fn faults(validation: &Validation, width: usize) -> String {
    let mut rows: Vec<(&str, String, String)> = Vec::new();
    for (code, count) in &validation.fault_counts {
        rows.push((
            code.code(),
            thousands(*count),
            format!("{}: {}", code.name(), code.summary()),
        ));
    }
    for (code, count) in validation.raised_by_session_only() {
        let what = format!(
            "{}: raised by the session and not by the validator, so one of the two is wrong",
            code.name()
        );
        rows.push((code.code(), thousands(count), what));
    }
    let digits = rows.iter().map(|(_, count, _)| count.len()).max();
    let digits = digits.unwrap_or(0).max("count".len());
    let indent = 2 + 4 + 2 + digits + 2;
    let mut out = format!("\n{HEADING}  code  {:>digits$}  what{HEADING:#}\n", "count");
    for (code, count, what) in rows {
        for (number, part) in wrap(&what, width.saturating_sub(indent).max(20))
            .iter()
            .enumerate()
        {
            out += &if number == 0 {
                format!("  {FAULT}{code:<4}{FAULT:#}  {count:>digits$}  {part}\n")
            } else {
                format!("{:indent$}{part}\n", "")
            };
        }
    }
    out
}

fn one_finding(examined: &Examined, finding: &Finding, width: usize) -> String {
    let process = match finding.process.0 {
        0 => String::new(),
        other => format!("process {other}, "),
    };
    let head = wrap(
        &format!("{process}{}: {}", finding.about, finding.detail),
        width.saturating_sub(6),
    );
    let mut out = String::new();
    for (number, part) in head.iter().enumerate() {
        out += &if number == 0 {
            format!("  {FAULT}{}{FAULT:#} {part}\n", finding.code.code())
        } else {
            format!("      {part}\n")
        };
    }
    for line in &finding.evidence {
        out += &labelled(6, line.label, LABEL, &line.text, width);
    }
    out += &labelled(6, "do next", LABEL, advice::next(examined, finding), width);
    out
}

fn verdict(examined: &Examined, width: usize) -> String {
    let validation = &examined.whole;
    let nothing_joined = joins::none(examined);
    let (style, text) = if !validation.is_sound() {
        let codes = validation
            .fault_counts
            .keys()
            .chain(validation.session_faults.keys());
        let code = codes.min().map_or("CODE", |code| code.code());
        let faults = counted(validation.fault_count(), "fault", "faults");
        let text = format!(
            "{faults}; `lineage explain {code}` says what the first code means and how to mend it"
        );
        (FAULT, text)
    } else if let Some(said) = joins::no_device_activity(examined) {
        let text = format!(
            "{said}. Nothing is lost, and nothing can be said: `lineage show` has the recorder's own notes on why"
        );
        (UNSURE, text)
    } else if let Some(why) = nothing_joined {
        let text = format!(
            "no operation was joined to an epoch, so that no fault was found says nothing: {why}"
        );
        (UNSURE, text)
    } else {
        let text = "no fault: the records agree with one another; only truth can tell whether they are right";
        (SOUND, text.to_owned())
    };
    let lines = wrap(&text, width)
        .into_iter()
        .map(|line| format!("{style}{line}{style:#}\n"));
    lines.collect()
}

/// Several files together.
#[derive(Debug, Default)]
pub(super) struct Total {
    files: u64,
    pub(super) refused: u64,
    calls: u64,
    operations: u64,
    joined: u64,
    lost: u64,
    wrong: u64,
    faults: u64,
    faulty: u64,
}

impl Total {
    pub(super) fn add(&mut self, examined: &Examined) {
        let counts = &examined.whole.counts;
        self.files += 1;
        self.calls += counts.calls;
        self.operations += counts.operations();
        self.joined += counts.joined_operations();
        self.lost += counts.lost;
        self.wrong += counts.wrong;
        self.faults += examined.whole.fault_count();
        self.faulty += u64::from(!examined.whole.is_sound());
    }

    pub(super) fn line(&self, width: usize) -> String {
        if self.files == 0 {
            return String::new();
        }
        let Self {
            lost,
            wrong,
            faulty,
            ..
        } = *self;
        let mut parts = vec![
            counted(self.calls, "call", "calls"),
            counted(self.operations, "operation", "operations"),
            format!("{} joined", thousands(self.joined)),
            format!("{} lost", thousands(lost)),
            format!("{} wrong", thousands(wrong)),
        ];
        if self.faults > 0 {
            let faults = counted(self.faults, "fault", "faults");
            parts.push(format!("{faults} in {}", counted(faulty, "file", "files")));
        }
        if self.refused > 0 {
            parts.push(format!(
                "{} could not be read",
                counted(self.refused, "file", "files")
            ));
        }
        let label = counted(self.files, "file", "files");
        let columns = label.len();
        let lines = wrap_list(&parts, width.saturating_sub(columns + 2).max(20));
        let mut out = String::from("\n");
        for (number, line) in lines.iter().enumerate() {
            let label = if number == 0 { label.as_str() } else { "" };
            out += &format!("{HEADING}{label:<columns$}{HEADING:#}  {line}\n");
        }
        out
    }
}
