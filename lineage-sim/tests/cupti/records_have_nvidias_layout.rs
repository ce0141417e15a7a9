//! Offsets and sizes are those that a C program printed, compiled against the headers of the
//! Python packages `nvidia-cuda-cupti-cu12` 12.9.79 and `nvidia-cuda-cupti` 13.5.25; the client
//! of these tests decodes by them.

use lineage_sim::{Config, CuptiVersion, isolated, load};

use crate::call;
use crate::client::{
    CONCURRENT_KERNEL, Cupti, DRIVER, EXTERNAL_CORRELATION, MEMCPY, MEMSET, Record, STREAM,
};
use crate::driver::{Driver, Handle};

const NAME: &str = "records_have_nvidias_layout";

/// Bytes of a buffer that holds one record of the kind that `run` makes.
fn size_of(cupti: &Cupti, kind: u32, run: impl FnOnce()) -> usize {
    cupti.enable(&[kind]);
    run();
    cupti.flush(0);
    cupti.disable(kind);
    let delivered = cupti.take();
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0].records.len(), 1);
    delivered[0].valid_bytes
}

/// Sizes of kernel, copy, set and stream records.
fn sizes(version: CuptiVersion) -> [usize; 4] {
    load(Config::default().cupti_version(version)).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    let memory = driver.allocate(64);
    [
        size_of(&cupti, CONCURRENT_KERNEL, || {
            driver.launch(1);
            driver.synchronize();
        }),
        size_of(&cupti, MEMCPY, || driver.copy_to_host(memory, &mut [0; 64])),
        size_of(&cupti, MEMSET, || {
            assert_eq!(
                call!(driver.library, "cuMemsetD8_v2"(memory => u64, 1 => u8, 8 => usize)),
                0
            );
        }),
        size_of(&cupti, STREAM, || {
            driver.new_stream();
        }),
    ]
}

#[test]
fn of_12_9() {
    isolated(&format!("{NAME}::of_12_9"), || {
        assert_eq!(sizes(CuptiVersion::V12_9), [208, 96, 88, 24])
    });
}

#[test]
fn of_13_5() {
    isolated(&format!("{NAME}::of_13_5"), || {
        assert_eq!(sizes(CuptiVersion::V13_5), [248, 112, 104, 24])
    });
}

#[test]
fn a_kernels_record_says_what_was_launched() {
    isolated(
        &format!("{NAME}::a_kernels_record_says_what_was_launched"),
        || {
            load(Config::default().cupti_version(CuptiVersion::V13_5)).unwrap();
            let mut driver = Driver::open();
            let cupti = Cupti::open();
            let mut stream: Handle = std::ptr::null_mut();
            assert_eq!(
                call!(driver.library, "cuStreamCreateWithPriority"(&mut stream => *mut Handle, 1 => u32, -3 => i32)),
                0
            );
            driver.stream = stream;
            cupti.enable(&[CONCURRENT_KERNEL, DRIVER, EXTERNAL_CORRELATION]);
            driver.launch(1);
            driver.synchronize();
            let records = cupti.records();
            let kernel = records
                .iter()
                .find(|record| matches!(record, Record::Kernel { .. }));
            let Some(Record::Kernel {
                grid,
                block,
                dynamic_shared,
                name,
                stream,
                context,
                priority,
                ..
            }) = kernel
            else {
                panic!()
            };
            assert_eq!(
                (*grid, *block, *dynamic_shared),
                ([2, 3, 1], [32, 2, 1], 64)
            );
            assert_eq!((name.as_str(), *context, *priority), ("work", 1, Some(-3)));
            // The second stream: 13 was the first.
            assert_eq!(*stream, 14);
        },
    );
}

#[test]
fn a_kernels_name_is_gone_with_its_module() {
    isolated(
        &format!("{NAME}::a_kernels_name_is_gone_with_its_module"),
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONCURRENT_KERNEL]);
            driver.launch(1);
            driver.synchronize();
            assert_eq!(
                call!(driver.library, "cuModuleUnload"(driver.module => Handle)),
                0
            );
            let records = cupti.records();
            assert!(
                matches!(&records[0], Record::Kernel { name, .. } if name == "????"),
                "{records:?}"
            );
        },
    );
}
