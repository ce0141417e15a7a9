//! Requests of a server, whose answers are streamed: a layer declares their epochs, and the body
//! goes on after the handler has returned.

use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes, to_bytes};
use axum::http::Request as HttpRequest;
use axum::routing::get;
use axum::{Extension, Router};
use futures_util::stream;
use launch_lineage::fault::FaultCode;
use lineage_tower::{EpochLayer, RequestEpoch};
use tower::ServiceExt as _;

use super::USUAL;
use crate::cell::Cell;
use crate::matrix::Carrier;
use crate::mutation::Shows;
use crate::raw;
use crate::request::{Request, Work};

pub(super) const CARRIERS: &[Carrier] = &[Carrier {
    name: "axum, a streamed answer",
    write: "router.route_layer(EpochLayer::new())",
    mutations: [
        Shows::Live(&[FaultCode::L01]),
        Shows::Live(&[FaultCode::W07]),
        Shows::CannotBe("the layer declares where the request itself is: nothing is to be swapped"),
    ],
    run: streamed,
    ..USUAL
}];

/// The request's work, as its data reaches the handler.
#[derive(Clone)]
struct Asked(Arc<Mutex<Option<Work>>>);

async fn generate(RequestEpoch(epoch): RequestEpoch, Extension(asked): Extension<Asked>) -> Body {
    let work = asked.0.lock().expect("nobody panics").take();
    let work = work.expect("it is asked for once");
    work.note(&epoch);
    work.launch();
    let tokens = stream::unfold((0, work), |(token, work)| async move {
        if token == 3 {
            return None;
        }
        tokio::task::yield_now().await;
        work.launch();
        let bytes = Ok::<_, std::convert::Infallible>(Bytes::from_static(b"token "));
        Some((bytes, (token + 1, work)))
    });
    Body::from_stream(tokens)
}

/// The body is read by a task of its own, as a connection's.
fn streamed(cell: &Cell) {
    let plain = Router::new().route("/generate", get(generate));
    let router = plain.clone().route_layer(EpochLayer::new());
    cell.tasks(move |request| {
        let router = if request.forgotten { &plain } else { &router };
        let router = router.clone();
        async move {
            let Request { epoch, work, .. } = request;
            // The layer declares another.
            drop(epoch);
            let asked = Asked(Arc::new(Mutex::new(Some(work))));
            let request = HttpRequest::get("/generate").extension(asked);
            let request = request.body(Body::empty()).expect("a valid request");
            let answer = router.oneshot(request).await.expect("it is answered");
            let read = raw::spawn(to_bytes(answer.into_body(), usize::MAX));
            let read = read.await.expect("the task does not panic");
            assert_eq!(read.expect("the body is read"), "token token token ");
        }
    });
}
