//! A response's body is made after the handler has returned: in its request's epoch, on whichever
//! thread, until its end or until it is dropped.
#![cfg(feature = "record")]

mod common;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use common::{current, recorded};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Empty, Full};
use lineage_core::id::LaunchEpoch;
use lineage_core::observation::RetiredAs;
use lineage_tower::{EpochBody, EpochLayer};
use tower::{ServiceBuilder, ServiceExt as _};

type Seen = Arc<Mutex<Vec<Option<LaunchEpoch>>>>;

/// What a body does when it is polled next.
#[derive(Debug, Clone, Copy)]
enum Step {
    Data,
    Fails,
    Trailers(&'static str),
}

/// A body that notes what is current in each of its polls, and when it is dropped.
struct Notes {
    seen: Seen,
    steps: VecDeque<Step>,
}

impl Body for Notes {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.seen.lock().expect("no panic").push(current());
        Poll::Ready(self.steps.pop_front().map(|step| match step {
            Step::Data => Ok(Frame::data(Bytes::from_static(b"token "))),
            Step::Fails => Err(std::io::Error::other("on purpose")),
            Step::Trailers(status) => {
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", HeaderValue::from_static(status));
                Ok(Frame::trailers(trailers))
            }
        }))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(6 * self.steps.len() as u64)
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        self.seen.lock().expect("no panic").push(current());
    }
}

/// The response of a service whose body takes these steps.
async fn respond(seen: Seen, steps: VecDeque<Step>, method: Method) -> Response<EpochBody<Notes>> {
    let notes = Mutex::new(Some(Notes { seen, steps }));
    let service =
        ServiceBuilder::new()
            .layer(EpochLayer::new())
            .service_fn(move |_: Request<()>| {
                let body = notes.lock().expect("no panic").take();
                let response = Response::new(body.expect("it is asked once"));
                async move { Ok::<_, std::convert::Infallible>(response) }
            });
    let mut request = Request::new(());
    *request.method_mut() = method;
    service.oneshot(request).await.expect("infallible")
}

/// How a response's body is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    ToTheEnd,
    OneFrame,
    NotAtAll,
}

/// Uses a response, and says how its epoch ended; all that the body did was in its epoch.
fn use_response(steps: &[Step], method: Method, how: Use) -> RetiredAs {
    let seen = Seen::default();
    let (hint, report) = recorded(|| async {
        let response = respond(
            seen.clone(),
            steps.iter().copied().collect(),
            method.clone(),
        )
        .await;
        let hint = response.body().size_hint().exact();
        assert_eq!(current(), None, "the handler has returned");
        // Sent by another task than the one that made it.
        let sender = tokio::spawn(async move {
            let mut body = Box::pin(response.into_body());
            match how {
                Use::ToTheEnd => while let Some(Ok(_)) = body.frame().await {},
                Use::OneFrame => drop(body.frame().await),
                Use::NotAtAll => {}
            }
            assert_eq!(current(), None);
        });
        sender.await.expect("no panic");
        hint
    });
    assert_eq!(
        hint,
        Some(6 * steps.len() as u64),
        "the size is known as before"
    );
    let epoch = report.only_epoch();
    let seen = Arc::into_inner(seen).expect("the body is gone");
    let seen = seen.into_inner().expect("no panic");
    if method != Method::HEAD {
        assert!(seen.iter().all(|seen| *seen == Some(epoch)), "{seen:?}");
    }
    let polls = match how {
        Use::NotAtAll => 0,
        Use::OneFrame => 1,
        Use::ToTheEnd if matches!(steps.last(), Some(Step::Fails)) => steps.len(),
        Use::ToTheEnd => steps.len() + 1,
    };
    assert_eq!(seen.len(), polls + 1);
    assert_eq!(report.misuses(), 0);
    assert_eq!(report.handoffs(epoch), 0);
    report.ended(epoch)
}

const TOKENS: [Step; 3] = [Step::Data; 3];

#[test]
fn to_its_end_it_is_done() {
    let ended = use_response(&TOKENS, Method::POST, Use::ToTheEnd);
    assert_eq!(ended, RetiredAs::Done);
}

#[test]
fn dropped_half_way_it_is_cancelled() {
    let ended = use_response(&TOKENS, Method::POST, Use::OneFrame);
    assert_eq!(ended, RetiredAs::Cancelled);
}

#[test]
fn dropped_without_a_poll_it_is_cancelled() {
    let ended = use_response(&TOKENS, Method::POST, Use::NotAtAll);
    assert_eq!(ended, RetiredAs::Cancelled);
}

#[test]
fn failing_it_is_cancelled() {
    let steps = [Step::Data, Step::Fails];
    let ended = use_response(&steps, Method::POST, Use::ToTheEnd);
    assert_eq!(ended, RetiredAs::Cancelled);
}

#[test]
fn grpcs_trailers_say_whether_it_failed() {
    for (status, expected) in [("0", RetiredAs::Done), ("13", RetiredAs::Cancelled)] {
        let steps = [Step::Data, Step::Trailers(status)];
        let ended = use_response(&steps, Method::POST, Use::ToTheEnd);
        assert_eq!(ended, expected, "grpc-status {status}");
    }
}

#[test]
fn the_answer_to_head_ends_with_its_head() {
    let ended = use_response(&TOKENS, Method::HEAD, Use::NotAtAll);
    assert_eq!(ended, RetiredAs::Done);
}

/// Those who send a body of known length need not ask whether it has ended.
#[test]
fn a_body_that_says_it_has_ended_is_done() {
    let (frames, report) = recorded(|| async {
        let service =
            ServiceBuilder::new()
                .layer(EpochLayer::new())
                .service_fn(|_: Request<()>| async {
                    let body = Full::new(Bytes::from_static(b"all of it"));
                    Ok::<_, std::convert::Infallible>(Response::new(body))
                });
        let response = service.oneshot(Request::new(())).await.expect("infallible");
        let mut body = response.into_body();
        assert!(!body.is_end_stream());
        let frame = body.frame().await;
        assert!(body.is_end_stream());
        drop(body);
        usize::from(frame.is_some())
    });
    assert_eq!(frames, 1);
    assert_eq!(report.ended(report.only_epoch()), RetiredAs::Done);
}

#[test]
fn a_body_of_nothing_has_ended() {
    let ((), report) = recorded(|| async {
        let service =
            ServiceBuilder::new()
                .layer(EpochLayer::new())
                .service_fn(|_: Request<()>| async {
                    Ok::<_, std::convert::Infallible>(Response::new(Empty::<Bytes>::new()))
                });
        let response = service.oneshot(Request::new(())).await.expect("infallible");
        assert!(response.body().is_end_stream());
    });
    assert_eq!(report.ended(report.only_epoch()), RetiredAs::Done);
}
