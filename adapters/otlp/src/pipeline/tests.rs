//! What no collector can bring about.

#[cfg(any(feature = "grpc", feature = "http"))]
use std::net::TcpListener;

use super::*;

/// A pipeline to nobody, and what it says.
#[cfg(any(feature = "grpc", feature = "http"))]
fn pipeline() -> (Pipeline, mpsc::Receiver<ProblemKind>) {
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let (tell, told) = mpsc::channel();
    let mut settings = Settings::default();
    settings
        .endpoint(format!("http://{}", nobody.expect("a port")))
        .protocol(crate::config::Protocol::default())
        .batch_items(1)
        .backoff(Duration::from_millis(1), Duration::from_millis(1))
        .on_problem(move |problem| {
            let _ = tell.send(problem.kind);
        });
    let pipeline = Pipeline::start(&settings, &Origin::default()).expect("a thread");
    (pipeline, told)
}

#[cfg(any(feature = "grpc", feature = "http"))]
const SOON: Duration = Duration::from_secs(10);

#[cfg(any(feature = "grpc", feature = "http"))]
#[test]
fn a_panic_loses_what_was_on_its_way_and_the_export_goes_on() {
    let (pipeline, told) = pipeline();
    for _ in 0..3 {
        assert!(pipeline.offer(Signal::Logs, crate::transport::PANIC));
    }
    assert!(pipeline.flush(SOON));
    assert_eq!(told.recv_timeout(SOON), Ok(ProblemKind::Panicked));
    let counts = pipeline.counters().snapshot();
    assert_eq!(counts.log_records.lost.panicked, 3);
    assert_eq!(counts.queue_bytes, 0);

    assert!(pipeline.offer(Signal::Logs, b"no panic"));
    assert_eq!(told.recv_timeout(SOON), Ok(ProblemKind::Unreachable));
    let counts = pipeline.shutdown(Duration::ZERO);
    assert_eq!(counts.panics, 3);
    assert_eq!(
        (counts.log_records.offered, counts.log_records.lost.shutdown),
        (4, 1)
    );
}

#[test]
fn threads_may_share_a_pipeline() {
    fn shared<T: Send + Sync>() {}
    shared::<Pipeline>();
    shared::<ExportCounters>();
}

#[test]
fn a_pipeline_without_transport_names_the_feature() {
    let settings = Settings::default();
    let started = Pipeline::start(&settings, &Origin::default());
    if cfg!(any(feature = "grpc", feature = "http")) {
        assert!(started.is_ok());
    } else {
        let said = started.expect_err("no transport").to_string();
        assert!(said.contains("without the feature `http`"), "{said}");
    }
}

#[test]
fn a_small_queue_still_has_batches_to_send() {
    let variables = |name: &str| match name {
        "OTEL_BSP_MAX_QUEUE_SIZE" => Some("100".to_owned()),
        "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE" => Some("7".to_owned()),
        _ => None,
    };
    let mut settings = Settings::from_variables(variables).expect("usable");
    settings.queue_bytes(1 << 20);
    let envelope = Envelope::new(&Origin::default());
    let [traces, metrics, logs] = limits(&settings, &envelope).expect("usable");
    assert_eq!((traces.queue_items, traces.batch_items), (100, 25));
    assert_eq!((logs.queue_items, logs.batch_items), (u64::MAX, 7));
    // 14 sixteenths of 1 MiB, and one sixteenth; a quarter of each.
    assert_eq!((traces.queue_bytes, traces.batch_bytes), (917_504, 229_376));
    assert_eq!((metrics.queue_bytes, metrics.batch_bytes), (65_536, 16_384));
}

#[test]
fn sizes_that_no_collector_takes_stop_the_start() {
    for (queue, batch, said) in [
        (1000, 1000, "at least 65536 bytes"),
        (64 << 20, 0, "1 to "),
        (64 << 20, 4 << 20, "a server of gRPC takes 4194304"),
    ] {
        let mut settings = Settings::default();
        settings.queue_bytes(queue).batch_bytes(batch);
        let limits = limits(&settings, &Envelope::new(&Origin::default()));
        let error = limits.expect_err("not usable").to_string();
        assert!(error.contains(said), "{error}");
    }
}
