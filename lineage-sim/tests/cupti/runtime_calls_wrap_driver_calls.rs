use lineage_sim::{Config, RuntimeCalls, isolated, load};

use crate::client::{
    CONCURRENT_KERNEL, CUSTOM2, Cupti, DRIVER, EXTERNAL_CORRELATION, MEMCPY, RUNTIME, Record, apis,
    externals, kernels,
};
use crate::driver::Driver;

const NAME: &str = "runtime_calls_wrap_driver_calls";

/// One launch and one copy: the records, and (runtime id, driver id) of the launch.
fn run(runtime_calls: RuntimeCalls) -> (Vec<Record>, u32, u32) {
    load(Config::default().runtime_calls(runtime_calls)).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    let memory = driver.allocate(64);
    cupti.enable(&[
        CONCURRENT_KERNEL,
        MEMCPY,
        DRIVER,
        RUNTIME,
        EXTERNAL_CORRELATION,
    ]);
    cupti.push(CUSTOM2, 7);
    driver.launch(1);
    driver.copy_to_device(memory, &[0; 64]);
    assert_eq!(cupti.pop(CUSTOM2), Ok(7));
    driver.synchronize();
    let records = cupti.records();
    // cudaLaunchKernel, cudaMemcpyAsync.
    let ids: Vec<_> = apis(&records, RUNTIME)
        .iter()
        .map(|record| match record {
            Record::Api { cbid, .. } => *cbid,
            _ => 0,
        })
        .collect();
    assert_eq!(ids, [211, 41]);
    let (
        Record::Api {
            start: outer_start,
            end: outer_end,
            ..
        },
        Record::Api { start, end, .. },
    ) = (apis(&records, RUNTIME)[0], apis(&records, DRIVER)[0])
    else {
        unreachable!()
    };
    assert!(
        outer_start <= start && end <= outer_end,
        "the driver call is inside"
    );
    assert_eq!(
        externals(&records).len(),
        4,
        "one before each record of the two calls"
    );
    let (runtime, driver) = (
        apis(&records, RUNTIME)[0].correlation(),
        apis(&records, DRIVER)[0].correlation(),
    );
    (records, runtime, driver)
}

#[test]
fn with_one_id() {
    isolated(&format!("{NAME}::with_one_id"), || {
        let (records, runtime, driver) = run(RuntimeCalls::SameCorrelationId);
        assert_eq!(runtime, driver);
        assert_eq!(kernels(&records)[0].correlation(), runtime);
    });
}

#[test]
fn with_two_ids_of_which_the_device_carries_the_runtimes() {
    isolated(
        &format!("{NAME}::with_two_ids_of_which_the_device_carries_the_runtimes"),
        || {
            let (records, runtime, driver) = run(RuntimeCalls::OwnCorrelationId);
            assert_ne!(runtime, driver);
            assert_eq!(kernels(&records)[0].correlation(), runtime);
            let copy = records.iter().find_map(|record| match record {
                Record::Copy {
                    correlation,
                    runtime_correlation,
                    ..
                } => Some((*correlation, *runtime_correlation)),
                _ => None,
            });
            assert_eq!(
                copy,
                Some((
                    apis(&records, RUNTIME)[1].correlation(),
                    apis(&records, RUNTIME)[1].correlation()
                ))
            );
        },
    );
}
