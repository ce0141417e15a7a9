//! Over HTTP, each answer of a collector has the outcome that OTLP gives it, is counted, and is said once.

mod export_support;

use std::io::Read as _;
use std::time::{Duration, Instant, SystemTime};

use export_support::http::{Do, Request, Server, answer, taken};
use export_support::{Exporter, SOON, settings};
use lineage_otlp::{Compression, ProblemKind, Protocol, Signal};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message as _;

/// No batch is sealed for its age.
const NEVER: Duration = Duration::from_secs(3600);

const HTTP: Protocol = Protocol::HttpProtobuf;

fn refuse(status: &str) -> Do {
    Do::Answer(answer(status, &[], b"because"))
}

/// Spans of an exporter that meets this server: how many were sent, refused and lost, in requests how many.
fn outcome(
    script: impl Fn(usize, &Request) -> Do + Send + Sync + 'static,
) -> (u64, u64, u64, Vec<lineage_otlp::Problem>, Server) {
    let server = Server::start(script);
    let mut settings = settings(&server.endpoint(), HTTP);
    settings.batch_delay(NEVER);
    let exporter = Exporter::start(settings);
    exporter.offer(0..10);
    exporter.pipeline.flush(SOON);
    exporter.offer(10..20);
    exporter.pipeline.flush(SOON);
    let (counts, problems) = exporter.shutdown(SOON);
    let spans = counts.spans;
    (
        spans.sent,
        spans.refused,
        spans.lost.total(),
        problems,
        server,
    )
}

#[test]
fn items_arrive_exactly_once_with_headers_at_the_path_of_their_signal() {
    let server = Server::start(|_, _| taken());
    let mut settings = settings(&server.endpoint(), HTTP);
    settings.header("authorization", "Bearer secret");
    let exporter = Exporter::start(settings);
    exporter.offer(0..5000);
    exporter.pipeline.offer(Signal::Metrics, b"");
    exporter.pipeline.offer(Signal::Logs, b"");
    assert!(exporter.pipeline.flush(SOON));
    let (counts, problems) = exporter.shutdown(SOON);
    assert_eq!(
        (
            counts.spans.sent,
            counts.metrics.sent,
            counts.log_records.sent
        ),
        (5000, 1, 1)
    );
    assert!(problems.is_empty(), "{problems:?}");
    let (mut numbers, mut lines) = (Vec::new(), Vec::new());
    for request in server.seen() {
        assert_eq!(
            request.header("content-type"),
            Some("application/x-protobuf")
        );
        assert_eq!(request.header("authorization"), Some("Bearer secret"));
        assert_eq!(request.header("content-encoding"), None);
        assert_eq!(request.header("host"), Some(&*server.address.to_string()));
        if request.line.contains("traces") {
            numbers.extend(request.numbers());
        }
        lines.push(request.line);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..5000));
    lines.sort();
    lines.dedup();
    let expected = ["logs", "metrics", "traces"].map(|it| format!("POST /v1/{it} HTTP/1.1"));
    assert_eq!(lines, expected);
}

#[test]
fn gzip_is_really_gzip() {
    let server = Server::start(|_, _| taken());
    let mut settings = settings(&server.endpoint(), HTTP);
    settings.compression(Compression::Gzip).batch_delay(NEVER);
    let exporter = Exporter::start(settings);
    exporter.offer(0..1000);
    let (counts, _) = exporter.shutdown(SOON);
    assert_eq!(counts.spans.sent, 1000);
    let mut request = server.seen().remove(0);
    assert_eq!(request.header("content-encoding"), Some("gzip"));
    let mut plain = Vec::new();
    let read = flate2::read::GzDecoder::new(&*request.body).read_to_end(&mut plain);
    read.expect("gzip");
    assert!(plain.len() > 2 * request.body.len());
    request.body = plain;
    assert_eq!(request.numbers(), Vec::from_iter(0..1000));
}

#[test]
fn a_refusal_is_not_tried_again_and_said_once_with_what_to_do() {
    for (status, code, advice) in [
        ("400 Bad Request", 400, "not tried again"),
        ("401 Unauthorized", 401, "OTEL_EXPORTER_OTLP_HEADERS"),
        ("403 Forbidden", 403, "OTEL_EXPORTER_OTLP_HEADERS"),
        ("404 Not Found", 404, "/v1/traces"),
        ("500 Internal Server Error", 500, "not tried again"),
        ("301 Moved Permanently", 301, "redirects are not followed"),
    ] {
        let (sent, refused, lost, problems, server) = outcome(move |_, _| refuse(status));
        assert_eq!((sent, refused, lost), (0, 20, 0), "{status}");
        assert_eq!(server.seen().len(), 2);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].kind, ProblemKind::Refused(code));
        let said = problems[0].to_string();
        let endpoint = format!("{}/v1/traces", server.endpoint());
        for part in [status, advice, &endpoint] {
            assert!(said.contains(part), "{said} lacks {part}");
        }
        // Of the first request: the second is not said.
        assert_eq!(problems[0].not_delivered, 10);
    }
}

