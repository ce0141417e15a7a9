//! Every claimed verdict is right where truth is known, taking evidence away makes claims
//! unresolved and never wrong, and the segments of every life sum to the nanosecond.
//!
//! Truth is that of the device model of `lineage-sim`, whose waits are split into causes that sum,
//! and of the scenario's own script for what the host did. The judge is given what a recorder would
//! have seen, and none of that. Right here means right on the simulator.

#[path = "../correlator_support/mod.rs"]
mod correlator_support;
mod device_full;
mod lost_evidence;
mod parts;
mod scenario;
mod scenarios;
mod score;
mod single_rules;
mod stricter;
mod sums;
mod without;
mod world;
