//! The steps that are counted.

use std::future::Future as _;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use lineage_core::carrier::Carrier;
use lineage_core::hook::{CallLeft, call_entered, call_left, now};
use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::{ApiDomain, CarrierKind, OperationsDue};
use lineage_core::{Epoch, Lineage, raw};
use lineage_otlp::raw::{Origin, Pipeline, Settings};
use lineage_otlp::{Protocol, Signal};
use lineage_tokio::{FutureExt as _, LineageExt as _};
use tracing_subscriber::prelude::*;

pub const ROUNDS: u64 = 20_000;

/// What the loop itself takes.
pub const NOTHING: &str = "nothing";

/// In the order in which they are told.
pub const ALL: &[&str] = &[
    "read_current",
    "enter_exit",
    "enter_exit_in_a_task",
    "poll_in_epoch",
    "enter_exit_launching",
    "boundary_without_cupti",
    "callback_enter_and_exit",
    "clone_drop",
    "take_current_along",
    "declare_retire",
    "send_open",
    "offer_for_export",
    "span_enter_exit_registry",
    "span_enter_exit_lineage",
    "span_new_close_registry",
    "span_new_close_lineage",
];

type Measure = fn(u64, &mut dyn FnMut());

/// Runs one step under the measuring function, once before that to warm up.
pub fn run(step: &str, measure: Measure) {
    // The drain thread sleeps meanwhile, and the ring holds what one run writes.
    let builder = Lineage::builder()
        .ring_capacity(1 << 17)
        .drain_every(Duration::from_secs(60));
    let lineage = builder.start().expect("no other session runs");
    let epoch = Epoch::declare("request");
    let mut work = |step: &mut dyn FnMut()| {
        step();
        measure(ROUNDS, step);
    };
    match step {
        NOTHING => work(&mut || ()),
        "read_current" => work(&mut || {
            black_box(raw::current());
        }),
        "enter_exit" => work(&mut || enter_exit(&epoch)),
        "enter_exit_in_a_task" => {
            let _installs_the_hook = lineage.layer();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .expect("a runtime");
            let epoch = epoch.clone();
            let task = async move {
                let mut step = || enter_exit(&epoch);
                step();
                measure(ROUNDS, &mut step);
            };
            runtime.block_on(async { tokio::spawn(task).await.expect("no panic") });
        }
        "poll_in_epoch" => {
            let mut future = pin!(std::future::pending::<()>().in_epoch(epoch.clone()));
            let mut context = Context::from_waker(Waker::noop());
            work(&mut || assert!(black_box(future.as_mut().poll(&mut context)).is_pending()));
        }
        "enter_exit_launching" => {
            epoch.launch(|| ());
            work(&mut || enter_exit(&epoch));
        }
        "boundary_without_cupti" => work(&mut || epoch.launch(|| black_box(()))),
        "callback_enter_and_exit" => epoch.launch(|| work(&mut callback)),
        "clone_drop" => work(&mut || drop(black_box(epoch.clone()))),
        "take_current_along" => epoch.run(|| work(&mut || drop(black_box(Epoch::current())))),
        "declare_retire" => work(&mut || drop(black_box(Epoch::declare("declared")))),
        "send_open" => work(&mut || {
            drop(black_box(
                Carrier::new(&epoch, CarrierKind::Envelope).open(),
            ))
        }),
        "offer_for_export" => offer(&mut work),
        _ => spans(step, &lineage, &mut work),
    }
}

#[inline(always)]
fn enter_exit(epoch: &Epoch) {
    let entered = raw::enter(black_box(epoch));
    raw::exit(black_box(entered));
}

fn callback() {
    let snapshot = call_entered();
    let call = CallLeft {
        domain: ApiDomain::Driver,
        cbid: 307,
        correlation: CorrelationId(1),
        result: 0,
        due: OperationsDue::One,
        exited: Some(HostNanos(now())),
    };
    call_left(&snapshot, black_box(&call));
}

/// A kernel's span, encoded, is put into a batch; each 3,000th of them begins another one. There is no collector.
fn offer(work: &mut dyn FnMut(&mut dyn FnMut())) {
    let mut settings = Settings::default();
    settings
        .endpoint("http://127.0.0.1:1")
        .protocol(Protocol::Grpc)
        .on_problem(|_| ());
    let pipeline = Pipeline::start(&settings, &Origin::default()).expect("a thread");
    let span = [0x5a; 350];
    work(&mut || assert!(pipeline.offer(Signal::Traces, black_box(&span))));
}

fn spans(step: &str, lineage: &Lineage, work: &mut dyn FnMut(&mut dyn FnMut())) {
    let registry = tracing_subscriber::registry();
    let dispatch = match step.rsplit_once('_') {
        Some((_, "registry")) => tracing::Dispatch::new(registry),
        Some((_, "lineage")) => tracing::Dispatch::new(registry.with(lineage.layer())),
        _ => panic!("no step {step}"),
    };
    let new = || tracing::info_span!("request", launch_epoch = tracing::field::Empty);
    tracing::dispatcher::with_default(&dispatch, || {
        if step.starts_with("span_enter_exit") {
            let span = new();
            work(&mut || span.in_scope(|| black_box(())));
        } else {
            work(&mut || drop(black_box(new())));
        }
    });
}
