//! A whole session through the sink: who exports, what of it, and what a collector's refusal does.

#![cfg(feature = "http")]

mod export_support;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use export_support::http::{Request, Server, taken};
use lineage_core::id::W3cParent;
use lineage_core::{Epoch, Lineage};
use lineage_otlp::{Detail, Otlp, Protocol, Signal, TextKind, Volume};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

fn words(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let word = |it: &KeyValue| match &it.value.as_ref().expect("a value").value {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes
        .iter()
        .map(|it| (it.key.clone(), word(it)))
        .collect()
}

fn to<'a>(requests: &'a [Request], path: &str) -> Vec<&'a Request> {
    let to_it = |request: &&Request| request.line.contains(path);
    requests.iter().filter(to_it).collect()
}

fn session(otlp: Otlp) -> (Lineage, u64) {
    let lineage = Lineage::builder().service("llm").sink(otlp).start();
    let lineage = lineage.expect("a session");
    let request = Epoch::declare("generate");
    request.set_parent(W3cParent {
        trace_id: 0xabc,
        span_id: 0xdef,
        flags: 1,
    });
    let number = request.id().expect("it records").id.get();
    (lineage, number)
}

#[test]
fn a_session_is_exported() {
    everything();
    a_part();
}

fn everything() {
    let server = Server::start(|_, _| taken());
    let inspected = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&inspected);
    let otlp = Otlp::builder()
        .endpoint(server.endpoint())
        .protocol(Protocol::HttpProtobuf)
        .volume(Volume::of_all(Detail::Everything))
        .resource_attribute("deployment.environment.name", "test")
        .resource_attribute("service.name", "not the builder's")
        .redact(|kind, _| (kind == TextKind::CallSite).then(|| "hidden".into()))
        .inspect(move |span| {
            let id = span.span_context.span_id();
            seen.lock()
                .expect("not poisoned")
                .push(id.to_bytes().to_vec());
        })
        .build();
    let handle = otlp.handle();
    assert_eq!(
        handle.export().spans.offered,
        0,
        "it can be asked at any time"
    );
    let (lineage, number) = session(otlp);
    let process = lineage.process();
    lineage.shutdown(Duration::from_secs(10));

    let requests = server.seen();
    let traces = to(&requests, "/v1/traces");
    let [trace] = &traces[..] else {
        panic!("one request with spans: {}", traces.len());
    };
    let trace = ExportTraceServiceRequest::decode(&*trace.body).expect("spans");
    let [of_process] = &trace.resource_spans[..] else {
        panic!("one process");
    };
    let resource = words(&of_process.resource.as_ref().expect("a resource").attributes);
    assert_eq!(resource["lineage.process"], process.to_string());
    assert_eq!(resource["service.instance.id"], process.to_string());
    assert_eq!(resource["service.name"], "not the builder's");
    assert_eq!(resource["deployment.environment.name"], "test");
    assert_eq!(resource["process.pid"], std::process::id().to_string());
    assert!(of_process.schema_url.ends_with("#version-1"));
    let spans: Vec<&Span> = of_process
        .scope_spans
        .iter()
        .flat_map(|scope| &scope.spans)
        .collect();
    let [request] = &spans[..] else {
        panic!("one span");
    };
    assert_eq!(request.name, "generate");
    assert_eq!(request.trace_id, 0xabc_u128.to_be_bytes());
    assert_eq!(request.parent_span_id, 0xdef_u64.to_be_bytes());
    let attributes = words(&request.attributes);
    assert_eq!(attributes["lineage.epoch.id"], number.to_string());
    assert_eq!(attributes["lineage.epoch.site"], "hidden");
    let inspected = inspected.lock().expect("not poisoned");
    assert_eq!(*inspected, std::slice::from_ref(&request.span_id));

    let metrics = to(&requests, "/v1/metrics");
    let metrics = ExportMetricsServiceRequest::decode(&*metrics[0].body).expect("metrics");
    let metrics = &metrics.resource_metrics[0].scope_metrics[0].metrics;
    assert!(metrics.iter().any(|metric| metric.name == "lineage.epochs"));
    let counts = handle.export();
    assert_eq!((counts.spans.offered, counts.spans.sent), (1, 1));
    assert_eq!(counts.metrics.sent, metrics.len() as u64);
    assert_eq!(handle.spans().requests, 1);
    if cfg!(unix) {
        assert!(counts.cpu_ns > 0);
    }
}

/// A collector that takes traces alone, and is asked for nothing else.
fn a_part() {
    let server = Server::start(|_, _| taken());
    let otlp = Otlp::builder()
        .endpoint(server.endpoint())
        .protocol(Protocol::HttpProtobuf)
        .without(Signal::Metrics)
        .without(Signal::Logs)
        .build();
    let (lineage, _) = session(otlp);
    lineage.shutdown(Duration::from_secs(10));
    let requests = server.seen();
    assert_eq!(to(&requests, "/v1/traces").len(), 1);
    assert_eq!(requests.len(), 1);
}
