//! Several sessions in one process, in order: each has a number, its own records and no others.
#![cfg(all(target_os = "linux", feature = "record"))]

use std::time::Duration;

use lineage_core::observation::{DeviceSession, DropSite, Event};
use lineage_core::source::{EvidenceSource, SourceContext, Tier};
use lineage_core::{DeviceEvidence, Epoch, hook};
use lineage_cupti::Cupti;
use lineage_sim::{Config, CuptiVersion, isolated};

mod common;
use common::gpu::{self, Program};

fn three_sessions(version: CuptiVersion) {
    let (sim, program) = Program::on(Config::default().cupti_version(version));
    for number in 1..=3_u32 {
        let session = gpu::session(Cupti::new());
        let began = hook::now();
        let epoch = Epoch::declare("request");
        let id = epoch.id().expect("recording");
        epoch.launch(|| (0..5).for_each(|_| program.launch(id.pack().bits())));
        program.synchronize();
        let ended = hook::now();
        let report = gpu::end(session);

        let DeviceEvidence::Present {
            cupti_version,
            external_correlation,
        } = report.device
        else {
            panic!("{}", report.device);
        };
        assert_eq!(cupti_version, version.number());
        assert_eq!(external_correlation, Some(true));
        let operations = gpu::operations(&report);
        assert_eq!(operations.len(), 5);
        for operation in operations {
            assert_eq!(operation.session, number);
            // CUPTI's clock is ours, in every session.
            let (start, end) = (
                operation.start.expect("known"),
                operation.end.expect("known"),
            );
            assert!(began <= start.0 && start < end && end.0 <= ended);
        }
        assert!(
            gpu::external_records(&report).iter().all(|record| {
                record.session == number && record.external_id == id.pack().bits()
            })
        );
        // The last session's epoch was used after its end, and that is all that was lost.
        let lost = gpu::dropped(&report);
        assert!(
            lost.iter()
                .all(|dropped| dropped.site == DropSite::AfterShutdown),
            "{lost:?}"
        );

        let sessions = gpu::device_sessions(&report);
        assert!(
            matches!(sessions.first(), Some(DeviceSession::Started { session, .. }) if *session == number)
        );
        assert!(
            matches!(sessions.last(), Some(DeviceSession::Ended { session, .. }) if *session == number)
        );
        // The last fence comes behind everything but the end.
        let fences = gpu::fences(&report);
        assert!(fences.iter().all(|fence| fence.asked <= fence.returned));
        assert_eq!(fences.iter().filter(|fence| fence.last).count(), 1);
        assert!(fences.last().is_some_and(|fence| fence.last));

        // Between sessions nothing is recorded, and launches cost no callback.
        program.launch(0);
        program.synchronize();
        epoch.launch(|| program.launch(0));
        program.synchronize();
        assert!(sim.counts().stacks.is_empty());
    }
}

#[test]
fn three_in_12_9() {
    isolated("three_in_12_9", || three_sessions(CuptiVersion::V12_9));
}

#[test]
fn three_in_13_5() {
    isolated("three_in_13_5", || three_sessions(CuptiVersion::V13_5));
}

