//! The carriers, by family. Each hands the same requests over in its own way.

mod batches;
mod blocking;
mod channels;
mod closures;
mod endings;
mod futures;
mod rayon;
mod spans;
mod streams;
mod tasks;
mod threads;
mod tower;

use launch_lineage::fault::FaultCode;

use crate::matrix::{Carrier, EVERYWHERE};
use crate::mutation::Shows;
use crate::request::Work;

/// All of them, in the order of the table.
pub fn all() -> Vec<Carrier> {
    [
        futures::CARRIERS,
        streams::CARRIERS,
        endings::CARRIERS,
        spans::CARRIERS,
        tasks::CARRIERS,
        blocking::CARRIERS,
        channels::CARRIERS,
        batches::CARRIERS,
        closures::CARRIERS,
        threads::CARRIERS,
        tower::CARRIERS,
        rayon::CARRIERS,
    ]
    .into_iter()
    .flatten()
    .copied()
    .collect()
}

/// What most carriers have in common. A launch without its carrier is a launch without an epoch; a
/// scope that is left open is noticed when its thread ends; swapped work is only known by its data.
const USUAL: Carrier = Carrier {
    name: "",
    write: "",
    columns: EVERYWHERE,
    mutations: [
        Shows::Live(&[FaultCode::L01]),
        Shows::Live(&[FaultCode::W07]),
        Shows::NeedsTruth,
    ],
    threads_per_request: false,
    run: |_| {},
};

/// Launches while it is dropped: GPU work of a destructor.
struct LaunchWhenDropped(Work);

impl Drop for LaunchWhenDropped {
    fn drop(&mut self) {
        self.0.launch();
    }
}
