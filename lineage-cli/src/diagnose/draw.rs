//! One operation's life, drawn.

use super::told::{Told, ToldSegment};
use crate::terminal::{FAINT, FAULT, HEADING, SOUND, Style, UNSURE};
use crate::text::{duration, labelled, thousands, wrap};
use lineage_core::verdict::VerdictKind;

/// Columns of the bars.
const BAR: usize = 20;
/// Columns left of the words: indent, offset, bar, length.
const LEFT: usize = 2 + 9 + 2 + BAR + 1 + 9 + 2;
/// Below this many columns bars are left out.
const NARROW: usize = 92;
const LABEL: usize = 10;
/// Segments that are drawn of one life; the longest of more.
const DRAWN: usize = 12;

pub(super) fn life(told: &Told, width: usize) -> String {
    let whole = told.whole_ns;
    let title = match &told.epoch {
        Some(epoch) => epoch.clone(),
        None => "work of no epoch".to_owned(),
    };
    let mut out = format!("{HEADING}{title}{HEADING:#}\n");
    let operation = format!("{}, {} in all", told.operation, duration(whole));
    out += &labelled(2, "operation", LABEL, &operation, width);
    out += "  on the critical path\n";
    let first = told.segments.first().map_or(0, |of| of.from_ns);
    for segment in shown(&told.segments) {
        out += &line(segment, first, whole, width);
    }
    if told.segments.len() > DRAWN {
        let more = told.segments.len() - DRAWN;
        out += &format!("  {FAINT}and {more} shorter ones{FAINT:#}\n");
    }
    let covered: u64 = told.covered.iter().map(|of| of.to_ns - of.from_ns).sum();
    if let Some(longest) = told.covered.iter().max_by_key(|of| of.to_ns - of.from_ns) {
        let text = format!("{} cost nothing: {}", duration(covered), longest.words);
        out += &labelled(2, "covered", LABEL, &text, width);
    }
    out += &conclusions(told, width);
    out
}

/// The longest segments, in the order of time.
fn shown(segments: &[ToldSegment]) -> Vec<&ToldSegment> {
    let mut all: Vec<&ToldSegment> = segments.iter().collect();
    all.sort_by_key(|of| std::cmp::Reverse(of.to_ns - of.from_ns));
    all.truncate(DRAWN);
    all.sort_by_key(|of| of.from_ns);
    all
}

fn line(segment: &ToldSegment, first: u64, whole: u64, width: usize) -> String {
    let ns = segment.to_ns - segment.from_ns;
    let offset = milliseconds(segment.from_ns - first);
    let style = style(segment.kind);
    let evidence = match &segment.evidence {
        Some(source) => format!("{}   {FAINT}{source}{FAINT:#}", segment.words),
        None => segment.words.clone(),
    };
    if width < NARROW {
        let mut out = String::new();
        let words = format!("{} {evidence}", duration(ns));
        for (number, part) in fit(&words, width.saturating_sub(13)).iter().enumerate() {
            let left = if number == 0 {
                format!("+{offset}")
            } else {
                String::new()
            };
            out += &format!("  {left:<10} {part}\n");
        }
        return out;
    }
    let bar = bar(ns, whole, segment.kind);
    let mut out = String::new();
    let columns = width.saturating_sub(LEFT).max(20);
    for (number, part) in fit(&evidence, columns).iter().enumerate() {
        out += &if number == 0 {
            format!(
                "  {:<9}  {style}{bar}{style:#} {:>9}  {part}\n",
                format!("+{offset}"),
                duration(ns)
            )
        } else {
            format!("{:LEFT$}{part}\n", "")
        };
    }
    out
}

/// Breaks a text into lines that fit, long names too.
fn fit(text: &str, columns: usize) -> Vec<String> {
    let mut out = Vec::new();
    for line in wrap(text, columns) {
        if console::measure_text_width(&line) <= columns || line.contains('\u{1b}') {
            out.push(line);
            continue;
        }
        let characters: Vec<char> = line.chars().collect();
        let pieces = characters.chunks(columns);
        out.extend(pieces.map(|piece| piece.iter().collect::<String>()));
    }
    out
}

fn bar(ns: u64, whole: u64, kind: VerdictKind) -> String {
    let share = (ns as u128 * (BAR as u128) * 8) / u128::from(whole.max(1));
    let eighths = usize::try_from(share).unwrap_or(BAR * 8).min(BAR * 8);
    let (full, part) = (eighths / 8, eighths % 8);
    let fill = if kind == VerdictKind::Unresolved {
        '░'
    } else {
        '█'
    };
    let mut bar: String = std::iter::repeat_n(fill, full).collect();
    if full < BAR && (part > 0 || full == 0) {
        bar.push(['▏', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][part]);
    }
    let pad = BAR - bar.chars().count();
    bar.extend(std::iter::repeat_n(' ', pad));
    bar
}