#[test]
fn a_collector_that_is_busy_is_asked_again() {
    for status in [
        "429 Too Many Requests",
        "502 Bad Gateway",
        "503 Service Unavailable",
        "504 Gateway Timeout",
    ] {
        let script = move |before, _: &Request| if before == 0 { refuse(status) } else { taken() };
        let (sent, refused, lost, problems, server) = outcome(script);
        assert_eq!((sent, refused, lost), (20, 0, 0), "{status}");
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].kind, ProblemKind::Unavailable);
        let seen = server.seen();
        assert_eq!(seen.len(), 3);
        assert_eq!(seen[0].body, seen[1].body, "the very same bytes");
    }
}

#[test]
fn retry_after_is_obeyed_in_seconds_and_as_a_date() {
    for as_date in [false, true] {
        let server = Server::start(move |before, _| {
            let date = SystemTime::now() + Duration::from_secs(2);
            let when = match as_date {
                true => httpdate::fmt_http_date(date),
                false => "1".into(),
            };
            match before {
                0 => Do::Answer(answer(
                    "429 Too Many Requests",
                    &[("retry-after", &when)],
                    b"",
                )),
                _ => taken(),
            }
        });
        let exporter = Exporter::start(settings(&server.endpoint(), HTTP));
        let before = Instant::now();
        exporter.offer(0..1);
        assert!(exporter.pipeline.flush(SOON));
        // A date has whole seconds, so that up to one of the two is cut off.
        assert!(
            before.elapsed() >= Duration::from_millis(950),
            "{:?}",
            before.elapsed()
        );
        assert!(before.elapsed() < Duration::from_secs(5));
        let (counts, _) = exporter.shutdown(SOON);
        assert_eq!(
            (counts.spans.sent, counts.spans.retried, counts.requests),
            (1, 1, 2)
        );
    }
}

#[test]
fn a_retry_after_of_nothing_is_no_reason_to_hurry() {
    let server = Server::start(|before, _| match before {
        0..5 => Do::Answer(answer(
            "503 Service Unavailable",
            &[("retry-after", "0")],
            b"",
        )),
        _ => taken(),
    });
    let exporter = Exporter::start(settings(&server.endpoint(), HTTP));
    let before = Instant::now();
    exporter.offer(0..1);
    assert!(exporter.pipeline.flush(SOON));
    // At least half of 20, 40, 80, 100 and 100 ms.
    assert!(before.elapsed() >= Duration::from_millis(170));
    let (counts, _) = exporter.shutdown(SOON);
    assert_eq!((counts.spans.sent, counts.requests), (1, 6));
}

fn busy_for(seconds: &str) -> Do {
    let headers = [("retry-after", seconds)];
    Do::Answer(answer("503 Service Unavailable", &headers, b""))
}

#[test]
fn a_retry_after_beyond_the_time_that_a_batch_has_leaves_it_one_more_attempt() {
    for comes_back in [true, false] {
        let server = Server::start(move |before, _| match before {
            0 => busy_for("100000"),
            _ if comes_back => taken(),
            _ => busy_for("100000"),
        });
        let mut settings = settings(&server.endpoint(), HTTP);
        settings.give_up_after(Duration::from_millis(1200));
        let exporter = Exporter::start(settings);
        let before = Instant::now();
        exporter.offer(0..3);
        assert!(exporter.pipeline.flush(SOON));
        // A quarter of its time is left to the last attempt.
        assert!(before.elapsed() >= Duration::from_millis(900));
        let (counts, _) = exporter.shutdown(Duration::ZERO);
        let (sent, given_up) = if comes_back { (3, 0) } else { (0, 3) };
        assert_eq!(
            (counts.spans.sent, counts.spans.lost.given_up),
            (sent, given_up)
        );
        assert_eq!(counts.requests, 2);
    }
}

