//! Collectors that do as a test says, and an exporter that fails fast.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod certificates;
pub(crate) mod grpc;
pub(crate) mod http;

use std::sync::mpsc;
use std::time::{Duration, Instant};

use lineage_otlp::raw::{Origin, Pipeline, Settings};
use lineage_otlp::{ExportCounts, Problem, Protocol, Signal, SignalCounts};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// Long enough for anything that is to happen, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(10);

pub(crate) struct Exporter {
    pub(crate) pipeline: Pipeline,
    problems: mpsc::Receiver<Problem>,
    begun: Instant,
}

pub(crate) fn settings(endpoint: &str, protocol: Protocol) -> Settings {
    let mut settings = Settings::default();
    settings
        .endpoint(endpoint)
        .protocol(protocol)
        .timeout(Duration::from_millis(1500))
        .batch_delay(Duration::from_millis(10))
        .backoff(Duration::from_millis(20), Duration::from_millis(100));
    settings
}

pub(crate) fn origin() -> Origin {
    Origin {
        resource: Resource::default(),
        schema_url: "https://example.com/schema/1".into(),
        ..Origin::default()
    }
}

pub(crate) fn span(number: u64) -> Vec<u8> {
    let span = Span {
        trace_id: vec![7; 16],
        span_id: number.to_be_bytes().to_vec(),
        name: "kernel".into(),
        start_time_unix_nano: number,
        end_time_unix_nano: number + 1,
        ..Span::default()
    };
    span.encode_to_vec()
}

impl Exporter {
    pub(crate) fn start(mut settings: Settings) -> Self {
        let (tell, problems) = mpsc::channel();
        settings.on_problem(move |problem| {
            eprintln!("{problem}");
            let _ = tell.send(problem.clone());
        });
        Self {
            pipeline: Pipeline::start(&settings, &origin()).expect("settings that can be used"),
            problems,
            begun: Instant::now(),
        }
    }

    /// Offers spans with these numbers; how many were taken.
    pub(crate) fn offer(&self, numbers: std::ops::Range<u64>) -> u64 {
        let taken = numbers.filter(|it| self.pipeline.offer(Signal::Traces, &span(*it)));
        taken.count() as u64
    }

    /// The next thing that is said to have gone wrong.
    pub(crate) fn problem(&self) -> Problem {
        self.problems.recv_timeout(SOON).expect("a problem is said")
    }

    /// Shuts down, checks that this takes no longer than it may and that the books are right; and what else was said.
    pub(crate) fn shutdown(self, within: Duration) -> (ExportCounts, Vec<Problem>) {
        let before = Instant::now();
        let counts = self.pipeline.shutdown(within);
        let took = before.elapsed();
        assert!(
            took <= within + Duration::from_millis(500),
            "the shutdown took {took:?}"
        );
        assert_adds_up(&counts);
        (counts, self.problems.try_iter().collect())
    }
}

pub(crate) fn assert_adds_up(counts: &ExportCounts) {
    for signal in [&counts.spans, &counts.metrics, &counts.log_records] {
        let settled = signal.sent + signal.refused + signal.lost.total();
        assert_eq!(signal.offered, settled, "{counts:?}");
    }
    assert_eq!(counts.queue_bytes, 0, "{counts:?}");
}

/// Waits until something holds of the spans' counts.
pub(crate) fn until(
    exporter: &Exporter,
    what: &str,
    holds: impl Fn(&SignalCounts) -> bool,
) -> SignalCounts {
    let before = Instant::now();
    loop {
        let counts = exporter.pipeline.counters().snapshot().spans;
        if holds(&counts) {
            return counts;
        }
        assert!(before.elapsed() < SOON, "{what} did not come: {counts:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
