//! A server that streams its answers: the tokens are made while the body is sent, after the handler
//! has returned, and are their own request's work all the same.
//!
//! `cargo run -p lineage-tower --features axum --example streamed_answers`

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::routing::post;
use lineage_core::{Lineage, current};
use lineage_tower::EpochLayer;
use tokio_stream::StreamExt as _;
use tower::ServiceExt as _;

async fn generate(Path(model): Path<String>) -> Body {
    let mut tokens = 0;
    // Each of these closures runs in a poll of the body. Here a decode step would be launched.
    let step = move |()| {
        tokens += 1;
        let request = current().epoch().map(|epoch| epoch.to_string());
        let request = request.unwrap_or("no epoch".to_owned());
        Ok::<_, Infallible>(format!("{model}: token {tokens} of {request}\n"))
    };
    let ticks = tokio_stream::iter([(); 3]).throttle(Duration::from_millis(10));
    Body::from_stream(ticks.map(step))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lineage = Lineage::builder().service("streamed answers").start()?;
    let app = Router::new()
        .route("/generate/{model}", post(generate))
        .route_layer(EpochLayer::new());

    let ask = |model: &str| {
        let request = http::Request::post(format!("/generate/{model}")).body(Body::empty());
        let app = app.clone();
        async move {
            let response = app.oneshot(request?).await?;
            let answer = axum::body::to_bytes(response.into_body(), 1 << 16).await?;
            Ok::<_, Box<dyn std::error::Error>>(String::from_utf8(answer.into())?)
        }
    };
    let (small, large) = tokio::try_join!(ask("small"), ask("large"))?;
    print!("{small}{large}");

    let report = tokio::task::spawn_blocking(move || lineage.shutdown(Duration::from_secs(5)));
    println!("{}", report.await?);
    Ok(())
}
