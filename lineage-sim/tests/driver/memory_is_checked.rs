use std::ffi::c_void;

use lineage_sim::{Config, DeviceRange, KernelError, isolated, load};

use crate::call;
use crate::driver::{Driver, Handle};

const NAME: &str = "memory_is_checked";
const INVALID_VALUE: u32 = 1;

#[test]
fn copies_and_sets_stay_inside_one_allocation() {
    isolated(
        &format!("{NAME}::copies_and_sets_stay_inside_one_allocation"),
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let library = &driver.library;
            let memory = driver.allocate(100);
            let mut host = [0_u8; 200];
            let to_device = |to: u64, bytes: usize| call!(library, "cuMemcpyHtoD_v2"(to => u64, host.as_ptr() => *const u8, bytes => usize));
            assert_eq!(to_device(memory, 100), 0);
            assert_eq!(to_device(memory, 101), INVALID_VALUE);
            assert_eq!(to_device(memory + 50, 50), 0);
            assert_eq!(to_device(memory + 50, 51), INVALID_VALUE);
            assert_eq!(to_device(0x1000, 1), INVALID_VALUE);
            assert_eq!(to_device(0x1000, 0), 0, "nothing is copied");
            assert_eq!(to_device(u64::MAX, 8), INVALID_VALUE);
            assert_eq!(
                call!(library, "cuMemcpyDtoH_v2"(host.as_mut_ptr() => *mut u8, memory => u64, 200 => usize)),
                INVALID_VALUE
            );
            assert_eq!(
                call!(library, "cuMemsetD32_v2"(memory => u64, 1 => u32, 25 => usize)),
                0
            );
            assert_eq!(
                call!(library, "cuMemsetD32_v2"(memory => u64, 1 => u32, 26 => usize)),
                INVALID_VALUE
            );
            assert_eq!(
                call!(library, "cuMemsetD32_v2"(memory + 2 => u64, 1 => u32, 1 => usize)),
                INVALID_VALUE
            );
            assert_eq!(
                call!(library, "cuMemcpyDtoH_v2"(host.as_mut_ptr() => *mut u8, memory => u64, 100 => usize)),
                0
            );
            assert!(host[..100].chunks(4).all(|word| word == [1, 0, 0, 0]));
            assert_eq!(
                call!(library, "cuMemsetD16_v2"(memory => u64, 0x0203 => u16, 2 => usize)),
                0
            );
            assert_eq!(
                call!(library, "cuMemcpyDtoH_v2"(host.as_mut_ptr() => *mut u8, memory => u64, 100 => usize)),
                0
            );
            assert_eq!(host[..6], [3, 2, 3, 2, 1, 0]);
        },
    );
}

#[test]
fn freed_memory_is_gone_and_nothing_is_freed_twice() {
    isolated(
        &format!("{NAME}::freed_memory_is_gone_and_nothing_is_freed_twice"),
        || {
            let gpu = load(Config::default().memory_bytes(1_000)).unwrap();
            let driver = Driver::open();
            let library = &driver.library;
            let memory = driver.allocate(600);
            let mut second = 0;
            // CUDA_ERROR_OUT_OF_MEMORY
            assert_eq!(
                call!(library, "cuMemAlloc_v2"(&mut second => *mut u64, 600 => usize)),
                2
            );
            assert_eq!(
                call!(library, "cuMemAlloc_v2"(&mut second => *mut u64, 0 => usize)),
                INVALID_VALUE
            );
            let (mut free, mut total) = (0_usize, 0_usize);
            assert_eq!(
                call!(library, "cuMemGetInfo_v2"(&mut free => *mut usize, &mut total => *mut usize)),
                0
            );
            assert_eq!((free, total), (400, 1_000));
            // Freed in stream order: a new allocation waits for it.
            assert_eq!(
                call!(library, "cuMemFreeAsync"(memory => u64, driver.stream => Handle)),
                0
            );
            assert_eq!(
                call!(library, "cuMemAllocAsync"(&mut second => *mut u64, 1_000 => usize, driver.stream => Handle)),
                0
            );
            assert_eq!(
                call!(library, "cuMemFree_v2"(second + 1 => u64)),
                INVALID_VALUE,
                "not its start"
            );
            assert_eq!(call!(library, "cuMemFree_v2"(second => u64)), 0);
            assert_eq!(call!(library, "cuMemFree_v2"(second => u64)), INVALID_VALUE);
            assert_eq!(call!(library, "cuMemFree_v2"(0 => u64)), 0);
            let counts = gpu.counts();
            assert_eq!((counts.allocations, counts.allocated_bytes), (0, 0));
        },
    );
}

