//! Whatever listens at the endpoint, or nobody: a clear message once, everything counted, and an end in time.

mod export_support;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use export_support::grpc::{Collector, Options};
use export_support::http::{Do, Server, answer, taken};
use export_support::{Exporter, SOON, settings, until};
use lineage_otlp::{Problem, ProblemKind, Protocol};

const BOTH: [Protocol; 2] = [Protocol::Grpc, Protocol::HttpProtobuf];

/// An exporter that never succeeds there: what it says first, and that it ends in time with everything counted.
fn never(endpoint: &str, protocol: Protocol) -> Problem {
    let exporter = Exporter::start(settings(endpoint, protocol));
    exporter.offer(0..100);
    let first = exporter.problem();
    let (counts, rest) = exporter.shutdown(Duration::from_millis(300));
    assert_eq!(
        (counts.spans.sent, counts.spans.lost.shutdown),
        (0, 100),
        "{counts:?}"
    );
    let kinds: Vec<_> = rest.iter().map(|problem| problem.kind).collect();
    assert!(
        !kinds.contains(&first.kind),
        "{:?} is said twice",
        first.kind
    );
    assert!(kinds.contains(&ProblemKind::LostAtShutdown), "{kinds:?}");
    assert!(first.to_string().contains(&first.endpoint));
    first
}

/// A port at which nobody listens.
fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

#[test]
fn nobody_listens() {
    for protocol in BOTH {
        let problem = never(&closed_port(), protocol);
        assert_eq!(problem.kind, ProblemKind::Unreachable);
        assert!(problem.what.contains("refused"), "{problem}");
        assert!(problem.next.contains("trying again"), "{problem}");
    }
}

#[test]
fn nobody_has_the_name() {
    let exporter = Exporter::start(settings("http://collector.invalid:4317", Protocol::Grpc));
    exporter.offer(0..100);
    let problem = exporter.problem();
    // A resolver that is slow to say no is one that is not waited for.
    if problem.kind != ProblemKind::TimedOut {
        assert_eq!(problem.kind, ProblemKind::Unreachable);
        assert!(problem.what.contains("`collector.invalid`"), "{problem}");
    }
    let (counts, _) = exporter.shutdown(Duration::from_millis(300));
    assert_eq!(counts.spans.lost.shutdown, 100);
}

#[test]
fn an_answer_that_never_begins_or_never_ends_is_given_up_in_time() {
    let slow = Duration::from_millis(200);
    let body = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
    let scripts: [fn() -> Do; 3] = [
        || Do::Silence,
        || {
            Do::Drip(
                answer("200 OK", &[("x", &"y".repeat(1000))], b""),
                Duration::from_millis(200),
            )
        },
        || Do::Answer(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nx".to_vec()),
    ];
    assert!(body.len() as u32 * slow > SOON / 2);
    for (script, stage) in scripts.into_iter().zip(["to begin", "to begin", "to end"]) {
        let server = Server::start(move |_, _| script());
        let mut settings = settings(&server.endpoint(), Protocol::HttpProtobuf);
        settings.timeout(Duration::from_millis(300));
        let exporter = Exporter::start(settings);
        let before = Instant::now();
        exporter.offer(0..10);
        let problem = exporter.problem();
        assert_eq!(problem.kind, ProblemKind::TimedOut);
        assert!(problem.what.contains(stage), "{problem}");
        assert!(before.elapsed() < SOON / 2);
        let (counts, _) = exporter.shutdown(Duration::from_millis(200));
        assert_eq!(counts.spans.lost.shutdown, 10);
    }
}

#[test]
fn a_port_that_takes_connections_and_says_nothing_is_given_up_in_time() {
    for protocol in BOTH {
        let server = Server::raw(|stream| {
            std::thread::sleep(Duration::from_secs(20));
            drop(stream);
        });
        let mut settings = settings(&server.endpoint(), protocol);
        settings.timeout(Duration::from_millis(200));
        let exporter = Exporter::start(settings);
        exporter.offer(0..10);
        assert_eq!(exporter.problem().kind, ProblemKind::TimedOut);
        let (counts, _) = exporter.shutdown(Duration::from_millis(200));
        assert_eq!(counts.spans.lost.shutdown, 10);
    }
}

#[test]
fn a_huge_answer_is_not_read() {
    // It says that it took them, so they are sent; how it goes on to say so is its own affair.
    for (head, outcome) in [("200 OK", (10, 0)), ("400 Bad Request", (0, 10))] {
        let server = Server::start(move |_, _| {
            let head = format!("HTTP/1.1 {head}\r\ncontent-length: 99999999999\r\n\r\n");
            Do::Endless(head.into_bytes(), vec![b'a'; 1 << 16])
        });
        let exporter = Exporter::start(settings(&server.endpoint(), Protocol::HttpProtobuf));
        exporter.offer(0..10);
        let problem = exporter.problem();
        assert!(problem.to_string().len() < 1000, "{problem}");
        assert!(exporter.pipeline.flush(SOON));
        let (counts, _) = exporter.shutdown(Duration::from_millis(200));
        assert_eq!((counts.spans.sent, counts.spans.refused), outcome, "{head}");
    }
}

#[test]
fn a_head_without_end_is_not_read() {
    let server = Server::start(|_, _| {
        Do::Endless(
            b"HTTP/1.1 200 OK\r\n".to_vec(),
            b"x-more: and more\r\n".repeat(1000),
        )
    });
    let problem = never(&server.endpoint(), Protocol::HttpProtobuf);
    assert_eq!(problem.kind, ProblemKind::NotOtlp);
}

#[test]
fn garbage_is_said_to_be_none_of_the_protocol() {
    for protocol in BOTH {
        let server = Server::raw(|mut stream| {
            let _ = stream.write_all(&b"SSH-2.0-OpenSSH_9.2\r\n".repeat(100));
            std::thread::sleep(Duration::from_secs(1));
        });
        let problem = never(&server.endpoint(), protocol);
        assert_eq!(problem.kind, ProblemKind::NotOtlp, "{problem}");
        assert!(problem.next.contains("4317 for grpc"), "{problem}");
    }
}

#[test]
fn the_other_protocols_port_is_said_to_be_that() {
    let server = Server::start(|_, _| taken());
    let problem = never(&server.endpoint(), Protocol::Grpc);
    assert_eq!(problem.kind, ProblemKind::NotOtlp, "{problem}");
    let collector = Collector::start(Options::default(), |_, _| export_support::grpc::taken());
    let problem = never(&collector.endpoint(), Protocol::HttpProtobuf);
    assert_eq!(problem.kind, ProblemKind::NotOtlp, "{problem}");
}

/// A frame of HTTP/2 (RFC 9113, section 4.1).
fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).expect("a small frame");
    let mut frame = vec![0, 0, length, kind, 0, 0, 0, 0, stream];
    frame.extend_from_slice(payload);
    frame
}

