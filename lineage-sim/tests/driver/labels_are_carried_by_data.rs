use std::ffi::c_void;

use lineage_sim::{Config, OperationKind, isolated, load};

use crate::call;
use crate::driver::{Driver, Handle};

const NAME: &str = "labels_are_carried_by_data";

#[test]
fn a_tagged_argument_is_read_when_the_kernel_runs() {
    isolated(
        &format!("{NAME}::a_tagged_argument_is_read_when_the_kernel_runs"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work").label_argument(0).timed().unwrap();
            gpu.kernel("other")
                .label_argument(1)
                .run(|launch| {
                    assert_eq!(launch.argument::<u32>(0)?, 0xffff_ffff);
                    assert_eq!(launch.argument::<u64>(1)?, 9 << 40);
                    assert_eq!(launch.argument::<u8>(2)?, 3);
                    assert_eq!((launch.grid(), launch.block()), ([2, 3, 1], [32, 2, 1]));
                    assert_eq!(
                        (
                            launch.dynamic_shared_bytes(),
                            launch.name(),
                            launch.threads()
                        ),
                        (64, "other", 384)
                    );
                    assert!(launch.argument::<u32>(1).is_err(), "it has another size");
                    assert!(launch.argument::<u8>(3).is_err(), "there is none");
                    Ok(())
                })
                .unwrap();
            let driver = Driver::open();
            for label in [1, u64::MAX, 0] {
                driver.launch(label);
            }
            let (mut a, mut label, mut c) = (u32::MAX, 9_u64 << 40, 3_u8);
            let mut parameters = [
                (&raw mut a).cast::<c_void>(),
                (&raw mut label).cast(),
                (&raw mut c).cast(),
            ];
            let other = driver.get_function(c"other");
            assert_eq!(
                driver.launch_function(other, driver.stream, &mut parameters),
                0
            );
            driver.synchronize();
            let truth = gpu.truth();
            let labels: Vec<_> = truth
                .operations
                .iter()
                .map(|operation| operation.label)
                .collect();
            assert_eq!(labels, [Some(1), Some(u64::MAX), Some(0), Some(9 << 40)]);
            assert!(
                truth
                    .operations
                    .iter()
                    .all(|operation| operation.result == 0)
            );
            assert!(
                truth
                    .operations
                    .iter()
                    .all(|operation| operation.kind == OperationKind::Kernel)
            );
        },
    );
}

#[test]
fn a_label_behind_an_address_is_what_lies_there_when_the_kernel_runs() {
    isolated(
        &format!("{NAME}::a_label_behind_an_address_is_what_lies_there_when_the_kernel_runs"),
        || {
            let gpu = load(Config::default()).unwrap();
            let work = gpu.kernel("work").label_behind_argument(0);
            work.timed().unwrap();
            let driver = Driver::open();
            let memory = driver.allocate(16);
            for label in [7_u64, u64::MAX - 1] {
                driver.copy_to_device(memory, &label.to_le_bytes());
                driver.launch(memory);
            }
            // Half of it would lie outside.
            driver.launch(memory + 12);
            driver.launch(1);
            driver.synchronize();
            let truth = gpu.truth();
            let labels: Vec<_> = truth.kernels().map(|kernel| kernel.label).collect();
            assert_eq!(labels, [Some(7), Some(u64::MAX - 1), None, None]);
            // The copy carried the same eight bytes.
            let kinds: Vec<_> = truth.labelled(7).map(|one| one.kind).collect();
            assert_eq!(
                kinds,
                [OperationKind::CopyHostToDevice, OperationKind::Kernel]
            );
        },
    );
}

#[test]
fn a_kernel_without_a_tag_has_none() {
    isolated(&format!("{NAME}::a_kernel_without_a_tag_has_none"), || {
        let gpu = load(Config::default()).unwrap();
        let driver = Driver::open();
        driver.launch(1);
        driver.synchronize();
        assert_eq!(gpu.truth().operations[0].label, None);
    });
}

#[test]
fn a_copy_carries_its_first_eight_bytes() {
    isolated(
        &format!("{NAME}::a_copy_carries_its_first_eight_bytes"),
        || {
            let gpu = load(Config::default()).unwrap();
            let driver = Driver::open();
            let (first, second) = (driver.allocate(64), driver.allocate(64));
            let mut bytes = [0_u8; 64];
            bytes[..8].copy_from_slice(&0x1122_3344_5566_7788_u64.to_le_bytes());
            driver.copy_to_device(first, &bytes);
            // The source of a pageable copy may be used again at once.
            bytes.fill(0xff);
            let copied = call!(driver.library, "cuMemcpyDtoDAsync_v2"(second => u64, first => u64, 64 => usize, driver.stream => Handle));
            assert_eq!(copied, 0);
            let mut back = [0_u8; 64];
            driver.copy_to_host(second, &mut back);
            driver.copy_to_device(first, &bytes[..7]);
            assert_eq!(
                call!(driver.library, "cuMemsetD8Async"(second => u64, 1 => u8, 64 => usize, driver.stream => Handle)),
                0
            );
            driver.synchronize();
            assert_eq!(
                u64::from_le_bytes(back[..8].try_into().unwrap()),
                0x1122_3344_5566_7788
            );
            let truth = gpu.truth();
            let seen: Vec<_> = truth
                .operations
                .iter()
                .map(|operation| (operation.kind, operation.label, operation.bytes))
                .collect();
            let label = Some(0x1122_3344_5566_7788);
            assert_eq!(
                seen,
                [
                    (OperationKind::CopyHostToDevice, label, 64),
                    (OperationKind::CopyDeviceToDevice, label, 64),
                    (OperationKind::CopyDeviceToHost, label, 64),
                    (OperationKind::CopyHostToDevice, None, 7),
                    (OperationKind::Set, None, 64),
                ]
            );
        },
    );
}

#[test]
fn an_operation_knows_its_call_and_its_thread() {
    isolated(
        &format!("{NAME}::an_operation_knows_its_call_and_its_thread"),
        || {
            let gpu = load(Config::default()).unwrap();
            gpu.kernel("work").label_argument(0).timed().unwrap();
            let driver = Driver::open();
            std::thread::scope(|scope| {
                for label in 1..=4 {
                    let driver = &driver;
                    scope.spawn(move || {
                        driver.bind();
                        for _ in 0..50 {
                            driver.launch(label);
                        }
                    });
                }
            });
            driver.synchronize();
            let truth = gpu.truth();
            assert_eq!((truth.operations.len(), truth.calls.len()), (200, 200));
            for operation in &truth.operations {
                let call = truth.call(operation.call_ordinal).unwrap();
                assert_eq!(
                    (call.thread_id, call.start_ns),
                    (operation.thread_id, operation.call_start_ns)
                );
                assert_eq!(
                    (&*call.function, call.operations, call.result),
                    ("cuLaunchKernel", 1, 0)
                );
                assert!(operation.call_start_ns <= operation.start_ns);
                assert_eq!(operation.call_end_ns, Some(call.end_ns));
                assert_eq!(truth.operations_of(call.ordinal).count(), 1);
            }
            for label in 1..=4 {
                let of_label = truth
                    .operations
                    .iter()
                    .filter(|operation| operation.label == Some(label));
                let threads: std::collections::HashSet<_> = of_label
                    .clone()
                    .map(|operation| operation.thread_id)
                    .collect();
                assert_eq!((of_label.count(), threads.len()), (50, 1));
            }
        },
    );
}