#[test]
fn a_fence_comes_behind_the_records_it_promises() {
    isolated("a_fence_comes_behind_the_records_it_promises", || {
        let (_sim, program) = Program::on(Config::default());
        let mut source = Cupti::new();
        let context = SourceContext::new(hook::now, Tier::Correlate);
        source.start(context).expect("CUPTI is free");
        program.launch(1);
        program.synchronize();
        let before = hook::now();
        source.flush();
        let after = hook::now();
        let mut events = Vec::new();
        source.drain(&mut |observation| events.push(observation.event));
        let place = |wanted: fn(&Event) -> bool| {
            events
                .iter()
                .position(wanted)
                .unwrap_or_else(|| panic!("not in {events:?}"))
        };
        let fence = place(|event| matches!(event, Event::Flushed(_)));
        assert!(place(|event| matches!(event, Event::DeviceSession(_))) == 0);
        assert!(place(|event| matches!(event, Event::Api(_))) < fence);
        assert!(place(|event| matches!(event, Event::Operation(_))) < fence);
        let Event::Flushed(fence) = &events[fence] else {
            unreachable!("by its place")
        };
        assert!(
            before <= fence.asked.0 && fence.asked <= fence.returned && fence.returned.0 <= after
        );
        assert!(!fence.last);
        source.stop(Duration::from_secs(1), &mut |_| {});
        // After the end nothing comes and nothing fails.
        source.flush();
        source.drain(&mut |observation| panic!("after the end: {observation:?}"));
        source.stop(Duration::from_secs(1), &mut |observation| {
            panic!("twice: {observation:?}")
        });
    });
}

#[test]
fn a_call_that_the_driver_refuses_has_its_code() {
    isolated("a_call_that_the_driver_refuses_has_its_code", || {
        let (_sim, program) = Program::on(Config::default());
        let session = gpu::session(Cupti::new());
        let code = program.launch_nothing();
        assert_ne!(code, 0);
        let report = gpu::end(session);
        assert_eq!(
            gpu::calls(&report)
                .iter()
                .map(|call| call.result)
                .collect::<Vec<_>>(),
            [code]
        );
        let records = gpu::api_records(&report);
        assert_eq!(
            records
                .iter()
                .map(|record| record.result)
                .collect::<Vec<_>>(),
            [code]
        );
        assert!(gpu::operations(&report).is_empty());
    });
}

#[test]
fn a_set_or_copy_of_nothing_owes_nothing() {
    use lineage_core::observation::OperationsDue;
    isolated("a_set_or_copy_of_nothing_owes_nothing", || {
        let (_sim, program) = Program::on(Config::default());
        let session = gpu::session(Cupti::new());
        program.set(64);
        program.set(0);
        program.copy_to_device(64);
        program.copy_to_device(0);
        program.copy_to_host(64);
        program.synchronize();
        let report = gpu::end(session);
        let due: Vec<_> = gpu::calls(&report).iter().map(|call| call.due).collect();
        let (one, none) = (OperationsDue::One, OperationsDue::None);
        assert_eq!(due, [one, none, one, none, one]);
        let names: Vec<_> = gpu::operations(&report)
            .iter()
            .filter_map(|operation| operation.name.as_deref())
            .collect();
        assert_eq!(names, ["memset", "memcpy HtoD", "memcpy DtoH"]);
        let bytes: Vec<_> = gpu::operations(&report)
            .iter()
            .map(|found| found.bytes)
            .collect();
        assert_eq!(bytes, [64, 64, 64]);
    });
}

/// Not a time of any clock of ours.
const STRANGE: u64 = 42;

unsafe extern "C" fn strange_clock() -> u64 {
    STRANGE
}

#[test]
fn the_clock_is_registered_once_in_a_process() {
    isolated("the_clock_is_registered_once_in_a_process", || {
        let (_sim, program) = Program::on(Config::default());
        let starts = |report: &lineage_core::Report| {
            let records = gpu::api_records(report).into_iter();
            records
                .map(|record| record.start.map_or(0, |at| at.0))
                .collect::<Vec<_>>()
        };
        let began = hook::now();
        let session = gpu::session(Cupti::new());
        program.launch(1);
        program.synchronize();
        assert!(starts(&gpu::end(session))[0] >= began, "ours, at first");

        // Whoever registers last is asked from then on; so this shows that the next session does not.
        let register = gpu::cupti()
            .functions()
            .activity_register_timestamp_callback;
        // SAFETY: a function that lives for good.
        assert_eq!(unsafe { register(strange_clock) }, 0);
        let session = gpu::session(Cupti::new());
        program.launch(2);
        program.synchronize();
        assert_eq!(starts(&gpu::end(session)), [STRANGE]);
    });
}
