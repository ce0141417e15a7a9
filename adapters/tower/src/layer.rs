//! The server's side: an epoch for every request.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use http_body::Body;
use lineage_core::Epoch;
use tower_layer::Layer;
use tower_service::Service;

use crate::future::{EndsWith, ResponseFuture};
use crate::head::RequestHead;
use crate::names;
use crate::request_epoch::RequestEpoch;
use crate::traceparent::{self, Counters, Counts, Traceparent, count};

type NameOf = dyn Fn(RequestHead<'_>) -> &'static str + Send + Sync;
type IsMeant = dyn Fn(RequestHead<'_>) -> bool + Send + Sync;

/// A layer that declares an epoch for every request.
///
/// The crate's documentation says how the epoch ends and what it is called. Where an epoch is current
/// already, as in a span with the field `launch_epoch`, the request's is a fork of it. A request that
/// comes through two such layers has the outer one's epoch.
///
/// ```
/// use lineage_tower::{EpochLayer, Traceparent};
///
/// // A gRPC service behind a gateway that we run ourselves:
/// let layer = EpochLayer::new()
///     .traceparent(Traceparent::Trusted)
///     .only(|request| request.uri.path().starts_with("/llm.Engine/"))
///     .named_by(|request| match request.uri.path() {
///         "/llm.Engine/Generate" => "Generate",
///         "/llm.Engine/Embed" => "Embed",
///         _ => "other",
///     });
/// # let _ = layer;
/// ```
#[derive(Clone)]
#[must_use = "a layer does nothing until a service is put into it"]
pub struct EpochLayer {
    settings: Settings,
}

#[derive(Clone)]
struct Settings {
    site: &'static Location<'static>,
    name: Option<Arc<NameOf>>,
    only: Option<Arc<IsMeant>>,
    traceparent: Traceparent,
    counters: Arc<Counters>,
}

impl Default for EpochLayer {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl EpochLayer {
    /// A layer for every request; its call site is that of the epochs.
    #[track_caller]
    pub fn new() -> Self {
        Self {
            settings: Settings {
                site: Location::caller(),
                name: None,
                only: None,
                traceparent: Traceparent::default(),
                counters: Arc::default(),
            },
        }
    }

    /// One name for all requests.
    pub fn named(self, name: &'static str) -> Self {
        self.named_by(move |_| name)
    }

    /// A name for each request: of its kind, so that there are few.
    pub fn named_by<F>(mut self, name: F) -> Self
    where
        F: Fn(RequestHead<'_>) -> &'static str + Send + Sync + 'static,
    {
        self.settings.name = Some(Arc::new(name));
        self
    }

    /// Which requests do GPU work. The others are passed through.
    pub fn only<F>(mut self, is_meant: F) -> Self
    where
        F: Fn(RequestHead<'_>) -> bool + Send + Sync + 'static,
    {
        self.settings.only = Some(Arc::new(is_meant));
        self
    }

    /// How far a request's `traceparent` is believed. [`Traceparent::Linked`] if nothing is said.
    pub fn traceparent(mut self, policy: Traceparent) -> Self {
        self.settings.traceparent = policy;
        self
    }

    /// What was read of requests so far, and what could not be.
    pub fn counts(&self) -> Counts {
        self.settings.counters.read()
    }
}

impl fmt::Debug for EpochLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpochLayer")
            .field("site", &format_args!("{}", self.settings.site))
            .field("traceparent", &self.settings.traceparent)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for EpochLayer {
    type Service = EpochService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        // Whichever of lineage-tokio's carriers is made first tells lineage which task is running.
        // Here the requests' tasks have to be known, and there may be no other carrier.
        drop(lineage_tokio::carried_by(&Epoch::inert(), ()));
        EpochService {
            inner,
            settings: Arc::new(self.settings.clone()),
        }
    }
}

/// A service whose requests have epochs. Made by [`EpochLayer`].
#[derive(Clone)]
pub struct EpochService<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S: fmt::Debug> fmt::Debug for EpochService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpochService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl<S, Q, P> Service<Request<Q>> for EpochService<S>
where
    S: Service<Request<Q>, Response = Response<P>>,
    P: Body,
{
    type Response = Response<crate::EpochBody<P>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Q>) -> Self::Future {
        let head = RequestHead::of(&request);
        if let Some(RequestEpoch(outer)) = head.extensions.get() {
            let epoch = outer.clone();
            let future = epoch.run(|| self.inner.call(request));
            return ResponseFuture::within(future, epoch);
        }
        let is_meant = self.settings.only.as_ref();
        if !is_meant.is_none_or(|is_meant| is_meant(head)) {
            return ResponseFuture::within(self.inner.call(request), Epoch::inert());
        }
        // The body of an answer to HEAD is never read.
        let ends_with = if head.method == Method::HEAD {
            EndsWith::Head
        } else {
            EndsWith::Body
        };
        let epoch = self.settings.declare(head);
        if !epoch.is_inert() {
            request.extensions_mut().insert(RequestEpoch(epoch.clone()));
        }
        let future = epoch.run(|| self.inner.call(request));
        ResponseFuture::owning(future, epoch, ends_with)
    }
}

impl Settings {
    fn declare(&self, head: RequestHead<'_>) -> Epoch {
        let name = match &self.name {
            Some(name) => name(head),
            None => {
                let name = names::of(head.method, head.route());
                if name.left_out {
                    count(&self.counters.names_without_route);
                }
                name.text
            }
        };
        let (file, line, column) = (self.site.file(), self.site.line(), self.site.column());
        let around = Epoch::current();
        let epoch = if around.is_inert() {
            Epoch::declare_at(name, file, line, column)
        } else {
            around.fork_at(name, file, line, column)
        };
        if !epoch.is_inert() {
            count(&self.counters.requests);
            traceparent::apply(self.traceparent, head.headers, &epoch, &self.counters);
        }
        epoch
    }
}
