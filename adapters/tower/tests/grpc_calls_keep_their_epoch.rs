//! tonic, over a real connection: unary and streamed calls, each in an epoch of its own to the last
//! message; calls that fail or are given up are cancelled.
#![cfg(feature = "record")]

mod common;
mod grpc;

use std::collections::HashSet;
use std::time::Duration;

use common::recorded;
use grpc::{Client, Numbers, STREAM, TO_FAIL, TO_WAIT, UNARY};
use lineage_core::observation::RetiredAs;
use lineage_tower::EpochLayer;
use tokio::net::TcpListener;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::Code;
use tonic::transport::{Channel, Server};

/// A server, and a client that is connected to it.
async fn connected() -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let layer = EpochLayer::new().named_by(|head| match head.uri.path() {
        UNARY => "Unary",
        STREAM => "Stream",
        _ => "other",
    });
    let server = Server::builder().layer(layer).add_service(Numbers);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let channel = Channel::from_shared(format!("http://{address}")).expect("a valid address");
    Client::new(channel.connect().await.expect("it listens"))
}

#[test]
fn a_unary_call() {
    let (seen, report) = recorded(|| async { connected().await.unary(1).await });
    let epoch = report.only_epoch();
    assert_eq!(seen.expect("it is answered"), epoch.pack().bits());
    assert_eq!(&*report.declared()[0].name, "Unary");
    assert_eq!(report.ended(epoch), RetiredAs::Done);
}

#[test]
fn every_message_of_a_streamed_call() {
    let (seen, report) = recorded(|| async {
        let messages = connected().await.stream(100).await.expect("it begins");
        messages
            .map(|it| it.expect("a message"))
            .collect::<Vec<_>>()
            .await
    });
    let epoch = report.only_epoch();
    assert_eq!(seen, [epoch.pack().bits(); 100]);
    assert_eq!(&*report.declared()[0].name, "Stream");
    assert_eq!(report.ended(epoch), RetiredAs::Done);
}

#[test]
fn many_calls_over_one_connection() {
    const CALLS: u64 = 400;
    let (seen, report) = recorded(|| async {
        let client = connected().await;
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..CALLS {
            let mut client = client.clone();
            tasks.spawn(async move {
                let messages = client.stream(5).await.expect("it begins");
                let seen = messages.map(|it| it.expect("a message"));
                let seen: Vec<u64> = seen.collect().await;
                assert_eq!(seen, [seen[0]; 5], "one call is one epoch");
                seen[0]
            });
        }
        tasks.join_all().await.into_iter().collect::<HashSet<_>>()
    });
    let declared = report.declared();
    let declared: HashSet<_> = declared.iter().map(|it| it.epoch.pack().bits()).collect();
    assert_eq!(seen.len(), CALLS as usize, "every call has its own");
    assert_eq!(seen, declared);
    for declared in report.declared() {
        assert_eq!(report.ended(declared.epoch), RetiredAs::Done);
    }
}

#[test]
fn calls_that_fail_are_cancelled() {
    let ((), report) = recorded(|| async {
        let mut client = connected().await;
        let failed = client.unary(TO_FAIL).await.expect_err("it fails");
        assert_eq!(failed.code(), Code::InvalidArgument);
        let mut messages = client.stream(TO_FAIL).await.expect("it begins");
        let mut seen = 0;
        let failed = loop {
            match messages.message().await {
                Ok(Some(_)) => seen += 1,
                Ok(None) => panic!("it fails"),
                Err(failed) => break failed,
            }
        };
        assert_eq!((seen, failed.code()), (3, Code::Internal));
    });
    let declared = report.declared();
    assert_eq!(declared.len(), 2);
    for declared in declared {
        assert_eq!(report.ended(declared.epoch), RetiredAs::Cancelled);
    }
}

#[test]
fn calls_that_are_given_up_are_cancelled() {
    let ((), report) = recorded(|| async {
        let mut client = connected().await;
        let waits = client.unary(TO_WAIT);
        let late = tokio::time::timeout(Duration::from_millis(200), waits).await;
        assert!(late.is_err(), "it waits for ever");
        let mut messages = client.stream(u64::MAX / 2).await.expect("it begins");
        assert!(messages.message().await.expect("a message").is_some());
        drop(messages);
        // The server hears of both by resets of their streams.
        let done = client.unary(1).await;
        assert!(done.is_ok());
    });
    let ended = report
        .declared()
        .into_iter()
        .map(|it| report.ended(it.epoch));
    let (cancelled, done) = (RetiredAs::Cancelled, RetiredAs::Done);
    assert_eq!(ended.collect::<Vec<_>>(), [cancelled, cancelled, done]);
    assert_eq!(report.misuses(), 0);
}
