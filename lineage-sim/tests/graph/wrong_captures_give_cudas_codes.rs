//! The codes 900 to 908 of `CUresult`, and what is left of a capture after each.

use lineage_sim::{Config, isolated, load};

use crate::call;
use crate::driver::{Driver, Handle};
use crate::program::nothing;

const NAME: &str = "wrong_captures_give_cudas_codes";
const LEGACY: usize = 1;

/// Whether a stream captures: 0 not, 1 yes, 2 invalidated.
fn status(driver: &Driver, stream: Handle) -> u32 {
    let mut status = 9;
    let code =
        call!(driver.library, "cuStreamIsCapturing"(stream => Handle, &mut status => *mut u32));
    assert_eq!(code, 0);
    status
}

fn with_driver(test: &str, body: impl FnOnce(Driver)) {
    isolated(&format!("{NAME}::{test}"), || {
        load(Config::default()).unwrap();
        body(Driver::open());
    });
}

#[test]
fn waiting_for_a_capturing_stream_is_unsupported() {
    with_driver("waiting_for_a_capturing_stream_is_unsupported", |driver| {
        assert_eq!(status(&driver, driver.stream), 0);
        assert_eq!(driver.begin_capture(driver.stream, 0), 0);
        assert_eq!(status(&driver, driver.stream), 1);
        // ILLEGAL_STATE 401: it captures already.
        assert_eq!(driver.begin_capture(driver.stream, 0), 401);
        let code = call!(driver.library, "cuStreamSynchronize"(driver.stream => Handle));
        assert_eq!(code, 900);
        assert_eq!(status(&driver, driver.stream), 2);
        assert_eq!(driver.launch_in(driver.stream, 1), 901);
        assert_eq!(driver.end_capture(driver.stream), Err(901));
        assert_eq!(status(&driver, driver.stream), 0);
        assert_eq!(driver.end_capture(driver.stream), Err(401));
        assert_eq!(driver.begin_capture(driver.stream, 7), 1);
        // The stream is as good as new.
        driver.launch(1);
        driver.synchronize();
        assert_eq!(driver.begin_capture(driver.stream, 0), 0);
        assert_eq!(call!(driver.library, "cuCtxSynchronize"()), 900);
        assert_eq!(driver.end_capture(driver.stream), Err(901));
        assert_eq!(driver.begin_capture(driver.stream, 0), 0);
        assert_eq!(
            call!(driver.library, "cuStreamQuery"(driver.stream => Handle)),
            900
        );
        assert_eq!(driver.end_capture(driver.stream), Err(901));
        // The legacy stream itself cannot be captured.
        assert_eq!(driver.begin_capture(nothing(), 0), 900);
    });
}

#[test]
fn unsafe_calls_are_forbidden_as_the_modes_say() {
    with_driver("unsafe_calls_are_forbidden_as_the_modes_say", |driver| {
        let allocate = || {
            let mut pointer = 0;
            call!(driver.library, "cuMemAlloc_v2"(&mut pointer => *mut u64, 64 => usize))
        };
        let elsewhere = |mode: Option<u32>| {
            std::thread::scope(|scope| {
                let thread = scope.spawn(|| {
                    driver.bind();
                    if let Some(mut mode) = mode {
                        let code = call!(driver.library, "cuThreadExchangeStreamCaptureMode"(&mut mode => *mut u32));
                        assert_eq!((code, mode), (0, 0), "it was global");
                    }
                    allocate()
                });
                thread.join().unwrap()
            })
        };
        // Global: this thread's and others'; not those that exchanged their mode.
        assert_eq!(driver.begin_capture(driver.stream, 0), 0);
        assert_eq!((elsewhere(Some(1)), elsewhere(Some(2))), (0, 0));
        assert_eq!(elsewhere(None), 900);
        assert_eq!(driver.end_capture(driver.stream), Err(901));
        // Thread-local: this thread's only.
        assert_eq!(driver.begin_capture(driver.stream, 1), 0);
        assert_eq!(elsewhere(None), 0);
        assert_eq!(status(&driver, driver.stream), 1);
        assert_eq!(allocate(), 900);
        assert_eq!(driver.end_capture(driver.stream), Err(901));
        // Relaxed: nobody's.
        assert_eq!(driver.begin_capture(driver.stream, 2), 0);
        assert_eq!((allocate(), elsewhere(None)), (0, 0));
        assert!(driver.end_capture(driver.stream).is_ok());
        let mut mode = 3;
        let code =
            call!(driver.library, "cuThreadExchangeStreamCaptureMode"(&mut mode => *mut u32));
        assert_eq!(code, 1);
    });
}

