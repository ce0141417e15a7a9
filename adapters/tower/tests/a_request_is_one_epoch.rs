//! Every request that is meant has one epoch, under its route's name, current in the handler and in
//! all that the handler awaits. How the request ends is how its epoch ends.
#![cfg(all(feature = "axum", feature = "record"))]

mod common;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::routing::{any, get, post};
use common::{current, recorded};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use lineage_core::Epoch;
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::{Event, LinkKind, RetiredAs};
use lineage_tower::{EpochLayer, RequestEpoch};
use tower::ServiceExt as _;

fn request(method: &str, uri: &str) -> Request<Body> {
    let request = Request::builder().method(method).uri(uri);
    request.body(Body::empty()).expect("a valid request")
}

/// Asks, and reads the answer to its end.
async fn ask(app: &Router, request: Request<Body>) -> (StatusCode, Option<LaunchEpoch>) {
    let response = app.clone().oneshot(request).await.expect("infallible");
    let attached = response.extensions().get::<RequestEpoch>().cloned();
    let status = response.status();
    response.into_body().collect().await.expect("a whole body");
    (status, attached.and_then(|epoch| epoch.0.id()))
}

#[test]
fn named_by_its_route_and_current_throughout() {
    async fn handler(RequestEpoch(epoch): RequestEpoch, Path(truth): Path<u32>) -> String {
        assert_eq!(current(), epoch.id());
        tokio::task::yield_now().await;
        assert_eq!(current(), epoch.id());
        let spawned = lineage_tokio::spawn(async { current() }).await;
        assert_eq!(spawned.expect("no panic"), epoch.id());
        truth.to_string()
    }
    let ((layer, attached), report) = recorded(|| async {
        let layer = EpochLayer::new();
        let app = Router::new()
            .route("/generate/{truth}", post(handler))
            .layer(layer.clone());
        let (status, attached) = ask(&app, request("POST", "/generate/17")).await;
        assert_eq!(status, StatusCode::OK);
        (layer, attached)
    });
    let declared = report.declared();
    let [declared] = declared[..] else {
        panic!("{declared:?}");
    };
    assert_eq!(&*declared.name, "POST /generate/{truth}");
    assert_eq!(attached, Some(declared.epoch));
    let site = declared.site.as_ref().expect("a call site");
    assert!(site.file.ends_with("a_request_is_one_epoch.rs"), "{site}");
    assert_eq!(report.ended(declared.epoch), RetiredAs::Done);
    assert_eq!(report.misuses(), 0);
    assert_eq!(layer.counts().requests, 1);
}

#[test]
fn names_never_hold_what_the_client_chose() {
    let ((), report) = recorded(|| async {
        let app = Router::new()
            .route("/route", any(async || ()))
            .layer(EpochLayer::new());
        ask(&app, request("BREW", "/route?secret")).await;
        ask(&app, request("GET", "/no/such/route")).await;
        let named = EpochLayer::new().named("engine");
        let app = Router::new().fallback(async || ()).layer(named);
        ask(&app, request("GET", "/anything")).await;
        let by = EpochLayer::new().named_by(|head| match *head.method {
            Method::GET => "reads",
            _ => "writes",
        });
        let app = Router::new().fallback(async || ()).layer(by);
        ask(&app, request("PUT", "/anything")).await;
    });
    let names: Vec<_> = report.declared().iter().map(|it| it.name.clone()).collect();
    let names: Vec<_> = names.iter().map(|name| &**name).collect();
    assert_eq!(names, ["HTTP /route", "GET", "engine", "writes"]);
}

#[test]
fn an_error_cancels_it() {
    for (status, ended) in [
        (200, RetiredAs::Done),
        (204, RetiredAs::Done),
        (304, RetiredAs::Done),
        (400, RetiredAs::Cancelled),
        (404, RetiredAs::Cancelled),
        (429, RetiredAs::Cancelled),
        (500, RetiredAs::Cancelled),
        (503, RetiredAs::Cancelled),
    ] {
        let status = StatusCode::from_u16(status).expect("a valid status");
        let ((), report) = recorded(|| async {
            let app = Router::new()
                .route("/", get(move || async move { (status, "some text") }))
                .layer(EpochLayer::new());
            assert_eq!(ask(&app, request("GET", "/")).await.0, status);
        });
        assert_eq!(report.ended(report.only_epoch()), ended, "{status}");
    }
}

#[test]
fn a_failing_service_cancels_it() {
    let ((), report) = recorded(|| async {
        let failing = tower::service_fn(|_: Request<()>| async {
            Err::<http::Response<Body>, _>(std::io::Error::other("on purpose"))
        });
        let service = tower::ServiceBuilder::new()
            .layer(EpochLayer::new())
            .service(failing);
        let result = service.oneshot(Request::new(())).await;
        assert!(result.is_err());
    });
    assert_eq!(report.ended(report.only_epoch()), RetiredAs::Cancelled);
}

