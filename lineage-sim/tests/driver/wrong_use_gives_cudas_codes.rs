use std::ffi::{CStr, c_char, c_void};

use lineage_sim::{Config, isolated, load};

use crate::call;
use crate::driver::{Driver, Handle, PTX};

const NAME: &str = "wrong_use_gives_cudas_codes";

fn nothing() -> Handle {
    std::ptr::null_mut()
}

fn wrong() -> Handle {
    std::ptr::without_provenance_mut(0x0dea_dbe0)
}

#[test]
fn before_initialisation_and_without_a_context() {
    isolated(
        &format!("{NAME}::before_initialisation_and_without_a_context"),
        || {
            load(Config::default()).unwrap();
            // SAFETY: the simulated library, loaded before.
            let library = unsafe { libloading::os::unix::Library::new("libcuda.so") }.unwrap();
            let mut number = 0;
            // NOT_INITIALIZED 3, INVALID_VALUE 1, INVALID_DEVICE 101, INVALID_CONTEXT 201
            assert_eq!(
                call!(library, "cuDeviceGetCount"(&mut number => *mut i32)),
                3
            );
            assert_eq!(
                call!(library, "cuDriverGetVersion"(&mut number => *mut i32)),
                0
            );
            assert_eq!(number, 12_090);
            assert_eq!(call!(library, "cuInit"(1 => u32)), 1);
            assert_eq!(call!(library, "cuInit"(0 => u32)), 0);
            assert_eq!(
                call!(library, "cuDeviceGetCount"(&mut number => *mut i32)),
                0
            );
            assert_eq!(number, 1);
            assert_eq!(
                call!(library, "cuDeviceGetCount"(std::ptr::null_mut() => *mut i32)),
                1
            );
            assert_eq!(
                call!(library, "cuDeviceGet"(&mut number => *mut i32, 1 => i32)),
                101
            );
            assert_eq!(
                call!(library, "cuDeviceGetAttribute"(&mut number => *mut i32, 10 => u32, 0 => i32)),
                0
            );
            assert_eq!(number, 32, "a warp");
            assert_eq!(
                call!(library, "cuDeviceGetAttribute"(&mut number => *mut i32, 10_000 => u32, 0 => i32)),
                1
            );
            let mut handle = nothing();
            assert_eq!(
                call!(library, "cuStreamCreate"(&mut handle => *mut Handle, 0 => u32)),
                201
            );
            assert_eq!(call!(library, "cuCtxSynchronize"()), 201);
            assert_eq!(call!(library, "cuCtxSetCurrent"(wrong() => Handle)), 201);
            assert_eq!(
                call!(library, "cuDevicePrimaryCtxRelease_v2"(0 => i32)),
                201
            );
            let mut text = [0 as c_char; 5];
            assert_eq!(
                call!(library, "cuDeviceGetName"(text.as_mut_ptr() => *mut c_char, 5 => i32, 0 => i32)),
                0
            );
            assert_eq!(text.map(|byte| byte as u8), *b"Simu\0");
        },
    );
}

#[test]
fn of_handles_that_mean_nothing() {
    isolated(&format!("{NAME}::of_handles_that_mean_nothing"), || {
        load(Config::default()).unwrap();
        let driver = Driver::open();
        let library = &driver.library;
        for handle in [wrong(), driver.function, driver.context] {
            // A handle of another kind is as wrong as any.
            assert_eq!(call!(library, "cuStreamSynchronize"(handle => Handle)), 400);
            assert_eq!(call!(library, "cuEventQuery"(handle => Handle)), 400);
            assert_eq!(
                call!(library, "cuEventRecord"(handle => Handle, nothing() => Handle)),
                400
            );
            assert_eq!(call!(library, "cuModuleUnload"(handle => Handle)), 400);
            assert_eq!(driver.launch_in(handle, 1), 400);
        }
        assert_eq!(
            call!(library, "cuStreamDestroy_v2"(driver.stream => Handle)),
            0
        );
        assert_eq!(
            call!(library, "cuStreamDestroy_v2"(driver.stream => Handle)),
            400
        );
        assert_eq!(call!(library, "cuModuleUnload"(driver.module => Handle)), 0);
        let mut label = 0_u64;
        let mut parameters = [(&raw mut label).cast::<c_void>()];
        assert_eq!(
            driver.launch_function(driver.function, nothing(), &mut parameters),
            400
        );
    });
}

