//! The engine: the one thread that owns the device's stream and launches everything.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use cudarc::driver::DriverError;
use launch_lineage::{Carried, detached};
use lineage_cudarc::{CaptureError, LaunchError};
use tokio::sync::oneshot;

use super::ServerError;
use super::graphs::Graphs;
use crate::device::{Answer, Device};
use crate::model::weights::Weights;
use crate::sabotage::{LeftBehind, Sabotage};

/// A prompt to be read into a slot.
pub(super) struct Prefill {
    pub(super) label: u64,
    pub(super) slot: u32,
    pub(super) prompt: Vec<u8>,
}

/// One decode step of a batch.
pub(super) struct Step {
    pub(super) label: u64,
    pub(super) members: usize,
    /// The members' slots, if they are others than in the step before.
    pub(super) formed: Option<Vec<u32>>,
}

/// What the engine does between two looks at the queue: new prompts first, then a step for all.
pub(super) struct Turn {
    pub(super) prefills: Vec<Carried<Prefill>>,
    pub(super) step: Carried<Step>,
}

type Outcome = Result<Answer, Arc<str>>;

/// Why a turn failed.
#[derive(Debug, thiserror::Error)]
enum TurnError {
    #[error("the device failed: {0}")]
    Driver(#[from] DriverError),
    #[error("a graph could not be captured: {0}")]
    Capture(#[from] CaptureError<DriverError>),
    #[error("a graph could not be replayed: {0}")]
    Replay(#[from] LaunchError),
    #[error("the device answered for label {answered}, and {asked} was asked for")]
    Label { asked: u64, answered: u64 },
}

/// The engine's thread, as the batcher sees it.
pub(super) struct Engine {
    turns: Sender<(Turn, oneshot::Sender<Outcome>)>,
    thread: JoinHandle<()>,
}

impl Engine {
    /// Starts the thread, and waits until it has opened the device. With graphs, a step is a replay.
    pub(super) async fn start(
        weights: Arc<Weights>,
        sabotage: Sabotage,
        graphs: Option<Graphs>,
    ) -> Result<Self, ServerError> {
        let (turns, orders) = channel();
        let (ready, opened) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || {
                // The weights are no request's work, and that is said, not left open.
                match detached("model weights", || Device::open(&weights, graphs.is_some())) {
                    Ok(device) => {
                        if ready.send(Ok(())).is_ok() {
                            serve(device, graphs, &orders, sabotage);
                        }
                    }
                    Err(error) => {
                        // Nobody waits any more if the start was given up.
                        let _ = ready.send(Err(error));
                    }
                }
            })
            .map_err(|error| ServerError::Engine(format!("no thread: {error}")))?;
        match opened.await {
            Ok(Ok(())) => Ok(Self { turns, thread }),
            Ok(Err(error)) => Err(ServerError::Engine(format!(
                "the device cannot be opened: {error}"
            ))),
            Err(_) => Err(ServerError::Engine(
                "its thread panicked while it opened the device".to_owned(),
            )),
        }
    }

    /// Has one turn done.
    pub(super) async fn turn(&self, turn: Turn) -> Outcome {
        let (answer, answered) = oneshot::channel();
        if self.turns.send((turn, answer)).is_err() {
            return Err("the engine has stopped".into());
        }
        answered
            .await
            .unwrap_or_else(|_| Err("the engine stopped in the middle of a step".into()))
    }

    /// Ends the thread after its last turn.
    pub(super) async fn stop(self) {
        drop(self.turns);
        // A panic of the engine has been reported to each of its requests.
        let _ = launch_lineage::spawn_blocking(move || self.thread.join()).await;
    }
}

fn serve(
    mut device: Device,
    mut graphs: Option<Graphs>,
    orders: &Receiver<(Turn, oneshot::Sender<Outcome>)>,
    sabotage: Sabotage,
) {
    let mut left_behind = sabotage.left_behind();
    while let Ok((turn, answer)) = orders.recv() {
        let outcome = run(&mut device, graphs.as_mut(), turn, &mut left_behind);
        // The batcher waits for every turn; it is gone only when the runtime was torn down.
        let _ = answer.send(outcome.map_err(|error| error.to_string().into()));
    }
}

/// Everything is launched inside the boundary of the epoch that its envelope brought.
fn run(
    device: &mut Device,
    graphs: Option<&mut Graphs>,
    turn: Turn,
    left_behind: &mut LeftBehind,
) -> Result<Answer, TurnError> {
    for prefill in turn.prefills {
        let (prefill, request) = prefill.open();
        let Prefill {
            label,
            slot,
            prompt,
        } = prefill;
        let request = left_behind.instead_of(request);
        request.launch(|| device.prefill(label, slot, &prompt))?;
    }
    let (step, batch) = turn.step.open();
    let mut graph = match graphs {
        Some(graphs) => Some(graphs.for_batch_of(step.members, device)?),
        None => None,
    };
    let answer = batch.launch(|| {
        if let Some(slots) = &step.formed {
            device.form_batch(step.label, slots)?;
        }
        match &mut graph {
            Some(graph) => graph.launch(&batch)?,
            None => device.decode(step.members)?,
        }
        Ok::<_, TurnError>(device.answer(step.members)?)
    })?;
    left_behind.after_step(&batch);
    if answer.label == step.label {
        Ok(answer)
    } else {
        Err(TurnError::Label {
            asked: step.label,
            answered: answer.label,
        })
    }
}
