//! What the standard variables say is what is done, and what cannot be done is named and shown without its secrets.

mod export_support;

use export_support::http::{Server, taken};
use export_support::{Exporter, SOON, origin, span};
use lineage_otlp::raw::{Pipeline, Settings};
use lineage_otlp::{ProblemKind, Signal};

fn variables(given: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    let given: Vec<(String, String)> = given
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    move |name| {
        let mut all = given.iter();
        all.find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    }
}

#[test]
fn a_signals_own_variable_comes_before_the_one_for_all_and_code_before_both() {
    let (all, own, code) = (
        Server::start(|_, _| taken()),
        Server::start(|_, _| taken()),
        Server::start(|_, _| taken()),
    );
    let own_endpoint = format!("{}/own/path", own.endpoint());
    let base = format!("{}/base/", all.endpoint());
    let given = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*base),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &own_endpoint),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-all=a%20b,x-both=1"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "x-own=2"),
        ("OTEL_EXPORTER_OTLP_LOGS_COMPRESSION", "gzip"),
        ("OTEL_BSP_SCHEDULE_DELAY", "10"),
    ];
    let mut settings = Settings::from_variables(variables(&given)).expect("usable");
    settings.header("x-both", "3");
    for in_code in [false, true] {
        if in_code {
            settings.endpoint(code.endpoint());
        }
        let pipeline = Pipeline::start(&settings, &origin()).expect("usable");
        pipeline.offer(Signal::Traces, &span(1));
        pipeline.offer(Signal::Logs, b"");
        assert!(pipeline.flush(SOON));
        pipeline.shutdown(SOON);
    }
    let [traces] = &own.seen()[..] else {
        panic!("one request")
    };
    assert_eq!(traces.line, "POST /own/path HTTP/1.1");
    assert_eq!(
        (
            traces.header("x-own"),
            traces.header("x-all"),
            traces.header("x-both")
        ),
        (Some("2"), None, Some("3"))
    );
    let [logs] = &all.seen()[..] else {
        panic!("one request")
    };
    assert_eq!(logs.line, "POST /base/v1/logs HTTP/1.1");
    assert_eq!(
        (logs.header("x-all"), logs.header("x-both")),
        (Some("a b"), Some("3"))
    );
    assert_eq!(logs.header("content-encoding"), Some("gzip"));
    let mut lines: Vec<_> = code
        .seen()
        .into_iter()
        .map(|request| request.line)
        .collect();
    lines.sort();
    assert_eq!(
        lines,
        ["POST /v1/logs HTTP/1.1", "POST /v1/traces HTTP/1.1"]
    );
}

#[test]
fn a_value_that_cannot_be_used_is_named_shown_and_told_what_can_be() {
    for (name, value, shown) in [
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "http/json",
            "grpc or http/protobuf",
        ),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "milliseconds"),
        ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "-1", "milliseconds"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "milliseconds"),
        (
            "OTEL_EXPORTER_OTLP_LOGS_COMPRESSION",
            "zstd",
            "gzip or none",
        ),
        ("OTEL_EXPORTER_OTLP_INSECURE", "yes", "true or false"),
        ("OTEL_SDK_DISABLED", "1", "true or false"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "many", "a whole number"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1e3", "milliseconds"),
    ] {
        let error = Settings::from_variables(variables(&[(name, value)])).expect_err(name);
        let said = error.to_string();
        for part in [name, value, shown] {
            assert!(said.contains(part), "{said} lacks {part}");
        }
    }
    let ratio = [
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "1.5"),
    ];
    let error = Settings::from_variables(variables(&ratio)).expect_err("over 1");
    assert!(
        error
            .to_string()
            .contains("OTEL_TRACES_SAMPLER_ARG is \"1.5\": a number from 0 to 1")
    );
}

