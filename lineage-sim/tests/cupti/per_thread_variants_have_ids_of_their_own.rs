use std::ffi::c_void;

use lineage_sim::{Config, isolated, load};

use crate::call;
use crate::client::{Cupti, DRIVER, Record};
use crate::driver::{Driver, Handle};

const NAME: &str = "per_thread_variants_have_ids_of_their_own";

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// A graph of one kernel.
fn captured_launch(driver: &Driver) -> Handle {
    let begun = call!(driver.library, "cuStreamBeginCapture_v2"(driver.stream => Handle, 0 => u32));
    assert_eq!(begun, 0);
    driver.launch(1);
    let mut graph = std::ptr::null_mut();
    let ended = call!(driver.library, "cuStreamEndCapture"(driver.stream => Handle, &mut graph => *mut Handle));
    assert_eq!(ended, 0);
    graph
}

/// Calls both variants of a function with these arguments.
macro_rules! both {
    ($library:expr, $plain:literal, $variant:literal, $arguments:tt) => {
        assert_eq!(call!($library, $plain $arguments), 0, $plain);
        assert_eq!(call!($library, $variant $arguments), 0, $variant);
    };
}

/// The calls that order work and ask for none, as `cupti_driver_cbid.h` numbers them and their variants for per-thread streams.
#[test]
fn of_the_calls_that_order_work() {
    isolated(&format!("{NAME}::of_the_calls_that_order_work"), || {
        load(Config::default()).unwrap();
        let driver = Driver::open();
        let (library, stream) = (&driver.library, driver.stream);
        let value = driver.allocate(8);
        let mut event: Handle = std::ptr::null_mut();
        assert_eq!(
            call!(library, "cuEventCreate"(&mut event => *mut Handle, 2 => u32)),
            0
        );
        let graph = captured_launch(&driver);
        let mut exec: Handle = std::ptr::null_mut();
        let made = call!(library, "cuGraphInstantiateWithFlags"(&mut exec => *mut Handle, graph => Handle, 0 => u64));
        assert_eq!(made, 0);
        let (mut first, mut second) = (0_u64, 0_u64);
        let cupti = Cupti::open();
        cupti.enable(&[DRIVER]);
        both!(library, "cuEventRecord", "cuEventRecord_ptsz", (event => Handle, stream => Handle));
        both!(library, "cuEventRecordWithFlags", "cuEventRecordWithFlags_ptsz", (event => Handle, stream => Handle, 0 => u32));
        both!(library, "cuStreamWaitEvent", "cuStreamWaitEvent_ptsz", (stream => Handle, event => Handle, 0 => u32));
        both!(library, "cuStreamWriteValue32_v2", "cuStreamWriteValue32_v2_ptsz", (stream => Handle, value => u64, 1 => u32, 0 => u32));
        both!(library, "cuStreamWaitValue32_v2", "cuStreamWaitValue32_v2_ptsz", (stream => Handle, value => u64, 1 => u32, 0 => u32));
        both!(library, "cuStreamWriteValue64_v2", "cuStreamWriteValue64_v2_ptsz", (stream => Handle, value => u64, 1 => u64, 0 => u32));
        both!(library, "cuStreamWaitValue64_v2", "cuStreamWaitValue64_v2_ptsz", (stream => Handle, value => u64, 1 => u64, 0 => u32));
        both!(library, "cuStreamBatchMemOp_v2", "cuStreamBatchMemOp_v2_ptsz", (stream => Handle, 0 => u32, std::ptr::null_mut() => *mut c_void, 0 => u32));
        assert_eq!(
            call!(library, "cuMemAllocAsync"(&mut first => *mut u64, 64 => usize, stream => Handle)),
            0
        );
        assert_eq!(
            call!(library, "cuMemAllocAsync_ptsz"(&mut second => *mut u64, 64 => usize, stream => Handle)),
            0
        );
        assert_eq!(
            call!(library, "cuMemFreeAsync"(first => u64, stream => Handle)),
            0
        );
        assert_eq!(
            call!(library, "cuMemFreeAsync_ptsz"(second => u64, stream => Handle)),
            0
        );
        type HostFunction = unsafe extern "C" fn(*mut c_void);
        both!(library, "cuLaunchHostFunc", "cuLaunchHostFunc_ptsz", (stream => Handle, nothing => HostFunction, std::ptr::null_mut() => *mut c_void));
        both!(library, "cuGraphUpload", "cuGraphUpload_ptsz", (exec => Handle, stream => Handle));
        both!(library, "cuStreamSynchronize", "cuStreamSynchronize_ptsz", (stream => Handle));
        both!(library, "cuStreamQuery", "cuStreamQuery_ptsz", (stream => Handle));
        let ids: Vec<u32> = cupti
            .records()
            .iter()
            .filter_map(|record| match record {
                Record::Api { cbid, .. } => Some(*cbid),
                _ => None,
            })
            .collect();
        #[rustfmt::skip]
        let expected = [
            119, 441, 587, 588, 295, 436, 663, 664, 659, 660, 665, 666, 661, 662, 667, 668,
            598, 599, 600, 601, 527, 528, 580, 581, 126, 440, 125, 439,
        ];
        assert_eq!(ids, expected);
    });
}
