//! Evidence in words: times, threads, calls, and the chain of epochs above one.

use lineage_core::id::{Attribution, CorrelationId, EpochId, HostNanos, LaunchEpoch, ThreadKey};
use lineage_core::observation::{ApiId, LinkKind, Operation, Scope, Site};

use crate::derive::{Handoffs, LogicalCall, Process, Replay};
use crate::finding::{About, EvidenceLine};

/// Characters of a name that are shown.
const NAME_CHARS: usize = 60;
/// Epochs of a chain that are shown.
const CHAIN: usize = 8;

/// Text from elsewhere, made fit to be shown: short, on one line, and without anything that a
/// terminal or an editor would obey.
pub fn printable(text: &str) -> String {
    let mut shown = String::new();
    for (number, character) in text.chars().enumerate() {
        if number == NAME_CHARS {
            shown.push('…');
            break;
        }
        let obeyed = matches!(character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if character.is_control() || obeyed {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// A signed number of nanoseconds, as milliseconds.
pub(crate) fn milliseconds(ns: i128) -> String {
    let (sign, ns) = (if ns < 0 { "-" } else { "" }, ns.unsigned_abs());
    format!("{sign}{}.{:06} ms", ns / 1_000_000, ns % 1_000_000)
}

/// A duration, in the unit that fits.
pub(crate) fn duration(ns: i128) -> String {
    let ns = ns.unsigned_abs();
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{}.{:03} µs", ns / 1_000, ns % 1_000),
        1_000_000..1_000_000_000 => format!("{}.{:03} ms", ns / 1_000_000, ns / 1_000 % 1_000),
        _ => format!("{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1_000),
    }
}

/// What an attribution says, in words.
pub(crate) fn attribution(attribution: Attribution) -> String {
    match attribution {
        Attribution::None => "no epoch".to_owned(),
        Attribution::Epoch(epoch) => format!("epoch {epoch}"),
        Attribution::Detached(reason) => format!("detached, reason {}", reason.0),
        Attribution::BoundaryWithoutEpoch => "a launch boundary without an epoch".to_owned(),
        Attribution::Foreign(value) => format!("{value:#x}, which is no epoch of ours"),
        _ => "something this build does not know".to_owned(),
    }
}

fn site(site: Option<&Site>) -> String {
    let Some(site) = site else {
        return String::new();
    };
    // A tracing span does not know its column.
    let column = match site.column {
        0 => String::new(),
        column => format!(":{column}"),
    };
    format!(" at {}:{}{column}", printable(&site.file), site.line)
}

fn line(label: &'static str, text: String) -> EvidenceLine {
    EvidenceLine { label, text }
}

pub(crate) fn api(api: Option<&ApiId>) -> String {
    api.map_or_else(
        || "an unknown function".to_owned(),
        |api| printable(&api.to_string()),
    )
}

/// A number as a place in an order.
pub(crate) fn ordinal(number: u32) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

pub(crate) fn about_call(call: &LogicalCall<'_>) -> About {
    About::Call {
        session: call.session,
        correlation: CorrelationId(call.ids.first().map_or(0, |&id| id as u32)),
        api: api(call.api()),
        tid: call.tid,
    }
}

pub(crate) fn about_operation(operation: &Operation) -> About {
    let kind = format!("{:?}", operation.kind).to_lowercase();
    let name = operation.name.as_deref().map(printable);
    About::Operation {
        session: operation.session,
        correlation: operation.correlation,
        name: name.map_or_else(|| kind.clone(), |name| format!("{kind} {name}")),
    }
}

impl Process<'_> {
    /// A time since the first of the recording.
    pub(crate) fn time(&self, at: HostNanos) -> String {
        let origin = self.gathered.origin.unwrap_or_default();
        let since = milliseconds(at.since(origin));
        if since.starts_with('-') {
            since
        } else {
            format!("+{since}")
        }
    }

    fn interval(&self, from: Option<HostNanos>, to: Option<HostNanos>) -> String {
        let shown = |at: Option<HostNanos>| at.map_or_else(|| "?".to_owned(), |at| self.time(at));
        format!("{} … {}", shown(from), shown(to))
    }

    pub(crate) fn thread(&self, key: ThreadKey) -> String {
        let name = self
            .threads
            .get(key)
            .and_then(|thread| thread.name.as_deref());
        let name = name.map(|name| format!(" \"{}\"", printable(name)));
        format!("thread {}{}", key.tid, name.unwrap_or_default())
    }

    fn scope(&self, scope: &Scope) -> String {
        let kind = if scope.boundary {
            "launch boundary"
        } else {
            "scope"
        };
        let task = scope
            .task
            .map(|task| format!(", entered by task {}", task.0));
        let pushed = match (scope.boundary, scope.pushed) {
            (true, false) => ", its id did not reach CUPTI",
            _ => "",
        };
        let within = self.interval(Some(scope.entered), Some(scope.exited));
        let what = match scope.attribution {
            Attribution::BoundaryWithoutEpoch => "no epoch".to_owned(),
            other => attribution(other),
        };
        format!(
            "{kind} {} of {what}, {within}{}{pushed}",
            scope.token.0,
            task.unwrap_or_default()
        )
    }

    /// All that is known of a call.
    pub(crate) fn call_evidence(&self, number: usize) -> Vec<EvidenceLine> {
        let (call, binding) = (&self.calls.calls[number], &self.bindings[number]);
        let thread = match binding.thread {
            Some(key) => self.thread(key),
            None => format!("thread {}, which lineage never saw", call.tid),
        };
        let task = call.task().map(|task| format!(", task {}", task.0));
        let result = call
            .failure()
            .map(|code| format!(", failed with code {code}"));
        let mut lines = vec![line(
            "call",
            format!(
                "{} on {thread}{}, {}{}",
                api(call.api()),
                task.unwrap_or_default(),
                self.interval(call.start, call.end),
                result.unwrap_or_default()
            ),
        )];
        let sources = &binding.sources;
        let named = |all: &[Attribution], none: &str| match all {
            [] => none.to_owned(),
            all => all
                .iter()
                .copied()
                .map(attribution)
                .collect::<Vec<_>>()
                .join(" and "),
        };
        lines.push(line(
            "external",
            named(&sources.external, "no record of our kind"),
        ));
        let boundary = match call.in_boundary() {
            Some(true) => ", inside a launch boundary",
            Some(false) => ", outside any launch boundary",
            None => "",
        };
        let callback = named(&sources.callback, "no callback of ours");
        lines.push(line("callback", format!("{callback}{boundary}")));
        lines.push(line(
            "scope",
            match sources.containment {
                Some(scope) => self.scope(scope),
                None => "none known around the call".to_owned(),
            },
        ));
        if let Some(reachable) = sources.reachable {
            let text = if reachable {
                "recorded handoffs bring the epoch here"
            } else {
                "no recorded handoff brings the epoch to this thread or task"
            };
            lines.push(line("reach", text.to_owned()));
        }
        for &operation in self.operations_of[number].iter().take(3) {
            let operation = self.operations.operations[operation].seen.what;
            lines.push(line("operation", self.operation(operation)));
        }
        if let [_, _, _, rest @ ..] = self.operations_of[number].as_slice()
            && !rest.is_empty()
        {
            lines.push(line("operation", format!("and {} more", rest.len())));
        }
        lines
    }

    pub(crate) fn operation(&self, operation: &Operation) -> String {
        let About::Operation { name, .. } = about_operation(operation) else {
            return String::new();
        };
        format!(
            "{name} on device {} stream {}, {}",
            operation.device,
            operation.stream,
            self.interval(operation.start, operation.end)
        )
    }

    /// The node that an operation names.
    pub(crate) fn node_evidence(&self, operation: &Operation) -> EvidenceLine {
        let node = operation.graph_node;
        let node = node.map_or_else(|| "no node".to_owned(), |node| format!("node {node:#x}"));
        let graph = operation.graph.map(|graph| format!(" of graph {graph}"));
        let text = format!(
            "{node}{}, {}",
            graph.unwrap_or_default(),
            self.operation(operation)
        );
        line("operation", text)
    }

    /// What a call launched.
    pub(crate) fn replay_evidence(&self, replay: &Replay<'_>) -> EvidenceLine {
        let told = replay.told;
        let which = match (replay.exec, replay.number) {
            (Ok(exec), Some(number)) => format!(
                ", the {} of that id, created {}; its launch {number}",
                ordinal(exec.generation),
                self.time(exec.created.at)
            ),
            (Ok(exec), None) => format!(
                ", the {} of that id, created {}",
                ordinal(exec.generation),
                self.time(exec.created.at)
            ),
            (Err(_), _) => ", of which nothing is known".to_owned(),
        };
        line(
            "launched",
            format!(
                "executable graph {}{which}, {}",
                told.exec,
                self.time(told.at)
            ),
        )
    }

    /// An epoch, and those it goes back to.
    pub(crate) fn epoch_evidence(&self, epoch: LaunchEpoch) -> Vec<EvidenceLine> {
        let mut lines = Vec::new();
        let mut next: Vec<(LaunchEpoch, &'static str)> = vec![(epoch, "epoch")];
        let mut shown: Vec<u64> = Vec::new();
        while let Some((epoch, label)) = next.pop() {
            if shown.len() == CHAIN {
                lines.push(line("", "and further epochs above".to_owned()));
                break;
            }
            if shown.contains(&epoch.id.get()) {
                continue;
            }
            shown.push(epoch.id.get());
            lines.push(line(label, self.epoch(epoch)));
            // The way it came last is where a mix-up would have been.
            if let Some(handoff) = self.epochs.handoffs_of(epoch.id).next_back() {
                lines.extend(self.handoff_evidence(handoff));
            }
            for linked in self.epochs.parents(epoch.id).iter().take(CHAIN).rev() {
                let label = match linked.kind {
                    LinkKind::Fork => "forked from",
                    LinkKind::Merge => "serves",
                    LinkKind::Continues => "continues",
                    LinkKind::Retry => "retries",
                    _ => "linked to",
                };
                next.push((linked.from, label));
            }
        }
        lines
    }

    /// The epochs in which the work of this one went on.
    pub(crate) fn successor_evidence(&self, id: EpochId) -> Vec<EvidenceLine> {
        let successors = self.epochs.successors(id).take(CHAIN);
        let went_on = successors.map(|linked| line("went on in", self.epoch(linked.epoch)));
        went_on.collect()
    }

    /// An epoch by its declaration.
    pub(crate) fn epoch(&self, epoch: LaunchEpoch) -> String {
        let Some(declared) = self.epochs.declaration(epoch.id) else {
            return format!("{epoch}, whose declaration is not in the recording");
        };
        format!(
            "{epoch} \"{}\" declared{} on {}, {}",
            printable(&declared.name),
            site(declared.site.as_ref()),
            self.thread(declared.thread),
            self.time(declared.at)
        )
    }

    /// Where a handoff was sent, and where it was received.
    pub(crate) fn handoff_evidence(&self, handoff: &Handoffs<'_>) -> Vec<EvidenceLine> {
        let mut lines = Vec::new();
        if let Some(sent) = handoff.sent {
            let (from, place) = (self.thread(sent.thread), site(sent.site.as_ref()));
            let when = self.time(sent.at);
            lines.push(line("sent", format!("on {from}{place}, {when}")));
        }
        let received = match (handoff.received.first(), handoff.abandoned) {
            (Some(received), _) => {
                format!(
                    "on {}, {}",
                    self.thread(received.thread),
                    self.time(received.at)
                )
            }
            (None, Some(abandoned)) => {
                format!(
                    "nowhere: dropped with its work, {}",
                    self.time(abandoned.at)
                )
            }
            (None, None) => "nowhere, and not dropped with its work either".to_owned(),
        };
        lines.push(line("received", received));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_shown() {
        assert_eq!(printable("decode_gemv<float>"), "decode_gemv<float>");
        assert_eq!(
            printable("a\x1b[2Jb\r\n\u{202e}c"),
            "a\\u{1b}[2Jb\\u{d}\\u{a}\\u{202e}c"
        );
        let long = printable(&"x".repeat(1000));
        assert_eq!(long.chars().count(), 61);
    }

    #[test]
    fn durations_are_shown_in_the_unit_that_fits() {
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(-1_500), "1.500 µs");
        assert_eq!(duration(12_345_678), "12.345 ms");
        assert_eq!(duration(100_000_000_000_000), "100000.000 s");
        assert_eq!(milliseconds(-1_500), "-0.001500 ms");
    }
}
