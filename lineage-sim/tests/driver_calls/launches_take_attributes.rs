use std::ffi::c_void;

use lineage_sim::isolated;

use crate::call;
use crate::driver::{Driver, Handle};
use crate::{starts, virtual_gpu};

const NAME: &str = "launches_take_attributes";

/// `CUlaunchConfig`.
#[repr(C)]
struct LaunchConfig {
    numbers: [u32; 7],
    stream: Handle,
    attributes: *const [u32; 18],
    count: u32,
}

fn attribute(id: u32, values: &[u32]) -> [u32; 18] {
    let mut words = [0; 18];
    words[0] = id;
    words[2..2 + values.len()].copy_from_slice(values);
    words
}

fn launch(driver: &Driver, label: u64, attributes: &[[u32; 18]]) -> u32 {
    let mut label = label;
    let mut list = [(&raw mut label).cast::<c_void>()];
    let config = LaunchConfig {
        numbers: [4, 1, 1, 32, 1, 1, 0],
        stream: driver.stream,
        attributes: attributes.as_ptr(),
        count: attributes.len() as u32,
    };
    call!(driver.library, "cuLaunchKernelEx"(
        &config => *const LaunchConfig, driver.function => Handle, list.as_mut_ptr() => *mut *mut c_void,
        std::ptr::null_mut() => *mut *mut c_void,
    ))
}

fn new_event(driver: &Driver, flags: u32) -> Handle {
    let mut event = std::ptr::null_mut();
    assert_eq!(
        call!(driver.library, "cuEventCreate"(&mut event => *mut Handle, flags => u32)),
        0
    );
    event
}

fn of_event(id: u32, event: Handle) -> [u32; 18] {
    let address = event as u64;
    attribute(id, &[address as u32, (address >> 32) as u32, 0, 0])
}

#[test]
fn known_ones_are_taken_and_wrong_ones_refused() {
    isolated(
        &format!("{NAME}::known_ones_are_taken_and_wrong_ones_refused"),
        || {
            virtual_gpu();
            let driver = Driver::open();
            // Hints: access policy 1, synchronization policy 3, cluster scheduling 5, domains 9 and 10, carveout 14.
            for id in [0, 1, 3, 5, 9, 10, 14] {
                assert_eq!(
                    launch(&driver, 1, &[attribute(id, &[0])]),
                    0,
                    "attribute {id}"
                );
            }
            // A cluster must divide the grid of 4 blocks.
            assert_eq!(launch(&driver, 1, &[attribute(4, &[2, 1, 1])]), 0);
            assert_eq!(launch(&driver, 1, &[attribute(4, &[3, 1, 1])]), 1);
            assert_eq!(launch(&driver, 1, &[attribute(4, &[0, 1, 1])]), 1);
            assert_eq!(launch(&driver, 1, &[attribute(13, &[1])]), 801);
            assert_eq!(launch(&driver, 1, &[attribute(99, &[1])]), 1);
            // An event that times, and one that does not exist.
            assert_eq!(
                launch(&driver, 1, &[of_event(12, new_event(&driver, 0))]),
                1
            );
            assert_eq!(
                launch(&driver, 1, &[of_event(7, std::ptr::null_mut())]),
                400
            );
        },
    );
}

/// The kernel records the event; a stream that waits for it goes on at 10 µs.
#[test]
fn launches_record_their_events() {
    isolated(&format!("{NAME}::launches_record_their_events"), || {
        let gpu = virtual_gpu();
        let driver = Driver::open();
        let other = driver.new_stream();
        let event = new_event(&driver, 2);
        assert_eq!(launch(&driver, 1, &[of_event(12, event)]), 0);
        let wait =
            call!(driver.library, "cuStreamWaitEvent"(other => Handle, event => Handle, 0 => u32));
        assert_eq!(wait, 0);
        assert_eq!(driver.launch_in(other, 2), 0);
        assert_eq!(
            call!(driver.library, "cuStreamSynchronize"(other => Handle)),
            0
        );
        assert_eq!(starts(&gpu.truth()), [(1, 0), (2, 10_000)]);
    });
}
