use std::ffi::{CStr, c_void};

use lineage_sim::{Config, CuptiVersion, isolated, load};

use crate::call;
use crate::client::{CONCURRENT_KERNEL, CUSTOM2, Cupti, DRIVER};
use crate::driver::{Driver, Handle};

const NAME: &str = "odd_answers_are_nvidias_codes";

#[test]
fn of_functions_called_with_wrong_arguments() {
    isolated(
        &format!("{NAME}::of_functions_called_with_wrong_arguments"),
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            let library = &cupti.library;
            let null: *mut c_void = std::ptr::null_mut();
            // INVALID_PARAMETER 1, INVALID_KIND 21, PARAMETER_SIZE_NOT_SUFFICIENT 10, INVALID_CONTEXT 3
            assert_eq!(
                call!(library, "cuptiGetVersion"(std::ptr::null_mut() => *mut u32)),
                1
            );
            assert_eq!(call!(library, "cuptiActivityEnable"(0 => u32)), 21);
            assert_eq!(call!(library, "cuptiActivityEnable"(56 => u32)), 21);
            assert_eq!(
                call!(library, "cuptiActivityPushExternalCorrelationId"(0 => u32, 1 => u64)),
                1
            );
            assert_eq!(
                call!(library, "cuptiActivityPushExternalCorrelationId"(6 => u32, 1 => u64)),
                1
            );
            assert_eq!(
                call!(library, "cuptiEnableDomain"(1 => u32, null => *mut c_void, 1 => u32)),
                1
            );
            let (mut size, mut value) = (4_usize, 0_u64);
            assert_eq!(
                call!(library, "cuptiActivitySetAttribute"(0 => u32, &mut size => *mut usize, &mut value => *mut u64)),
                10
            );
            assert_eq!(
                call!(library, "cuptiActivitySetAttribute"(99 => u32, &mut size => *mut usize, &mut value => *mut u64)),
                1
            );
            let mut id = 0_u32;
            assert_eq!(
                call!(library, "cuptiGetContextId"(null => *mut c_void, &mut id => *mut u32)),
                3
            );
            assert_eq!(
                call!(library, "cuptiGetContextId"(driver.context => Handle, &mut id => *mut u32)),
                0
            );
            assert_eq!(id, 1);
            assert_eq!(
                call!(library, "cuptiGetDeviceId"(driver.context => Handle, &mut id => *mut u32)),
                0
            );
            assert_eq!(id, 0);
            assert_eq!(
                call!(library, "cuptiGetStreamIdEx"(null => Handle, null => Handle, 0 => u8, &mut id => *mut u32)),
                0
            );
            assert_eq!(id, 7);
            assert_eq!(
                call!(library, "cuptiGetStreamIdEx"(null => Handle, driver.stream => Handle, 0 => u8, &mut id => *mut u32)),
                0
            );
            assert_eq!(id, 13);
            // NOT_SUPPORTED
            assert_eq!(call!(library, "cuptiActivityEnableHWTrace"(1 => u8)), 27);
            let mut text = std::ptr::null();
            assert_eq!(
                call!(library, "cuptiGetResultString"(39 => u32, &mut text => *mut *const std::ffi::c_char)),
                0
            );
            // SAFETY: a constant of the library.
            let text = unsafe { CStr::from_ptr(text) };
            assert_eq!(text, c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED");
        },
    );
}

#[test]
fn of_a_flush_before_buffers_are_registered() {
    isolated(
        &format!("{NAME}::of_a_flush_before_buffers_are_registered"),
        || {
            load(Config::default()).unwrap();
            // SAFETY: the simulated library, loaded before.
            let library = unsafe { libloading::os::unix::Library::new("libcupti.so") }.unwrap();
            assert_eq!(call!(library, "cuptiActivityFlushAll"(0 => u32)), 7);
        },
    );
}

#[test]
fn of_the_two_versions() {
    isolated(&format!("{NAME}::of_the_two_versions"), || {
        load(Config::default().cupti_version(CuptiVersion::V13_5)).unwrap();
        let driver = Driver::open();
        let cupti = Cupti::open();
        let mut version = 0;
        assert_eq!(
            call!(cupti.library, "cuptiGetVersion"(&mut version => *mut u32)),
            0
        );
        assert_eq!(version, 130_500);
        assert_eq!(
            call!(cupti.library, "cuptiActivityEnable"(56 => u32)),
            0,
            "a kind of 13.1"
        );
        let mut version = 0;
        assert_eq!(
            call!(driver.library, "cuDriverGetVersion"(&mut version => *mut i32)),
            0
        );
        assert_eq!(version, 13_050);
    });
}

#[test]
fn of_finalize_which_forgets_everything() {
    isolated(
        &format!("{NAME}::of_finalize_which_forgets_everything"),
        || {
            let gpu = load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL, DRIVER]);
            cupti.push(CUSTOM2, 1);
            driver.launch(1);
            driver.synchronize();
            assert_eq!(call!(cupti.library, "cuptiFinalize"()), 0);
            assert!(gpu.counts().stacks.is_empty());
            driver.launch(2);
            driver.synchronize();
            let cupti = Cupti::open();
            assert!(cupti.records().is_empty());
            cupti.enable(&[CONCURRENT_KERNEL]);
            driver.launch(3);
            driver.synchronize();
            assert_eq!(cupti.records().len(), 1);
        },
    );
}