#[test]
fn of_launches_and_modules() {
    isolated(&format!("{NAME}::of_launches_and_modules"), || {
        load(Config::default()).unwrap();
        let driver = Driver::open();
        let library = &driver.library;
        let mut label = 0_u64;
        let mut parameters = [(&raw mut label).cast::<c_void>()];
        let mut launch = |grid: u32, block: u32, shared: u32, list: bool| {
            let list = if list {
                parameters.as_mut_ptr()
            } else {
                std::ptr::null_mut()
            };
            call!(library, "cuLaunchKernel"(
                driver.function => Handle, grid => u32, 1 => u32, 1 => u32, block => u32, 1 => u32, 1 => u32, shared => u32,
                driver.stream => Handle,
                list => *mut *mut c_void,
                std::ptr::null_mut() => *mut *mut c_void,
            ))
        };
        assert_eq!(launch(1, 1_024, 49_152, true), 0);
        assert_eq!(launch(0, 1, 0, true), 1);
        assert_eq!(launch(1, 1_025, 0, true), 1);
        assert_eq!(launch(1, 1, 49_153, true), 1);
        assert_eq!(launch(1, 1, 0, false), 1, "the kernel has a parameter");
        assert_eq!(
            call!(library, "cuFuncSetAttribute"(driver.function => Handle, 8 => u32, 65_536 => i32)),
            0
        );
        assert_eq!(launch(1, 1, 65_536, true), 0);

        let mut module = nothing();
        let mut load = |text: &[u8]| call!(library, "cuModuleLoadData"(&mut module => *mut Handle, text.as_ptr() => *const u8));
        // INVALID_PTX 218, INVALID_IMAGE 200, NOT_FOUND 500, FILE_NOT_FOUND 301
        assert_eq!(load(b"no ptx\0"), 218);
        assert_eq!(load(b"\x7fELF\x02\0"), 200);
        assert_eq!(load(b"\x50\xed\x55\xba\0"), 200);
        assert_eq!(load(b"\0"), 218);
        assert_eq!(load(PTX.to_bytes_with_nul()), 0);
        let mut function = nothing();
        let code = call!(library, "cuModuleGetFunction"(&mut function => *mut Handle, module => Handle, c"missing".as_ptr() => *const c_char));
        assert_eq!(code, 500);
        assert_eq!(
            call!(library, "cuModuleLoad"(&mut module => *mut Handle, c"/no/such/file".as_ptr() => *const c_char)),
            301
        );
        let (mut offset, mut bytes) = (0_usize, 0_usize);
        let other = driver.get_function(c"other");
        let mut info = |index: usize| {
            let code = call!(library, "cuFuncGetParamInfo"(other => Handle, index => usize, &mut offset => *mut usize, &mut bytes => *mut usize));
            (code, offset, bytes)
        };
        assert_eq!(
            [info(0), info(1), info(2)],
            [(0, 0, 4), (0, 8, 8), (0, 16, 1)]
        );
        assert_eq!(info(3).0, 1);
    });
}

#[test]
fn of_what_is_not_simulated_and_of_addresses_of_functions() {
    isolated(
        &format!("{NAME}::of_what_is_not_simulated_and_of_addresses_of_functions"),
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let library = &driver.library;
            assert_eq!(call!(library, "cuTexObjectDestroy"(0 => u64)), 801);
            assert_eq!(
                call!(library, "cuMulticastUnbind"(0 => u64, 0 => i32, 0 => usize, 0 => usize)),
                801
            );
            let mut text = std::ptr::null();
            assert_eq!(
                call!(library, "cuGetErrorName"(801 => u32, &mut text => *mut *const c_char)),
                0
            );
            // SAFETY: a constant of the library.
            assert_eq!(unsafe { CStr::from_ptr(text) }, c"CUDA_ERROR_NOT_SUPPORTED");
            assert_eq!(
                call!(library, "cuGetErrorString"(12_345 => u32, &mut text => *mut *const c_char)),
                1
            );

            let address = |name: &CStr| {
                let (mut function, mut status) = (nothing(), 9_u32);
                let code = call!(library, "cuGetProcAddress_v2"(
                    name.as_ptr() => *const c_char, &mut function => *mut Handle, 12_090 => i32, 0 => u64, &mut status => *mut u32,
                ));
                (code, function, status)
            };
            let (code, function, status) = address(c"cuDeviceGetCount");
            assert_eq!((code, status), (0, 0));
            let mut count = 0;
            type Count = unsafe extern "C" fn(*mut i32) -> u32;
            // SAFETY: what the driver gave for this name.
            let code = unsafe { std::mem::transmute::<Handle, Count>(function)(&mut count) };
            assert_eq!(code, 0);
            assert_eq!(count, 1);
            assert_eq!(address(c"cuMemAlloc").0, 0, "its newest version");
            assert_eq!(
                address(c"cuTexObjectDestroy").0,
                0,
                "it answers that it is not supported"
            );
            assert_eq!(address(c"cuNoSuchThing"), (500, nothing(), 1));
        },
    );
}