#[test]
fn what_only_the_start_can_see_is_named_as_well() {
    for (given, parts) in [
        (
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")][..],
            ["OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "http://"],
        ),
        (
            &[(
                "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
                "https://me:swordfish@host/",
            )],
            ["OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "…@host", "not sent"],
        ),
        (
            &[("OTEL_EXPORTER_OTLP_CLIENT_KEY", "key.pem")],
            [
                "OTEL_EXPORTER_OTLP_CLIENT_KEY",
                "key.pem",
                "needed together",
            ],
        ),
        (
            &[("OTEL_EXPORTER_OTLP_HEADERS", "a b=swordfish")],
            ["OTEL_EXPORTER_OTLP_HEADERS", "not shown", "header 1"],
        ),
        (
            &[("OTEL_EXPORTER_OTLP_HEADERS", "a=swordfish%0A")],
            ["OTEL_EXPORTER_OTLP_HEADERS", "not shown", "`a`"],
        ),
    ] {
        let settings = Settings::from_variables(variables(given)).expect("readable");
        let said = Pipeline::start(&settings, &origin())
            .expect_err("unusable")
            .to_string();
        for part in parts {
            assert!(said.contains(part), "{said} lacks {part}");
        }
        assert!(!said.contains("swordfish"), "{said}");
    }
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_HEADERS", "swordfish"),
        ("OTEL_RESOURCE_ATTRIBUTES", "db.password=swordfish%zz"),
        ("OTEL_RESOURCE_ATTRIBUTES", "a=1,swordfish"),
    ] {
        let error = Settings::from_variables(variables(&[(name, value)]));
        let said = error.expect_err("no pairs").to_string();
        assert!(
            said.contains(name) && said.contains("entry") && !said.contains("swordfish"),
            "{said}"
        );
    }
}

/// Why a pipeline with these variables does not start.
fn refused(given: &[(&str, &str)]) -> String {
    let settings = Settings::from_variables(variables(given)).expect("readable");
    let started = Pipeline::start(&settings, &origin());
    started.expect_err("unusable").to_string()
}

#[test]
fn a_key_in_place_of_its_files_name_is_told_without_its_text() {
    let key = "-----BEGIN PRIVATE KEY-----\nswordfish\n-----END PRIVATE KEY-----\n";
    for value in [key, "swordfish\nswordfish", "-----BEGIN swordfish"] {
        for what in ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"] {
            for signal in ["", "METRICS_"] {
                let name = format!("OTEL_EXPORTER_OTLP_{signal}{what}");
                let given = [
                    (&*name, value),
                    ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://host"),
                ];
                let said = refused(&given);
                assert!(
                    said.contains(&name) && said.contains("the name of a file"),
                    "{said}"
                );
                assert!(!said.contains("swordfish"), "{said}");
                let settings = Settings::from_variables(variables(&given)).expect("readable");
                let printed = format!("{settings:?}");
                assert!(!printed.contains("swordfish"), "{printed}");
            }
        }
    }
    let mut settings = Settings::default();
    settings.client_certificate("certificate.pem", key);
    let error = Pipeline::start(&settings, &origin()).expect_err("unusable");
    assert!(!error.to_string().contains("swordfish"), "{error}");
}

#[test]
fn queries_of_endpoints_are_not_shown() {
    for value in [
        "http://host/?api_key=swordfish",
        "http://host/?u=a@b&k=swordfish",
        "ftp://host/#swordfish",
    ] {
        let said = refused(&[("OTEL_EXPORTER_OTLP_ENDPOINT", value)]);
        assert!(
            said.contains("OTEL_EXPORTER_OTLP_ENDPOINT") && !said.contains("swordfish"),
            "{said}"
        );
    }
}

#[test]
fn an_endpoint_for_all_with_the_path_of_one_is_told_what_to_write() {
    let said = refused(&[(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "http://collector:4318/v1/traces",
    )]);
    for part in [
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "http://collector:4318/v1/traces",
        "write http://collector:4318 (",
    ] {
        assert!(said.contains(part), "{said} lacks {part}");
    }
}

#[test]
fn headers_of_the_transport_are_refused_without_their_values() {
    for name in [
        "content-length",
        "Transfer-Encoding",
        "host",
        "connection",
        "TE",
        "content-type",
        "content-encoding",
        "grpc-timeout",
        "grpc-encoding",
        ":path",
    ] {
        let said = refused(&[("OTEL_EXPORTER_OTLP_HEADERS", &format!("{name}=swordfish"))]);
        assert!(said.contains("OTEL_EXPORTER_OTLP_HEADERS"), "{said}");
        let lower = name.to_lowercase();
        assert!(said.contains(&lower) || said.contains("header 1"), "{said}");
        assert!(!said.contains("swordfish"), "{said}");
        let mut settings = Settings::default();
        settings.header(name, "swordfish");
        let error = Pipeline::start(&settings, &origin()).expect_err(name);
        let said = error.to_string();
        assert!(
            said.contains("given in code") && !said.contains("swordfish"),
            "{said}"
        );
    }
    let mut settings = Settings::default();
    settings.header("x-host", "a").header("authorization", "b");
    assert!(Pipeline::start(&settings, &origin()).is_ok());
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_named_and_not_ignored() {
    use std::os::unix::ffi::OsStringExt as _;
    for name in [
        "OTEL_SDK_DISABLED",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
        "OTEL_EXPORTER_OTLP_CERTIFICATE",
        "OTEL_METRICS_EXPORTER",
        "OTEL_TRACES_SAMPLER",
        "OTEL_SERVICE_NAME",
        "OTEL_RESOURCE_ATTRIBUTES",
        "OTEL_BLRP_SCHEDULE_DELAY",
    ] {
        let garbled = |asked: &str| {
            let value = std::ffi::OsString::from_vec(b"a\xff".to_vec());
            (asked == name).then_some(value)
        };
        let error = Settings::from_os_variables(garbled).expect_err(name);
        assert_eq!(error.name, name);
        assert!(error.to_string().contains("UTF-8"), "{error}");
    }
}

#[test]
fn an_export_that_is_switched_off_reads_nothing_else() {
    let settings = Settings::from_variables(|name| {
        assert_eq!(name, "OTEL_SDK_DISABLED");
        Some("true".into())
    });
    assert!(settings.is_ok());
}

#[test]
fn of_a_signal_that_is_switched_off_nothing_is_read_opened_or_sent() {
    let server = Server::start(|_, _| taken());
    let endpoint = server.endpoint();
    let given = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://host"),
        ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "no/such/file"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "soon"),
        ("OTEL_BSP_SCHEDULE_DELAY", "soon"),
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "often"),
        ("OTEL_LOGS_EXPORTER", "none"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "soon"),
    ];
    let settings = Settings::from_variables(variables(&given)).expect("all else is right");
    let pipeline = Pipeline::start(&settings, &origin()).expect("all else is right");
    assert!(!pipeline.offer(Signal::Traces, &span(1)));
    assert!(pipeline.offer(Signal::Metrics, b""));
    assert!(pipeline.flush(SOON));
    let counts = pipeline.shutdown(SOON);
    assert_eq!((counts.spans.offered, counts.metrics.sent), (0, 1));
    let lines: Vec<_> = server.seen().into_iter().map(|it| it.line).collect();
    assert_eq!(lines, ["POST /v1/metrics HTTP/1.1"]);

    // What is switched off in code has no files opened either.
    let mut settings = Settings::default();
    settings.endpoint_of(Signal::Logs, "no endpoint");
    assert!(Pipeline::start(&settings, &origin()).is_err());
    settings.without(Signal::Logs);
    assert!(Pipeline::start(&settings, &origin()).is_ok());
}

