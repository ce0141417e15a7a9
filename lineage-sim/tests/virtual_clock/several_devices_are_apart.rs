use lineage_sim::{OperationKind, Settings, isolated, load};

use crate::client::{CONCURRENT_KERNEL, Cupti, DRIVER, MEMCPY2, Record, kernels};
use crate::driver::{Driver, Handle, PTX};
use crate::{call, config};

const NAME: &str = "several_devices_are_apart";

/// A second device's context, current from here on, with a stream and the kernel's function.
struct Second {
    context: Handle,
    stream: Handle,
    function: Handle,
}

fn second(driver: &Driver) -> Second {
    let library = &driver.library;
    let null: Handle = std::ptr::null_mut();
    let (mut context, mut module, mut function) = (null, null, null);
    let retained =
        call!(library, "cuDevicePrimaryCtxRetain"(&mut context => *mut Handle, 1 => i32));
    assert_eq!(retained, 0);
    assert_eq!(call!(library, "cuCtxSetCurrent"(context => Handle)), 0);
    let loaded = call!(library, "cuModuleLoadData"(&mut module => *mut Handle, PTX.as_ptr() => *const std::ffi::c_char));
    assert_eq!(loaded, 0);
    let found = call!(library, "cuModuleGetFunction"(&mut function => *mut Handle, module => Handle, c"work".as_ptr() => *const std::ffi::c_char));
    assert_eq!(found, 0);
    Second {
        context,
        stream: driver.new_stream(),
        function,
    }
}

fn launch(driver: &Driver, second: &Second, label: u64) {
    let mut label = label;
    let mut parameters = [(&raw mut label).cast()];
    assert_eq!(
        driver.launch_function(second.function, second.stream, &mut parameters),
        0
    );
}

fn synchronize(driver: &Driver, stream: Handle) {
    assert_eq!(
        call!(driver.library, "cuStreamSynchronize"(stream => Handle)),
        0
    );
}

#[test]
fn each_has_its_own_name_memory_and_context() {
    isolated(
        &format!("{NAME}::each_has_its_own_name_memory_and_context"),
        || {
            let _gpu = load(config(Settings::default().devices(2)).memory_bytes(1 << 20)).unwrap();
            let driver = Driver::open();
            let library = &driver.library;
            let mut count = 0;
            assert_eq!(
                call!(library, "cuDeviceGetCount"(&mut count => *mut i32)),
                0
            );
            assert_eq!(count, 2);
            let uuids = [0, 1].map(|device| {
                let mut uuid = [0_u8; 16];
                assert_eq!(
                    call!(library, "cuDeviceGetUuid_v2"(&mut uuid => *mut [u8; 16], device => i32)),
                    0
                );
                uuid
            });
            assert_ne!(uuids[0], uuids[1]);
            // CUDA_ERROR_INVALID_DEVICE
            assert_eq!(
                call!(library, "cuDeviceGet"(&mut count => *mut i32, 2 => i32)),
                101
            );
            // The first device's memory is full, the second's is not.
            driver.allocate(1 << 20);
            let mut pointer = 0;
            assert_eq!(
                call!(library, "cuMemAlloc_v2"(&mut pointer => *mut u64, 256 => usize)),
                2
            );
            second(&driver);
            let on_second = driver.allocate(1 << 20);
            let mut device = -1;
            assert_eq!(call!(library, "cuCtxGetDevice"(&mut device => *mut i32)), 0);
            assert_eq!(device, 1);
            // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
            let code = call!(library, "cuPointerGetAttribute"(&mut device => *mut i32, 9 => u32, on_second => u64));
            assert_eq!((code, device), (0, 1));
        },
    );
}

