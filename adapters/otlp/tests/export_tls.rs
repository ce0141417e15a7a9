//! Certificates: what is right works, what is wrong is named, and no plain text is mistaken for TLS or the other way round.

mod export_support;

use std::time::Duration;

use export_support::certificates::{Authority, File, Pair};
use export_support::grpc::{Collector, Options, taken};
use export_support::http::Server;
use export_support::{Exporter, SOON, settings};
use lineage_otlp::raw::{Pipeline, Settings};
use lineage_otlp::{Problem, ProblemKind, Protocol};
use tonic::transport::{Certificate, ServerTlsConfig};

const FOREVER: i32 = 4000;

fn collector(tls: ServerTlsConfig) -> Collector {
    let options = Options {
        tls: Some(tls),
        ..Options::default()
    };
    Collector::start(options, |_, _| taken())
}

fn secure(collector: &Collector, authority: &File) -> Settings {
    let port = collector.address.port();
    let mut settings = settings(&format!("https://localhost:{port}"), Protocol::Grpc);
    settings.certificate_authorities(&authority.0);
    settings
}

fn fails(settings: Settings) -> Problem {
    let exporter = Exporter::start(settings);
    exporter.offer(0..10);
    let problem = exporter.problem();
    let (counts, _) = exporter.shutdown(Duration::from_millis(100));
    assert_eq!((counts.spans.sent, counts.spans.lost.shutdown), (0, 10));
    problem
}

