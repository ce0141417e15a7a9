use std::ffi::{CStr, c_char, c_void};

use lineage_sim::isolated;

use crate::call;
use crate::driver::{Driver, Handle};
use crate::{starts, virtual_gpu};

const NAME: &str = "null_streams_are_the_threads_own_where_asked";

/// On the null stream, of either kind.
fn launch(driver: &Driver, label: u64, per_thread: bool) -> u32 {
    let mut label = label;
    let mut list = [(&raw mut label).cast::<c_void>()];
    macro_rules! launch {
        ($name:literal) => {
            call!(driver.library, $name(
                driver.function => Handle, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 0 => u32,
                std::ptr::null_mut() => Handle, list.as_mut_ptr() => *mut *mut c_void, std::ptr::null_mut() => *mut *mut c_void,
            ))
        };
    }
    if per_thread {
        launch!("cuLaunchKernel_ptsz")
    } else {
        launch!("cuLaunchKernel")
    }
}

/// `cuLaunchKernel_ptsz` on the null stream: apart from a non-blocking stream, and from another thread's null stream; the legacy
/// null stream is behind both. 10 µs each: 1 and 2 at 0, 3 behind them.
#[test]
fn two_threads_overlap_and_the_legacy_stream_is_behind_them() {
    isolated(
        &format!("{NAME}::two_threads_overlap_and_the_legacy_stream_is_behind_them"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            assert_eq!(launch(&driver, 1, true), 0);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    driver.bind();
                    assert_eq!(launch(&driver, 2, true), 0);
                });
            });
            assert_eq!(launch(&driver, 3, false), 0);
            assert_eq!(call!(driver.library, "cuCtxSynchronize"()), 0);
            assert_eq!(starts(&gpu.truth()), [(1, 0), (2, 0), (3, 10_000)]);
        },
    );
}

#[test]
fn the_address_is_given_by_flag() {
    isolated(&format!("{NAME}::the_address_is_given_by_flag"), || {
        virtual_gpu();
        let driver = Driver::open();
        let address = |name: &CStr, flags: u64| {
            let (mut function, mut status) = (std::ptr::null_mut::<c_void>(), 9_u32);
            let code = call!(driver.library, "cuGetProcAddress_v2"(
                name.as_ptr() => *const c_char, &mut function => *mut Handle, 12_090 => i32, flags => u64, &mut status => *mut u32,
            ));
            assert_eq!(code, 0);
            function as usize
        };
        // CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM is 2.
        for name in [
            c"cuLaunchKernel",
            c"cuMemcpyDtoD",
            c"cuGraphLaunch",
            c"cuMemsetD2D8",
        ] {
            assert_ne!(address(name, 0), address(name, 2), "{name:?}");
        }
        assert_eq!(
            address(c"cuCtxSynchronize", 0),
            address(c"cuCtxSynchronize", 2)
        );
    });
}
