//! Over a real connection: a client that closes it while its request is worked on, or while its
//! answer is streamed, leaves a cancelled epoch and nothing else.
#![cfg(all(feature = "axum", feature = "record"))]

mod common;

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use common::{current, recorded};
use lineage_core::observation::RetiredAs;
use lineage_tower::EpochLayer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;

/// Uses the sender when it is dropped, as the handler's or the body's last act.
struct Gone(mpsc::UnboundedSender<Option<lineage_core::LaunchEpoch>>);

impl Drop for Gone {
    fn drop(&mut self) {
        // The test may have ended already.
        let _ = self.0.send(current());
    }
}

#[derive(Debug, Clone, Copy)]
enum Leaves {
    WhileTheHandlerRuns,
    WhileTheBodyIsSent,
    AfterTheEnd,
}

#[test]
fn whenever_it_goes() {
    for (leaves, ended) in [
        (Leaves::WhileTheHandlerRuns, RetiredAs::Cancelled),
        (Leaves::WhileTheBodyIsSent, RetiredAs::Cancelled),
        (Leaves::AfterTheEnd, RetiredAs::Done),
    ] {
        let (dropped_in, report) = recorded(|| serve(leaves));
        let epoch = report.only_epoch();
        assert_eq!(dropped_in, Some(epoch), "{leaves:?}");
        assert_eq!(report.ended(epoch), ended, "{leaves:?}");
        assert_eq!(report.misuses(), 0, "{leaves:?}");
    }
}

async fn serve(leaves: Leaves) -> Option<lineage_core::LaunchEpoch> {
    let (gone, mut is_gone) = mpsc::unbounded_channel();
    let handler = move || {
        let gone = Gone(gone.clone());
        async move {
            match leaves {
                Leaves::WhileTheHandlerRuns => {
                    let _gone = gone;
                    std::future::pending().await
                }
                Leaves::WhileTheBodyIsSent => {
                    let endless = tokio_stream::iter(std::iter::repeat(()));
                    let tokens = endless.throttle(Duration::from_millis(1)).map(move |()| {
                        let _gone = &gone;
                        Ok::<_, Infallible>("token ")
                    });
                    Body::from_stream(tokens)
                }
                Leaves::AfterTheEnd => {
                    let tokens = tokio_stream::iter(0..3).map(move |_| {
                        let _gone = &gone;
                        Ok::<_, Infallible>("token ")
                    });
                    Body::from_stream(tokens)
                }
            }
        }
    };
    let app = Router::new()
        .route("/", get(handler))
        .layer(EpochLayer::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    let mut client = TcpStream::connect(address).await.expect("it listens");
    let request = b"GET / HTTP/1.1\r\nhost: test\r\n\r\n";
    client.write_all(request).await.expect("it is sent");
    let mut received = Vec::new();
    match leaves {
        // Until the handler surely runs; a shorter time makes the test weaker, not wrong.
        Leaves::WhileTheHandlerRuns => tokio::time::sleep(Duration::from_millis(100)).await,
        Leaves::WhileTheBodyIsSent => read_until(&mut client, &mut received, b"token ").await,
        Leaves::AfterTheEnd => read_until(&mut client, &mut received, b"0\r\n\r\n").await,
    }
    drop(client);
    let dropped_in = tokio::time::timeout(Duration::from_secs(20), is_gone.recv()).await;
    server.abort();
    dropped_in.expect("in time").expect("it was dropped")
}

async fn read_until(client: &mut TcpStream, received: &mut Vec<u8>, end: &[u8]) {
    while !received.windows(end.len()).any(|window| window == end) {
        let read = client.read_buf(received).await.expect("it is served");
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(received));
    }
}
