//! A job that panics ends its scope like any other.
#![cfg(feature = "record")]

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};

use common::{assert_nothing_is_current_on, current, pool, recorded};
use lineage_core::Epoch;
use lineage_core::observation::{Event, RetiredAs};
use lineage_rayon::ParallelIteratorExt as _;
use rayon::prelude::*;

#[test]
fn wherever_it_panics() {
    let ways: [(&str, fn()); 5] = [
        ("first of a join", || {
            lineage_rayon::join(|| panic!("on purpose"), || ());
        }),
        ("second of a join", || {
            lineage_rayon::join(|| (), || panic!("on purpose"));
        }),
        ("job of a scope", || {
            lineage_rayon::scope(|scope| scope.spawn(|_| panic!("on purpose")));
        }),
        ("broadcast", || {
            lineage_rayon::broadcast(|context| assert_ne!(context.index(), 1, "on purpose"));
        }),
        ("item", || {
            let items = (0..1000).into_par_iter().in_current_epoch();
            items.for_each(|item| assert_ne!(item, 500, "on purpose"));
        }),
    ];
    let pool = pool(4);
    for (way, panics) in ways {
        let (epoch, report) = recorded(|| {
            let epoch = Epoch::declare("request");
            let caught = pool.install(|| {
                epoch.run(|| {
                    let caught = catch_unwind(AssertUnwindSafe(panics));
                    assert_eq!(current(), epoch.id(), "{way}");
                    caught
                })
            });
            assert!(caught.is_err(), "{way}");
            assert_nothing_is_current_on(&pool);
            epoch.id().expect("recording is on")
        });
        let misused = |event: &Event| matches!(event, Event::Misuse(_));
        assert!(
            !report.observations.iter().any(|it| misused(&it.event)),
            "{way}"
        );
        let retired = report.observations.iter().find_map(|it| match &it.event {
            Event::Retired(retired) if retired.epoch.id == epoch.id => Some(retired.how),
            _ => None,
        });
        assert_eq!(retired, Some(RetiredAs::Done), "{way}");
    }
}
