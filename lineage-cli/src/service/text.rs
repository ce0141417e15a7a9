//! A file's figures, for a person.

use std::path::Path;

use lineage_core::service::{CollectiveSkew, DeviceFigures, Missed, RequestFigures, Summary};

use super::Figures;
use crate::terminal::{HEADING, UNSURE};
use crate::text::{
    counted, duration, labelled, notes, printable_path, printable_text, printable_whole, table,
    thousands,
};

const LABEL: usize = 11;

pub(super) fn text(file: &Path, figures: &Figures, width: usize) -> String {
    let mut out = format!("{HEADING}{}{HEADING:#}\n", printable_path(file));
    let recorder = printable_text(&figures.about.recorder);
    out += &labelled(2, "recording", LABEL, &recorder, width);
    out += &notes(&figures.about.notes, LABEL, width);
    let tokens = &figures.tokens;
    if tokens.served.requests + tokens.warm_up.requests == 0 {
        let text = "none with a step: times of tokens need epochs, which only a recording of a server that declares them has";
        out += &labelled(2, "requests", LABEL, text, width);
    } else {
        out += &requests("requests", &tokens.served, width);
        if tokens.warm_up.requests > 0 {
            out += &requests("warm-up", &tokens.warm_up, width);
        }
    }
    if tokens.without_tokens > 0 {
        let text = format!(
            "{} without a step",
            counted(tokens.without_tokens, "request", "requests")
        );
        out += &labelled(2, "", LABEL, &text, width);
    }
    out.push('\n');
    out += &devices(&figures.devices, width);
    for collective in &figures.collectives {
        out += &skew(collective, width);
    }
    let not_kept = tokens.not_kept + figures.not_kept;
    if not_kept > 0 {
        let text = format!(
            "{UNSURE}{} could not be kept, and are in no figure{UNSURE:#}",
            counted(not_kept, "record", "records")
        );
        out += &labelled(2, "left out", LABEL, &text, width);
    }
    out
}

fn requests(label: &str, figures: &RequestFigures, width: usize) -> String {
    let mut text = format!(
        "{}, {}",
        counted(figures.requests, "request", "requests"),
        counted(figures.tokens, "token", "tokens")
    );
    if let Some(rate) = figures.tokens_per_second() {
        text += &format!(", {rate:.1} tokens a second");
    }
    if figures.single_token > 0 {
        text += &format!(
            "; {} with one token only, of which no time between tokens is defined",
            thousands(figures.single_token)
        );
    }
    let mut out = labelled(2, label, LABEL, &text, width);
    let rows = [
        row("to the first token", &figures.first_token),
        row("between tokens (all)", &figures.between_tokens),
        row(
            "per output token (one value a request)",
            &figures.per_output_token,
        ),
    ];
    let header = ["", "n", "p50", "p90", "p99", "max"];
    out += &table(&header, &rows, width);
    let small: Vec<&str> = [
        ("to the first token", &figures.first_token),
        ("between tokens", &figures.between_tokens),
        ("per output token", &figures.per_output_token),
    ]
    .into_iter()
    .filter(|(_, summary)| summary.count > 0 && summary.is_small())
    .map(|(name, _)| name)
    .collect();
    if !small.is_empty() {
        let text = format!("{UNSURE}few samples{UNSURE:#}: {}", small.join(", "));
        out += &labelled(2, "", LABEL, &text, width);
    }
    for (name, missed) in [
        ("first token", figures.first_token_missed),
        ("between tokens", figures.between_tokens_missed),
    ] {
        if let Some(missed) = missed {
            out += &labelled(2, "objective", LABEL, &violations(name, &missed), width);
        }
    }
    out
}

fn violations(name: &str, missed: &Missed) -> String {
    let share = missed.missed as f64 * 100.0 / missed.count.max(1) as f64;
    let worst = missed
        .max_ns
        .map(|ns| format!(", the longest {}", duration(ns)));
    format!(
        "{name} within {}: {} of {} missed it ({share:.2} %){}",
        duration(missed.objective_ns),
        thousands(missed.missed),
        thousands(missed.count),
        worst.unwrap_or_default()
    )
}

fn row(name: &str, summary: &Summary) -> Vec<String> {
    let shown = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), duration);
    vec![
        name.to_owned(),
        thousands(summary.count),
        shown(summary.p50_ns),
        shown(summary.p90_ns),
        shown(summary.p99_ns),
        shown(summary.max_ns),
    ]
}

fn devices(devices: &[DeviceFigures], width: usize) -> String {
    if devices.is_empty() {
        return "  no operation has a start and an end, so nothing is known of a device\n"
            .to_owned();
    }
    let several = devices.iter().any(|of| of.process != devices[0].process);
    let mut rows: Vec<Vec<String>> = devices
        .iter()
        .map(|device| {
            let share = device.busy_ns as f64 * 100.0 / device.span_ns.max(1) as f64;
            let process = if several {
                format!(" (process {})", device.process.0)
            } else {
                String::new()
            };
            vec![
                format!("device {}{process}", device.device),
                duration(device.span_ns),
                format!("{share:.1} %"),
                thousands(device.gaps.count),
                duration(device.idle.in_call_ns),
                duration(device.idle.in_scope_ns),
                duration(device.idle.unknown_ns),
                device
                    .best_speedup()
                    .map_or_else(|| "-".to_owned(), |best| format!("{best:.2} x")),
            ]
        })
        .collect();
    let mut header = vec![
        "device",
        "span",
        "busy",
        "gaps",
        "idle: in calls",
        "in scopes",
        "unknown",
        "at best",
    ];
    if width < 96 {
        // The others need the room: gaps, and the span.
        for number in [3, 1] {
            header.remove(number);
            for row in &mut rows {
                row.remove(number);
            }
        }
    }
    let mut out = table(&header, &rows, width);
    let text = "at best: how many times faster the same operations were if none of the idle time in calls and scopes were; an upper bound. Idle time that is unknown may be time without any request.";
    out += &labelled(1, "", 0, text, width);
    out
}

fn skew(collective: &CollectiveSkew, width: usize) -> String {
    let devices = collective.devices.len();
    let text = match &collective.skew {
        Some(skew) => {
            let figures = [
                ("p50", skew.p50_ns),
                ("p99", skew.p99_ns),
                ("max", skew.max_ns),
            ];
            let figures = figures.into_iter();
            let figures: Vec<String> = figures
                .filter_map(|(name, ns)| Some(format!("{name} {}", duration(ns?))))
                .collect();
            format!(
                "{}: {devices} devices, {}, from the first start to the last {}",
                printable_whole(&collective.name),
                counted(skew.count, "time", "times"),
                figures.join(", "),
            )
        }
        None => format!(
            "{}: {devices} devices did not run it equally often, so nothing says which belong together",
            printable_whole(&collective.name)
        ),
    };
    labelled(2, "collective", LABEL, &text, width)
}
