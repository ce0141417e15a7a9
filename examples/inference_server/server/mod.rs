//! The server: an HTTP handler, a batcher and an engine, as inference servers have them.
//!
//! ```text
//! handler, a task for each request      span with `launch_epoch`: the request's epoch is declared here
//!    │ tokio channel, in an envelope
//! batcher, one task                     lets new requests join the running batch at every step;
//!    │ std channel, in envelopes        N request epochs → one batch epoch
//! engine, a thread of its own           owns the CUDA stream; launches inside boundaries, a step
//!                                       kernel by kernel or, with `--graphs`, as a graph
//! ```
//!
//! Tokens go back from the batcher to each handler's response while it is being written.

mod batcher;
mod engine;
mod graphs;
mod handler;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use axum::routing::post;
use launch_lineage::{Carried, spawn};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::model::reference::Token;
use crate::model::weights::Weights;
use crate::sabotage::Sabotage;
use crate::truth::Labels;
use batcher::Batcher;
use engine::Engine;
use graphs::Graphs;

/// Requests that may wait for a place in the batch; further ones wait in their handlers.
const QUEUE: usize = 256;

/// A request on its way from the handler to the batcher.
struct Job {
    /// The request's number: its identity in the data, from 1.
    number: u64,
    prompt: Vec<u8>,
    tokens: usize,
    /// Where the answer goes, token by token.
    reply: mpsc::Sender<Reply>,
}

/// What comes back for a job.
enum Reply {
    Token(Token),
    /// The device failed.
    Failed(Arc<str>),
}

/// What every handler has.
#[derive(Clone)]
struct Shared {
    queue: mpsc::Sender<Carried<Job>>,
    labels: Arc<Labels>,
}

/// How much the batcher did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Work {
    /// Requests that got a place in a batch.
    pub requests: u64,
    /// Sets of requests that were decoded together.
    pub batches: u64,
    /// Decode steps.
    pub steps: u64,
}

/// Why the server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The device could not be opened, or the engine's thread not be started.
    #[error("the engine did not start: {0}")]
    Engine(String),
    /// The listener is not usable.
    #[error("the server cannot listen: {0}")]
    Listen(#[from] std::io::Error),
}

/// A running server.
pub struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    http: JoinHandle<std::io::Result<()>>,
    batcher: JoinHandle<Work>,
}

impl Server {
    /// Starts to serve on a listener, inside a tokio runtime. Returns when the device is ready.
    pub async fn start(
        listener: TcpListener,
        weights: &Arc<Weights>,
        labels: &Arc<Labels>,
        sabotage: Sabotage,
        graphs: bool,
    ) -> Result<Self, ServerError> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;

        let graphs = graphs.then(|| Graphs::new(Arc::clone(labels)));
        let engine = Engine::start(Arc::clone(weights), sabotage.clone(), graphs).await?;
        let (queue, jobs) = mpsc::channel(QUEUE);
        let batcher = spawn(Batcher::new(engine, Arc::clone(labels), sabotage).run(jobs));

        let shared = Shared {
            queue,
            labels: Arc::clone(labels),
        };
        let router = Router::new()
            .route("/generate", post(handler::generate))
            .with_state(shared);
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
            // Either way it is time to stop: told to, or the server was dropped.
            let _ = stopped.await;
        });
        let http = spawn(async move { serving.await });
        Ok(Self {
            address,
            stop,
            http,
            batcher,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets the requests that are under way end, then the batcher and the engine.
    pub async fn stop(self) -> Result<Work, ServerError> {
        // An error means that serving has ended already, with a reason that `http` gives.
        let _ = self.stop.send(());
        match self.http.await {
            Ok(served) => served?,
            Err(panic) => return Err(ServerError::Engine(panic.to_string())),
        }
        self.batcher
            .await
            .map_err(|panic| ServerError::Engine(panic.to_string()))
    }
}
