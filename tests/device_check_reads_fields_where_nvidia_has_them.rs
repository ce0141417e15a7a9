//! The offsets at which `device_check` reads records are those that the simulator writes by, which
//! `lineage-sim/tests/layouts.rs` compares with what a C compiler makes of NVIDIA's headers.
#![cfg(target_os = "linux")]

#[path = "../examples/device_check/check/scenarios/fields.rs"]
#[allow(dead_code, unreachable_pub, reason = "a part of a program")]
mod fields;
#[path = "../lineage-sim/cuda/src/cupti/layout.rs"]
#[allow(dead_code, reason = "a part of the simulator")]
mod layout;

use lineage_cupti::sys::codes::kind;

fn written(of: u32) -> &'static layout::Record {
    match of {
        kind::CONCURRENT_KERNEL => &layout::kernel::RECORD,
        kind::MEMCPY => &layout::memcpy::RECORD,
        kind::MEMSET => &layout::memset::RECORD,
        fields::SYNCHRONIZATION => &layout::synchronization::RECORD,
        fields::CUDA_EVENT => &layout::cuda_event::RECORD,
        fields::GRAPH_HOST_NODE => &layout::graph_host_node::RECORD,
        fields::HOST_LAUNCH => &layout::host_launch::RECORD,
        other => panic!("no record of kind {other}"),
    }
}

#[test]
fn every_field_is_where_the_header_has_it_and_since_the_same_version() {
    assert_eq!(fields::TOLD.len(), 7);
    for told in fields::TOLD {
        let record = written(told.kind);
        let find = |name: &str| {
            let field = record.fields.iter().find(|field| field.name == name);
            field.unwrap_or_else(|| panic!("{}: no field {name}", told.word))
        };
        for field in told.fields {
            let header = find(field.name);
            assert_eq!(field.offset, header.offset, "{}: {}", told.word, field.name);
            // What the oldest structure has is read whatever the version is.
            let since = if header.since == 0 {
                lineage_cupti::sys::codes::version::OLDEST
            } else {
                record.structures[header.since].since
            };
            assert_eq!(field.since, since, "{}: {}", told.word, field.name);
        }
        assert_eq!(
            told.correlation,
            find("correlationId").offset,
            "{}",
            told.word
        );
        if let Some((start, end)) = told.times {
            assert_eq!((start, end), (find("start").offset, find("end").offset));
        }
        if let Some((label, bytes)) = told.label {
            let is_told = |field: &&fields::Field| (field.offset, field.bytes) == (label, bytes);
            assert!(
                told.fields.iter().any(|field| is_told(&field)),
                "{}",
                told.word
            );
        }
    }
}
