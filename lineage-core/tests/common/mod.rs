//! What the tests of sessions share.
#![allow(dead_code, reason = "each test file uses a part")]

use std::time::Duration;

use lineage_core::observation::{Event, Observation};
use lineage_core::{Lineage, LineageBuilder, Report};

/// A session that keeps all it sees.
pub(crate) fn session() -> LineageBuilder {
    Lineage::builder().service("test").keep_in_memory(1 << 20)
}

pub(crate) fn end(lineage: Lineage) -> Report {
    lineage.shutdown(Duration::from_secs(10))
}

/// The events of one kind, in order.
pub(crate) fn events<'a, T>(report: &'a Report, pick: impl Fn(&'a Event) -> Option<T>) -> Vec<T> {
    report
        .observations
        .iter()
        .map(|Observation { event, .. }| event)
        .filter_map(pick)
        .collect()
}

/// `events!(report, Scope)`: the scopes of a report, in order.
#[macro_export]
macro_rules! events {
    ($report:expr, $kind:ident) => {
        $crate::common::events(&$report, |event| match event {
            lineage_core::observation::Event::$kind(inner) => Some(inner),
            _ => None,
        })
    };
}
