//! What the simulated driver and the truth do, one promise per file.

#![cfg(target_os = "linux")]
#![allow(missing_docs, unreachable_pub)]
#![allow(
    clippy::macro_metavars_in_unsafe,
    reason = "`call!` takes the arguments of a C call"
)]

#[path = "../cupti/driver.rs"]
mod driver;

mod a_failed_kernel_fails_its_context;
mod every_mechanism_works_with_the_real_clock;
mod labels_are_carried_by_data;
mod loading_is_once_per_process;
mod memory_is_checked;
mod streams_are_in_order;
mod symbols_do_not_leak;
mod truth_and_memory_are_bounded;
mod wrong_use_gives_cudas_codes;
