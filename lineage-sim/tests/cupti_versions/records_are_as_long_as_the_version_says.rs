use lineage_sim::{Config, CuptiVersion, Settings, isolated, load};

use crate::call;
use crate::client::{
    CONCURRENT_KERNEL, CONTEXT, CUDA_EVENT, Cupti, MEMCPY, MEMSET, OVERHEAD, STREAM,
    SYNCHRONIZATION,
};
use crate::driver::{Driver, Handle};

const NAME: &str = "records_are_as_long_as_the_version_says";

/// Bytes of a buffer that holds the one record of the kind that `run` makes.
fn size_of(cupti: &Cupti, kind: u32, run: impl FnOnce()) -> usize {
    cupti.enable(&[kind]);
    run();
    cupti.flush(0);
    cupti.disable(kind);
    let delivered = cupti.take();
    assert_eq!(delivered.len(), 1, "kind {kind}");
    assert_eq!(delivered[0].records.len(), 1, "kind {kind}");
    delivered[0].valid_bytes
}

/// Of kernel, copy, set, overhead, synchronisation, event, stream and context records.
fn sizes(version: CuptiVersion) -> [usize; 8] {
    let settings = Settings::default().lazy_loading_ns(1_000);
    let config = Config::default().cupti_version(version).model(settings);
    load(config.virtual_clock()).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    let memory = driver.allocate(64);
    let mut event: Handle = std::ptr::null_mut();
    let created = call!(driver.library, "cuEventCreate"(&mut event => *mut Handle, 0 => u32));
    assert_eq!(created, 0);
    let launch = || {
        driver.launch(1);
        driver.synchronize();
    };
    let overhead = size_of(&cupti, OVERHEAD, launch);
    [
        size_of(&cupti, CONCURRENT_KERNEL, launch),
        size_of(&cupti, MEMCPY, || driver.copy_to_host(memory, &mut [0; 64])),
        size_of(&cupti, MEMSET, || {
            let set = call!(driver.library, "cuMemsetD8_v2"(memory => u64, 1 => u8, 8 => usize));
            assert_eq!(set, 0);
        }),
        overhead,
        size_of(&cupti, SYNCHRONIZATION, || driver.synchronize()),
        size_of(&cupti, CUDA_EVENT, || {
            let stream = driver.stream;
            let recorded =
                call!(driver.library, "cuEventRecord"(event => Handle, stream => Handle));
            assert_eq!(recorded, 0);
        }),
        size_of(&cupti, STREAM, || {
            driver.new_stream();
        }),
        size_of(&cupti, CONTEXT, || {
            let mut context: Handle = std::ptr::null_mut();
            let created = call!(driver.library, "cuCtxCreate_v2"(&mut context => *mut Handle, 0 => u32, 0 => i32));
            assert_eq!(created, 0);
        }),
    ]
}

/// Sizes as a C program printed them, compiled with the headers of each version.
macro_rules! versions {
    ($($name:ident: $version:ident, $sizes:expr;)+) => { $(
        #[test]
        fn $name() {
            isolated(&format!("{NAME}::{}", stringify!($name)), || {
                assert_eq!(sizes(CuptiVersion::$version), $sizes);
            });
        }
    )+ };
}
versions! {
    of_12_0: V12_0, [208, 88, 88, 40, 40, 24, 24, 16];
    of_12_4: V12_4, [208, 88, 88, 56, 40, 24, 24, 24];
    of_12_9: V12_9, [208, 96, 88, 56, 56, 56, 24, 32];
    of_13_0: V13_0, [216, 96, 88, 56, 56, 56, 24, 32];
    of_13_1: V13_1, [224, 96, 88, 56, 56, 56, 24, 40];
    of_13_4: V13_4, [248, 112, 104, 56, 56, 56, 24, 40];
    of_13_5: V13_5, [248, 112, 104, 56, 56, 80, 24, 40];
}
