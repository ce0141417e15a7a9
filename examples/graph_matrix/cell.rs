//! What is varied.

use clap::ValueEnum;

/// A version of CUPTI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Cupti {
    /// Of CUDA 12.4.
    #[value(name = "12.4")]
    V12_4,
    /// Of CUDA 12.9.
    #[value(name = "12.9")]
    V12_9,
    /// Of CUDA 13.1: it tells of updates of executable graphs.
    #[value(name = "13.1")]
    V13_1,
    /// Of CUDA 13.5: its records name the nodes that executed ones were cloned from.
    #[value(name = "13.5")]
    V13_5,
}

impl Cupti {
    /// The oldest first.
    pub const ALL: [Self; 4] = [Self::V12_4, Self::V12_9, Self::V13_1, Self::V13_5];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::V12_4 => "12.4",
            Self::V12_9 => "12.9",
            Self::V13_1 => "13.1",
            Self::V13_5 => "13.5",
        }
    }
}

/// Who replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One graph, one thread, one stream.
    One,
    /// A graph, a stream and an executable graph for each of so many threads at once.
    Threads(usize),
    /// One graph on one thread, replayed on so many streams in turn.
    Streams(usize),
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::One, Self::Threads(8), Self::Streams(4)];

    /// A word or two for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "1 thread",
            Self::Threads(_) => "8 threads",
            Self::Streams(_) => "4 streams",
        }
    }
}

/// What becomes of a graph between its capture and its replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Variation {
    /// It is instantiated and replayed.
    Plain,
    /// A clone of it is instantiated.
    Clone,
    /// It is instantiated again, the first instance having been destroyed.
    Again,
    /// Half of the replays come after the instance was updated from another capture.
    Update,
    /// Half of the replays come after one of the nodes was given other parameters.
    Parameters,
    /// A third of the nodes are disabled for half of the replays.
    Disable,
    /// Graph and instance are destroyed while replays are under way, and the next ones get their ids.
    Reuse,
}

impl Variation {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Plain,
        Self::Clone,
        Self::Again,
        Self::Update,
        Self::Parameters,
        Self::Disable,
        Self::Reuse,
    ];

    /// A word or two for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Clone => "clone",
            Self::Again => "instantiate again",
            Self::Update => "update",
            Self::Parameters => "set parameters",
            Self::Disable => "disable",
            Self::Reuse => "reuse ids",
        }
    }
}

/// One cell of the matrix.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// The version of CUPTI: that of the process.
    pub cupti: Cupti,
    /// Who replays.
    pub shape: Shape,
    /// What becomes of the graph.
    pub variation: Variation,
    /// Kernels of the graph.
    pub nodes: usize,
    /// Replays by each thread.
    pub replays: usize,
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            cupti,
            shape,
            variation,
            nodes,
            replays,
        } = self;
        let (cupti, shape, variation) = (cupti.name(), shape.name(), variation.name());
        write!(
            f,
            "CUPTI {cupti}, {variation}, {nodes} nodes, {replays} replays, {shape}"
        )
    }
}
