//! Tables for people.

use lineage_validator::{Counts, Finding, Validation, printable};

use crate::joins::nothing_joined;
use crate::load::Ledger;
use crate::terminal::{FAULT, HEADING, SOUND, labelled, wrap};

/// Columns of the labels on the left.
const LABEL: usize = 13;
/// Columns of the counts beside them.
const COUNT: usize = 11;

/// What was examined, what came out, and each listed finding.
pub(crate) fn tables(ledger: &Ledger, validation: &Validation, width: usize) -> String {
    let mut out = head(ledger, width);
    out += &counts(&validation.counts, width);
    if !validation.fault_counts.is_empty() || !validation.session_faults.is_empty() {
        out += &faults(validation, width);
    }
    for finding in &validation.faults {
        out.push('\n');
        out += &one_finding(finding, width);
    }
    if validation.not_listed > 0 {
        out += &format!(
            "\nand {} more {}: see them with `--list {}`\n",
            thousands(validation.not_listed),
            if validation.not_listed == 1 {
                "finding"
            } else {
                "findings"
            },
            validation.not_listed
        );
    }
    out.push('\n');
    out += &verdict(ledger, validation, width);
    out
}

fn head(ledger: &Ledger, width: usize) -> String {
    let name = printable(&ledger.file.display().to_string());
    let mut out = format!("{HEADING}{name}{HEADING:#}\n");
    let (header, summary) = (&ledger.header, &ledger.summary);
    let said = format!(
        "{}, process {}, written by {}",
        printable(&header.service),
        header.process,
        printable(&header.writer)
    );
    out += &labelled(2, "recording", LABEL, &said, width);
    let mut note = |text: &str| out += &labelled(2, "note", LABEL, text, width);
    if summary.last_line_truncated {
        note("the last line was cut short, and is left aside");
    }
    if !summary.ended {
        note("the file has no end line: its session was not shut down, or the file was cut short");
    }
    if summary.not_written > 0 {
        note(&format!(
            "its writer says that it could not write {} entries",
            summary.not_written
        ));
    }
    for (kind, count) in &summary.unknown_kinds {
        let kind = printable(kind);
        note(&format!(
            "{count} lines with `{kind}`, which this version does not know, were skipped"
        ));
    }
    out
}

fn counts(counts: &Counts, width: usize) -> String {
    let mut out = String::new();
    let mut line = |label: &str, count: u64, parts: &[(&str, u64)]| {
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(what, count)| format!("{what} {}", thousands(*count)))
            .collect();
        let indent = 2 + LABEL + 1 + COUNT + 2;
        let mut parts = wrap(&parts.join(", "), width.saturating_sub(indent).max(20)).into_iter();
        let first = parts.next().unwrap_or_default();
        let count = thousands(count);
        let text = format!("  {label:<LABEL$} {count:>COUNT$}  {first}");
        out += text.trim_end();
        out.push('\n');
        for more in parts {
            out += &format!("{:indent$}{more}\n", "");
        }
    };
    line("calls", counts.api_calls, &[]);
    line(
        "operations",
        counts.operations(),
        &[
            ("kernels", counts.kernels),
            ("copies", counts.memcpys),
            ("sets", counts.memsets),
        ],
    );
    line(
        "joined",
        counts.joined_operations(),
        &[
            ("kernels", counts.joined_kernels),
            ("copies", counts.joined_memcpys),
            ("sets", counts.joined_memsets),
        ],
    );
    line(
        "bound",
        counts.bound,
        &[
            ("by two sources", counts.bound_by_two_sources),
            ("by external id only", counts.bound_by_external_only),
            ("by callback only", counts.bound_by_callback_only),
            ("by containment", counts.bound_by_containment),
            ("not reached by a handoff", counts.unreachable),
        ],
    );
    let reasons: Vec<(String, u64)> = counts
        .unattributed
        .iter()
        .map(|(reason, count)| (reason.replace('_', " "), *count))
        .collect();
    let reasons: Vec<(&str, u64)> = reasons
        .iter()
        .map(|(reason, count)| (reason.as_str(), *count))
        .collect();
    line("unattributed", counts.unattributed_rows(), &reasons);
    line(
        "no operation",
        counts.launch_without_activity,
        &[
            ("lost", counts.calls_without_operation),
            ("failed", counts.failed_calls),
            ("perhaps none due", counts.maybe_without_operation),
            ("after the recording", counts.after_recording),
        ],
    );
    line(
        "no call",
        counts.activity_without_launch,
        &[
            ("before the recording", counts.before_recording),
            ("after the recording", counts.operations_after_recording),
        ],
    );
    line("pending", counts.pending, &[]);
    line(
        "epochs",
        counts.epochs,
        &[
            ("launched after their end", counts.after_retirement),
            ("ended without GPU work", counts.ended_without_gpu_work),
        ],
    );
    line(
        "handoffs",
        counts.handoffs,
        &[
            ("under way", counts.handoffs_under_way),
            ("without a sender", counts.handoffs_without_sender),
        ],
    );
    if let Some(rows) = counts.rows {
        line(
            "rows",
            rows.given,
            &[
                ("agreeing", rows.agreeing),
                ("differing", rows.differing),
                ("superseded", rows.superseded),
                ("missing", rows.missing),
                ("extra", rows.extra),
            ],
        );
    }
    line("lost", counts.lost, &[]);
    line("wrong", counts.wrong, &[]);
    out
}

