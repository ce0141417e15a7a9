//! A collector that goes and comes back loses nothing; one that never comes back delays no shutdown.

mod export_support;

use std::time::{Duration, Instant};

use export_support::grpc::{Collector, Options, taken};
use export_support::http::{Do, Server};
use export_support::{Exporter, SOON, settings, until};
use lineage_otlp::{ProblemKind, Protocol, Signal};

#[test]
fn a_collector_that_is_gone_for_three_seconds_gets_everything() {
    let collector = Collector::start(Options::default(), |_, _| taken());
    let (address, endpoint) = (collector.address, collector.endpoint());
    let exporter = Exporter::start(settings(&endpoint, Protocol::Grpc));
    exporter.offer(0..100);
    until(&exporter, "the first", |counts| counts.sent == 100);
    let mut numbers = collector.seen.numbers();
    drop(collector);
    let gone = Instant::now();
    for begin in (100..1000).step_by(100) {
        exporter.offer(begin..begin + 100);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(exporter.problem().kind, ProblemKind::Unreachable);
    std::thread::sleep(Duration::from_secs(3).saturating_sub(gone.elapsed()));
    let options = Options {
        address: Some(address),
        ..Options::default()
    };
    let collector = Collector::start(options, |_, _| taken());
    assert!(exporter.pipeline.flush(SOON));
    numbers.extend(collector.seen.numbers());
    let (counts, problems) = exporter.shutdown(SOON);
    assert_eq!((counts.spans.sent, counts.spans.lost.total()), (1000, 0));
    assert!(counts.spans.retried > 0);
    assert!(
        problems.is_empty(),
        "the same is not said twice: {problems:?}"
    );
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, Vec::from_iter(0..1000));
}

#[test]
fn a_shutdown_ends_in_time_though_many_batches_wait_for_a_collector_that_says_nothing() {
    let server = Server::start(|_, _| Do::Silence);
    let mut settings = settings(&server.endpoint(), Protocol::HttpProtobuf);
    settings.batch_items(10).timeout(Duration::from_secs(60));
    let exporter = Exporter::start(settings);
    exporter.offer(0..1000);
    exporter.pipeline.offer(Signal::Logs, b"");
    let (counts, problems) = exporter.shutdown(Duration::from_millis(400));
    assert_eq!(
        (counts.spans.lost.shutdown, counts.log_records.lost.shutdown),
        (1000, 1)
    );
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(
        problems[0].what.starts_with("1000 spans, 1 log records"),
        "{}",
        problems[0]
    );
    // Nothing had failed yet: that it hangs is the cause.
    let last = counts.last_error.expect("an error").text;
    for part in [
        "; last seen: ",
        &server.endpoint(),
        "waiting for the answer",
    ] {
        assert!(problems[0].what.contains(part), "{}", problems[0]);
        assert!(last.contains(part), "{last}");
    }
}

#[test]
fn a_collector_that_comes_back_while_a_shutdown_has_time_gets_everything() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = nobody.local_addr().expect("an address");
    drop(nobody);
    let mut settings = settings(&format!("http://{address}"), Protocol::Grpc);
    // The next attempt of its own choice would come long after the deadline.
    settings.backoff(Duration::from_secs(600), Duration::from_secs(600));
    let exporter = Exporter::start(settings);
    exporter.offer(0..10);
    assert_eq!(exporter.problem().kind, ProblemKind::Unreachable);
    let (keep, kept) = std::sync::mpsc::channel::<()>();
    let comes_back = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        let options = Options {
            address: Some(address),
            ..Options::default()
        };
        let collector = Collector::start(options, |_, _| taken());
        let _ = kept.recv_timeout(SOON);
        collector.seen.numbers()
    });
    let (counts, problems) = exporter.shutdown(Duration::from_secs(4));
    drop(keep);
    assert_eq!((counts.spans.sent, counts.spans.lost.total()), (10, 0));
    assert!(problems.is_empty(), "{problems:?}");
    let numbers = comes_back.join().expect("no panic");
    assert_eq!(numbers, Vec::from_iter(0..10));
}

#[test]
fn a_shutdown_without_a_collector_uses_its_time_and_says_why_it_lost_what_it_lost() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", nobody.local_addr().expect("an address"));
    drop(nobody);
    let mut settings = settings(&endpoint, Protocol::HttpProtobuf);
    settings.backoff(Duration::from_secs(600), Duration::from_secs(600));
    let exporter = Exporter::start(settings);
    exporter.offer(0..10);
    exporter.problem();
    let before = Instant::now();
    let (counts, problems) = exporter.shutdown(Duration::from_secs(1));
    assert!(before.elapsed() >= Duration::from_secs(1));
    assert_eq!(counts.spans.lost.shutdown, 10);
    // One before; then after a quarter of what is left, again and again: 50 ms at least, so no more than 20.
    assert!((4..=22).contains(&counts.requests), "{counts:?}");
    let last = counts.last_error.expect("an error").text;
    assert!(
        last.contains("10 spans were not") && last.contains("refused"),
        "{last}"
    );
    assert_eq!(problems.len(), 1, "{problems:?}");
}

