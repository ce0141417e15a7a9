use std::time::{Duration, Instant};

use lineage_sim::{Config, Operation, isolated, load};

use crate::call;
use crate::driver::{Driver, Handle};

const NAME: &str = "streams_are_in_order";

/// A kernel that lasts longer than a busy machine keeps a test from its next line.
const LONG_NS: u64 = 400_000_000;

fn by_label(operations: &[Operation], label: u64) -> &Operation {
    operations
        .iter()
        .find(|operation| operation.label == Some(label))
        .expect("the label ran")
}

/// The start is that of work which waited for `other` alone.
fn follows(operation: &Operation, other: &Operation) {
    let asked = operation.call_start_ns..=operation.call_end_ns.expect("the call has returned");
    let at_once = operation.start_ns > other.end_ns && asked.contains(&operation.start_ns);
    assert!(
        operation.start_ns == other.end_ns || at_once,
        "{operation:?} after {other:?}"
    );
}

/// The start is that of work which waited for nothing.
fn starts_at_once(operation: &Operation) {
    let asked = operation.call_start_ns..=operation.call_end_ns.expect("the call has returned");
    assert!(asked.contains(&operation.start_ns), "{operation:?}");
}

#[test]
fn work_of_one_stream_follows_and_work_of_two_overlaps() {
    isolated(
        &format!("{NAME}::work_of_one_stream_follows_and_work_of_two_overlaps"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work")
                .label_argument(0)
                .duration_ns(50_000_000)
                .timed()
                .unwrap();
            let driver = Driver::open();
            let second = driver.new_stream();
            driver.launch(1);
            driver.launch(2);
            assert_eq!(driver.launch_in(second, 3), 0);
            assert_eq!(call!(driver.library, "cuCtxSynchronize"()), 0);
            let operations = gpu.truth().operations;
            let (one, two, three) = (
                by_label(&operations, 1),
                by_label(&operations, 2),
                by_label(&operations, 3),
            );
            follows(two, one);
            starts_at_once(three);
            for operation in [one, two, three] {
                assert_eq!(operation.end_ns - operation.start_ns, 50_000_000);
            }
        },
    );
}

#[test]
fn an_event_holds_another_stream_until_it_is_reached() {
    isolated(
        &format!("{NAME}::an_event_holds_another_stream_until_it_is_reached"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work")
                .label_argument(0)
                .duration_ns(LONG_NS)
                .timed()
                .unwrap();
            let driver = Driver::open();
            let second = driver.new_stream();
            let mut event: Handle = std::ptr::null_mut();
            assert_eq!(
                call!(driver.library, "cuEventCreate"(&mut event => *mut Handle, 2 => u32)),
                0
            );
            // Never recorded: holds nobody, and is done.
            assert_eq!(
                call!(driver.library, "cuStreamWaitEvent"(second => Handle, event => Handle, 0 => u32)),
                0
            );
            assert_eq!(call!(driver.library, "cuEventQuery"(event => Handle)), 0);
            driver.launch(1);
            assert_eq!(
                call!(driver.library, "cuEventRecord"(event => Handle, driver.stream => Handle)),
                0
            );
            driver.launch(2);
            assert_eq!(call!(driver.library, "cuEventQuery"(event => Handle)), 600);
            assert_eq!(
                call!(driver.library, "cuStreamQuery"(driver.stream => Handle)),
                600
            );
            assert_eq!(
                call!(driver.library, "cuStreamWaitEvent"(second => Handle, event => Handle, 0 => u32)),
                0
            );
            assert_eq!(driver.launch_in(second, 3), 0);
            assert_eq!(
                call!(driver.library, "cuEventSynchronize"(event => Handle)),
                0
            );
            assert_eq!(
                call!(driver.library, "cuStreamSynchronize"(second => Handle)),
                0
            );
            driver.synchronize();
            let operations = gpu.truth().operations;
            follows(by_label(&operations, 3), by_label(&operations, 1));
            let mut milliseconds = 0_f32;
            let untimed = call!(driver.library, "cuEventElapsedTime"(&mut milliseconds => *mut f32, event => Handle, event => Handle));
            assert_eq!(untimed, 400, "the event does not keep time");
        },
    );
}

#[test]
fn events_measure_what_lies_between_them() {
    isolated(
        &format!("{NAME}::events_measure_what_lies_between_them"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work").duration_ns(3_000_000).timed().unwrap();
            gpu.kernel("other").duration_ns(LONG_NS).timed().unwrap();
            let driver = Driver::open();
            let mut events: [Handle; 2] = [std::ptr::null_mut(); 2];
            for event in &mut events {
                assert_eq!(
                    call!(driver.library, "cuEventCreate"(event => *mut Handle, 0 => u32)),
                    0
                );
            }
            // Behind a long kernel, so that everything is queued before it begins.
            let (mut a, mut label, mut c) = (0_u32, 0_u64, 0_u8);
            let mut parameters = [
                (&raw mut a).cast(),
                (&raw mut label).cast(),
                (&raw mut c).cast(),
            ];
            let other = driver.get_function(c"other");
            assert_eq!(
                driver.launch_function(other, driver.stream, &mut parameters),
                0
            );
            assert_eq!(
                call!(driver.library, "cuEventRecord"(events[0] => Handle, driver.stream => Handle)),
                0
            );
            driver.launch(1);
            driver.launch(2);
            assert_eq!(
                call!(driver.library, "cuEventRecord"(events[1] => Handle, driver.stream => Handle)),
                0
            );
            driver.synchronize();
            let mut milliseconds = 0_f32;
            for name in [false, true] {
                let code = if name {
                    call!(driver.library, "cuEventElapsedTime_v2"(&mut milliseconds => *mut f32, events[0] => Handle, events[1] => Handle))
                } else {
                    call!(driver.library, "cuEventElapsedTime"(&mut milliseconds => *mut f32, events[0] => Handle, events[1] => Handle))
                };
                assert_eq!((code, milliseconds), (0, 6.0));
            }
        },
    );
}

