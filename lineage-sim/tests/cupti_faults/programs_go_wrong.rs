use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use lineage_sim::{Config, Faults, Settings, isolated, load};

use crate::client::{CONCURRENT_KERNEL, Cupti, DRIVER, LAUNCH_KERNEL, Record};
use crate::driver::Driver;
use crate::seen;

const NAME: &str = "programs_go_wrong";

#[test]
fn a_launch_fails_with_the_error_that_was_asked_for_and_leaves_no_kernel() {
    isolated(
        &format!("{NAME}::a_launch_fails_with_the_error_that_was_asked_for_and_leaves_no_kernel"),
        || {
            let faults = Faults::default().fail_launch_every_nth(3);
            let gpu = load(Config::default().faults(faults)).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL, DRIVER]);
            let codes: Vec<_> = (1..=6)
                .map(|label| driver.launch_in(driver.stream, label))
                .collect();
            // CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
            assert_eq!(codes, [0, 0, 701, 0, 0, 701]);
            driver.synchronize();
            let records = cupti.records();
            let results: Vec<_> = records
                .iter()
                .filter_map(|record| match record {
                    Record::Api {
                        cbid: LAUNCH_KERNEL,
                        result,
                        ..
                    } => Some(*result),
                    _ => None,
                })
                .collect();
            assert_eq!(results, codes);
            assert_eq!(seen(&records).len(), 4);
            assert_eq!(gpu.truth().operations.len(), 4);
        },
    );
}

#[test]
fn a_clock_that_steps_back_ends_a_kernel_before_it_started() {
    isolated(
        &format!("{NAME}::a_clock_that_steps_back_ends_a_kernel_before_it_started"),
        || {
            // The virtual clock begins at 1 s. The device's jumps back by 1 ms, 1.25 ms later: inside the third kernel of
            // 500 µs each.
            let model = Settings::default()
                .device_step_at_ns(1_001_250_000)
                .device_step_ns(-1_000_000);
            let gpu = load(Config::default().model(model).virtual_clock()).unwrap();
            gpu.kernel("work").duration_ns(500_000).timed().unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            for label in 1..=6 {
                driver.launch(label);
            }
            driver.synchronize();
            let lengths: Vec<_> = seen(&cupti.records())
                .iter()
                .map(|kernel| kernel.1 as i64 - kernel.0 as i64)
                .collect();
            let (right, wrong) = (500_000, 500_000 - 1_000_000);
            assert_eq!(lengths, [right, right, wrong, right, right, right]);
        },
    );
}

/// Set for the process that is to be killed.
const KILLED: &str = "LINEAGE_SIM_TEST_KILLED";

#[test]
fn the_process_is_killed_at_the_call_that_was_named() {
    if std::env::var_os(KILLED).is_some() {
        load(Config::default().faults(Faults::default().kill_at_call(3))).unwrap();
        let driver = Driver::open();
        for label in 1..=4 {
            driver.launch(label);
            println!("launched {label}");
        }
        return;
    }
    let name = format!("{NAME}::the_process_is_killed_at_the_call_that_was_named");
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name.as_str(), "--exact", "--nocapture"])
        .env(KILLED, "1")
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGKILL));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("launched 2") && !text.contains("launched 3"),
        "{text}"
    );
}