#[test]
fn a_retry_after_beyond_the_shutdowns_deadline_leaves_one_attempt_before_it() {
    for comes_back in [true, false] {
        let server = Server::start(move |before, _| match before {
            0 => busy_for("60"),
            _ if comes_back => taken(),
            _ => busy_for("60"),
        });
        let exporter = Exporter::start(settings(&server.endpoint(), HTTP));
        exporter.offer(0..3);
        exporter.problem();
        let before = Instant::now();
        let (counts, problems) = exporter.shutdown(Duration::from_secs(2));
        // The last quarter of the time is for it.
        assert!(before.elapsed() >= Duration::from_millis(1450));
        let (sent, lost) = if comes_back { (3, 0) } else { (0, 3) };
        assert_eq!(
            (counts.spans.sent, counts.spans.lost.shutdown),
            (sent, lost)
        );
        assert_eq!(counts.requests, 2);
        if let [problem] = &problems[..] {
            assert_eq!(problem.kind, ProblemKind::LostAtShutdown);
            assert!(problem.what.contains("; last seen: "), "{problem}");
            assert!(problem.what.contains("503"), "{problem}");
        }
        assert_eq!(problems.is_empty(), comes_back, "{problems:?}");
    }
}

#[test]
fn a_shutdown_does_not_hammer_a_collector_that_wishes_to_be_left_alone() {
    let server = Server::start(|_, _| busy_for("60"));
    let mut settings = settings(&server.endpoint(), HTTP);
    settings.batch_items(1);
    let exporter = Exporter::start(settings);
    exporter.offer(0..20);
    exporter.problem();
    let (counts, _) = exporter.shutdown(Duration::from_secs(1));
    assert_eq!(counts.spans.lost.shutdown, 20);
    // Two senders, each before it is told and once more at the end.
    assert!(counts.requests <= 4, "{counts:?}");
}

#[test]
fn a_request_that_is_too_large_is_cut_in_two_until_it_is_not() {
    let script = |_, request: &Request| match request.numbers().len() {
        0..=3 => taken(),
        _ => refuse("413 Content Too Large"),
    };
    let (sent, refused, lost, problems, server) = outcome(script);
    assert_eq!((sent, refused, lost), (20, 0, 0));
    assert!(problems.is_empty(), "{problems:?}");
    let seen = server.seen();
    let small = seen.iter().map(Request::numbers).filter(|it| it.len() <= 3);
    let mut numbers: Vec<u64> = small.flatten().collect();
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..20));
}

#[test]
fn a_single_item_that_is_too_large_is_refused_and_the_others_are_not() {
    let script = |_, request: &Request| match request.numbers().contains(&4) {
        false => taken(),
        true => refuse("413 Content Too Large"),
    };
    let (sent, refused, lost, problems, _) = outcome(script);
    assert_eq!((sent, refused, lost), (19, 1, 0));
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].kind, ProblemKind::TooLarge);
}

#[test]
fn what_a_collector_refuses_of_a_request_counts_as_refused() {
    let (sent, refused, lost, problems, _) = outcome(|_, _| {
        let response = ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans: 3,
                error_message: "three are too old".into(),
            }),
        };
        let headers = [("content-type", "application/x-protobuf")];
        Do::Answer(answer("200 OK", &headers, &response.encode_to_vec()))
    });
    assert_eq!((sent, refused, lost), (14, 6, 0));
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].kind, ProblemKind::PartlyRefused);
    assert!(problems[0].what.contains("three are too old"));
}

#[test]
fn a_collector_that_refuses_more_than_there_is_is_doubted() {
    for (rejected, outcome, said) in [
        (1000, (0, 20), "which is less"),
        (-5, (20, 0), "which cannot be"),
    ] {
        let (sent, refused, lost, problems, _) = outcome_of_partial_success(rejected);
        assert_eq!(((sent, refused), lost), (outcome, 0));
        assert_eq!(problems.len(), 1, "{problems:?}");
        let what = &problems[0].what;
        assert!(what.contains(&rejected.to_string()), "{what}");
        assert!(what.contains(said), "{what}");
    }
}

fn outcome_of_partial_success(
    rejected_spans: i64,
) -> (u64, u64, u64, Vec<lineage_otlp::Problem>, Server) {
    outcome(move |_, _| {
        let response = ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans,
                error_message: String::new(),
            }),
        };
        let headers = [("content-type", "application/x-protobuf")];
        Do::Answer(answer("200 OK", &headers, &response.encode_to_vec()))
    })
}

#[test]
fn a_page_that_says_ok_to_everything_is_noticed() {
    let (sent, _, _, problems, _) = outcome(|_, _| {
        let headers = [("content-type", "text/html")];
        Do::Answer(answer("200 OK", &headers, b"<html>welcome</html>"))
    });
    assert_eq!(sent, 20);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].kind, ProblemKind::UnreadableAnswer);
    assert!(
        problems[0]
            .to_string()
            .contains("is a collector at this endpoint?")
    );
}
