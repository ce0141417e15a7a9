//! Ranges become epochs where that is asked for: inferred, the innermost first, never due.

mod common;

use std::collections::BTreeMap;

use common::{Examined, call, collector, examine, kernel};
use lineage_core::observation::Event;
use lineage_core::row::Binding;
use lineage_import::{EpochsFrom, Range, RangeKind, Recording, Settings};

/// Ranges on thread 7, with a launch in each place: at 1,500 in none, at 2,500 in "step", at 3,500
/// in "decode" inside of "step", at 4,500 in "step" again, at 6,500 in none; and one at 3,600 on
/// another thread. Request r1 has "decode" and a later range at 8,000 to 9,000 with one launch.
fn recording(settings: Settings) -> Recording {
    let (mut collector, process) = collector(settings);
    let launch = collector.name("cudaLaunchKernel_v7000");
    let request = collector.name("r1");
    for (text, start_ns, end_ns, request) in [
        ("step", 2_000, 5_000, None),
        ("decode", 3_000, 4_000, Some(request)),
        ("decode", 8_000, 9_000, Some(request)),
        ("unclosed", 8_100, 0, None),
    ] {
        let text = collector.name(text);
        let range = Range {
            process,
            tid: 7,
            text,
            start_ns,
            end_ns: (end_ns > 0).then_some(end_ns),
            kind: RangeKind::Nvtx,
            request,
        };
        collector.range(range).expect("kept");
    }
    for (id, at) in (1..).zip([1_500, 2_500, 3_500, 3_600, 4_500, 6_500, 8_500]) {
        let mut call = call(process, id, launch, at);
        call.tid = if at == 3_600 { 8 } else { 7 };
        collector.api(call).expect("kept");
        collector
            .activity(kernel(process, id, at + 50))
            .expect("kept");
    }
    collector.finish().expect("sorted")
}

/// The name of the epoch that each launch is bound to, by its correlation id.
fn bound(recording: &Recording, records: usize) -> (Vec<Option<String>>, Examined) {
    let mut names = BTreeMap::new();
    for slice in recording.slices(records).expect("readable") {
        for observation in slice.expect("readable").observations {
            if let Event::Declared(declared) = observation.event {
                names.insert(declared.epoch, declared.name.to_string());
            }
        }
    }
    let examined = examine(recording, records);
    let mut rows: Vec<_> = examined.rows.iter().collect();
    rows.sort_by_key(|row| row.call.as_ref().map(|call| call.correlation));
    let name = |binding| match binding {
        Binding::Bound(epoch) => names.get(&epoch).cloned(),
        _ => None,
    };
    let bound = rows.into_iter().map(|row| name(row.binding)).collect();
    assert!(
        examined.validation.fault_counts.is_empty(),
        "{}",
        examined.validation
    );
    (bound, examined)
}

fn names(names: [&str; 7]) -> Vec<Option<String>> {
    let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    names.map(name).into()
}

#[test]
fn the_innermost_range_of_the_thread_is_the_epoch() {
    let recording = recording(Settings::default().epochs_from(EpochsFrom::Nvtx));
    assert_eq!(recording.holdings().processes[0].ranges, 4);
    assert_eq!(recording.holdings().processes[0].epochs, 3);
    for records in [1, 4, 100] {
        let (bound, examined) = bound(&recording, records);
        assert_eq!(
            bound,
            names(["", "step", "decode", "", "step", "", "decode"])
        );
        assert_eq!(examined.counts().bound_by_containment, 4);
        assert_eq!(
            examined.counts().unattributed.get("no_epoch_evidence"),
            Some(&3)
        );
    }
}

#[test]
fn only_ranges_with_the_wanted_name_are_taken() {
    let settings = Settings::default().epochs_from(EpochsFrom::Nvtx);
    let (bound, _) = bound(&recording(settings.epoch_name("ste")), 100);
    assert_eq!(bound, names(["", "step", "step", "", "step", "", ""]));
}

#[test]
fn all_ranges_of_one_request_are_one_epoch() {
    let recording = recording(Settings::default().epochs_from(EpochsFrom::RequestIds));
    assert_eq!(recording.holdings().processes[0].epochs, 1);
    let (bound, examined) = bound(&recording, 100);
    assert_eq!(bound, names(["", "", "r1", "", "", "", "r1"]));
    let epochs: std::collections::BTreeSet<_> = examined
        .rows
        .iter()
        .filter_map(|row| match row.binding {
            Binding::Bound(epoch) => Some(epoch),
            _ => None,
        })
        .collect();
    assert_eq!(epochs.len(), 1);
}

#[test]
fn without_being_asked_none_is_taken() {
    let (bound, examined) = bound(&recording(Settings::default()), 100);
    assert_eq!(bound, vec![None; 7]);
    assert_eq!(examined.counts().epochs, 0);
}

#[test]
fn ranges_of_several_threads_and_in_many_slices_are_no_fault() {
    let (mut collector, process) = collector(
        Settings::default()
            .epochs_from(EpochsFrom::Nvtx)
            .records_in_memory(50),
    );
    let [launch, outer, inner] =
        ["cudaLaunchKernel_v7000", "outer", "inner"].map(|text| collector.name(text));
    let mut range = |tid, text, start_ns, end_ns| {
        let range = Range {
            process,
            tid,
            text,
            start_ns,
            end_ns: Some(end_ns),
            kind: RangeKind::Nvtx,
            request: None,
        };
        collector.range(range).expect("kept");
    };
    // On thread 7 one around all, and one around every tenth launch; on thread 8, where nothing is
    // launched, others between them.
    range(7, outer, 500, 1_000_000);
    for number in (0..600).step_by(10) {
        range(7, inner, 1_000 + number * 1_000, 1_500 + number * 1_000);
        range(8, inner, 1_100 + number * 1_000, 1_200 + number * 1_000);
    }
    for number in 0..600 {
        let (id, at) = (number + 1, 1_200 + number * 1_000);
        collector.api(call(process, id, launch, at)).expect("kept");
        collector
            .activity(kernel(process, id, at + 50))
            .expect("kept");
    }
    let recording = collector.finish().expect("sorted");
    for records in [16, 10_000] {
        let (bound, examined) = bound(&recording, records);
        let of = |name: &str| {
            bound
                .iter()
                .filter(|bound| bound.as_deref() == Some(name))
                .count()
        };
        assert_eq!(
            (of("outer"), of("inner")),
            (540, 60),
            "in slices of {records}"
        );
        assert_eq!(examined.counts().bound, 600);
        assert!(examined.validation.session_faults.is_empty());
    }
}