/// Reads frames until one that begins a request, and writes another in answer.
fn answer_headers_with(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    const HEADERS: u8 = 1;
    stream.read_exact(&mut [0; 24])?;
    stream.write_all(&frame(4, 0, &[]))?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let [high, middle, low, kind, ..] = head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        std::io::copy(&mut (&stream).take(length.into()), &mut std::io::sink())?;
        if kind == HEADERS {
            stream.write_all(answer)?;
        }
    }
}

#[test]
fn a_collector_that_closes_its_connections_is_said_to_speak_the_protocol() {
    // RFC 9113, section 7: NO_ERROR, REFUSED_STREAM, ENHANCE_YOUR_CALM.
    let go_away = |code| frame(7, 0, &[0, 0, 0, 0, 0, 0, 0, code]);
    let reset = |code| frame(3, 1, &[0, 0, 0, code]);
    for (answer, kind, said) in [
        (
            go_away(0),
            ProblemKind::Unavailable,
            "closes its connections",
        ),
        (reset(7), ProblemKind::Unavailable, "closes its connections"),
        (
            go_away(11),
            ProblemKind::Unreachable,
            "the connection broke",
        ),
    ] {
        let server = Server::raw(move |stream| {
            let _ = answer_headers_with(stream, &answer);
        });
        let problem = never(&server.endpoint(), Protocol::Grpc);
        assert_eq!(problem.kind, kind, "{problem}");
        assert!(problem.what.contains(said), "{problem}");
        assert!(problem.next.contains("trying again"), "{problem}");
        assert!(!problem.next.contains("4317"), "{problem}");
    }
}

#[test]
fn of_a_collector_that_says_goodbye_before_it_is_asked_it_is_not_said_that_it_speaks_another_protocol()
 {
    let goodbye = [frame(4, 0, &[]), frame(7, 0, &[0; 8])].concat();
    let server = Server::raw(move |mut stream| {
        let _ = stream.write_all(&goodbye);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let problem = never(&server.endpoint(), Protocol::Grpc);
    // It depends on which comes first, the goodbye or the request.
    let said = match problem.kind {
        ProblemKind::Unavailable => "closes its connections",
        ProblemKind::Unreachable => "closed before it took a request",
        _ => panic!("{problem}"),
    };
    assert!(problem.what.contains(said), "{problem}");
    assert!(problem.next.contains("may be about to end"), "{problem}");
}

#[test]
fn a_connection_that_breaks_in_the_middle_is_made_again() {
    let script = |before, _: &export_support::http::Request| match before {
        0 => Do::Close,
        1 => Do::Answer(
            b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\nhalf".to_vec(),
        ),
        _ => taken(),
    };
    let server = Server::start(move |before, request| match script(before, request) {
        // The second answer promises more than it has: what is missing is for the time limit to notice.
        Do::Answer(bytes) if before == 1 => Do::Answer(bytes),
        other => other,
    });
    let mut settings = settings(&server.endpoint(), Protocol::HttpProtobuf);
    settings
        .timeout(Duration::from_millis(300))
        .batch_delay(Duration::from_secs(3600))
        .batch_items(10);
    let exporter = Exporter::start(settings);
    exporter.offer(0..10);
    let problem = exporter.problem();
    assert_eq!(problem.kind, ProblemKind::Unreachable);
    assert!(problem.what.contains("broke"), "{problem}");
    assert!(exporter.pipeline.flush(SOON));
    let (counts, _) = exporter.shutdown(SOON);
    assert_eq!(
        (counts.spans.sent, counts.spans.retried, counts.requests),
        (10, 20, 3)
    );
}

#[test]
fn a_batch_is_given_up_after_its_time_and_the_next_is_tried() {
    let mut settings = settings(&closed_port(), Protocol::Grpc);
    settings.give_up_after(Duration::from_millis(150));
    let exporter = Exporter::start(settings);
    exporter.offer(0..10);
    assert!(exporter.pipeline.flush(SOON), "given up is settled");
    let counts = until(&exporter, "the loss", |counts| counts.lost.given_up == 10);
    assert!(counts.retried >= 10);
    exporter.offer(10..15);
    until(&exporter, "the second loss", |counts| {
        counts.lost.given_up == 15
    });
    let (_, problems) = exporter.shutdown(SOON);
    let given_up = problems.iter().filter(|it| it.kind == ProblemKind::GivenUp);
    assert_eq!(given_up.count(), 1, "{problems:?}");
}
