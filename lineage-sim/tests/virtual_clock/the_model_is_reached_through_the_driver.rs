use std::ffi::c_void;

use lineage_sim::{Cause, Limit, Operation, Settings, isolated, load};

use crate::client::{CONCURRENT_KERNEL, Cupti, DRIVER, Record, kernels};
use crate::driver::{Driver, Handle};
use crate::{call, config};

const NAME: &str = "the_model_is_reached_through_the_driver";

/// `CUlaunchConfig`, from `cuda.h`; an attribute is its id, 4 bytes of padding and 64 bytes of value.
#[repr(C)]
struct LaunchConfig {
    numbers: [u32; 7],
    stream: Handle,
    attributes: *const [u32; 18],
    count: u32,
}

/// Launches with one attribute.
fn launch_with(driver: &Driver, stream: Handle, label: u64, attribute: (u32, u32)) {
    let mut label = label;
    let mut parameters = [(&raw mut label).cast::<c_void>()];
    let mut words = [0; 18];
    (words[0], words[2]) = attribute;
    let config = LaunchConfig {
        numbers: [1, 1, 1, 32, 1, 1, 0],
        stream,
        attributes: &words,
        count: 1,
    };
    let code = call!(driver.library, "cuLaunchKernelEx"(
        &config => *const LaunchConfig, driver.function => Handle, parameters.as_mut_ptr() => *mut *mut c_void,
        std::ptr::null_mut() => *mut *mut c_void,
    ));
    assert_eq!(code, 0);
}

fn by_label(mut operations: Vec<Operation>) -> Vec<Operation> {
    operations.sort_by_key(|operation| operation.label);
    operations
}

/// The same kernel as primary and as dependent: it triggers after 3 µs of its 10, and as a dependent waits for its primary 1 µs after its start. The
/// primary runs from 0 to 10. The dependent starts at 3, comes to its wait at 4, goes on at 10 and ends at 19: its record overlaps the other.
#[test]
fn a_programmatic_launch_overlaps_its_primary() {
    isolated(
        &format!("{NAME}::a_programmatic_launch_overlaps_its_primary"),
        || {
            let gpu = load(config(Settings::default())).unwrap();
            gpu.kernel("work")
                .label_argument(0)
                .duration_ns(10_000)
                .triggers_after_ns(3_000)
                .waits_after_ns(1_000)
                .timed()
                .unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER, CONCURRENT_KERNEL]);
            let begin_ns = gpu.now_ns();
            driver.launch(1);
            // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            launch_with(&driver, driver.stream, 2, (6, 1));
            driver.synchronize();
            let records = cupti.records();
            let mut times: Vec<[u64; 2]> = kernels(&records)
                .iter()
                .map(|record| match record {
                    Record::Kernel { start, end, .. } => [start - begin_ns, end - begin_ns],
                    _ => unreachable!(),
                })
                .collect();
            times.sort_unstable();
            assert_eq!(times, [[0, 10_000], [3_000, 19_000]]);
            assert_eq!(by_label(gpu.truth().operations)[1].waited_inside_ns, 6_000);
        },
    );
}

