//! Each fault alone: the records with it, beside those of the same run that it does not hit.

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

mod buffers_go_wrong;
mod ids_come_again;
mod programs_go_wrong;
mod records_go_wrong;

use client::{CONCURRENT_KERNEL, Cupti, DRIVER, Record, kernels};
use driver::Driver;
use lineage_sim::{Config, Faults, Gpu, load};

/// Start, end and correlation id of kernels, in the order in which their records came.
pub type Seen = Vec<(u64, u64, u32)>;

/// What a program of six launches leaves behind.
pub struct Outcome {
    pub gpu: Gpu,
    pub kernels: Seen,
    /// Records of calls that launched.
    pub calls: usize,
    /// As CUPTI counts them.
    pub dropped: usize,
}

pub fn six_launches(faults: Faults) -> Outcome {
    let gpu = load(Config::default().faults(faults)).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    cupti.enable(&[CONCURRENT_KERNEL, DRIVER]);
    for label in 1..=6 {
        driver.launch(label);
    }
    driver.synchronize();
    let records = cupti.records();
    Outcome {
        gpu,
        kernels: seen(&records),
        calls: launches(&records),
        dropped: cupti.dropped(),
    }
}

pub fn seen(records: &[Record]) -> Seen {
    kernels(records)
        .into_iter()
        .filter_map(|record| match record {
            Record::Kernel {
                start,
                end,
                correlation,
                ..
            } => Some((*start, *end, *correlation)),
            _ => None,
        })
        .collect()
}

pub fn launches(records: &[Record]) -> usize {
    let is_launch = |record: &&Record| {
        matches!(
            record,
            Record::Api {
                cbid: client::LAUNCH_KERNEL,
                ..
            }
        )
    };
    records.iter().filter(is_launch).count()
}
