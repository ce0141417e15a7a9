use std::ffi::c_void;

use lineage_sim::{DependencyKind, isolated};

use crate::call;
use crate::driver::{Driver, Handle};
use crate::{starts, virtual_gpu};

const NAME: &str = "pools_reuse_memory_behind_what_frees_it";

fn allocate(driver: &Driver, stream: Handle) -> u64 {
    let mut pointer = 0;
    let code = call!(driver.library, "cuMemAllocAsync"(&mut pointer => *mut u64, 1_000 => usize, stream => Handle));
    assert_eq!(code, 0);
    pointer
}

fn free(driver: &Driver, pointer: u64, stream: Handle) {
    assert_eq!(
        call!(driver.library, "cuMemFreeAsync"(pointer => u64, stream => Handle)),
        0
    );
}

/// Kernel 1 runs when its stream's memory is freed behind it. The other stream gets the same memory, so kernel 2 waits for 1: a
/// dependency that the program never asked for.
#[test]
fn with_an_internal_dependency_between_streams() {
    isolated(
        &format!("{NAME}::with_an_internal_dependency_between_streams"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let other = driver.new_stream();
            let first = allocate(&driver, driver.stream);
            driver.launch(1);
            free(&driver, first, driver.stream);
            assert_eq!(allocate(&driver, other), first);
            assert_eq!(driver.launch_in(other, 2), 0);
            assert_eq!(call!(driver.library, "cuCtxSynchronize"()), 0);
            let truth = gpu.truth();
            assert_eq!(starts(&truth), [(1, 0), (2, 10_000)]);
            assert_eq!(truth.operations[1].last_dependency, DependencyKind::Event);
            assert_eq!(
                truth.operations[1].dependency_ordinal,
                Some(truth.operations[0].ordinal)
            );
            // It was not freed under the one that has it now.
            assert_eq!(gpu.counts().allocations, 1);
        },
    );
}

#[test]
fn not_between_streams_where_the_pool_forbids_it() {
    isolated(
        &format!("{NAME}::not_between_streams_where_the_pool_forbids_it"),
        || {
            let gpu = virtual_gpu();
            let driver = Driver::open();
            let other = driver.new_stream();
            let mut pool = std::ptr::null_mut();
            let code = call!(driver.library, "cuDeviceGetDefaultMemPool"(&mut pool => *mut Handle, 0 => i32));
            assert_eq!(code, 0);
            // CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
            let mut off = 0_i32;
            let code = call!(driver.library, "cuMemPoolSetAttribute"(pool => Handle, 3 => u32, (&raw mut off).cast() => *mut c_void));
            assert_eq!(code, 0);
            let first = allocate(&driver, driver.stream);
            driver.launch(1);
            free(&driver, first, driver.stream);
            assert_ne!(allocate(&driver, other), first);
            assert_eq!(driver.launch_in(other, 2), 0);
            // The same stream may have it at once.
            let second = allocate(&driver, driver.stream);
            assert_eq!(second, first);
            assert_eq!(call!(driver.library, "cuCtxSynchronize"()), 0);
            assert_eq!(starts(&gpu.truth()), [(1, 0), (2, 0)]);
            assert_eq!(gpu.counts().allocations, 2);
        },
    );
}

#[test]
fn pools_are_made_chosen_and_destroyed() {
    isolated(
        &format!("{NAME}::pools_are_made_chosen_and_destroyed"),
        || {
            virtual_gpu();
            let driver = Driver::open();
            let library = &driver.library;
            // CUmemPoolProps: pinned, no handles, on device 0.
            let mut properties = [0_u32; 24];
            properties[0] = 1;
            properties[2] = 1;
            let mut pool = std::ptr::null_mut();
            let create = |pool: &mut Handle, properties: &[u32; 24]| call!(library, "cuMemPoolCreate"(pool => *mut Handle, properties.as_ptr() => *const u32));
            assert_eq!(create(&mut pool, &properties), 0);
            let mut now = std::ptr::null_mut();
            assert_eq!(
                call!(library, "cuDeviceSetMemPool"(0 => i32, pool => Handle)),
                0
            );
            assert_eq!(
                call!(library, "cuDeviceGetMemPool"(&mut now => *mut Handle, 0 => i32)),
                0
            );
            assert_eq!(now, pool);
            let mut default = std::ptr::null_mut();
            assert_eq!(
                call!(library, "cuDeviceGetDefaultMemPool"(&mut default => *mut Handle, 0 => i32)),
                0
            );
            assert_ne!(default, pool);
            assert_eq!(call!(library, "cuMemPoolDestroy"(default => Handle)), 1);
            assert_eq!(call!(library, "cuMemPoolDestroy"(pool => Handle)), 0);
            assert_eq!(call!(library, "cuMemPoolDestroy"(pool => Handle)), 1);
            assert_eq!(
                call!(library, "cuDeviceGetMemPool"(&mut now => *mut Handle, 0 => i32)),
                0
            );
            assert_eq!(now, default, "back to the default");
            properties[3] = 7;
            assert_eq!(
                create(&mut pool, &properties),
                101,
                "there is no such device"
            );
        },
    );
}
