//! What went wrong, said once per kind and not per batch.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::Signal;
use super::counts::ExportCounters;

/// How often the same kind is said.
const AT_MOST_EVERY: Duration = Duration::from_secs(60);

/// How much of what a server says is repeated.
const MOST_CHARACTERS: usize = 300;

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProblemKind {
    /// No connection: the name is not known, the port is closed, or the connection broke. Attempts go on.
    Unreachable,
    /// A connection, but no agreement on TLS: certificates, names, or one side that does not speak it. Attempts go on.
    Tls,
    /// No complete answer in time. Attempts go on.
    TimedOut,
    /// What answered does not speak the protocol. Attempts go on.
    NotOtlp,
    /// The collector says that it cannot take more now. Attempts go on.
    Unavailable,
    /// The collector refused a request for good; the status of HTTP or gRPC that it gave.
    Refused(u16),
    /// The collector took a request and refused some of its items, or warned.
    PartlyRefused,
    /// The collector took a request, and its answer could not be read.
    UnreadableAnswer,
    /// Attempts for a batch went on failing for as long as they are repeated: its items are lost.
    GivenUp,
    /// The queue is full: new items are lost.
    QueueFull,
    /// An item that is larger than a message may be: it is lost.
    TooLarge,
    /// Not all was acknowledged when the shutdown's deadline passed: it is lost.
    LostAtShutdown,
    /// The exporter's own thread panicked: what was on its way is lost, and it goes on.
    Panicked,
    /// A setting is not followed, and the export goes on without it.
    NotFollowed,
}

/// Something that went wrong with the export, for the hook given to `on_problem`.
///
/// As displayed it is one line: what happened, to which endpoint, and what comes next.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Problem {
    /// The kind, of which at most one a minute is told.
    pub kind: ProblemKind,
    /// Whose export it was.
    pub signal: Signal,
    /// To where.
    pub endpoint: String,
    /// What happened.
    pub what: String,
    /// What the exporter does, or what a person can do.
    pub next: String,
    /// Items of this signal that were refused or lost since the start.
    pub not_delivered: u64,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            signal,
            endpoint,
            what,
            next,
            not_delivered,
            ..
        } = self;
        write!(f, "lineage-otlp: export of {signal}")?;
        if !endpoint.is_empty() {
            write!(f, " to {endpoint}")?;
        }
        write!(f, ": {what}; {next}")?;
        if *not_delivered > 0 {
            write!(
                f,
                " ({not_delivered} {} not delivered so far)",
                signal.items()
            )?;
        }
        Ok(())
    }
}

/// Who is told. Called on the exporter's thread.
#[derive(Clone)]
pub(crate) struct Hook(Arc<dyn Fn(&Problem) + Send + Sync>);

impl Hook {
    pub(crate) fn new(hook: impl Fn(&Problem) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hook))
    }
}

impl Default for Hook {
    fn default() -> Self {
        Self::new(|problem| eprintln!("{problem}"))
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

/// One thing that went wrong, as its finder knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) kind: ProblemKind,
    pub(crate) what: String,
    /// In place of what is said for its kind.
    pub(crate) advice: Option<&'static str>,
}

impl Trouble {
    pub(crate) fn new(kind: ProblemKind, what: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            advice: None,
        }
    }

    pub(crate) fn with_advice(mut self, advice: &'static str) -> Self {
        self.advice = Some(advice);
        self
    }
}

/// Says troubles, the same kind at most once a minute.
#[derive(Debug)]
pub(crate) struct Problems {
    hook: Hook,
    counters: ExportCounters,
    endpoints: [String; 3],
    said: Mutex<HashMap<(ProblemKind, Option<Signal>), Instant>>,
}

impl Problems {
    pub(crate) fn new(hook: Hook, counters: ExportCounters, endpoints: [String; 3]) -> Self {
        Self {
            hook,
            counters,
            endpoints,
            said: Mutex::default(),
        }
    }

    pub(crate) fn say(&self, signal: Signal, trouble: &Trouble) {
        self.note(signal, &trouble.what);
        self.tell(signal, trouble);
    }

    /// Remembers what happened as the last thing that went wrong, and tells nobody.
    pub(crate) fn note(&self, signal: Signal, what: &str) {
        let endpoint = &self.endpoints[signal.index()];
        self.counters
            .error(format!("{signal} to {endpoint}: {what}"));
    }

    /// Tells of a setting that is not followed, with which nothing went wrong.
    pub(crate) fn warn(&self, what: &str) {
        self.tell(
            Signal::Traces,
            &Trouble::new(ProblemKind::NotFollowed, what),
        );
    }

    fn tell(&self, signal: Signal, trouble: &Trouble) {
        let kind = trouble.kind;
        let endpoint = &self.endpoints[signal.index()];
        if !self.is_due(kind, signal) {
            return;
        }
        let counts = self.counters.snapshot();
        let counts = match signal {
            Signal::Traces => counts.spans,
            Signal::Metrics => counts.metrics,
            Signal::Logs => counts.log_records,
        };
        let problem = Problem {
            kind,
            signal,
            endpoint: endpoint.clone(),
            what: trouble.what.clone(),
            next: trouble.advice.unwrap_or_else(|| advice(kind)).into(),
            not_delivered: counts.refused + counts.lost.total(),
        };
        // The application's own code: its panic is not ours, and the export goes on.
        let _ = catch_unwind(AssertUnwindSafe(|| (self.hook.0)(&problem)));
    }

    /// A collector that is gone is gone for all signals; what it refuses, it refuses one by one.
    fn is_due(&self, kind: ProblemKind, signal: Signal) -> bool {
        use ProblemKind::{PartlyRefused, Refused, UnreadableAnswer};
        let own = matches!(kind, Refused(_) | PartlyRefused | UnreadableAnswer);
        let key = (kind, own.then_some(signal));
        let now = Instant::now();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let due = said
            .get(&key)
            .is_none_or(|before| now.duration_since(*before) >= AT_MOST_EVERY);
        if due {
            said.insert(key, now);
        }
        due
    }
}