#[test]
fn kernels_see_only_live_memory() {
    isolated(&format!("{NAME}::kernels_see_only_live_memory"), || {
        let gpu = load(Config::default()).unwrap();
        gpu.register_kernel("work", |launch| {
            let address = launch.argument::<u64>(0)?;
            let range = |offset, length| DeviceRange::new(address + offset, length);
            assert!(launch.slice::<u32>(range(0, 25)).is_ok());
            assert!(matches!(
                launch.slice::<u32>(range(0, 26)),
                Err(KernelError::IllegalAddress { bytes: 104, .. })
            ));
            assert!(launch.slice::<u32>(range(2, 1)).is_err(), "not aligned");
            assert!(launch.slice::<u64>(range(0, usize::MAX)).is_err());
            assert!(launch.slice::<u64>(DeviceRange::new(0, 0))?.is_empty());
            let overlap = launch.write_and_read::<u8, u8, 1>(range(0, 10), [range(9, 2)]);
            assert!(matches!(overlap, Err(KernelError::Overlap { .. })));
            let (target, [first, second]) =
                launch.write_and_read::<u8, u8, 2>(range(0, 2), [range(50, 2), range(51, 2)])?;
            for index in 0..2 {
                target[index] = first[index] + second[index];
            }
            Ok(())
        })
        .unwrap();
        let driver = Driver::open();
        let memory = driver.allocate(100);
        let mut bytes = [0_u8; 100];
        bytes[50..53].copy_from_slice(&[1, 2, 3]);
        driver.copy_to_device(memory, &bytes);
        driver.launch(memory);
        driver.copy_to_host(memory, &mut bytes);
        assert_eq!(bytes[..2], [3, 5]);
        assert_eq!(
            gpu.truth().operations[1].result,
            0,
            "no assertion of the kernel's failed"
        );
    });
}

#[test]
fn pinned_memory_is_read_when_the_copy_runs() {
    isolated(
        &format!("{NAME}::pinned_memory_is_read_when_the_copy_runs"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work").duration_ns(400_000_000).timed().unwrap();
            let driver = Driver::open();
            let library = &driver.library;
            let memory = driver.allocate(8);
            let mut pinned: *mut c_void = std::ptr::null_mut();
            assert_eq!(
                call!(library, "cuMemHostAlloc"(&mut pinned => *mut *mut c_void, 8 => usize, 0 => u32)),
                0
            );
            driver.launch(1);
            let copied = call!(library, "cuMemcpyHtoDAsync_v2"(memory => u64, pinned => *mut c_void, 8 => usize, driver.stream => Handle));
            assert_eq!(copied, 0);
            // SAFETY: eight bytes of pinned memory, which the device reads some 400 ms later.
            unsafe { pinned.cast::<u64>().write_volatile(77) };
            driver.synchronize();
            assert_eq!(gpu.truth().operations[1].label, Some(77));
            assert_eq!(call!(library, "cuMemFreeHost"(pinned => *mut c_void)), 0);
            assert_eq!(
                call!(library, "cuMemFreeHost"(pinned => *mut c_void)),
                INVALID_VALUE
            );
        },
    );
}
