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
/// Segments that are drawn of one life in the order of time; more are summed by what they went into,
/// and as many sums are drawn.
const DRAWN: usize = 12;

pub(super) fn life(told: &Told, width: usize) -> String {
    let whole = told.whole_ns;
    // What people look for first: whose it is, or else what it is.
    let title = told.epoch.as_ref().unwrap_or(&told.operation);
    let mut out = format!("{HEADING}{}{HEADING:#}\n", wrap(title, width).join("\n"));
    let in_all = format!("{} in all", duration(whole));
    out += &match told.epoch {
        Some(_) => {
            let operation = format!("{}, {in_all}", told.operation);
            labelled(2, "operation", LABEL, &operation, width)
        }
        None => labelled(2, "of", LABEL, &format!("no epoch, {in_all}"), width),
    };
    let first = told.segments.first().map_or(0, |of| of.from_ns);
    if told.segments.len() <= DRAWN {
        out += "  on the critical path\n";
        for segment in &told.segments {
            let offset = format!("+{}", milliseconds(segment.from_ns - first));
            let ns = segment.to_ns - segment.from_ns;
            out += &line(segment, &offset, ns, whole, width);
        }
    } else {
        let stretches = thousands(told.segments.len() as u64);
        let text = format!("on the critical path, {stretches} stretches by what they went into");
        out += &format!("  {text}\n");
        let mut sums = by_words(&told.segments);
        let more = sums.split_off(sums.len().min(DRAWN));
        for (segment, count, ns) in sums {
            let times = format!("{} x", thousands(count));
            out += &line(segment, &times, ns, whole, width);
        }
        if !more.is_empty() {
            let rest: u64 = more.iter().map(|(_, _, ns)| *ns).sum();
            let text = format!("and {} more, {} in all", more.len(), duration(rest));
            out += &format!("  {FAINT}{text}{FAINT:#}\n");
        }
    }
    let covered: u64 = told.covered.iter().map(|of| of.to_ns - of.from_ns).sum();
    if let Some(longest) = told.covered.iter().max_by_key(|of| of.to_ns - of.from_ns) {
        let text = format!(
            "{} of the host's time cost nothing: work before it was at the device; the longest, {}: {}",
            duration(covered),
            duration(longest.to_ns - longest.from_ns),
            longest.words
        );
        out += &labelled(2, "covered", LABEL, &text, width);
    }
    out += &conclusions(told, width);
    out
}

/// Segments that say the same as one, with how many they are and how long together; the longest
/// first.
fn by_words(segments: &[ToldSegment]) -> Vec<(&ToldSegment, u64, u64)> {
    let mut sums: Vec<(&ToldSegment, u64, u64)> = Vec::new();
    for segment in segments {
        let ns = segment.to_ns - segment.from_ns;
        match sums.iter_mut().find(|(of, _, _)| of.words == segment.words) {
            Some((_, count, sum)) => {
                *count += 1;
                *sum += ns;
            }
            None => sums.push((segment, 1, ns)),
        }
    }
    sums.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
    sums
}

/// A line of the drawing: when or how often it was, how long, and what it went into.
fn line(segment: &ToldSegment, left: &str, ns: u64, whole: u64, width: usize) -> String {
    let style = style(segment.kind);
    let evidence = match &segment.evidence {
        Some(source) => format!("{}  {FAINT}[{source}]{FAINT:#}", segment.words),
        None => segment.words.clone(),
    };
    if width < NARROW {
        let mut out = String::new();
        let words = format!("{} {evidence}", duration(ns));
        for (number, part) in fit(&words, width.saturating_sub(13)).iter().enumerate() {
            let left = if number == 0 { left } else { "" };
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
                "  {left:<9}  {style}{bar}{style:#} {:>9}  {part}\n",
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
    let percent = |ns: u64| (ns * 100).checked_div(delay.max(1)).unwrap_or(0).min(100);
    let claim = largest(told, VerdictKind::is_claim);
    if let Some((kind, ns)) = claim
        && (percent(ns) >= 1 || kind == VerdictKind::LongerThanItsKind)
    {
        let percent = percent(ns);
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
        let text = match claim {
            Some((kind, ns)) => format!(
                "none that explains even 1 % of the time before it began ({kind}: {})",
                duration(ns)
            ),
            None => "none: the evidence allows none".to_owned(),
        };
        out += &labelled(2, "claim", LABEL, &text, width);
    }
    for (what, ns) in settles(told).into_iter().take(3) {
        let text = format!("{what} would help to settle {}", duration(ns));
        out += &labelled(2, "settle", LABEL, &text, width);
    }
    if let Some((median, runs)) = told.usual {
        let this_one = told.ran_ns.map_or_else(String::new, |ns| {
            format!(", this one took {}", duration(ns))
        });
        let mut text = format!(
            "kernels of its kind take {} (median of {} runs){this_one}",
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
            "give what waited a stream of higher priority, make what ran smaller, or spread copies of one direction over time"
        }
        VerdictKind::LongerThanItsKind => "compare its input with that of a usual run",
        _ => return None,
    })
}