fn advice(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Unreachable
        | ProblemKind::TimedOut
        | ProblemKind::NotOtlp
        | ProblemKind::Unavailable
        | ProblemKind::Tls => "trying again, and keeping what waits as far as the queue holds",
        ProblemKind::Refused(401 | 403) => {
            "set the credentials that the collector asks for in OTEL_EXPORTER_OTLP_HEADERS"
        }
        ProblemKind::Refused(404) => {
            "OTLP over HTTP is at the path /v1/traces, /v1/metrics or /v1/logs, which OTEL_EXPORTER_OTLP_ENDPOINT \
             gets by itself and an endpoint for one signal does not"
        }
        ProblemKind::Refused(_) => "not tried again, since the same would come of it",
        ProblemKind::PartlyRefused => "the rest was taken",
        ProblemKind::UnreadableAnswer => "taken as acknowledged: is a collector at this endpoint?",
        ProblemKind::GivenUp => "its items are lost",
        ProblemKind::QueueFull => {
            "new items are lost until there is room: is the collector slow or gone? a larger queue bridges longer gaps"
        }
        ProblemKind::TooLarge => "it is lost",
        ProblemKind::LostAtShutdown => "a longer time for the shutdown may save them",
        ProblemKind::NotFollowed => "the export goes on as if it were not set",
        ProblemKind::Panicked => {
            "what was on its way is lost, and the export goes on: this is a bug in lineage-otlp"
        }
    }
}

/// Kinds that came up on threads that may not be kept waiting, and whose they were.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    bits: AtomicU32,
    noted: Notify,
}

impl Pending {
    const KINDS: [ProblemKind; 2] = [ProblemKind::QueueFull, ProblemKind::TooLarge];

    pub(crate) fn note(&self, kind: ProblemKind, signal: Signal) {
        if let Some(index) = Self::KINDS.iter().position(|known| *known == kind) {
            let bit = 1 << (index * Signal::ALL.len() + signal.index());
            // Looked at first, because it is noted again and again while it lasts.
            if self.bits.load(Relaxed) & bit == 0 && self.bits.fetch_or(bit, Relaxed) & bit == 0 {
                self.noted.notify_one();
            }
        }
    }

    /// Until something is noted.
    pub(crate) async fn noted(&self) {
        self.noted.notified().await;
    }

    /// All that was noted since the last call.
    pub(crate) fn take(&self) -> impl Iterator<Item = (Signal, Trouble)> {
        let bits = self.bits.swap(0, Relaxed);
        let all = Self::KINDS.into_iter().enumerate();
        all.flat_map(move |(index, kind)| {
            let of = move |signal: Signal| {
                let bit = 1 << (index * Signal::ALL.len() + signal.index());
                let what = match kind {
                    ProblemKind::QueueFull => "the queue is full",
                    _ => "one item alone is larger than a request may be",
                };
                (bits & bit != 0).then(|| (signal, Trouble::new(kind, what)))
            };
            Signal::ALL.into_iter().filter_map(of)
        })
    }
}

/// What a server said, fit to be shown: it is a stranger's text.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    for character in text.trim().chars().take(MOST_CHARACTERS) {
        if character.is_control() {
            shown.push(' ');
        } else {
            shown.push(character);
        }
    }
    if text.trim().chars().nth(MOST_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_kind_is_said_once_and_a_panic_of_the_hook_is_no_ones_end() {
        let (tell, told) = mpsc::channel();
        let hook = Hook::new(move |problem| {
            tell.send(problem.to_string()).expect("the test listens");
            panic!("the application's own");
        });
        let counters = ExportCounters::default();
        counters.of(Signal::Logs).refused.add(7);
        let endpoints = ["http://a", "http://b", "http://c"].map(String::from);
        let problems = Problems::new(hook, counters.clone(), endpoints);
        for kind in [ProblemKind::Refused(404), ProblemKind::Unreachable] {
            for signal in [Signal::Traces, Signal::Logs, Signal::Traces] {
                problems.say(signal, &Trouble::new(kind, "it happened"));
            }
        }
        let told: Vec<String> = told.try_iter().collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].starts_with("lineage-otlp: export of traces to http://a: it happened; "));
        assert!(told[1].contains("logs to http://c") && told[1].contains("/v1/logs"));
        assert!(told[1].ends_with(" (7 log records not delivered so far)"));
        assert!(told[2].contains("traces") && told[2].contains("trying again"));
        let last = counters.snapshot().last_error.expect("an error");
        assert_eq!(last.text, "traces to http://a: it happened");
    }

    #[test]
    fn what_may_not_be_said_at_once_is_said_later() {
        let pending = Pending::default();
        pending.note(ProblemKind::TooLarge, Signal::Logs);
        pending.note(ProblemKind::QueueFull, Signal::Traces);
        pending.note(ProblemKind::QueueFull, Signal::Traces);
        let taken: Vec<_> = pending.take().map(|(s, it)| (s, it.kind)).collect();
        let queue_full = (Signal::Traces, ProblemKind::QueueFull);
        assert_eq!(taken, [queue_full, (Signal::Logs, ProblemKind::TooLarge)]);
        assert_eq!(pending.take().count(), 0);
    }

    #[test]
    fn a_strangers_text_has_an_end_and_no_control_characters() {
        assert_eq!(shown(" no\u{1b}[31m\nroom "), "no [31m room");
        assert_eq!(shown(&"é".repeat(301)), format!("{}…", "é".repeat(300)));
    }
}
