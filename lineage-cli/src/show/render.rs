//! What a file holds, for people.

use std::collections::BTreeMap;
use std::path::Path;

use lineage_validator::printable;

use super::evidence::{Evidence, Presence, evidence};
use super::held::{Held, Process};
use crate::terminal::{FAULT, HEADING, SOUND, UNSURE};
use crate::text::{
    counted, duration, labelled, printable_path, printable_text, process_label, table, thousands,
    wrap,
};

/// The device of a graph that begins on the host, as CUPTI numbers it (`INT_MAX`).
const ON_THE_HOST: u32 = i32::MAX as u32;

const LABEL: usize = 10;
/// Streams of a device that are listed.
const STREAMS: usize = 8;
/// Processes that are listed.
const PROCESSES: usize = 32;
/// Kinds of other records that are listed.
const OTHERS: usize = 8;

pub(super) fn text(file: &Path, held: &Held, width: usize) -> String {
    let mut out = format!("{HEADING}{}{HEADING:#}\n", printable_path(file));
    let mut said = vec![printable_text(&held.recorder)];
    said.extend(held.version.as_deref().map(printable_text));
    out += &labelled(2, "recorder", LABEL, &said.join(", "), width);
    for note in &held.notes {
        out += &labelled(2, "note", LABEL, &printable_text(note), width);
    }
    for (why, count) in &held.skipped {
        let said = format!(
            "{}: {}",
            counted(*count, "record", "records"),
            printable(&why.replace('_', " "))
        );
        out += &labelled(2, "skipped", LABEL, &said, width);
    }
    if !held.others.is_empty() {
        out += &labelled(2, "others", LABEL, &others(&held.others), width);
    }
    out.push('\n');
    out += &processes(held, width);
    let devices = devices(held, width);
    if !devices.is_empty() {
        out.push('\n');
        out += &devices;
    }
    out.push('\n');
    out += &kinds(&evidence(held.format, &held.tally), width);
    out
}

/// The most frequent of the records that no join needs.
fn others(others: &BTreeMap<String, u64>) -> String {
    let mut by_count: Vec<(&String, &u64)> = others.iter().collect();
    by_count.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), name.as_str()));
    let rest = by_count.len().saturating_sub(OTHERS);
    let listed = by_count.into_iter().take(OTHERS);
    let mut parts: Vec<String> = listed
        .map(|(name, count)| format!("{} {}", thousands(*count), printable(name)))
        .collect();
    if rest > 0 {
        parts.push(format!("and {rest} kinds more"));
    }
    parts.join(", ")
}

fn label(process: &Process) -> String {
    process_label(
        process.ordinal,
        process.pid,
        process.rank,
        process.name.as_deref(),
    )
}

fn processes(held: &Held, width: usize) -> String {
    let line = |process: &Process| {
        let span = process.span_ns().map_or_else(|| "-".to_owned(), duration);
        vec![
            label(process),
            thousands(process.api_calls),
            thousands(process.kernels),
            thousands(process.memcpys),
            thousands(process.memsets),
            thousands(process.threads.len() as u64),
            span,
        ]
    };
    let mut rows: Vec<Vec<String>> = held.processes.iter().take(PROCESSES).map(line).collect();
    let more = held.processes.len().saturating_sub(PROCESSES);
    if rows.is_empty() {
        return "  no process has a record of use\n".to_owned();
    }
    let mut header = vec![
        "process", "calls", "kernels", "copies", "sets", "threads", "time",
    ];
    if width < 72 {
        // The text needs the room.
        for row in &mut rows {
            row.remove(5);
        }
        header.remove(5);
    }
    let mut out = table(&header, &rows, width);
    if more > 0 {
        out += &format!(
            "  and {}\n",
            counted(more as u64, "process more", "processes more")
        );
    }
    out
}

/// Context, stream, operations.
type Stream = (u32, u32, u64);

