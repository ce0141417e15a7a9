//! `lineage lab`: launches, a queue and a device, with every number to be seen and changed.
//!
//! Runs the model of the simulated GPU (the crate `lineage-sim-model`) by itself: no GPU, no library, no clock.

mod experiment;
mod picture;
mod render;

use crate::FINE;
use crate::arguments::Lab;
use crate::terminal::Terminal;

/// Runs the experiment that was asked for, and shows it.
pub(crate) fn run(arguments: &Lab, terminal: &mut Terminal) -> u8 {
    let outcome = experiment::run(arguments);
    let text = if arguments.json {
        crate::text::json_line(&outcome)
    } else {
        render::text(&outcome, terminal.width())
    };
    terminal.print(&text);
    FINE
}

/// A time in µs, with as many digits as it has.
fn micros(ns: u64) -> String {
    let digits = format!("{}.{:03}", ns / 1_000, ns % 1_000);
    digits
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}