#[test]
fn a_flush_ends_in_time_and_does_not_lose_anything() {
    let server = Server::start(|before, _| {
        if before < 2 {
            Do::Silence
        } else {
            export_support::http::taken()
        }
    });
    let mut settings = settings(&server.endpoint(), Protocol::HttpProtobuf);
    settings.timeout(Duration::from_millis(2_000));
    let exporter = Exporter::start(settings);
    exporter.offer(0..10);
    let before = Instant::now();
    assert!(!exporter.pipeline.flush(Duration::from_millis(200)));
    assert!(before.elapsed() < Duration::from_millis(1_900));
    assert!(exporter.pipeline.flush(SOON));
    let (counts, _) = exporter.shutdown(SOON);
    assert_eq!((counts.spans.sent, counts.spans.lost.total()), (10, 0));
}

#[test]
fn a_dropped_pipeline_does_not_wait_and_counts() {
    let server = Server::start(|_, _| Do::Silence);
    let mut settings = settings(&server.endpoint(), Protocol::HttpProtobuf);
    settings.timeout(Duration::from_secs(60));
    let exporter = Exporter::start(settings);
    exporter.offer(0..10);
    let counters = exporter.pipeline.counters();
    let before = Instant::now();
    drop(exporter);
    assert!(before.elapsed() < SOON);
    while counters.snapshot().spans.lost.shutdown < 10 {
        assert!(before.elapsed() < SOON);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_queue_is_full_at_its_bound_and_spans_do_not_starve_the_others() {
    let server = Server::start(|_, _| Do::Silence);
    let mut settings = settings(&server.endpoint(), Protocol::HttpProtobuf);
    settings
        .timeout(Duration::from_secs(60))
        .queue_bytes(1 << 20)
        .batch_bytes(64 << 10);
    let exporter = Exporter::start(settings);
    let item = export_support::span(1);
    // A tag, a length of one byte, and the item.
    let each = item.len() as u64 + 2;
    let room = (1 << 20) / 16 * 14 / each;
    let taken = (0..room + 500).filter(|_| exporter.pipeline.offer(Signal::Traces, &item));
    assert_eq!(taken.count() as u64, room);
    let problem = exporter.problem();
    assert_eq!(problem.kind, ProblemKind::QueueFull);
    assert!(problem.not_delivered >= 1, "{problem}");
    assert!(exporter.pipeline.offer(Signal::Logs, &item));
    assert!(exporter.pipeline.offer(Signal::Metrics, &item));
    let counts = exporter.pipeline.counters().snapshot();
    assert_eq!(counts.spans.lost.queue_full, 500);
    assert_eq!(counts.queue_bytes, (room + 2) * each);
    assert_eq!(counts.queue_bytes_most, counts.queue_bytes);
    let (counts, _) = exporter.shutdown(Duration::from_millis(100));
    assert_eq!(counts.spans.lost.shutdown, room);
}

#[test]
fn an_item_larger_than_a_message_may_be_is_lost_and_one_larger_than_a_batch_is_not() {
    let server = Server::start(|_, _| export_support::http::taken());
    let exporter = Exporter::start(settings(&server.endpoint(), Protocol::HttpProtobuf));
    let large = |bytes: usize| vec![0x3a; bytes];
    assert!(!exporter.pipeline.offer(Signal::Traces, &large(4 << 20)));
    assert_eq!(exporter.problem().kind, ProblemKind::TooLarge);
    // A field `name` of just this length, so that it is a span.
    let mut span = vec![0x2a];
    prost::encoding::encode_varint(3 << 20, &mut span);
    span.resize(span.len() + (3 << 20), b'n');
    exporter.offer(0..5);
    assert!(exporter.pipeline.offer(Signal::Traces, &span));
    exporter.offer(5..10);
    assert!(exporter.pipeline.flush(SOON));
    let (counts, _) = exporter.shutdown(SOON);
    assert_eq!((counts.spans.sent, counts.spans.lost.too_large), (11, 1));
    let largest = server.seen().iter().map(|it| it.body.len()).max();
    assert!(largest.expect("requests") < 4 << 20);
}
