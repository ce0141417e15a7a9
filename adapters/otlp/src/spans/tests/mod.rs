//! What becomes of a session's observations and rows, worked out by hand.

mod bounds;
mod moments;
mod random;
mod support;
mod tail;
mod walk;
