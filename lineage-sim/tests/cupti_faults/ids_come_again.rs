use lineage_sim::{Config, Faults, isolated, load};

use crate::call;
use crate::client::{CONCURRENT_KERNEL, CUDA_EVENT, Cupti, DRIVER, LAUNCH_KERNEL, Record};
use crate::driver::{Driver, Handle};
use crate::seen;

const NAME: &str = "ids_come_again";

/// The correlation ids of so many launches.
fn launch_ids(config: Config, launches: u64) -> Vec<u32> {
    load(config).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    cupti.enable(&[CONCURRENT_KERNEL]);
    let chosen =
        call!(cupti.library, "cuptiActivityEnableDriverApi"(LAUNCH_KERNEL => u32, 1 => u8));
    assert_eq!(chosen, 0);
    // Only launches are traced, and only they take ids: all calls do where any is traced.
    for label in 0..launches {
        driver.launch(label);
    }
    driver.synchronize();
    seen(&cupti.records())
        .iter()
        .map(|kernel| kernel.2)
        .collect()
}

#[test]
fn correlation_ids_wrap_once() {
    isolated(&format!("{NAME}::correlation_ids_wrap_once"), || {
        let config = Config::default().first_correlation_id(u32::MAX - 1);
        assert_eq!(launch_ids(config, 4), [u32::MAX - 1, u32::MAX, 1, 2]);
    });
}

#[test]
fn correlation_ids_wrap_twice() {
    isolated(&format!("{NAME}::correlation_ids_wrap_twice"), || {
        let faults = Faults::default().correlation_id_step(1 << 30);
        let ids = launch_ids(Config::default().faults(faults), 9);
        // The ids are 1 to 2^32 - 1, round and round: four steps of 2^30 are one round and one more.
        let quarter = 1 << 30;
        assert_eq!(
            ids,
            [
                1,
                quarter + 1,
                2 * quarter + 1,
                3 * quarter + 1,
                2,
                quarter + 2,
                2 * quarter + 2,
                3 * quarter + 2,
                3
            ]
        );
    });
}

/// Ids of events in the records of record calls of two events, of which the first is gone when the second is made.
fn event_ids(faults: Faults) -> [u32; 2] {
    load(Config::default().faults(faults)).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    cupti.enable(&[CUDA_EVENT]);
    for _ in 0..2 {
        let mut event: Handle = std::ptr::null_mut();
        let created = call!(driver.library, "cuEventCreate"(&mut event => *mut Handle, 0 => u32));
        assert_eq!(created, 0);
        let recorded =
            call!(driver.library, "cuEventRecord"(event => Handle, driver.stream => Handle));
        assert_eq!(recorded, 0);
        driver.synchronize();
        assert_eq!(
            call!(driver.library, "cuEventDestroy_v2"(event => Handle)),
            0
        );
    }
    let records = cupti.records();
    let ids: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Event { event, sync, .. } => Some((*event, sync.unwrap())),
            _ => None,
        })
        .collect();
    assert_ne!(
        ids[0].1, ids[1].1,
        "each record call has a number of its own"
    );
    [ids[0].0, ids[1].0]
}

#[test]
fn events_have_ids_of_their_own_by_default() {
    isolated(
        &format!("{NAME}::events_have_ids_of_their_own_by_default"),
        || {
            let [first, second] = event_ids(Faults::default());
            assert_ne!(first, second);
        },
    );
}

#[test]
fn an_event_has_the_id_of_one_that_is_gone() {
    isolated(
        &format!("{NAME}::an_event_has_the_id_of_one_that_is_gone"),
        || {
            let [first, second] = event_ids(Faults::default().reuse_event_ids(true));
            assert_eq!(first, second);
        },
    );
}

/// Thread ids in the records of three threads, one after the other.
fn thread_ids(faults: Faults) -> Vec<u32> {
    load(Config::default().faults(faults)).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    assert_eq!(call!(cupti.library, "cuptiSetThreadIdType"(1 => u32)), 0);
    cupti.enable(&[DRIVER]);
    for label in 0..3 {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                driver.bind();
                driver.launch(label);
            });
            thread.join().unwrap();
        });
    }
    let records = cupti.records();
    let launches = records.iter().filter_map(|record| match record {
        Record::Api {
            cbid: LAUNCH_KERNEL,
            thread,
            ..
        } => Some(*thread),
        _ => None,
    });
    launches.collect()
}

#[test]
fn a_thread_has_the_id_of_one_that_has_exited() {
    isolated(
        &format!("{NAME}::a_thread_has_the_id_of_one_that_has_exited"),
        || {
            let ids = thread_ids(Faults::default().reuse_thread_ids(true));
            assert_eq!(ids.len(), 3);
            assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        },
    );
}

#[test]
fn threads_have_the_systems_ids_by_default() {
    isolated(
        &format!("{NAME}::threads_have_the_systems_ids_by_default"),
        || {
            let mut ids = thread_ids(Faults::default());
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), 3);
        },
    );
}