pub(super) fn style(kind: VerdictKind) -> Style {
    match kind {
        VerdictKind::Executing | VerdictKind::Expected => SOUND,
        VerdictKind::Unresolved => UNSURE,
        _ => FAULT,
    }
}

fn milliseconds(ns: u64) -> String {
    let text = format!("{}.{:03}", ns / 1_000_000, ns / 1_000 % 1_000);
    if text.len() > 8 {
        format!("{}.{:02}s", ns / 1_000_000_000, ns / 10_000_000 % 100)
    } else {
        text
    }
}

/// The claim that explains most, what would falsify it, what would settle the rest, what to try.
fn conclusions(told: &Told, width: usize) -> String {
    let mut out = String::new();
    let delay: u64 = told
        .segments
        .iter()
        .filter(|of| of.kind != VerdictKind::Executing)
        .map(|of| of.to_ns - of.from_ns)
        .sum();
    if let Some((kind, ns)) = largest(told, VerdictKind::is_claim) {
        let percent = (ns * 100).checked_div(delay.max(1)).unwrap_or(0).min(100);
        let share = if kind == VerdictKind::LongerThanItsKind {
            String::new()
        } else {
            format!(", {percent} % of the time before it began")
        };
        let text = format!(
            "{kind}{share}; would be falsified by: {}",
            kind.falsified_by()
        );
        out += &labelled(2, "claim", LABEL, &text, width);
        if let Some(text) = advice(kind) {
            out += &labelled(2, "try", LABEL, text, width);
        }
    } else {
        out += &labelled(2, "claim", LABEL, "none: the evidence allows none", width);
    }
    for (what, ns) in settles(told).into_iter().take(3) {
        let text = format!("{what} would help to settle {}", duration(ns));
        out += &labelled(2, "settle", LABEL, &text, width);
    }
    if let Some((median, runs)) = told.usual {
        let mut text = format!(
            "kernels of its kind take {} (median of {} runs)",
            duration(median),
            thousands(runs as u64)
        );
        if let Some(because) = told.long_because {
            text += &format!(
                "; why this one took longer is not claimed: {}",
                because.words()
            );
        }
        out += &labelled(2, "usual", LABEL, &text, width);
    }
    out
}

fn largest(told: &Told, of: impl Fn(VerdictKind) -> bool) -> Option<(VerdictKind, u64)> {
    let mut sums: std::collections::BTreeMap<VerdictKind, u64> = std::collections::BTreeMap::new();
    for segment in told.segments.iter().filter(|segment| of(segment.kind)) {
        *sums.entry(segment.kind).or_default() += segment.to_ns - segment.from_ns;
    }
    sums.into_iter().max_by_key(|(_, ns)| *ns)
}

/// What would settle the most, first.
fn settles(told: &Told) -> Vec<(&'static str, u64)> {
    let mut sums: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
    for segment in &told.segments {
        for what in &segment.settle {
            *sums.entry(*what).or_default() += segment.to_ns - segment.from_ns;
        }
    }
    let mut sums: Vec<(&'static str, u64)> = sums.into_iter().collect();
    sums.sort_by_key(|(what, ns)| (std::cmp::Reverse(*ns), *what));
    sums
}

/// What to try, where the evidence allows advice.
pub(super) const fn advice(kind: VerdictKind) -> Option<&'static str> {
    Some(match kind {
        VerdictKind::ApplicationLate => "look at what the application did before its ready mark",
        VerdictKind::SubmitterLate => {
            "keep other work off the processor of the thread that launches, or give it a thread of its own"
        }
        VerdictKind::BatchWait => "a shorter batching window, and see what it costs in throughput",
        VerdictKind::HostWork => {
            "do less between launches, prepare the next step earlier, or replay a graph"
        }
        VerdictKind::HostSyncWait => "wait for an event later, or on another thread",
        VerdictKind::Allocation => "allocate before serving, or from a pool in stream order",
        VerdictKind::ApiSlow => {
            "load and compile before serving; keep fewer launches under way at once"
        }
        VerdictKind::SubmitWait => {
            "submit sooner: launches are held back until a batch of them is full"
        }
        VerdictKind::DependencyWait => {
            "look at what it waited for: `--kernel` with that one's name"
        }
        VerdictKind::FalseDependency => {
            "more hardware channels (CUDA_DEVICE_MAX_CONNECTIONS), or fewer streams"
        }
        VerdictKind::DeviceWait => {
            "spread copies of one direction over time, or let them follow each other"
        }
        VerdictKind::LongerThanItsKind => "compare its input with that of a usual run",
        _ => return None,
    })
}
