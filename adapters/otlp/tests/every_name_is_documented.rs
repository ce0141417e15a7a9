//! `docs/attributes.md` names what leaves the process: everything, and nothing else.

use std::collections::BTreeSet;

use lineage_otlp::attributes::*;

/// Names of OpenTelemetry's own, which the page mentions.
const CONVENTIONS: &[&str] = &[
    "process.pid",
    "service.instance.id",
    "service.name",
    "thread.id",
    "thread.name",
];

#[test]
fn every_name_is_documented() {
    let page = include_str!("../../../docs/attributes.md");
    let mut documented = BTreeSet::new();
    for (at, quoted) in page.split('`').enumerate() {
        let is_name = quoted.contains('.')
            && quoted
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c));
        if at % 2 == 1 && is_name {
            documented.insert(quoted);
        }
    }
    let lists = [
        RESOURCE_ATTRIBUTES,
        SPAN_ATTRIBUTES,
        EVENTS,
        METRICS,
        METRIC_ATTRIBUTES,
        CONVENTIONS,
    ];
    let names: BTreeSet<&str> = lists.into_iter().flatten().copied().collect();
    assert_eq!(documented, names);
    let anchor = SCHEMA_URL.rsplit('#').next().expect("an anchor");
    let heading = format!("## {}", anchor.replace("version-", "Version "));
    assert!(page.contains(&heading), "{heading}");
}
