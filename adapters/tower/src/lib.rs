//! Launch epochs for HTTP and gRPC servers.
//!
//! [`EpochLayer`] declares an epoch for every request. It is current while the handler's future is
//! polled and dropped, and then goes along with the response's body: the tokens of a streamed answer
//! are made in polls of the body, after the handler has returned, and what is launched there is the
//! request's work, too.
//!
//! ```
//! # #[cfg(feature = "axum")] {
//! use axum::routing::post;
//! use axum::Router;
//! use lineage_tower::{EpochLayer, RequestEpoch};
//!
//! async fn generate(RequestEpoch(epoch): RequestEpoch, prompt: String) -> String {
//!     // What is launched here, and in the body that is returned, belongs to `epoch`.
//!     assert_eq!(lineage_core::current().epoch(), epoch.id());
//!     prompt
//! }
//!
//! let app: Router = Router::new()
//!     .route("/generate/{model}", post(generate))
//!     // On the routes that do GPU work, and on no others.
//!     .route_layer(EpochLayer::new())
//!     .route("/health", axum::routing::get(|| async { "ok" }));
//! # let _ = app;
//! # }
//! ```
//!
//! # How a request's epoch ends
//!
//! | the request | its epoch |
//! | --- | --- |
//! | is answered, its body is read to the end | is retired when the body is dropped |
//! | is dropped while it is worked on, or its body half-way: the client went away | is [cancelled](lineage_core::Epoch::cancel) |
//! | panics, or its service or body fails | is cancelled |
//! | is answered with a client's or server's error (a status from 400, or a `grpc-status` other than 0) | is cancelled |
//!
//! A request that never launches, as for a server's health, is no fault: its epoch ended where it was
//! declared. One that hands work on, in an envelope or to a task, and for which nothing is launched
//! then, *is* one (`L04`), unless it was cancelled. All the same, put the layer on the routes that
//! launch, or say with [`EpochLayer::only`] which requests are meant: an epoch costs a little, and its
//! name is worth more among few.
//!
//! Handler and body are polled in the server's tasks, which are told apart by their ids, so they are
//! no handoffs.
//!
//! # Names
//!
//! An epoch's name is the method and the route's template, `POST /generate/{model}`, where axum gives
//! it (feature `axum`; the layer must lie inside the router), else the method alone. The path itself
//! is never a name: its values are without number. For others, as gRPC's methods, see
//! [`EpochLayer::named_by`].
//!
//! # `traceparent`
//!
//! * **In**: a request from outside may claim any parent. So by default its `traceparent` is recorded
//!   as a [link](lineage_core::Epoch::link_span); only [`Traceparent::Trusted`] makes it the epoch's
//!   parent. What is not valid is ignored and [counted](EpochLayer::counts).
//! * **Out**: [`PropagateLayer`], around a client, writes the current epoch's parent into requests
//!   that have no `traceparent` yet. An epoch without a parent writes none: ids are never made up.
//!
//! # Works with
//!
//! Anything that is a `tower` service of `http` requests: axum, tonic (as a layer of its server),
//! hyper through `hyper_util::service::TowerToHyperService`. A connection that is upgraded, as a web
//! socket, goes on in a task that the framework spawns: give its future the epoch,
//! with [`RequestEpoch`] and `lineage_tokio::FutureExt`.
//!
//! # Features
//!
//! * `record` (default): recording itself. Without it requests and bodies are passed through.
//! * `axum`: route templates as names, and [`RequestEpoch`] as an extractor.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod future;
mod head;
mod layer;
mod names;
mod polled;
mod propagate;
mod request_epoch;
mod traceparent;

pub use body::EpochBody;
pub use future::ResponseFuture;
pub use head::RequestHead;
pub use layer::{EpochLayer, EpochService};
pub use propagate::{Propagate, PropagateLayer};
pub use request_epoch::RequestEpoch;
pub use traceparent::{Counts, MAX_TRACEPARENT_BYTES, Traceparent};
