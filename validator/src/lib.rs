//! Independent checks of launch joins, and the helper for your tests.
//!
//! A lineage session joins GPU operations to calls and calls to epochs as their records come. This
//! crate does the same once more, by other means and with code of its own: it takes the whole
//! recording, sorts and groups it, derives every join anew, and says what is lost (`L…`), wrong
//! (`W…`) or cannot be at the time it says (`T…`), each with its evidence and what to do next.
//! Where the session's own rows are given, a row that says something else is a fault too.
//!
//! In a test, [`assert_joins`] takes a session's report. For a recording, [`validate`] takes
//! observations and rows, however they were read.
//!
//! # What "0 wrong" means
//!
//! It means that the records agree with one another. The sources of a join all read what the
//! threads carried, so a handoff that was mixed up is mixed up in all of them. Whether a join is
//! *right* only truth can tell: a label that travels with the data. See
//! [`Validation::against_truth`].
//!
//! # How it is independent
//!
//! Wrapping correlation ids are unwrapped over the sorted times of a whole session, not by state
//! kept while records come. Runtime and driver records of one call are found by nesting intervals
//! on a thread. Operations find their call by binary search over id and time; scopes are laid over
//! calls in a sweep. The rules are those of the project's contract; the code is not the session's.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod advice;
mod assertion;
mod checks;
mod derive;
mod describe;
mod finding;
mod options;
mod rows;
mod truth;
mod validate;
mod validation;

pub use advice::advice;
pub use assertion::{
    Accept, JoinFaults, assert_joins, assert_joins_with, check_joins, check_joins_with,
};
pub use describe::printable;
pub use finding::{About, EvidenceLine, Finding};
pub use options::Options;
pub use truth::{
    MISSES_LISTED, Miss, ReplayScore, TruthMiss, TruthOperation, TruthReplay, TruthScore,
};
pub use validate::validate;
pub use validation::{Conclusions, Counts, RowCounts, Validation};
