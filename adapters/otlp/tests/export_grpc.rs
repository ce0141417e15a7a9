//! Over gRPC, all that is offered arrives once, or is counted for what became of it.

mod export_support;

use std::time::{Duration, Instant};

use export_support::grpc::{Collector, Options, taken};
use export_support::{Exporter, SOON, settings};
use lineage_otlp::raw::Settings;
use lineage_otlp::{Compression, ProblemKind, Protocol, Signal};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use prost::Message as _;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// No batch is sealed for its age.
fn flushed(collector: &Collector) -> Settings {
    let mut settings = settings(&collector.endpoint(), Protocol::Grpc);
    settings.batch_delay(Duration::from_secs(3600));
    settings
}

#[test]
fn items_arrive_exactly_once_and_in_batches() {
    let collector = Collector::start(Options::default(), |_, _| taken());
    let mut settings = flushed(&collector);
    settings.batch_items(1000).header("x-tenant", "a b");
    let exporter = Exporter::start(settings);
    assert_eq!(exporter.offer(0..10_500), 10_500);
    let metric = Metric {
        name: "launch.delay".into(),
        ..Metric::default()
    };
    let record = LogRecord {
        severity_text: "WARN".into(),
        ..LogRecord::default()
    };
    exporter
        .pipeline
        .offer(Signal::Metrics, &metric.encode_to_vec());
    exporter
        .pipeline
        .offer(Signal::Logs, &record.encode_to_vec());
    assert!(exporter.pipeline.flush(SOON));
    let counts = exporter.pipeline.counters().snapshot();
    assert_eq!((counts.spans.sent, counts.spans.pending()), (10_500, 0));
    assert_eq!((counts.metrics.sent, counts.log_records.sent), (1, 1));

    let mut numbers = collector.seen.numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..10_500));
    let requests = collector.seen.requests.lock().expect("no panic");
    assert_eq!(requests.len(), 11);
    for (request, metadata) in &*requests {
        let scope = &request.resource_spans[0].scope_spans[0];
        assert!(scope.spans.len() <= 1000);
        assert_eq!(scope.schema_url, "https://example.com/schema/1");
        assert_eq!(request.resource_spans[0].schema_url, scope.schema_url);
        assert_eq!(metadata.get("x-tenant").expect("a header"), "a b");
        let agent = metadata.get("user-agent").expect("a header");
        assert!(agent.to_str().expect("text").starts_with("lineage-otlp/"));
    }
    let metrics = collector.seen.metrics.lock().expect("no panic");
    assert_eq!(
        metrics[0].resource_metrics[0].scope_metrics[0].metrics,
        [metric]
    );
    let logs = collector.seen.logs.lock().expect("no panic");
    assert_eq!(logs[0].resource_logs[0].scope_logs[0].log_records, [record]);

    let (counts, problems) = exporter.shutdown(Duration::from_secs(5));
    assert_eq!(counts.spans.sent, 10_500);
    assert_eq!((counts.spans.retried, counts.spans.lost.total()), (0, 0));
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn what_was_not_flushed_is_sent_by_the_shutdown() {
    let collector = Collector::start(Options::default(), |_, _| taken());
    let exporter = Exporter::start(flushed(&collector));
    exporter.offer(0..10);
    let (counts, problems) = exporter.shutdown(SOON);
    assert_eq!(counts.spans.sent, 10);
    assert_eq!(collector.seen.numbers(), Vec::from_iter(0..10));
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn a_batch_that_is_not_full_is_sent_when_it_is_old_enough() {
    let collector = Collector::start(Options::default(), |_, _| taken());
    let exporter = Exporter::start(settings(&collector.endpoint(), Protocol::Grpc));
    for sent in 1..4 {
        exporter.offer(sent..sent + 1);
        export_support::until(&exporter, "the batch", |counts| counts.sent == sent);
    }
    let (counts, _) = exporter.shutdown(SOON);
    assert_eq!(counts.requests, 3);
}

#[test]
fn a_collector_that_is_exhausted_is_asked_again_if_it_says_when_and_else_has_refused() {
    let with_info = |seconds| {
        let details = ErrorDetails::with_retry_info(Some(Duration::from_millis(seconds)));
        Status::with_error_details(Code::ResourceExhausted, "too many", details)
    };
    for (with_delay, outcome) in [(true, (10, 0)), (false, (0, 10))] {
        let collector = Collector::start(Options::default(), move |before, _| match before {
            0 if with_delay => Err(with_info(300)),
            0 => Err(Status::resource_exhausted("too many")),
            _ => taken(),
        });
        let exporter = Exporter::start(flushed(&collector));
        let before = Instant::now();
        exporter.offer(0..10);
        assert!(exporter.pipeline.flush(SOON));
        assert!(!with_delay || before.elapsed() >= Duration::from_millis(300));
        let (counts, problems) = exporter.shutdown(SOON);
        assert_eq!((counts.spans.sent, counts.spans.refused), outcome);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].what.ends_with("RESOURCE_EXHAUSTED: too many"),
            "{}",
            problems[0]
        );
    }
}