#[test]
fn the_legacy_default_stream_is_ordered_with_blocking_streams_only() {
    isolated(
        &format!("{NAME}::the_legacy_default_stream_is_ordered_with_blocking_streams_only"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work")
                .label_argument(0)
                .duration_ns(20_000_000)
                .timed()
                .unwrap();
            let driver = Driver::open();
            let mut blocking: Handle = std::ptr::null_mut();
            assert_eq!(
                call!(driver.library, "cuStreamCreate"(&mut blocking => *mut Handle, 0 => u32)),
                0
            );
            let null: Handle = std::ptr::null_mut();
            assert_eq!(driver.launch_in(blocking, 1), 0);
            assert_eq!(driver.launch_in(null, 2), 0);
            assert_eq!(driver.launch_in(blocking, 3), 0);
            driver.launch(4);
            assert_eq!(call!(driver.library, "cuCtxSynchronize"()), 0);
            let operations = gpu.truth().operations;
            follows(by_label(&operations, 2), by_label(&operations, 1));
            follows(by_label(&operations, 3), by_label(&operations, 2));
            starts_at_once(by_label(&operations, 4));
            assert_eq!(by_label(&operations, 2).stream_id, 7);
        },
    );
}

#[test]
fn the_per_thread_default_streams_are_apart() {
    isolated(
        &format!("{NAME}::the_per_thread_default_streams_are_apart"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work").label_argument(0).timed().unwrap();
            let driver = Driver::open();
            // CU_STREAM_PER_THREAD
            let per_thread = 2_usize;
            std::thread::scope(|scope| {
                for label in 0..2 {
                    let driver = &driver;
                    scope.spawn(move || {
                        driver.bind();
                        let stream: Handle = std::ptr::without_provenance_mut(per_thread);
                        assert_eq!(driver.launch_in(stream, label), 0);
                        assert_eq!(
                            call!(driver.library, "cuStreamSynchronize"(stream => Handle)),
                            0
                        );
                    });
                }
            });
            let operations = gpu.truth().operations;
            assert_ne!(operations[0].stream_id, operations[1].stream_id);
        },
    );
}

#[test]
fn a_host_function_runs_in_its_turn_and_may_not_call_cuda() {
    isolated(
        &format!("{NAME}::a_host_function_runs_in_its_turn_and_may_not_call_cuda"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work").duration_ns(20_000_000).timed().unwrap();
            let driver = Driver::open();
            unsafe extern "C" fn host(user: *mut std::ffi::c_void) {
                // SAFETY: opened by the test.
                let library = unsafe { libloading::os::unix::Library::new("libcuda.so") }.unwrap();
                let code = call!(library, "cuCtxSynchronize"());
                // SAFETY: the test's own number, which it reads after the stream is done.
                unsafe { user.cast::<u32>().write(code) };
            }
            let mut answer = 0_u32;
            type Host = unsafe extern "C" fn(*mut std::ffi::c_void);
            let begin = Instant::now();
            driver.launch(1);
            let code = call!(driver.library, "cuLaunchHostFunc"(driver.stream => Handle, host => Host, &mut answer => *mut u32));
            assert_eq!(code, 0);
            driver.synchronize();
            assert!(
                begin.elapsed() >= Duration::from_millis(15),
                "it waits for the kernel"
            );
            // CUDA_ERROR_NOT_PERMITTED
            assert_eq!(answer, 800);
        },
    );
}

#[test]
fn a_full_stream_blocks_its_caller() {
    isolated(&format!("{NAME}::a_full_stream_blocks_its_caller"), || {
        let gpu = load(Config::default().queue_depth(8)).unwrap();
        gpu.kernel("work").duration_ns(5_000_000).timed().unwrap();
        let driver = Driver::open();
        let begin = Instant::now();
        for label in 0..20 {
            driver.launch(label);
            assert!(
                gpu.counts().operations_pending <= 9,
                "eight wait and one runs"
            );
        }
        assert!(
            begin.elapsed() >= Duration::from_millis(50),
            "at least eleven had to end first"
        );
        driver.synchronize();
        assert_eq!(gpu.counts().operations_completed, 20);
    });
}

#[test]
fn a_configured_host_cost_is_paid_on_the_calling_thread() {
    isolated(
        &format!("{NAME}::a_configured_host_cost_is_paid_on_the_calling_thread"),
        || {
            let gpu = load(Config::default().host_cost_ns_per_call(500_000)).unwrap();
            let driver = Driver::open();
            for label in 0..5 {
                driver.launch(label);
            }
            driver.synchronize();
            let calls = gpu.truth().calls;
            assert_eq!(calls.len(), 5);
            assert!(
                calls
                    .iter()
                    .all(|call| call.end_ns - call.start_ns >= 500_000),
                "{calls:?}"
            );
        },
    );
}