/// One multiprocessor that a kernel fills until 10. Two more arrive meanwhile, the second with a higher priority, by its stream and then by its launch
/// alone: it is first.
#[test]
fn priorities_decide_who_is_placed_first() {
    isolated(
        &format!("{NAME}::priorities_decide_who_is_placed_first"),
        || {
            let settings = Settings::default()
                .multiprocessors(1)
                .blocks_per_multiprocessor(1);
            let gpu = load(config(settings)).unwrap();
            gpu.kernel("work")
                .label_argument(0)
                .duration_ns(10_000)
                .timed()
                .unwrap();
            let driver = Driver::open();
            let library = &driver.library;
            let ignored = (0, 0);
            let usual = driver.new_stream();
            let mut urgent: Handle = std::ptr::null_mut();
            let created = call!(library, "cuStreamCreateWithPriority"(&mut urgent => *mut Handle, 1 => u32, -3 => i32));
            assert_eq!(created, 0);
            for (round, attribute) in [(urgent, ignored), (driver.new_stream(), (8, -4_i32 as u32))]
                .into_iter()
                .enumerate()
            {
                let first = 10 * round as u64;
                let begin_ns = gpu.now_ns();
                launch_with(&driver, driver.stream, first + 1, ignored);
                launch_with(&driver, usual, first + 2, ignored);
                launch_with(&driver, attribute.0, first + 3, attribute.1);
                assert_eq!(call!(library, "cuCtxSynchronize"()), 0);
                let operations = by_label(gpu.drain_truth().operations);
                let starts: Vec<u64> = operations.iter().map(|of| of.start_ns - begin_ns).collect();
                assert_eq!(starts, [0, 20_000, 10_000]);
                assert_eq!(operations[2].waits.binding(), Some(Cause::Multiprocessors));
                assert_eq!(operations[2].limit, Limit::Blocks);
                assert_eq!(operations[2].resource_ordinal, Some(operations[0].ordinal));
            }
        },
    );
}

/// Copies of 16,000 bytes take 1 µs and a ns for each 16 bytes: 2 µs. With one engine to the device, two of them in two streams follow each other; a
/// copy to the host has an engine of its own.
#[test]
fn copies_share_the_engines_of_their_direction() {
    isolated(
        &format!("{NAME}::copies_share_the_engines_of_their_direction"),
        || {
            let settings = Settings::default()
                .copy_engines_to_device(1)
                .copy_engines_to_host(1);
            let gpu = load(config(settings)).unwrap();
            let driver = Driver::open();
            let library = &driver.library;
            let memory = driver.allocate(3 * 16_000);
            let mut pinned: Handle = std::ptr::null_mut();
            let allocated = call!(library, "cuMemHostAlloc"(&mut pinned => *mut Handle, 16_000 => usize, 0 => u32));
            assert_eq!(allocated, 0);
            let begin_ns = gpu.now_ns();
            for place in 0..2 {
                let stream = driver.new_stream();
                let code = call!(library, "cuMemcpyHtoDAsync_v2"(memory + 16_000 * place => u64, pinned => Handle, 16_000 => usize, stream => Handle));
                assert_eq!(code, 0);
            }
            let stream = driver.new_stream();
            let code = call!(library, "cuMemcpyDtoHAsync_v2"(pinned => Handle, memory + 32_000 => u64, 16_000 => usize, stream => Handle));
            assert_eq!(code, 0);
            assert_eq!(call!(library, "cuCtxSynchronize"()), 0);
            let mut operations = gpu.truth().operations;
            operations.sort_by_key(|operation| operation.ordinal);
            let times: Vec<[u64; 2]> = operations
                .iter()
                .map(|of| [of.start_ns - begin_ns, of.end_ns - begin_ns])
                .collect();
            assert_eq!(times, [[0, 2_000], [2_000, 4_000], [0, 2_000]]);
            assert_eq!(operations[1].waits.of(Cause::CopyEngine), 2_000);
        },
    );
}

/// Another process has the device every 100 µs for 50: a kernel of 150 that starts at 0 ends at 200, of which 50 were not its own, and its record
/// cannot say so.
#[test]
fn a_neighbour_makes_kernels_longer() {
    isolated(&format!("{NAME}::a_neighbour_makes_kernels_longer"), || {
        let settings = Settings::default()
            .time_slice_ns(100_000)
            .neighbour_slice_ns(50_000);
        let gpu = load(config(settings)).unwrap();
        gpu.kernel("work").duration_ns(150_000).timed().unwrap();
        let driver = Driver::open();
        driver.launch(1);
        driver.synchronize();
        let operation = gpu.truth().operations[0].clone();
        assert_eq!(operation.end_ns - operation.start_ns, 200_000);
        assert_eq!(operation.preempted_ns, 50_000);
    });
}