fn faults(validation: &Validation, width: usize) -> String {
    let mut out = format!("\n{HEADING}  code        count  what{HEADING:#}\n");
    let mut line = |code: &str, count: u64, what: &str| {
        let indent = 2 + 4 + 2 + COUNT + 2;
        for (number, part) in wrap(what, width.saturating_sub(indent).max(20))
            .iter()
            .enumerate()
        {
            out += &if number == 0 {
                format!(
                    "  {FAULT}{code:<4}{FAULT:#}  {:>COUNT$}  {part}\n",
                    thousands(count)
                )
            } else {
                format!("{:indent$}{part}\n", "")
            };
        }
    };
    for (code, count) in &validation.fault_counts {
        line(
            code.code(),
            *count,
            &format!("{}: {}", code.name(), code.summary()),
        );
    }
    for (code, count) in validation.raised_by_session_only() {
        let what = format!(
            "{}: raised by the session and not by the validator, so one of the two is wrong",
            code.name()
        );
        line(code.code(), count, &what);
    }
    out
}

fn one_finding(finding: &Finding, width: usize) -> String {
    let head = wrap(
        &format!("{}: {}", finding.about, finding.detail),
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
        out += &labelled(6, line.label, LABEL - 1, &line.text, width);
    }
    out += &labelled(6, "do next", LABEL - 1, finding.next, width);
    out
}

fn verdict(ledger: &Ledger, validation: &Validation, width: usize) -> String {
    let nothing_joined = nothing_joined(ledger, validation);
    let asserts = nothing_joined.is_none();
    let text = if let (true, Some(why)) = (validation.is_sound(), nothing_joined) {
        format!(
            "no operation was joined to an epoch, so that no fault was found says nothing: {why}"
        )
    } else if validation.is_sound() {
        "no fault: the records agree with one another; only truth can tell whether they are right"
            .to_owned()
    } else {
        let codes = validation
            .fault_counts
            .keys()
            .chain(validation.session_faults.keys());
        let code = codes.min().map_or("CODE", |code| code.code());
        let faults = validation.fault_count();
        let noun = if faults == 1 { "fault" } else { "faults" };
        format!(
            "{} {noun}; `lineage explain {code}` says what the first code means and how to mend it",
            thousands(faults)
        )
    };
    let style = match (validation.is_sound(), asserts) {
        (true, true) => SOUND,
        (true, false) => HEADING,
        (false, _) => FAULT,
    };
    let lines = wrap(&text, width)
        .into_iter()
        .map(|line| format!("{style}{line}{style:#}\n"));
    lines.collect()
}

/// A number with its digits in groups of three.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_000), "1,000");
        assert_eq!(thousands(12_345_678), "12,345,678");
    }
}