#[test]
fn what_may_succeed_later_is_sent_again_and_what_may_not_is_refused() {
    for (code, again) in [
        (Code::Unavailable, true),
        (Code::DeadlineExceeded, true),
        (Code::DataLoss, true),
        (Code::InvalidArgument, false),
        (Code::Unauthenticated, false),
        (Code::Internal, false),
    ] {
        let collector = Collector::start(Options::default(), move |before, _| match before {
            0 => Err(Status::new(code, "été")),
            _ => taken(),
        });
        let exporter = Exporter::start(flushed(&collector));
        exporter.offer(0..10);
        assert!(exporter.pipeline.flush(SOON));
        let (counts, problems) = exporter.shutdown(SOON);
        let spans = counts.spans;
        let (sent, refused) = if again { (10, 0) } else { (0, 10) };
        assert_eq!(
            (spans.sent, spans.refused, spans.retried),
            (sent, refused, sent)
        );
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].what.ends_with(": été"), "{}", problems[0]);
    }
}

#[test]
fn a_message_over_the_collectors_limit_is_cut_in_two_until_it_is_not() {
    let options = Options {
        most_bytes: Some(1000),
        ..Options::default()
    };
    let collector = Collector::start(options, |_, _| taken());
    let exporter = Exporter::start(flushed(&collector));
    exporter.offer(0..200);
    assert!(exporter.pipeline.flush(SOON));
    let (counts, problems) = exporter.shutdown(SOON);
    assert_eq!((counts.spans.sent, counts.spans.lost.total()), (200, 0));
    assert!(problems.is_empty(), "{problems:?}");
    let mut numbers = collector.seen.numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..200));
}

#[test]
fn what_a_collector_refuses_of_a_request_counts_as_refused() {
    let collector = Collector::start(Options::default(), |_, _| {
        Ok(ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans: 4,
                error_message: "four are too old".into(),
            }),
        })
    });
    let exporter = Exporter::start(flushed(&collector));
    exporter.offer(0..10);
    let (counts, problems) = exporter.shutdown(SOON);
    assert_eq!((counts.spans.sent, counts.spans.refused), (6, 4));
    assert_eq!(problems[0].kind, ProblemKind::PartlyRefused);
}

#[test]
fn gzip_is_what_the_collector_gets_if_it_was_asked_for() {
    let collector = Collector::start(Options::default(), |_, _| taken());
    let mut settings = flushed(&collector);
    settings.compression(Compression::Gzip);
    let exporter = Exporter::start(settings);
    exporter.offer(0..1000);
    let (counts, problems) = exporter.shutdown(SOON);
    assert!(
        problems.is_empty(),
        "the answer is compressed, too: {problems:?}"
    );
    assert_eq!(counts.spans.sent, 1000);
    let mut numbers = collector.seen.numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..1000));
    let requests = collector.seen.requests.lock().expect("no panic");
    let encoding = requests[0].1.get("grpc-encoding");
    assert_eq!(encoding.expect("a header"), "gzip");
}
