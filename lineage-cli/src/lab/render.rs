//! The experiment as a person reads it.

use console::measure_text_width;

use crate::terminal::{FAINT, HEADING};
use crate::text::{counted, cut, thousands, wrap};

use super::experiment::{HeldUp, Launched, Outcome};
use super::{micros, picture};

/// Rows of the table; the others are left out, and said to be.
const ROWS: usize = 40;

pub(super) fn text(outcome: &Outcome, width: usize) -> String {
    let mut out = String::new();
    let paragraph = |out: &mut String, text: &str| {
        for line in wrap(text, width) {
            *out += &line;
            out.push('\n');
        }
    };
    paragraph(&mut out, &asked(outcome));
    out.push('\n');
    out += &table(outcome, width);
    out.push('\n');
    out += &picture::draw(outcome, width);
    for line in wrap(picture::LEGEND, width.saturating_sub(2)) {
        out += &format!("  {FAINT}{line}{FAINT:#}\n");
    }
    out.push('\n');
    for line in summary(outcome) {
        paragraph(&mut out, &line);
    }
    out
}

fn asked(outcome: &Outcome) -> String {
    let asked = &outcome.settings;
    let what = if asked.graph {
        format!(
            "one graph launch of {} in one call of {} µs",
            counted(asked.launches.into(), "kernel", "kernels"),
            micros(asked.host_ns)
        )
    } else {
        format!(
            "{}, {} µs of the host for each",
            counted(asked.launches.into(), "launch", "launches"),
            micros(asked.host_ns)
        )
    };
    let channels = match asked.channels {
        0 => String::new(),
        channels => format!(" on {}", counted(channels.into(), "channel", "channels")),
    };
    format!(
        "{what}, {} µs of the GPU, in {}{channels}; times in µs",
        micros(asked.gpu_ns),
        counted(asked.streams.into(), "stream", "streams")
    )
}

fn table(outcome: &Outcome, width: usize) -> String {
    let channels = outcome.settings.channels > 0;
    let streams = outcome.settings.streams > 1;
    let mut header = vec!["launch"];
    if streams {
        header.push("stream");
    }
    if channels {
        header.push("channel");
    }
    header.extend(["called", "enqueued", "started", "ended", "waited", "for"]);
    let rows: Vec<Vec<String>> = outcome
        .launches
        .iter()
        .take(ROWS)
        .map(|launch| {
            let mut row = vec![launch.launch.to_string()];
            if streams {
                row.push(launch.stream.to_string());
            }
            if channels {
                row.push(launch.channel.to_string());
            }
            row.extend([
                micros(launch.called_ns),
                micros(launch.enqueued_ns),
                micros(launch.started_ns),
                micros(launch.ended_ns),
                micros(launch.held_up_by.iter().map(|held| held.ns).sum()),
                held_up(launch),
            ]);
            row
        })
        .collect();
    let last = header.len() - 1;
    let columns: Vec<usize> = (0..last)
        .map(|at| {
            let cells = rows.iter().map(|row| measure_text_width(&row[at]));
            cells.max().unwrap_or(0).max(header[at].len())
        })
        .collect();
    let line = |cells: &[String]| {
        let mut line = String::new();
        for (cell, columns) in cells.iter().zip(&columns) {
            line += &format!("  {cell:>columns$}");
        }
        line += &format!("  {}", cells[last]);
        cut(line.trim_end(), width)
    };
    let titles: Vec<String> = header.iter().map(|title| (*title).to_owned()).collect();
    let mut out = format!("{HEADING}{}{HEADING:#}\n", line(&titles));
    for row in &rows {
        out += &line(row);
        out.push('\n');
    }
    if outcome.launches.len() > ROWS {
        let more = (outcome.launches.len() - ROWS) as u64;
        out += &format!("  {} more, in `--json`\n", thousands(more));
    }
    out
}

/// Who waited for whom; how long, where the column before does not say it.
fn held_up(launch: &Launched) -> String {
    let several = launch.held_up_by.len() > 1;
    let part = |held: &HeldUp| {
        let what = match (held.cause, held.launch) {
            ("channel", Some(launch)) => format!("channel: {launch}"),
            (_, Some(launch)) => format!("behind {launch}"),
            (cause, None) => cause.to_owned(),
        };
        if several {
            format!("{} {what}", micros(held.ns))
        } else {
            what
        }
    };
    let parts: Vec<String> = launch.held_up_by.iter().map(part).collect();
    parts.join(", ")
}

fn summary(outcome: &Outcome) -> Vec<String> {
    let (host, device) = (&outcome.host, &outcome.device);
    let mut lines = Vec::new();
    let after_ns = device.ended_ns.saturating_sub(host.returned_ns);
    lines.push(format!(
        "the last call returned at {}; the device ended at {}: {} remained",
        micros(host.returned_ns),
        micros(device.ended_ns),
        micros(after_ns)
    ));
    if host.blocked_ns > 0 {
        lines.push(format!(
            "calls waited {} for room in the queue",
            micros(host.blocked_ns)
        ));
    }
    let permille = (device.busy_ns * 1_000 + device.ended_ns / 2)
        .checked_div(device.ended_ns)
        .unwrap_or(0);
    lines.push(format!(
        "the device was busy for {} of {} ({}.{} %)",
        micros(device.busy_ns),
        micros(device.ended_ns),
        permille / 10,
        permille % 10
    ));
    const GAPS: usize = 8;
    for idle in device.idle.iter().take(GAPS) {
        lines.push(format!(
            "idle from {} to {}: launch {} had not arrived",
            micros(idle.from_ns),
            micros(idle.to_ns),
            idle.launch
        ));
    }
    if device.idle.len() > GAPS {
        let more = (device.idle.len() - GAPS) as u64;
        lines.push(format!(
            "and {} more, in `--json`",
            counted(more, "gap", "gaps")
        ));
    }
    lines.push(advice(outcome).to_owned());
    lines
}

/// What the numbers say about where to look.
fn advice(outcome: &Outcome) -> &'static str {
    let falsely_ordered = outcome
        .launches
        .iter()
        .any(|launch| launch.held_up_by.iter().any(|held| held.cause == "channel"));
    if falsely_ordered {
        "streams that share a channel waited for each other, although nothing else orders them: a false dependency"
    } else if outcome.device.idle.len() > 1 {
        "the device waited for the host: faster kernels would change little, fewer or cheaper launches (a graph) would"
    } else if outcome.host.blocked_ns > 0 {
        "the queue was full: the time in those launch calls is the device's, not the call's"
    } else {
        "the host ran ahead: its calls cost nothing while the device had work, and a launch's wait is its predecessors' time"
    }
}
