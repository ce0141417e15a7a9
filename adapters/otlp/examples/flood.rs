//! Spans in bursts, to see what arrives: `cargo run --release -p lineage-otlp --example flood -- --endpoint http://127.0.0.1:4317`.
//!
//! Every `--every` seconds, by default each second, there is a burst of `--rate` spans of the size that a kernel's span has, as
//! fast as they can be offered, until there were `--spans`. Then everything is flushed, and the counts are printed, with `--json`
//! as one JSON object.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use lineage_otlp::raw::{Origin, Pipeline, Settings};
use lineage_otlp::{Compression, ExportCounts, Protocol, Signal};
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, InstrumentationScope, KeyValue, any_value::Value,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

const USAGE: &str = "flood [--endpoint URL] [--protocol grpc|http/protobuf] [--gzip] [--spans N] [--rate N] [--every SECONDS] \
                     [--within SECONDS] [--json]";

struct Options {
    endpoint: String,
    protocol: Protocol,
    gzip: bool,
    spans: u64,
    rate: u64,
    every: Duration,
    within: Duration,
    json: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        endpoint: "http://127.0.0.1:4317".into(),
        protocol: Protocol::Grpc,
        gzip: false,
        spans: 1_000_000,
        rate: 100_000,
        every: Duration::from_secs(1),
        within: Duration::from_secs(120),
        json: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        let number = |text: String| {
            let parsed: Option<u64> = text.parse().ok();
            parsed
                .filter(|number| *number > 0)
                .ok_or(format!("{text} is no number from 1"))
        };
        match argument.as_str() {
            "--endpoint" => options.endpoint = value()?,
            "--protocol" => {
                options.protocol = match &*value()? {
                    "grpc" => Protocol::Grpc,
                    "http/protobuf" => Protocol::HttpProtobuf,
                    other => return Err(format!("no protocol {other}")),
                }
            }
            "--gzip" => options.gzip = true,
            "--spans" => options.spans = number(value()?)?,
            "--rate" => options.rate = number(value()?)?,
            "--every" => options.every = Duration::from_secs(number(value()?)?),
            "--within" => options.within = Duration::from_secs(number(value()?)?),
            "--json" => options.json = true,
            _ => return Err(USAGE.into()),
        }
    }
    Ok(options)
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

fn integer(key: &str, value: i64) -> KeyValue {
    attribute(key, Value::IntValue(value))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.into(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// What a kernel's span holds, about 350 bytes of it.
fn kernel() -> Span {
    Span {
        trace_id: vec![0x4b; 16],
        span_id: vec![0; 8],
        parent_span_id: vec![0x11; 8],
        name: "void gemm_bf16<128, 128, 32>(float*, float*, int)".into(),
        kind: 1,
        attributes: vec![
            text("lineage.span", "operation"),
            integer("lineage.epoch.id", 123_456),
            integer("lineage.epoch.version", 17),
            text("lineage.join", "correlation"),
            integer("cuda.correlation_id", 9_876_543),
            integer("cuda.device.ordinal", 0),
            integer("cuda.stream.id", 13),
            integer("cuda.graph.id", 5),
            integer("cuda.graph.node_id", 21_474_836_485),
            integer("cuda.graph.exec_id", 6),
            integer("launch.delay_ns", 48_211),
            integer("gpu.grid", 4096),
        ],
        ..Span::default()
    }
}

fn origin() -> Origin {
    Origin {
        resource: Resource {
            attributes: vec![text("service.name", "flood")],
            ..Resource::default()
        },
        scope: InstrumentationScope {
            name: "lineage-otlp".into(),
            ..InstrumentationScope::default()
        },
        schema_url: String::new(),
    }
}

fn print(options: &Options, counts: &ExportCounts, seconds: f64, span_bytes: usize) {
    let (spans, lost) = (&counts.spans, &counts.spans.lost);
    let numbers = [
        ("offered", spans.offered),
        ("sent", spans.sent),
        ("retried", spans.retried),
        ("refused", spans.refused),
        ("lost", lost.total()),
        ("lost_queue_full", lost.queue_full),
        ("lost_too_large", lost.too_large),
        ("lost_given_up", lost.given_up),
        ("lost_shutdown", lost.shutdown),
        ("lost_panicked", lost.panicked),
        ("queue_bytes_most", counts.queue_bytes_most),
        ("requests", counts.requests),
        ("span_bytes", span_bytes as u64),
    ];
    if options.json {
        let fields: Vec<String> = numbers
            .iter()
            .map(|(name, number)| format!("\"{name}\":{number}"))
            .collect();
        println!("{{{},\"seconds\":{seconds:.3}}}", fields.join(","));
    } else {
        for (name, number) in numbers {
            println!("{name:>17} {number}");
        }
        println!("{:>17} {seconds:.3}", "seconds");
    }
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let mut settings = Settings::default();
    settings
        .endpoint(&options.endpoint)
        .protocol(options.protocol);
    if options.gzip {
        settings.compression(Compression::Gzip);
    }
    let pipeline = Pipeline::start(&settings, &origin())?;
    let mut span = kernel();
    let span_bytes = span.encoded_len();
    let mut encoded = Vec::with_capacity(span_bytes);
    let begun = Instant::now();
    for number in 0..options.spans {
        if number % options.rate == 0 {
            let bursts = u32::try_from(number / options.rate)?;
            let next = begun + options.every * bursts;
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        span.span_id.copy_from_slice(&(number + 1).to_be_bytes());
        span.start_time_unix_nano = 1_700_000_000_000_000_000 + number * 1000;
        span.end_time_unix_nano = span.start_time_unix_nano + 900;
        encoded.clear();
        span.encode(&mut encoded)?;
        pipeline.offer(Signal::Traces, &encoded);
    }
    let left = options.within.saturating_sub(begun.elapsed());
    pipeline.flush(left);
    let counts = pipeline.shutdown(Duration::from_secs(1));
    print(options, &counts, begun.elapsed().as_secs_f64(), span_bytes);
    Ok(())
}

fn main() -> ExitCode {
    let ran = options().and_then(|options| run(&options).map_err(|why| why.to_string()));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("flood: {why}");
            ExitCode::FAILURE
        }
    }
}
