//! The start-up self-test, and which calls are recorded.
#![cfg(all(target_os = "linux", feature = "record"))]

use lineage_core::observation::OperationsDue;
use lineage_core::{DeviceEvidence, Epoch, Report};
use lineage_cupti::{Cupti, RecordedCalls};
use lineage_sim::{Config, isolated};

mod common;
use common::gpu::{self, Program};

/// Runs launches in boundaries and a synchronisation after each; without external correlation
/// records if so asked.
fn run(device: Cupti, silence_external_records: bool) -> Report {
    let (_sim, program) = Program::on(Config::default());
    let session = gpu::session(device);
    if silence_external_records {
        // As if this CUPTI wrote none for calls that are chosen one by one.
        // SAFETY: takes a number.
        let code = unsafe { (gpu::cupti().functions().activity_disable)(39) };
        assert_eq!(code, 0);
    }
    let epoch = Epoch::declare("request");
    for label in 0..20 {
        epoch.launch(|| program.launch(label));
        program.synchronize();
        session.flush(std::time::Duration::from_secs(5));
    }
    gpu::end(session)
}

fn external_correlation(report: &Report) -> Option<bool> {
    match &report.device {
        DeviceEvidence::Present {
            external_correlation,
            ..
        } => *external_correlation,
        other => panic!("{other}"),
    }
}

/// API records of functions that ask for no work.
fn other_calls(report: &Report) -> usize {
    let records = gpu::api_records(report).into_iter();
    records
        .filter(|record| record.due == OperationsDue::None)
        .count()
}

#[test]
fn they_come() {
    isolated("they_come", || {
        let report = run(Cupti::new(), false);
        assert_eq!(external_correlation(&report), Some(true));
        assert_eq!(other_calls(&report), 0, "only launches are recorded");
        assert_eq!(gpu::api_records(&report).len(), 20);
    });
}

#[test]
fn they_do_not_come_and_the_report_says_so() {
    isolated("they_do_not_come_and_the_report_says_so", || {
        let report = run(Cupti::new(), true);
        assert_eq!(external_correlation(&report), Some(false));
        assert_eq!(
            report.device.to_string(),
            "device evidence: CUPTI 28, external correlation absent"
        );
        assert_eq!(gpu::calls(&report).len(), 20, "the other source is left");
        assert_eq!(other_calls(&report), 0);
    });
}

#[test]
fn they_do_not_come_and_all_calls_are_recorded_from_then_on() {
    isolated(
        "they_do_not_come_and_all_calls_are_recorded_from_then_on",
        || {
            let report = run(
                Cupti::new().recorded_calls(RecordedCalls::LaunchesOrAll),
                true,
            );
            assert_eq!(external_correlation(&report), Some(false));
            let others = other_calls(&report);
            assert!(
                (1..=17).contains(&others),
                "{others} synchronisations: not from the start"
            );
        },
    );
}

#[test]
fn all_calls_are_recorded_on_request() {
    isolated("all_calls_are_recorded_on_request", || {
        let report = run(Cupti::new().recorded_calls(RecordedCalls::All), false);
        assert_eq!(external_correlation(&report), Some(true));
        assert!(other_calls(&report) >= 20, "each synchronisation");
        let named = gpu::api_records(&report)
            .iter()
            .any(|record| record.api.name.as_deref() == Some("cuStreamSynchronize"));
        assert!(named, "CUPTI's own name of it");
    });
}
