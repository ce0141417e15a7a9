//! What the virtual clock makes exact, through the driver's own functions; one promise per file.

#![cfg(target_os = "linux")]
#![allow(missing_docs, unreachable_pub)]
#![allow(
    dead_code,
    reason = "the driver and the client are shared with other tests"
)]
#![allow(
    clippy::macro_metavars_in_unsafe,
    reason = "`call!` takes the arguments of a C call"
)]

#[path = "../cupti/client.rs"]
mod client;
#[path = "../cupti/driver.rs"]
mod driver;

mod a_long_run_is_quick_and_bounded;
mod a_wait_that_nothing_can_end_is_an_error;
mod costs_of_the_host_are_recorded;
mod fences_cost_more_for_threads_that_sleep;
mod records_tell_of_channels_and_doorbells;
mod several_devices_are_apart;
mod switches_to_a_neighbour_are_recorded_since_13_1;
mod the_model_is_reached_through_the_driver;
mod the_queue_is_as_worked_out_by_hand;
mod the_same_seed_gives_the_same_records;
mod the_truth_keeps_what_it_is_told_to;

use lineage_sim::{Config, Settings};

/// The virtual clock begins at 1 s.
pub const BEGIN_NS: u64 = 1_000_000_000;

pub fn config(model: Settings) -> Config {
    Config::default().model(model).virtual_clock()
}
