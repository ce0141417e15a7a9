//! What runs on the application's threads, beside the same step of fastrace and of
//! tracing-opentelemetry. Compare figures of one run only: the machine may be busy. With
//! LINEAGE_BENCH_CLOCK=cycles in the environment, sessions have the cycle counter's clock.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use fastrace::local::LocalSpan;
use launch_lineage::carrier::Carrier;
use launch_lineage::hook::{CallLeft, call_entered, call_left, now};
use launch_lineage::id::{CorrelationId, HostNanos};
use launch_lineage::observation::{ApiDomain, CarrierKind, OperationsDue};
use launch_lineage::prelude::*;
use launch_lineage::raw;
use opentelemetry::trace::TracerProvider as _;
use tracing_subscriber::prelude::*;

/// A session whose drain thread keeps up with a loop that does nothing else.
fn session() -> Lineage {
    let builder = Lineage::builder()
        .ring_capacity(1 << 16)
        .drain_every(Duration::from_millis(1));
    let builder = match std::env::var("LINEAGE_BENCH_CLOCK").as_deref() {
        Ok("cycles") => builder.clock(lineage_clock::now),
        _ => builder,
    };
    builder.start().expect("no other session runs")
}

fn clocks(c: &mut Criterion) {
    let mut group = c.benchmark_group("clock");
    group.bench_function("now", |b| b.iter(now));
    group.bench_function("lineage_clock::now", |b| b.iter(lineage_clock::now));
    group.bench_function("Instant::now", |b| b.iter(std::time::Instant::now));
}

/// Everything that a thread pays that never launched.
fn on_a_thread_that_never_launched(c: &mut Criterion) {
    let lineage = session();
    let epoch = Epoch::declare("request");
    let mut group = c.benchmark_group("never_launched");
    group.bench_function("read_current", |b| b.iter(|| black_box(raw::current())));
    group.bench_function("enter_exit", |b| {
        b.iter(|| {
            let entered = raw::enter(black_box(&epoch));
            raw::exit(entered);
        });
    });
    group.bench_function("guard", |b| b.iter(|| drop(black_box(&epoch).enter())));
    group.bench_function("clone_drop", |b| b.iter(|| black_box(epoch.clone())));
    group.bench_function("declare_retire", |b| {
        b.iter(|| black_box(Epoch::declare("declared")))
    });
    group.bench_function("send_open", |b| {
        b.iter(|| black_box(Carrier::new(&epoch, CarrierKind::Envelope).open()));
    });
    group.finish();
    drop(epoch);
    lineage.shutdown(Duration::from_secs(5));
}

/// What a launching thread pays: two stamps and a record per scope, a record per call.
fn on_a_launching_thread(c: &mut Criterion) {
    let lineage = session();
    let epoch = Epoch::declare("request");
    epoch.launch(|| ());
    let mut group = c.benchmark_group("launching");
    group.bench_function("enter_exit", |b| {
        b.iter(|| {
            let entered = raw::enter(black_box(&epoch));
            raw::exit(entered);
        });
    });
    group.bench_function("boundary_without_cupti", |b| {
        b.iter(|| epoch.launch(|| black_box(())))
    });
    epoch.launch(|| {
        group.bench_function("callback_enter_and_exit", |b| {
            b.iter(|| {
                let snapshot = call_entered();
                call_left(
                    &snapshot,
                    &CallLeft {
                        domain: ApiDomain::Driver,
                        cbid: 307,
                        correlation: CorrelationId(1),
                        result: 0,
                        due: OperationsDue::One,
                        exited: Some(HostNanos(now())),
                    },
                );
            });
        });
    });
    group.finish();
    drop(epoch);
    lineage.shutdown(Duration::from_secs(5));
}

/// Spans of fastrace go here.
struct Nowhere;

impl fastrace::collector::Reporter for Nowhere {
    fn report(&mut self, spans: Vec<fastrace::prelude::SpanRecord>) {
        black_box(spans);
    }
}

/// Tracing spans: the registry alone, with lineage, with tracing-opentelemetry; and fastrace.
fn spans(c: &mut Criterion) {
    let lineage = session();
    let mut group = c.benchmark_group("span");
    let registry = || tracing_subscriber::registry();
    let provider = opentelemetry_sdk::trace::SdkTracerProvider::builder().build();
    macro_rules! otel {
        () => {
            tracing_opentelemetry::layer().with_tracer(provider.tracer("bench"))
        };
    }
    let subscribers: [(&str, tracing::Dispatch); 4] = [
        ("registry", tracing::Dispatch::new(registry())),
        (
            "registry_and_lineage",
            tracing::Dispatch::new(registry().with(lineage.layer())),
        ),
        (
            "registry_and_opentelemetry",
            tracing::Dispatch::new(registry().with(otel!())),
        ),
        (
            "registry_lineage_opentelemetry",
            tracing::Dispatch::new(registry().with(lineage.layer()).with(otel!())),
        ),
    ];
    for (name, dispatch) in &subscribers {
        tracing::dispatcher::with_default(dispatch, || {
            group.bench_function(format!("new_enter_exit_close/{name}"), |b| {
                b.iter(|| {
                    tracing::info_span!("request", launch_epoch = tracing::field::Empty)
                        .in_scope(|| black_box(()))
                });
            });
            let span = tracing::info_span!("request", launch_epoch = tracing::field::Empty);
            group.bench_function(format!("enter_exit/{name}"), |b| {
                b.iter(|| span.in_scope(|| black_box(())))
            });
        });
    }
    fastrace::set_reporter(Nowhere, fastrace::collector::Config::default());
    group.bench_function("new_enter_exit_close/fastrace_local_span", |b| {
        b.iter_custom(|spans| {
            // A root for every thousand: a thread's stack holds 4,096 and drops the rest silently.
            let mut took = Duration::ZERO;
            for begun in (0..spans).step_by(1000) {
                let root = fastrace::Span::root("root", fastrace::prelude::SpanContext::random());
                let _local = root.set_local_parent();
                let start = std::time::Instant::now();
                for _ in begun..spans.min(begun + 1000) {
                    drop(black_box(LocalSpan::enter_with_local_parent("request")));
                }
                took += start.elapsed();
            }
            took
        });
    });
    group.finish();
    lineage.shutdown(Duration::from_secs(5));
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500)).sample_size(50);
    targets = clocks, on_a_thread_that_never_launched, spans, on_a_launching_thread
}
criterion_main!(benches);