#[test]
fn with_every_signal_switched_off_nothing_is_left_that_could_be_wrong() {
    let given = [
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_LOGS_EXPORTER", "none"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "pigeon"),
    ];
    let settings = Settings::from_variables(variables(&given)).expect("nothing is read");
    let pipeline = Pipeline::start(&settings, &origin()).expect("nothing is needed");
    assert!(!pipeline.offer(Signal::Logs, b""));
    assert!(pipeline.flush(SOON));
    assert_eq!(pipeline.shutdown(SOON).log_records.offered, 0);
}

#[test]
fn a_sampler_that_is_not_known_is_said_once_and_stops_nobody() {
    for name in ["jaeger_remote", "parentbased_jaeger_remote", "xray"] {
        let given = [
            ("OTEL_TRACES_SAMPLER", name),
            ("OTEL_TRACES_SAMPLER_ARG", "endpoint=http://host"),
        ];
        let settings = Settings::from_variables(variables(&given)).expect("not a reason");
        let exporter = Exporter::start(settings);
        let problem = exporter.problem();
        assert_eq!(problem.kind, ProblemKind::NotFollowed);
        let said = problem.to_string();
        for part in ["OTEL_TRACES_SAMPLER", name, "always_on"] {
            assert!(said.contains(part), "{said} lacks {part}");
        }
        let (counts, rest) = exporter.shutdown(SOON);
        assert!(rest.is_empty(), "{rest:?}");
        assert_eq!(counts.last_error, None, "nothing went wrong");
    }
}

#[test]
fn secrets_are_in_nothing_that_is_printed() {
    let given = [
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "authorization=Bearer%20swordfish",
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://me:swordfish@host:4318",
        ),
        ("OTEL_RESOURCE_ATTRIBUTES", "db.password=swordfish"),
    ];
    let mut settings = Settings::from_variables(variables(&given)).expect("readable");
    settings.header("x-key", "swordfish");
    settings.endpoint_of(Signal::Logs, "http://host/?key=swordfish");
    let printed = format!("{settings:?}");
    assert!(
        ["authorization", "x-key", "db.password"]
            .iter()
            .all(|name| printed.contains(name)),
        "{printed}"
    );
    assert!(!printed.contains("swordfish"), "{printed}");
}

#[test]
fn empty_variables_count_as_not_set() {
    let empty = |_: &str| Some(String::from(" "));
    let settings = Settings::from_variables(empty).expect("as by default");
    assert_eq!(
        format!("{settings:?}"),
        format!("{:?}", Settings::default())
    );
}

#[test]
fn a_signal_is_exported_where_its_exporter_is_otlp_or_not_named() {
    let off = |given: &[(&str, &str)]| {
        let settings = Settings::from_variables(variables(given)).expect("they can be used");
        Signal::ALL.map(|signal| settings.is_switched_off(signal))
    };
    assert_eq!(off(&[]), [false; 3]);
    let given = [
        ("OTEL_TRACES_EXPORTER", "console, otlp"),
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_LOGS_EXPORTER", "console"),
    ];
    assert_eq!(off(&given), [false, true, true]);
}