#[test]
fn a_panicking_handler_leaves_no_epoch_behind() {
    let ((), report) = recorded(|| async {
        async fn panics() -> &'static str {
            tokio::task::yield_now().await;
            panic!("on purpose")
        }
        let app = Router::new()
            .route("/", get(panics))
            .layer(EpochLayer::new());
        let task = tokio::spawn(async move { ask(&app, request("GET", "/")).await });
        assert!(task.await.expect_err("it panics").is_panic());
        // Whichever worker it was.
        for _ in 0..64 {
            let left = tokio::spawn(async { current() }).await;
            assert_eq!(left.expect("no panic"), None);
        }
    });
    assert_eq!(report.ended(report.only_epoch()), RetiredAs::Cancelled);
    assert_eq!(report.misuses(), 0);
}

#[test]
fn a_request_that_is_not_meant_has_none() {
    let ((), report) = recorded(|| async {
        let meant = EpochLayer::new().only(|head| head.uri.path() != "/health");
        let app = Router::new()
            .route("/health", get(async || assert_eq!(current(), None)))
            .route("/work", get(async || assert!(current().is_some())))
            .layer(meant.clone());
        assert_eq!(
            ask(&app, request("GET", "/health")).await,
            (StatusCode::OK, None)
        );
        assert_eq!(meant.counts().requests, 0);
        assert!(ask(&app, request("GET", "/work")).await.1.is_some());
        assert_eq!(meant.counts().requests, 1);
    });
    report.only_epoch();
}

#[test]
fn two_layers_are_one_epoch_and_work_around_is_forked() {
    let (around, report) = recorded(|| async {
        let app = Router::new()
            .route(
                "/",
                get(async |RequestEpoch(epoch): RequestEpoch| {
                    assert_eq!(current(), epoch.id());
                }),
            )
            .layer(EpochLayer::new().named("inner"))
            .layer(EpochLayer::new().named("outer"));
        let around = Epoch::declare("around");
        let asked = ask(&app, request("GET", "/"));
        use lineage_tokio::FutureExt as _;
        let (_, attached) = asked.in_epoch(&around).await;
        (around.id().expect("recording is on"), attached)
    });
    let (around, attached) = around;
    let names: Vec<_> = report.declared().iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["around", "outer"]);
    let outer = report.declared()[1].epoch;
    assert_eq!(attached, Some(outer));
    let links: Vec<_> = report
        .events()
        .filter_map(|event| match event {
            Event::Linked(link) => Some((link.epoch, link.from, link.kind)),
            _ => None,
        })
        .collect();
    assert_eq!(links, [(outer, around, LinkKind::Fork)]);
    assert_eq!(report.ended(outer), RetiredAs::Done);
}

#[test]
fn without_the_layer_the_extractor_says_what_is_current() {
    let ((), report) = recorded(|| async {
        let app = Router::new().route(
            "/",
            get(async |RequestEpoch(epoch): RequestEpoch| {
                assert_eq!(epoch.id(), current());
            }),
        );
        assert_eq!(ask(&app, request("GET", "/")).await, (StatusCode::OK, None));
    });
    assert!(report.declared().is_empty());
}

#[test]
fn of_many_requests_at_once_each_has_its_own() {
    const REQUESTS: u32 = 2_000;
    async fn handler(Path(truth): Path<u32>) -> Body {
        use tokio_stream::StreamExt as _;
        let id = current().expect("the layer is there");
        tokio::task::yield_now().await;
        assert_eq!(current(), Some(id));
        let chunks = tokio_stream::iter(0..4).map(move |_| {
            assert_eq!(current(), Some(id), "request {truth}");
            Ok::<_, std::convert::Infallible>(format!("{id} "))
        });
        Body::from_stream(chunks)
    }
    let (seen, report) = recorded(|| async {
        let app = Router::new()
            .route("/{truth}", get(handler))
            .layer(EpochLayer::new());
        let mut tasks = tokio::task::JoinSet::new();
        for truth in 0..REQUESTS {
            let app = app.clone();
            tasks.spawn(async move {
                let response = app
                    .oneshot(request("GET", &format!("/{truth}")))
                    .await
                    .expect("infallible");
                let body = response.into_body().collect().await.expect("a body");
                let body = String::from_utf8(body.to_bytes().into()).expect("text");
                let mut words: Vec<_> = body.split_whitespace().map(str::to_owned).collect();
                assert_eq!(words.len(), 4);
                words.dedup();
                assert_eq!(words.len(), 1, "one request saw {words:?}");
                words.remove(0)
            });
        }
        let mut seen = tasks.join_all().await;
        seen.sort_unstable();
        seen.dedup();
        seen.len()
    });
    assert_eq!(seen, REQUESTS as usize);
    assert_eq!(report.declared().len(), REQUESTS as usize);
    assert_eq!(report.0.totals.epochs.declared, u64::from(REQUESTS));
    for declared in report.declared() {
        assert_eq!(report.ended(declared.epoch), RetiredAs::Done);
    }
}
