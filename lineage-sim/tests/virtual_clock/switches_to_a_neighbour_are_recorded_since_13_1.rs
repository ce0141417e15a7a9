use lineage_sim::{CuptiVersion, Settings, isolated, load};

use crate::client::{CONCURRENT_KERNEL, CONTEXT_SWITCH, Cupti, Record, kernels};
use crate::driver::Driver;
use crate::{BEGIN_NS, call, config};

const NAME: &str = "switches_to_a_neighbour_are_recorded_since_13_1";

/// 100 µs for this process, 40 for the other, 5 for each switch.
fn settings() -> Settings {
    Settings::default()
        .call_ns(1_000)
        .time_slice_ns(100_000)
        .neighbour_slice_ns(40_000)
        .context_switch_ns(5_000)
}

/// The device is given away from 100 to 105 µs and comes back from 145 to 150; it would go again at 250. A kernel of 150 µs that starts in the first
/// half of the first slice has its rest done between 150 and 250: it ends 50 µs later than it would.
#[test]
fn with_their_begin_and_end_and_whose_turn_it_is() {
    isolated(
        &format!("{NAME}::with_their_begin_and_end_and_whose_turn_it_is"),
        || {
            let config = config(settings()).cupti_version(CuptiVersion::V13_1);
            let gpu = load(config).unwrap();
            gpu.kernel("work").duration_ns(150_000).timed().unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[CONTEXT_SWITCH, CONCURRENT_KERNEL]);
            driver.launch(1);
            driver.synchronize();
            let operation = gpu.truth().operations[0].clone();
            assert!(operation.start_ns < BEGIN_NS + 50_000);
            assert_eq!(operation.end_ns - operation.start_ns, 150_000 + 50_000);
            let records = cupti.records();
            assert_eq!(kernels(&records).len(), 1);
            let switches: Vec<_> = records
                .iter()
                .filter_map(|record| match record {
                    Record::ContextSwitch {
                        context,
                        at,
                        operation,
                    } => Some((*context, at - BEGIN_NS, *operation)),
                    _ => None,
                })
                .collect();
            let neighbour = switches[0].0;
            assert_eq!(
                switches,
                [
                    (neighbour, 100_000, 1),
                    (neighbour, 105_000, 2),
                    (1, 145_000, 1),
                    (1, 150_000, 2)
                ]
            );
            assert_ne!(neighbour, 1, "another context");
        },
    );
}

#[test]
fn and_not_before() {
    isolated(&format!("{NAME}::and_not_before"), || {
        load(config(settings()).cupti_version(CuptiVersion::V13_0)).unwrap();
        let cupti = Cupti::open();
        // CUPTI_ERROR_INVALID_KIND
        assert_eq!(
            call!(cupti.library, "cuptiActivityEnable"(CONTEXT_SWITCH => u32)),
            21
        );
    });
}
