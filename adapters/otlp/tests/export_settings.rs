//! What the standard variables say is what is done, and what cannot be done is named and shown without its secrets.

mod export_support;

use export_support::http::{Server, taken};
use export_support::{SOON, origin, span};
use lineage_otlp::Signal;
use lineage_otlp::raw::{Pipeline, Settings};

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
        ("OTEL_TRACES_SAMPLER", "sometimes", "parentbased_"),
        ("OTEL_RESOURCE_ATTRIBUTES", "a=1,b", "entry 2"),
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
    let error = Settings::from_variables(variables(&[("OTEL_EXPORTER_OTLP_HEADERS", "swordfish")]));
    let said = error.expect_err("no `=`").to_string();
    assert!(
        said.contains("OTEL_EXPORTER_OTLP_HEADERS") && !said.contains("swordfish"),
        "{said}"
    );
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
    ];
    let mut settings = Settings::from_variables(variables(&given)).expect("readable");
    settings.header("x-key", "swordfish");
    let printed = format!("{settings:?}");
    assert!(
        printed.contains("authorization") && printed.contains("x-key"),
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
