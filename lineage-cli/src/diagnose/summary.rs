//! A file's verdicts, in sum, and its slowest operations.

use lineage_core::verdict::VerdictKind;

use super::draw;
use super::gather::{Counts, Diagnosis, Sum};
use crate::arguments::Diagnose;
use crate::input::Format;
use crate::terminal::HEADING;
use crate::text::{
    counted, duration, labelled, notes, printable_path, printable_text, table, thousands, wrap,
};

const LABEL: usize = 12;
/// Kinds of evidence that are listed as missing.
const SETTLES: usize = 5;
/// What evidence is marked with that only lineage's own sessions collect.
const EXPLAIN: &str = "tier explain";

pub(super) fn text(diagnosis: &Diagnosis, arguments: &Diagnose, width: usize) -> String {
    let counts = &diagnosis.counts;
    let mut out = format!("{HEADING}{}{HEADING:#}\n", printable_path(&diagnosis.file));
    out += &labelled(
        2,
        "recording",
        LABEL,
        &printable_text(&diagnosis.about.recorder),
        width,
    );
    out += &notes(&diagnosis.about.notes, LABEL, width);
    if let Some(part) = &diagnosis.about.part {
        out += &labelled(2, "part", LABEL, &part.words(), width);
    }
    out += &labelled(2, "rows", LABEL, &rows(counts), width);
    if counts.with_path == 0 {
        let text = "no operation has a start and an end, so nothing can be said of why it began when it did";
        out += &labelled(2, "verdicts", LABEL, text, width);
        return out;
    }
    out += &labelled(2, "readiness", LABEL, &readiness(counts), width);
    out += &labelled(2, "dispatch", LABEL, &dispatch(diagnosis), width);
    out.push('\n');
    out += &verdicts(diagnosis, width);
    out += &settles(counts, diagnosis.format, width);
    for told in &diagnosis.slowest {
        out.push('\n');
        out += &draw::life(told, width);
    }
    out.push('\n');
    out += &shown(diagnosis, arguments, width);
    out
}

fn rows(counts: &Counts) -> String {
    let mut said = vec![format!(
        "{} with a critical path, whose segments sum to the nanosecond",
        thousands(counts.with_path)
    )];
    if counts.inexact > 0 {
        said = vec![format!(
            "{} with a critical path, {} OF THEM NOT EXACT: a defect of this command",
            thousands(counts.with_path),
            thousands(counts.inexact)
        )];
    }
    for (code, count) in &counts.time_faults {
        let text = format!("{} without one: {code}", thousands(*count));
        said.push(text);
    }
    if counts.without_times > 0 {
        said.push(format!(
            "{} without a start or an end",
            thousands(counts.without_times)
        ));
    }
    if counts.calls_alone > 0 {
        said.push(counted(
            counts.calls_alone,
            "call without an operation",
            "calls without an operation",
        ));
    }
    said.join("; ")
}

fn readiness(counts: &Counts) -> String {
    let percent = |count: u64| count * 100 / counts.with_path.max(1);
    format!(
        "{} % of them have a proved bound on when they could have begun, {} % have all their dependencies known",
        percent(counts.useful_readiness),
        percent(counts.complete_readiness)
    )
}

fn dispatch(diagnosis: &Diagnosis) -> String {
    match diagnosis.floor {
        Some(floor) => format!(
            "{} from ready to start, measured from {}; up to {} is taken for dispatch",
            duration(floor.typical_ns),
            counted(floor.samples as u64, "start", "starts"),
            duration(floor.limit_ns)
        ),
        None => "not measured: too few starts right behind earlier work".to_owned(),
    }
}

fn line(name: &str, sum: Sum, whole_ns: u64) -> Vec<String> {
    let tenths = u128::from(sum.ns) * 1_000 / u128::from(whole_ns.max(1));
    vec![
        name.to_owned(),
        duration(sum.ns),
        format!("{}.{} %", tenths / 10, tenths % 10),
        thousands(sum.segments),
        thousands(sum.rows),
    ]
}

