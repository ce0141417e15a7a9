//! Over real connections: what a handler and its streamed body launch is bound to the request and
//! reachable, in whichever task and on whichever thread. A request that launches nothing is no fault;
//! one that hands work on for which nothing is launched is.
#![cfg(all(feature = "axum", feature = "record"))]

mod common;

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use common::recorded;
use lineage_core::fault::FaultCode;
use lineage_core::hook::{self, CallLeft};
use lineage_core::id::{CorrelationId, HostNanos};
use lineage_core::observation::{ApiDomain, OperationsDue};
use lineage_core::row::Binding;
use lineage_tower::EpochLayer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::StreamExt as _;

/// What lineage-cupti's callback does when a kernel is launched.
fn launch() {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let snapshot = hook::call_entered();
    let left = CallLeft {
        domain: ApiDomain::Driver,
        cbid: 307, // cuLaunchKernel
        correlation: CorrelationId(NEXT.fetch_add(1, Ordering::Relaxed)),
        result: 0,
        due: OperationsDue::One,
        exited: Some(HostNanos(hook::now())),
    };
    hook::call_left(&snapshot, &left);
}

async fn generate() -> Body {
    launch();
    tokio::task::yield_now().await;
    launch();
    let tokens = tokio_stream::iter(0..3).then(async |_| {
        tokio::task::yield_now().await;
        launch();
        Ok::<_, Infallible>("token ")
    });
    Body::from_stream(Box::pin(tokens))
}

/// Its job is taken, and nothing is launched for it.
async fn forgets() -> &'static str {
    let job = lineage_tokio::carried("a prompt");
    let taken = std::thread::spawn(|| drop(job.open()));
    taken.join().expect("no panic");
    "sent"
}

async fn ask(address: std::net::SocketAddr, path: &str) {
    let mut client = TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    client
        .write_all(request.as_bytes())
        .await
        .expect("it is sent");
    let mut answer = String::new();
    client
        .read_to_string(&mut answer)
        .await
        .expect("it is answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn whichever_they_are() {
    const REQUESTS: usize = 40;
    let ((), report) = recorded(|| async {
        let app = Router::new()
            .route("/generate", get(generate))
            .route("/health", get(async || "well"))
            .route("/forgets", get(forgets))
            .layer(EpochLayer::new());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        tokio::spawn(async move { axum::serve(listener, app).await });
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..REQUESTS {
            clients.spawn(ask(address, "/generate"));
            clients.spawn(ask(address, "/health"));
        }
        clients.spawn(ask(address, "/forgets"));
        clients.join_all().await;
    });
    let named = |name: &str| {
        let declared = report.declared();
        let named = declared.into_iter().filter(|it| &*it.name == name);
        named.map(|it| it.epoch).collect::<Vec<_>>()
    };
    let generate = named("GET /generate");
    assert_eq!(generate.len(), REQUESTS);
    assert_eq!(named("GET /health").len(), REQUESTS);
    for epoch in generate {
        let of_request = |row: &&lineage_core::row::Row| row.binding == Binding::Bound(epoch);
        let rows: Vec<_> = report.0.rows.iter().filter(of_request).collect();
        assert_eq!(rows.len(), 5);
        for row in rows {
            assert_eq!(row.sources.reachable, Some(true), "{row:?}");
            assert_eq!(row.faults, []);
        }
    }
    assert_eq!(report.0.rows.len(), 5 * REQUESTS);
    // The one that was handed on, and no request for the server's health.
    let faults: Vec<_> = report.0.totals.faults.iter().collect();
    assert_eq!(faults, [(FaultCode::L04, 1)]);
    let without = report.0.totals.epochs.ended_without_gpu_work;
    assert_eq!(without, REQUESTS as u64);
}