fn works(settings: Settings) {
    let exporter = Exporter::start(settings);
    exporter.offer(0..10);
    let (counts, problems) = exporter.shutdown(SOON);
    assert_eq!(counts.spans.sent, 10, "{problems:?}");
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn a_collector_with_a_certificate_of_an_authority_that_was_named_gets_everything() {
    let authority = Authority::new();
    let collector = collector(authority.issue(&["localhost"], FOREVER).server());
    works(secure(&collector, &File::new(&authority.pem)));
    assert_eq!(collector.seen.numbers(), Vec::from_iter(0..10));
}

#[test]
fn http_over_tls_is_what_the_endpoint_gets_that_begins_with_https() {
    let authority = Authority::new();
    let pair = authority.issue(&["localhost"], FOREVER);
    let server = Server::start_with_tls(&pair, |_, _| export_support::http::taken());
    let endpoint = format!("https://localhost:{}", server.address.port());
    let file = File::new(&authority.pem);
    let mut settings = settings(&endpoint, Protocol::HttpProtobuf);
    settings.certificate_authorities(&file.0);
    works(settings);
    let seen = server.seen();
    let numbers: Vec<u64> = seen.iter().flat_map(|request| request.numbers()).collect();
    assert_eq!(numbers, Vec::from_iter(0..10));
}

#[test]
fn a_port_with_tls_for_the_other_protocol_is_said_to_be_that() {
    let authority = Authority::new();
    let pair = authority.issue(&["localhost"], FOREVER);
    let server = Server::start_with_tls(&pair, |_, _| export_support::http::taken());
    let endpoint = format!("https://localhost:{}", server.address.port());
    let file = File::new(&authority.pem);
    let mut settings = settings(&endpoint, Protocol::Grpc);
    settings.certificate_authorities(&file.0);
    let problem = fails(settings);
    assert_eq!(problem.kind, ProblemKind::Tls, "{problem}");
    assert!(problem.next.contains("http/protobuf at 4318"), "{problem}");
}

#[test]
fn an_expired_certificate_an_unknown_authority_and_another_name_are_each_told_apart() {
    let authority = Authority::new();
    let file = File::new(&authority.pem);
    let another = File::new(&Authority::new().pem);
    for (names, until, trusted, what, next) in [
        ("localhost", 2020, &file, "xpired", "has to be renewed"),
        (
            "localhost",
            FOREVER,
            &another,
            "UnknownIssuer",
            "OTEL_EXPORTER_OTLP_CERTIFICATE",
        ),
        (
            "elsewhere.example.com",
            FOREVER,
            &file,
            "localhost",
            "one that the collector's certificate names",
        ),
    ] {
        let collector = collector(authority.issue(&[names], until).server());
        let problem = fails(secure(&collector, trusted));
        assert_eq!(problem.kind, ProblemKind::Tls, "{problem}");
        assert!(problem.what.contains(what), "{problem}");
        assert!(problem.next.contains(next), "{problem}");
    }
}

#[test]
fn a_collector_that_asks_who_we_are_is_told() {
    let authority = Authority::new();
    let file = File::new(&authority.pem);
    let server = authority.issue(&["localhost"], FOREVER).server();
    let collector = collector(server.client_ca_root(Certificate::from_pem(&authority.pem)));
    let problem = fails(secure(&collector, &file));
    // It answers with an alert and closes: which of the two is seen first is not ours to say.
    let expected = [ProblemKind::Tls, ProblemKind::Unreachable];
    assert!(expected.contains(&problem.kind), "{problem}");
    assert!(
        problem
            .next
            .contains("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"),
        "{problem}"
    );

    let Pair { certificate, key } = authority.issue(&["client"], FOREVER);
    let (certificate, key) = (File::new(&certificate), File::new(&key));
    let mut with_certificate = secure(&collector, &file);
    with_certificate.client_certificate(&certificate.0, &key.0);
    works(with_certificate);
}

#[test]
fn plain_text_to_a_port_with_tls_is_said_to_be_that() {
    let authority = Authority::new();
    let collector = collector(authority.issue(&["localhost"], FOREVER).server());
    for protocol in [Protocol::Grpc, Protocol::HttpProtobuf] {
        let problem = fails(settings(&collector.endpoint(), protocol));
        // It answers with an alert and closes: which of the two is seen first is not ours to say.
        let expected = [ProblemKind::NotOtlp, ProblemKind::Unreachable];
        assert!(expected.contains(&problem.kind), "{problem}");
        assert!(problem.next.contains("https://"), "{problem}");
    }
}

#[test]
fn tls_to_a_port_with_plain_text_is_said_to_be_that() {
    let server = Server::raw(|mut stream| {
        use std::io::{Read as _, Write as _};
        let _ = stream.read(&mut [0; 512]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    });
    let endpoint = format!("https://localhost:{}", server.address.port());
    let file = File::new(&Authority::new().pem);
    for protocol in [Protocol::Grpc, Protocol::HttpProtobuf] {
        let mut settings = settings(&endpoint, protocol);
        settings.certificate_authorities(&file.0);
        let problem = fails(settings);
        assert_eq!(problem.kind, ProblemKind::Tls, "{problem}");
        assert!(problem.next.contains("http://"), "{problem}");
    }
}

#[test]
fn files_that_cannot_be_used_stop_the_start() {
    let authority = Authority::new();
    let pair = authority.issue(&["client"], FOREVER);
    let other = authority.issue(&["client"], FOREVER);
    let [certificate, key, other_key, empty] =
        [&*pair.certificate, &*pair.key, &*other.key, "nothing"].map(File::new);
    let missing = std::path::Path::new("missing.pem");
    let start =
        |authorities: &std::path::Path, certificate: &std::path::Path, key: &std::path::Path| {
            let mut settings = settings("https://localhost:1", Protocol::Grpc);
            settings
                .certificate_authorities(authorities)
                .client_certificate(certificate, key);
            let started = Pipeline::start(&settings, &export_support::origin());
            started.expect_err("it cannot start").to_string()
        };
    for (error, part) in [
        (
            start(missing, &certificate.0, &key.0),
            "missing.pem cannot be read",
        ),
        (
            start(&empty.0, &certificate.0, &key.0),
            "holds no certificate as PEM",
        ),
        (
            start(&certificate.0, missing, &key.0),
            "missing.pem cannot be read",
        ),
        (
            start(&certificate.0, &certificate.0, &empty.0),
            "holds no private key as PEM",
        ),
        (
            start(&certificate.0, &certificate.0, &other_key.0),
            "cannot be used",
        ),
    ] {
        assert!(
            error.starts_with("export of traces: ") && error.contains(part),
            "{error}"
        );
    }
}
