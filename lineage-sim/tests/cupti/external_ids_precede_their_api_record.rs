use std::ffi::c_void;
use std::sync::OnceLock;

use lineage_sim::{Config, CuptiVersion, isolated, load};

use crate::client::{
    CUSTOM0, CUSTOM2, CallbackData, Cupti, DRIVER, DRIVER_DOMAIN, EXTERNAL_CORRELATION,
    LAUNCH_KERNEL, RUNTIME, Record, externals,
};
use crate::driver::Driver;

/// The external records right before the API record at `at`.
fn before(records: &[Record], at: usize) -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    for record in records[..at].iter().rev() {
        let Record::External {
            kind,
            id,
            correlation,
        } = record
        else {
            break;
        };
        assert_eq!(*correlation, records[at].correlation());
        found.push((*kind, *id));
    }
    found.reverse();
    found
}

fn launches(records: &[Record]) -> Vec<Vec<(u32, u64)>> {
    let is_launch = |record: &Record| {
        matches!(
            record,
            Record::Api {
                cbid: LAUNCH_KERNEL,
                ..
            }
        )
    };
    let positions = (0..records.len()).filter(|at| is_launch(&records[*at]));
    positions.map(|at| before(records, at)).collect()
}

fn top_of_each_kind(config: Config) {
    load(config).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    cupti.enable(&[DRIVER, RUNTIME, EXTERNAL_CORRELATION]);
    driver.launch(1);
    cupti.push(CUSTOM2, 7);
    driver.launch(2);
    cupti.push(CUSTOM2, 8);
    cupti.push(CUSTOM0, 100);
    driver.launch(3);
    assert_eq!(cupti.pop(CUSTOM2), Ok(8));
    driver.launch(4);
    assert_eq!(cupti.pop(CUSTOM0), Ok(100));
    assert_eq!(cupti.pop(CUSTOM2), Ok(7));
    // CUPTI_ERROR_QUEUE_EMPTY
    assert_eq!(cupti.pop(CUSTOM2), Err(18));
    driver.launch(5);
    driver.synchronize();
    let launches = launches(&cupti.records());
    assert_eq!(
        launches,
        [
            vec![],
            vec![(CUSTOM2, 7)],
            vec![(CUSTOM0, 100), (CUSTOM2, 8)],
            vec![(CUSTOM0, 100), (CUSTOM2, 7)],
            vec![]
        ]
    );
}

#[test]
fn the_top_of_each_kind_in_one_global_buffer() {
    isolated(
        "external_ids_precede_their_api_record::the_top_of_each_kind_in_one_global_buffer",
        || {
            top_of_each_kind(Config::default());
        },
    );
}

#[test]
fn the_top_of_each_kind_in_buffers_per_thread() {
    isolated(
        "external_ids_precede_their_api_record::the_top_of_each_kind_in_buffers_per_thread",
        || {
            top_of_each_kind(Config::default().cupti_version(CuptiVersion::V13_5));
        },
    );
}

#[test]
fn stacks_are_per_thread() {
    isolated(
        "external_ids_precede_their_api_record::stacks_are_per_thread",
        || {
            let gpu = load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER, RUNTIME, EXTERNAL_CORRELATION]);
            cupti.push(CUSTOM2, 7);
            std::thread::scope(|scope| {
                let thread = scope.spawn(|| {
                    driver.bind();
                    driver.launch(1);
                    cupti.push(CUSTOM0, 9);
                    assert_eq!(gpu.counts().stacks.len(), 2, "both threads have one id");
                });
                // The end of a scope waits for the closures, `join` for the threads themselves.
                thread.join().unwrap();
            });
            driver.synchronize();
            assert_eq!(launches(&cupti.records()), [vec![]]);
            let counts = gpu.counts();
            assert_eq!(
                counts.stacks.len(),
                1,
                "a thread that has exited has no stack"
            );
            assert_eq!(
                (counts.stacks[0].kind, counts.stacks[0].depth),
                (CUSTOM2, 1)
            );
            assert_eq!((counts.pushes, counts.pops), (2, 0));
        },
    );
}

#[test]
fn nothing_without_the_kind() {
    isolated(
        "external_ids_precede_their_api_record::nothing_without_the_kind",
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER]);
            cupti.push(CUSTOM2, 7);
            driver.launch(1);
            driver.synchronize();
            assert!(externals(&cupti.records()).is_empty());
        },
    );
}

static CUPTI: OnceLock<Cupti> = OnceLock::new();

unsafe extern "C" fn push_on_enter(_: *mut c_void, _: u32, _: u32, data: *const CallbackData) {
    let cupti = CUPTI.get().unwrap();
    // SAFETY: CUPTI's data is valid during the callback.
    match unsafe { (*data).site } {
        0 => cupti.push(CUSTOM2, 42),
        _ => assert_eq!(cupti.pop(CUSTOM2), Ok(42)),
    }
}

fn push_inside_enter(counts: bool) -> Vec<Vec<(u32, u64)>> {
    load(Config::default().push_inside_enter_counts(counts)).unwrap();
    let driver = Driver::open();
    let cupti = CUPTI.get_or_init(Cupti::open);
    cupti.enable(&[DRIVER, RUNTIME, EXTERNAL_CORRELATION]);
    let subscriber = cupti.subscribe(push_on_enter).unwrap();
    cupti.enable_callback(subscriber, DRIVER_DOMAIN, LAUNCH_KERNEL);
    cupti.push(CUSTOM0, 1);
    driver.launch(1);
    driver.synchronize();
    launches(&cupti.records())
}

#[test]
fn a_push_inside_enter_counts_when_so_configured() {
    isolated(
        "external_ids_precede_their_api_record::a_push_inside_enter_counts_when_so_configured",
        || {
            assert_eq!(push_inside_enter(true), [vec![(CUSTOM0, 1), (CUSTOM2, 42)]]);
        },
    );
}

#[test]
fn a_push_inside_enter_does_not_count_by_default() {
    isolated(
        "external_ids_precede_their_api_record::a_push_inside_enter_does_not_count_by_default",
        || {
            assert_eq!(push_inside_enter(false), [vec![(CUSTOM0, 1)]]);
        },
    );
}