#[test]
fn captures_do_not_merge() {
    with_driver("captures_do_not_merge", |driver| {
        let other = driver.new_stream();
        let event = driver.new_event();
        assert_eq!(driver.begin_capture(driver.stream, 2), 0);
        assert_eq!(driver.begin_capture(other, 2), 0);
        assert_eq!(driver.record(event, driver.stream), 0);
        assert_eq!(driver.wait(other, event), 902);
        assert_eq!(driver.end_capture(driver.stream), Err(901));
        assert_eq!(driver.end_capture(other), Err(901));
    });
}

#[test]
fn a_fork_is_joined_and_ended_where_it_began() {
    with_driver("a_fork_is_joined_and_ended_where_it_began", |driver| {
        let side = driver.new_stream();
        let event = driver.new_event();
        let fork = || {
            assert_eq!(driver.begin_capture(driver.stream, 0), 0);
            assert_eq!(driver.record(event, driver.stream), 0);
            assert_eq!(driver.wait(side, event), 0);
            assert_eq!(driver.launch_in(side, 1), 0);
        };
        fork();
        assert_eq!(driver.end_capture(driver.stream), Err(904));
        assert_eq!(status(&driver, side), 0, "it captures no more");
        fork();
        assert_eq!(driver.end_capture(side), Err(903));
        assert_eq!(driver.end_capture(driver.stream), Err(901));
        // A capture that is not relaxed is ended by its own thread.
        assert_eq!(driver.begin_capture(driver.stream, 0), 0);
        let code = std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                driver.bind();
                driver.end_capture(driver.stream).unwrap_err()
            });
            thread.join().unwrap()
        });
        assert_eq!(code, 908);
        assert_eq!(driver.end_capture(driver.stream), Err(901));
    });
}

#[test]
fn a_capture_does_not_depend_on_work_outside() {
    with_driver("a_capture_does_not_depend_on_work_outside", |driver| {
        let other = driver.new_stream();
        let event = driver.new_event();
        assert_eq!(driver.begin_capture(driver.stream, 0), 0);
        // Never recorded: waits for nothing.
        assert_eq!(driver.wait(driver.stream, event), 0);
        assert_eq!(driver.launch_in(other, 1), 0);
        assert_eq!(driver.record(event, other), 0);
        assert_eq!(driver.wait(driver.stream, event), 905);
        assert_eq!(driver.end_capture(driver.stream), Err(901));
    });
}

#[test]
fn a_captured_event_is_no_event_outside() {
    with_driver("a_captured_event_is_no_event_outside", |driver| {
        let event = driver.new_event();
        assert_eq!(driver.begin_capture(driver.stream, 2), 0);
        assert_eq!(driver.record(event, driver.stream), 0);
        assert_eq!(call!(driver.library, "cuEventQuery"(event => Handle)), 907);
        assert_eq!(
            call!(driver.library, "cuEventSynchronize"(event => Handle)),
            907
        );
        assert!(driver.end_capture(driver.stream).is_ok());
        let other = driver.new_stream();
        assert_eq!(driver.wait(other, event), 907, "its capture is over");
        assert_eq!(driver.record(event, other), 0);
        assert_eq!(
            call!(driver.library, "cuEventSynchronize"(event => Handle)),
            0
        );
    });
}

#[test]
fn the_legacy_stream_does_not_depend_on_a_capture() {
    with_driver("the_legacy_stream_does_not_depend_on_a_capture", |driver| {
        let mut blocking = nothing();
        assert_eq!(
            call!(driver.library, "cuStreamCreate"(&mut blocking => *mut Handle, 0 => u32)),
            0
        );
        let legacy = std::ptr::without_provenance_mut(LEGACY);
        // A stream that does not block is none of its business.
        assert_eq!(driver.begin_capture(driver.stream, 0), 0);
        assert_eq!(driver.launch_in(legacy, 1), 0);
        assert!(driver.end_capture(driver.stream).is_ok());
        assert_eq!(driver.begin_capture(blocking, 0), 0);
        let mut status = 0;
        let code =
            call!(driver.library, "cuStreamIsCapturing"(legacy => Handle, &mut status => *mut u32));
        assert_eq!(code, 906, "asking does no harm");
        assert_eq!(
            super::wrong_captures_give_cudas_codes::status(&driver, blocking),
            1
        );
        assert_eq!(driver.launch_in(legacy, 1), 906);
        assert_eq!(driver.end_capture(blocking), Err(901));
    });
}
