//! The matrix: its rows are carriers, its columns are what runs the work.

use crate::cell::Cell;
use crate::mutation::{Mutation, Shows};

/// A way in which work changes hands.
#[derive(Clone, Copy)]
pub struct Carrier {
    /// A name for it, as `tokio::spawn`.
    pub name: &'static str,
    /// What is written for the epoch to come along.
    pub write: &'static str,
    /// Where it can be: 4 workers, 8 workers, one thread.
    pub columns: [Runs; 3],
    /// What shows each of [`Mutation::ALL`].
    pub mutations: [Shows; 3],
    /// Whether each request has threads of its own.
    pub threads_per_request: bool,
    /// Has all callers hand all their requests over in this way.
    pub run: fn(&Cell),
}

impl Carrier {
    /// What shows a mutation of it.
    pub fn shows(&self, mutation: Mutation) -> Shows {
        let all = Mutation::ALL.into_iter().zip(self.mutations);
        let found = all.into_iter().find(|(of, _)| *of == mutation);
        found.map_or(Shows::NeedsTruth, |(_, shows)| shows)
    }
}

/// Whether a carrier can be in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// It can.
    Yes,
    /// It cannot, and why.
    No(&'static str),
}

/// In every column.
pub const EVERYWHERE: [Runs; 3] = [Runs::Yes; 3];

/// What runs the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// A multi-threaded runtime, a pool or a set of engine threads, with so many threads.
    Workers(usize),
    /// A current-thread runtime, a pool of one thread, one engine thread.
    One,
}

impl Column {
    /// In the order of [`Carrier::columns`].
    pub const ALL: [Self; 3] = [Self::Workers(4), Self::Workers(8), Self::One];

    /// A word or two for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Workers(4) => "4 workers",
            Self::Workers(_) => "8 workers",
            Self::One => "1 thread",
        }
    }

    /// How many threads that is.
    pub fn threads(self) -> usize {
        match self {
            Self::Workers(threads) => threads,
            Self::One => 1,
        }
    }
}