/// Verdicts with their totals: what is claimed, what needs no explanation, and what is unresolved.
fn verdicts(diagnosis: &Diagnosis, width: usize) -> String {
    let counts = &diagnosis.counts;
    let merged = counts.merges_dependency_and_device(diagnosis.floor);
    let mut claimed: Vec<(&str, Sum)> = Vec::new();
    let mut band = Sum::default();
    for (&kind, &sum) in counts.by_verdict.iter().filter(|(of, _)| of.is_claim()) {
        let in_band = matches!(
            kind,
            VerdictKind::DependencyWait | VerdictKind::DeviceWait | VerdictKind::FalseDependency
        );
        if merged && in_band {
            band = band.and(sum);
        } else {
            claimed.push((kind.name(), sum));
        }
    }
    if band.segments > 0 {
        claimed.push(("dependency or device", band));
    }
    let of = |kind: VerdictKind| {
        let sum = counts.by_verdict.get(&kind).copied();
        sum.map(|sum| (kind.name(), sum))
    };
    let plain: Vec<(&str, Sum)> = [VerdictKind::Executing, VerdictKind::Expected]
        .into_iter()
        .filter_map(of)
        .collect();
    let unresolved: Vec<(&str, Sum)> = of(VerdictKind::Unresolved).into_iter().collect();
    let mut rows = Vec::new();
    for (group, mut members) in [
        ("claimed", claimed),
        ("needs no explanation", plain),
        ("not known", unresolved),
    ] {
        members.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.ns));
        let nothing = vec![
            group.to_owned(),
            "-".to_owned(),
            "-".to_owned(),
            String::new(),
            String::new(),
        ];
        let ns: u64 = members.iter().map(|(_, sum)| sum.ns).sum();
        rows.push(if members.is_empty() {
            nothing
        } else {
            let mut whole = line(
                group,
                Sum {
                    ns,
                    ..Sum::default()
                },
                counts.whole_ns,
            );
            whole[3].clear();
            whole[4].clear();
            whole
        });
        for (name, sum) in members {
            rows.push(line(&format!("  {name}"), sum, counts.whole_ns));
        }
    }
    let mut out = table(
        &["verdict", "time", "share", "stretches", "rows"],
        &rows,
        width,
    );
    if counts.covered_ns > 0 {
        let text = format!(
            "{} of host time cost nothing: earlier work of the stream was still at the device",
            duration(counts.covered_ns)
        );
        out += &labelled(2, "covered", LABEL, &text, width);
    }
    out
}

fn settles(counts: &Counts, format: Format, width: usize) -> String {
    let mut all: Vec<(&&str, &Sum)> = counts.by_settle.iter().collect();
    all.sort_by_key(|(what, sum)| (std::cmp::Reverse(sum.ns), **what));
    let mut out = String::new();
    for (number, (what, sum)) in all.into_iter().take(SETTLES).enumerate() {
        let label = if number == 0 { "would settle" } else { "" };
        let text = format!("{what}: concerns {}", duration(sum.ns));
        out += &labelled(2, label, LABEL, &text, width);
    }
    let asks_for_explain = counts.by_settle.keys().any(|what| what.contains(EXPLAIN));
    if asks_for_explain && format != Format::Ledger {
        let text =
            "the tier explain is of lineage's own recordings: no setting of this recorder gives it";
        out += &labelled(2, "", LABEL, text, width);
    }
    out
}

fn shown(diagnosis: &Diagnosis, arguments: &Diagnose, width: usize) -> String {
    let filtered =
        arguments.kernel.is_some() || arguments.epoch.is_some() || arguments.request.is_some();
    let text = if diagnosis.slowest.is_empty() && filtered {
        "no operation with a critical path is one of those that were asked for".to_owned()
    } else if diagnosis.not_shown == 0 {
        "`lineage explain VERDICT` says what a verdict rests on".to_owned()
    } else {
        format!(
            "{} more; `--slowest COUNT` shows more of them, `lineage explain VERDICT` says what a verdict rests on",
            counted(diagnosis.not_shown, "operation", "operations")
        )
    };
    wrap(&text, width).join("\n") + "\n"
}
