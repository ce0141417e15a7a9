//! What single driver functions do beside launches and plain copies: one promise per file.

#![cfg(target_os = "linux")]
#![allow(missing_docs, unreachable_pub)]
#![allow(dead_code, reason = "the helpers are shared by several test programs")]
#![allow(
    clippy::macro_metavars_in_unsafe,
    reason = "`call!` takes the arguments of a C call"
)]

#[path = "../cupti/driver.rs"]
mod driver;

mod launches_take_attributes;
mod null_streams_are_the_threads_own_where_asked;
mod pools_reuse_memory_behind_what_frees_it;
mod rows_are_copied_and_set;
mod several_operations_come_in_one_call;

use lineage_sim::{Config, Gpu, Truth, load};

/// On the virtual clock: kernels of 10 µs, everything else free.
fn virtual_gpu() -> Gpu {
    let config = Config::default()
        .virtual_clock()
        .default_kernel_ns(10_000)
        .copy_latency_ns(0);
    let gpu = load(config).unwrap();
    gpu.kernel("work").label_argument(0).timed().unwrap();
    gpu
}

/// When each kernel started, after the first, by its label.
fn starts(truth: &Truth) -> Vec<(u64, u64)> {
    let begin_ns = truth.operations[0].start_ns;
    let kernels = truth.operations.iter().filter(|one| one.name.is_some());
    kernels
        .map(|one| (one.label.unwrap(), one.start_ns - begin_ns))
        .collect()
}