/// `CUlaunchConfig` and `CUlaunchAttribute`, from `cuda.h`.
#[repr(C)]
struct LaunchConfig {
    numbers: [u32; 7],
    stream: Handle,
    attributes: *const [u32; 18],
    count: u32,
}

#[test]
fn of_launches_with_attributes_and_packed_parameters() {
    isolated(
        &format!("{NAME}::of_launches_with_attributes_and_packed_parameters"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work").label_argument(0).timed().unwrap();
            let driver = Driver::open();
            let library = &driver.library;
            let mut label = 5_u64;
            let mut parameters = [(&raw mut label).cast::<c_void>()];
            let mut launch = |attributes: &[[u32; 18]]| {
                let config = LaunchConfig {
                    numbers: [1, 1, 1, 32, 1, 1, 0],
                    stream: driver.stream,
                    attributes: attributes.as_ptr(),
                    count: attributes.len() as u32,
                };
                call!(library, "cuLaunchKernelEx"(
                    &config => *const LaunchConfig, driver.function => Handle, parameters.as_mut_ptr() => *mut *mut c_void,
                    std::ptr::null_mut() => *mut *mut c_void,
                ))
            };
            let attribute = |id: u32, value: u32| {
                let mut words = [0; 18];
                words[0] = id;
                words[2] = value;
                words
            };
            assert_eq!(launch(&[]), 0);
            assert_eq!(launch(&[attribute(0, 0), attribute(8, -1_i32 as u32)]), 0);
            // CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE is not simulated.
            assert_eq!(launch(&[attribute(13, 1)]), 801);
            // CU_LAUNCH_PARAM_BUFFER_POINTER, BUFFER_SIZE and END.
            let mut packed = 6_u64.to_le_bytes();
            let mut size = 8_usize;
            let mark = |number: usize| std::ptr::without_provenance_mut::<c_void>(number);
            let mut extra = [
                mark(1),
                packed.as_mut_ptr().cast(),
                mark(2),
                (&raw mut size).cast(),
                mark(0),
            ];
            let code = call!(library, "cuLaunchKernel"(
                driver.function => Handle, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 1 => u32, 0 => u32,
                driver.stream => Handle, std::ptr::null_mut() => *mut *mut c_void, extra.as_mut_ptr() => *mut *mut c_void,
            ));
            assert_eq!(code, 0);
            driver.synchronize();
            let labels: Vec<_> = gpu
                .truth()
                .operations
                .iter()
                .map(|operation| operation.label)
                .collect();
            assert_eq!(labels, [Some(5), Some(5), Some(6)]);
            let failed = gpu
                .truth()
                .calls
                .iter()
                .filter(|call| call.result == 801 && call.operations == 0)
                .count();
            assert_eq!(failed, 1);
        },
    );
}

#[test]
fn in_a_forked_child() {
    isolated(&format!("{NAME}::in_a_forked_child"), || {
        load(Config::default()).unwrap();
        let driver = Driver::open();
        // SAFETY: the child only calls the driver, which answers without taking a lock, and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = call!(driver.library, "cuCtxSynchronize"());
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code as i32) };
        }
        let mut status = 0;
        // SAFETY: waits for the child of above.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(libc::WEXITSTATUS(status), 3);
        driver.synchronize();
    });
}