/// One engine for a kernel on each device: kernels of two devices overlap, two of one device do not. Calls are free, so that all arrive at once.
#[test]
fn their_kernels_do_not_wait_for_each_other() {
    isolated(
        &format!("{NAME}::their_kernels_do_not_wait_for_each_other"),
        || {
            // A block of the launches below has 64 threads, and each grid has 6: all of one multiprocessor of 384.
            let settings = Settings::default()
                .devices(2)
                .multiprocessors(1)
                .threads_per_multiprocessor(384);
            let gpu = load(config(settings)).unwrap();
            gpu.kernel("work")
                .label_argument(0)
                .duration_ns(5_000)
                .timed()
                .unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER, CONCURRENT_KERNEL]);
            let other = driver.new_stream();
            let begin_ns = gpu.now_ns();
            driver.launch(1);
            assert_eq!(driver.launch_in(other, 2), 0);
            let second = second(&driver);
            launch(&driver, &second, 3);
            synchronize(&driver, second.stream);
            driver.bind();
            assert_eq!(call!(driver.library, "cuCtxSynchronize"()), 0);
            let mut operations = gpu.truth().operations;
            operations.sort_by_key(|operation| operation.label);
            let seen: Vec<(u64, u32)> = operations
                .iter()
                .map(|operation| (operation.start_ns - begin_ns, operation.device))
                .collect();
            assert_eq!(seen, [(0, 0), (5_000, 0), (0, 1)]);
            let records = cupti.records();
            let mut devices: Vec<u32> = kernels(&records)
                .iter()
                .map(|record| match record {
                    Record::Kernel { device, .. } => *device,
                    _ => unreachable!(),
                })
                .collect();
            devices.sort_unstable();
            assert_eq!(devices, [0, 0, 1]);
        },
    );
}

/// A collective of two: the first device's member, launched at once, waits inside for the second's, which is launched 40 µs later; both end 5 µs after that.
#[test]
fn a_collective_waits_for_its_last_member() {
    isolated(
        &format!("{NAME}::a_collective_waits_for_its_last_member"),
        || {
            let gpu = load(config(Settings::default().devices(2))).unwrap();
            gpu.kernel("work")
                .label_argument(0)
                .duration_ns(5_000)
                .collective(2)
                .timed()
                .unwrap();
            let driver = Driver::open();
            let begin_ns = gpu.now_ns();
            driver.launch(1);
            let second = second(&driver);
            gpu.spend_ns(40_000);
            launch(&driver, &second, 2);
            synchronize(&driver, second.stream);
            synchronize(&driver, driver.stream);
            let mut operations = gpu.truth().operations;
            operations.sort_by_key(|operation| operation.label);
            let times: Vec<[u64; 3]> = operations
                .iter()
                .map(|of| {
                    [
                        of.start_ns - begin_ns,
                        of.end_ns - begin_ns,
                        of.waited_inside_ns,
                    ]
                })
                .collect();
            assert_eq!(times, [[0, 45_000, 40_000], [40_000, 45_000, 0]]);
        },
    );
}

#[test]
fn peers_copy_to_each_other() {
    isolated(&format!("{NAME}::peers_copy_to_each_other"), || {
        let gpu = load(config(Settings::default().devices(2))).unwrap();
        let driver = Driver::open();
        let library = &driver.library;
        let cupti = Cupti::open();
        cupti.enable(&[DRIVER, MEMCPY2]);
        let from = driver.allocate(64);
        driver.copy_to_device(from, &42_u64.to_le_bytes());
        driver.synchronize();
        let second = second(&driver);
        let to = driver.allocate(64);
        let mut can = 0;
        assert_eq!(
            call!(library, "cuDeviceCanAccessPeer"(&mut can => *mut i32, 0 => i32, 1 => i32)),
            0
        );
        assert_eq!(can, 1);
        let enable = || call!(library, "cuCtxEnablePeerAccess"(driver.context => Handle, 0 => u32));
        // Once, and not again; then disabled once, and not again.
        assert_eq!((enable(), enable()), (0, 704));
        let disable = || call!(library, "cuCtxDisablePeerAccess"(driver.context => Handle));
        assert_eq!((disable(), disable()), (0, 705));
        let copy = |to: u64, to_context: Handle| {
            call!(library, "cuMemcpyPeerAsync"(
                to => u64, to_context => Handle, from => u64, driver.context => Handle, 64 => usize, second.stream => Handle
            ))
        };
        // Its context is not the other device's.
        assert_eq!(copy(to, driver.context), 1);
        assert_eq!(copy(to, second.context), 0);
        synchronize(&driver, second.stream);
        let truth = gpu.truth();
        let copied = truth.operations.last().unwrap();
        assert_eq!(
            (copied.kind, copied.label),
            (OperationKind::CopyPeer, Some(42))
        );
        let records = cupti.records();
        let peers: Vec<_> = records
            .iter()
            .filter_map(|record| match record {
                Record::PeerCopy {
                    devices,
                    bytes,
                    correlation,
                    ..
                } => Some((*devices, *bytes, *correlation)),
                _ => None,
            })
            .collect();
        assert_eq!(peers, [([0, 1], 64, copied.correlation_id)]);
    });
}