/// Each device with its streams.
fn devices(held: &Held, width: usize) -> String {
    let several = held.processes.len() > 1;
    let mut by_device: BTreeMap<(u32, u32), Vec<Stream>> = BTreeMap::new();
    for process in &held.processes {
        for (&(device, context, stream), &operations) in &process.streams {
            let streams = by_device.entry((device, process.ordinal)).or_default();
            streams.push((context, stream, operations));
        }
    }
    let mut out = String::new();
    let rest = by_device.len().saturating_sub(PROCESSES);
    for ((device, process), mut streams) in by_device.into_iter().take(PROCESSES) {
        let of_process = |of: &&super::held::Device| {
            of.ordinal == device && of.process.is_none_or(|of| of == process)
        };
        let name = held
            .devices
            .iter()
            .find(of_process)
            .and_then(|of| of.name.as_deref());
        let contexts = streams
            .iter()
            .any(|(context, _, _)| *context != streams[0].0);
        streams.sort_by_key(|(context, stream, operations)| {
            (std::cmp::Reverse(*operations), *context, *stream)
        });
        let count = streams.len();
        let mut parts: Vec<String> = Vec::new();
        for (context, stream, operations) in streams.into_iter().take(STREAMS) {
            let context = if contexts {
                format!("{context}/")
            } else {
                String::new()
            };
            parts.push(format!("{context}{stream} ({})", thousands(operations)));
        }
        let more = if count > STREAMS {
            format!(" and {} more", count - STREAMS)
        } else {
            String::new()
        };
        let name = name
            .map(|name| format!("{}, ", printable(name)))
            .unwrap_or_default();
        let of = held
            .processes
            .iter()
            .find(|of| several && of.ordinal == process);
        let of = of.map(|of| format!("{}, ", label(of))).unwrap_or_default();
        let noun = if count == 1 { "stream" } else { "streams" };
        let said = format!("{name}{of}{noun} {}{more}", parts.join(", "));
        let label = if device == ON_THE_HOST {
            "host".to_owned()
        } else {
            format!("device {device}")
        };
        out += &labelled(2, &label, LABEL, &said, width);
    }
    if rest > 0 {
        out += &labelled(2, "", LABEL, &format!("and {rest} more"), width);
    }
    out
}

/// A table of what is there; what is left open stands below its line where the terminal is narrow.
fn kinds(all: &[Evidence], width: usize) -> String {
    const NAME: usize = 15;
    const PRESENCE: usize = 7;
    const NARROW: usize = 76;
    let digits = all
        .iter()
        .map(|of| thousands(of.count).len())
        .max()
        .unwrap_or(1);
    let digits = digits.max("records".len());
    let beside = width >= NARROW;
    let indent = if beside {
        2 + PRESENCE + 2 + NAME + 2 + digits + 2
    } else {
        2 + PRESENCE + 2
    };
    let mut out = format!(
        "{HEADING}  {:<PRESENCE$}  {:<NAME$}  {:>digits$}{}{HEADING:#}\n",
        "",
        "evidence",
        "records",
        if beside { "  leaves open" } else { "" }
    );
    for of in all {
        let style = match of.presence {
            Presence::Here => SOUND,
            Presence::InPart => UNSURE,
            Presence::Missing => FAULT,
        };
        let (word, name) = (of.presence.word(), of.name);
        let count = if of.count == 0 {
            String::new()
        } else {
            thousands(of.count)
        };
        let line = format!("  {style}{word:<PRESENCE$}{style:#}  {name:<NAME$}  {count:>digits$}");
        let columns = width.saturating_sub(indent).max(20);
        let mut lines = of
            .leaves_open
            .map(|text| wrap(text, columns))
            .into_iter()
            .flatten();
        let first = if beside { lines.next() } else { None };
        match first {
            Some(first) => out += &format!("{line}  {first}\n"),
            None => out += &format!("{}\n", line.trim_end()),
        }
        for more in lines {
            out += &format!("{:indent$}{more}\n", "");
        }
    }
    out
}
