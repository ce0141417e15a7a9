//! One thread: its capture, what becomes of it, and its replays.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DriverError};
use launch_lineage::{Epoch, detached};

use crate::cell::{Cell, Shape, Variation};
use crate::desk::{Capture, Desk, Numbers};
use crate::gpu::{Exec, Gpu, Graph};
use crate::pace::Pace;

/// How many captures a worker makes at most.
const CAPTURES: usize = 8;

/// A worker of a cell.
pub struct Worker<'a> {
    cell: Cell,
    gpu: &'a Gpu,
    desk: &'a Desk,
    pace: &'a Pace,
    streams: Vec<Arc<CudaStream>>,
    /// A word for each capture, at which its kernels look.
    words: CudaSlice<u64>,
    captures: Vec<u32>,
    /// The capture epochs live as long as the worker, as those of a server's graphs do.
    epochs: Vec<Epoch>,
    replays: usize,
    /// How many nodes of the graph run: those that are not disabled.
    running: usize,
}

impl<'a> Worker<'a> {
    /// A worker that has done nothing yet.
    pub fn new(
        cell: Cell,
        gpu: &'a Gpu,
        desk: &'a Desk,
        pace: &'a Pace,
    ) -> Result<Self, DriverError> {
        gpu.bind()?;
        let streams = match cell.shape {
            Shape::Streams(streams) => streams,
            Shape::One | Shape::Threads(_) => 1,
        };
        let streams: Vec<_> = (0..streams)
            .map(|_| gpu.stream())
            .collect::<Result<_, _>>()?;
        // SAFETY: any bits are a number, and the words are written before each replay.
        let words = unsafe { streams[0].alloc(CAPTURES) }?;
        streams[0].synchronize()?;
        Ok(Self {
            cell,
            gpu,
            desk,
            pace,
            streams,
            words,
            captures: Vec::new(),
            epochs: Vec::new(),
            replays: 0,
            running: cell.nodes,
        })
    }

    /// Does what the cell says.
    pub fn run(&mut self) -> Result<(), DriverError> {
        let replays = self.cell.replays;
        let second_half = (replays / 2).max(1);
        let first_half = replays.saturating_sub(second_half).max(1);
        match self.cell.variation {
            Variation::Plain => {
                let graph = self.capture()?;
                let exec = instantiate(&graph)?;
                self.replay(&exec, replays)?;
            }
            Variation::Clone => {
                let graph = self.capture()?;
                let clone = detached("clone", || graph.try_clone())?;
                // The template of a clone outlives the graph it was cloned from.
                drop(graph);
                let exec = instantiate(&clone)?;
                self.replay(&exec, replays)?;
            }
            Variation::Again => {
                let graph = self.capture()?;
                let first = instantiate(&graph)?;
                self.replay(&first, first_half)?;
                drop(first);
                let second = instantiate(&graph)?;
                self.replay(&second, second_half)?;
            }
            Variation::Update => {
                let graph = self.capture()?;
                let exec = instantiate(&graph)?;
                self.replay(&exec, first_half)?;
                let other = self.capture()?;
                self.desk.changes(self.newest());
                detached("update", || exec.update(&other))?;
                self.replay(&exec, second_half)?;
            }
            Variation::Parameters => {
                let graph = self.capture()?;
                let exec = instantiate(&graph)?;
                self.replay(&exec, first_half)?;
                self.set_parameters(&exec, &graph)?;
                self.replay(&exec, second_half)?;
            }
            Variation::Disable => {
                let graph = self.capture()?;
                let exec = instantiate(&graph)?;
                self.enable_third(&exec, &graph, false)?;
                self.replay(&exec, first_half)?;
                self.enable_third(&exec, &graph, true)?;
                self.replay(&exec, second_half)?;
            }
            Variation::Reuse => {
                for part in 0..CAPTURES / 2 {
                    let graph = self.capture()?;
                    let exec = instantiate(&graph)?;
                    // Together as many as the cell says, at least one each. The last ones are still under
                    // way when both are destroyed.
                    let parts = CAPTURES / 2;
                    let share = replays / parts + usize::from(part < replays % parts);
                    self.replay(&exec, share.max(1))?;
                }
            }
        }
        self.synchronize()
    }

    /// Waits for all streams.
    fn synchronize(&self) -> Result<(), DriverError> {
        self.streams
            .iter()
            .try_for_each(|stream| stream.synchronize())
    }

    /// The newest capture's number.
    fn newest(&self) -> u32 {
        self.captures.last().copied().unwrap_or_default()
    }

    /// A graph, captured under an epoch of its own.
    fn capture(&mut self) -> Result<Graph, DriverError> {
        let epoch = self.number(Gpu::names(self.cell.nodes));
        let word = self.captures.len() - 1;
        let stream = &self.streams[0];
        let nodes = self.cell.nodes;
        let graph = epoch.launch(|| self.gpu.capture(stream, nodes, &self.words, word));
        self.epochs.push(epoch);
        graph
    }

    /// The first node's instance is given another word, under an epoch of its own.
    fn set_parameters(&mut self, exec: &Exec, graph: &Graph) -> Result<(), DriverError> {
        let nodes = graph.nodes()?;
        let Some(first) = nodes.first() else {
            return Ok(());
        };
        let epoch = self.number(Vec::new());
        self.desk.changes(self.newest());
        let word = self.captures.len() - 1;
        let set = epoch.launch(|| exec.set_word(*first, &self.streams[0], &self.words, word));
        // It launches nothing, and that is no fault.
        epoch.cancel();
        self.epochs.push(epoch);
        set
    }

    /// An epoch that is noted as a capture's, of these kernels.
    fn number(&mut self, kernels: Vec<&'static str>) -> Epoch {
        let epoch = Epoch::declare("capture");
        let number = self.desk.capture(Capture {
            epoch: epoch.id(),
            kernels,
            at_ns: self.gpu.simulated.now_ns(),
        });
        self.captures.push(number);
        epoch
    }

    fn enable_third(
        &mut self,
        exec: &Exec,
        graph: &Graph,
        enabled: bool,
    ) -> Result<(), DriverError> {
        for node in graph.nodes()?.into_iter().step_by(3) {
            exec.enable(node, enabled)?;
        }
        let third = self.cell.nodes.div_ceil(3);
        self.running = self.cell.nodes - if enabled { 0 } else { third };
        Ok(())
    }

    /// So many replays, each for somebody else: the words are written, and the graph is launched.
    fn replay(&mut self, exec: &Exec, times: usize) -> Result<(), DriverError> {
        for _ in 0..times {
            self.pace.ask(1 + self.running as u64);
            let epoch = Epoch::declare("replay");
            let replay = self.desk.replay(epoch.id());
            let labels = self.captures.iter().map(|capture| {
                let capture = *capture;
                Numbers { capture, replay }.label()
            });
            let mut labels: Vec<u64> = labels.collect();
            labels.resize(CAPTURES, 0);
            let stream = &self.streams[self.replays % self.streams.len()];
            epoch.launch(|| {
                stream.memcpy_htod(&labels, &mut self.words)?;
                exec.launch(stream)
            })?;
            if self.streams.len() > 1 {
                // The next replay is on another stream, and writes the words.
                stream.synchronize()?;
            }
            self.replays += 1;
        }
        Ok(())
    }
}

/// Nobody's work: a graph may be instantiated long after its capture, by others.
fn instantiate(graph: &Graph) -> Result<Exec, DriverError> {
    detached("instantiation", || graph.instantiate())
}
