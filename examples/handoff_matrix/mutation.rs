//! What is broken on purpose, to see that it is noticed, and by what.
//!
//! All of it is done through the public interface, at the places where such mistakes are made.

use launch_lineage::fault::FaultCode;

/// A handoff that is broken, in each pair of requests of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// One request of the pair is handed over without the carrier.
    Forgotten,
    /// The work of one leaves a scope open on its thread, and the other one's carrier is forgotten.
    NotRestored,
    /// The two get each other's work: swapped envelopes.
    Swapped,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Forgotten, Self::NotRestored, Self::Swapped];

    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forgotten => "forgotten",
            Self::NotRestored => "not restored",
            Self::Swapped => "swapped",
        }
    }
}

/// What shows a mutation while the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// These fault codes are raised, others perhaps as well.
    Live(&'static [FaultCode]),
    /// No code: all evidence agrees with itself, and only truth that travels with the data tells.
    NeedsTruth,
    /// It cannot be made here.
    CannotBe(&'static str),
}
