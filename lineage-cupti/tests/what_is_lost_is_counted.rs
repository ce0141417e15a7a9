//! Records that do not reach us are counted where they were lost.
#![cfg(all(target_os = "linux", feature = "record"))]

use std::time::Duration;

use lineage_core::Report;
use lineage_core::observation::{DropSite, Event, GraphChange};
use lineage_core::source::{EvidenceSource, SourceContext, Tier};
use lineage_cupti::Cupti;
use lineage_cupti::sys::codes::{domain, resource};
use lineage_cupti::testing::api_callback;
use lineage_sim::{Config, CuptiVersion, isolated};

mod common;
use common::gpu::{self, Program};

fn lost(report: &Report, site: DropSite) -> u64 {
    let dropped = gpu::dropped(report).into_iter();
    dropped
        .filter(|dropped| dropped.site == site)
        .map(|dropped| dropped.count)
        .sum()
}

#[test]
fn records_that_no_buffer_has_room_for() {
    isolated("records_that_no_buffer_has_room_for", || {
        let (sim, program) = Program::on(Config::default());
        // Room for an API record and not for a kernel's.
        let session = gpu::session(Cupti::new().buffer_bytes(128));
        (0..10).for_each(|label| program.launch(label));
        program.synchronize();
        let report = gpu::end(session);
        assert_eq!(gpu::api_records(&report).len(), 10);
        assert!(gpu::operations(&report).is_empty());
        assert_eq!(sim.counts().records_dropped, 10);
        assert_eq!(lost(&report, DropSite::CuptiBuffer), 10);
    });
}

/// `CUpti_ResourceData` that describes nothing.
#[test]
fn changes_of_graphs_that_cannot_be_named() {
    isolated("changes_of_graphs_that_cannot_be_named", || {
        let (_sim, program) = Program::on(Config::default());
        let session = gpu::session(Cupti::new());
        let graph = program.captured(1);
        let described_by_nothing = [0_usize; 3];
        for cbid in [resource::NODE_CREATED, resource::EXEC_CREATED] {
            let data = described_by_nothing.as_ptr().cast();
            // SAFETY: as CUPTI calls it, with what it may pass.
            unsafe { api_callback()(std::ptr::null_mut(), domain::RESOURCE, cbid, data) };
        }
        program.destroy(graph);
        let report = gpu::end(session);
        let events = gpu::graph_events(&report);
        let places: Vec<_> = events
            .iter()
            .filter(|event| event.change == GraphChange::Lost { count: 1 })
            .map(|event| event.sequence.0)
            .collect();
        assert_eq!(places, [3, 4], "behind the graph and its node");
        assert_eq!(events.len(), 5);
        assert_eq!(lost(&report, DropSite::GraphQueue), 2);
    });
}

#[test]
fn records_for_which_all_buffers_are_in_use() {
    isolated("records_for_which_all_buffers_are_in_use", || {
        // A buffer per thread, and one buffer.
        let (sim, program) = Program::on(Config::default().cupti_version(CuptiVersion::V13_5));
        let session = gpu::session(Cupti::new().buffer_limit(1));
        program.launch(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                program.use_here();
                (0..10).for_each(|label| program.launch(label));
            });
        });
        program.synchronize();
        let report = gpu::end(session);
        let dropped = sim.counts().records_dropped;
        assert_eq!(
            dropped, 20,
            "an API record and a kernel's for each launch of the second thread"
        );
        assert_eq!(lost(&report, DropSite::CuptiBuffer), dropped);
        assert_eq!(
            gpu::calls(&report).len(),
            11,
            "our own callback needs no buffer"
        );
    });
}

#[test]
fn work_that_is_not_done_when_the_session_must_end() {
    isolated("work_that_is_not_done_when_the_session_must_end", || {
        let (_sim, program) = Program::on(Config::default());
        let session = gpu::session(Cupti::new());
        program.launch(1);
        program.synchronize();
        // One that runs for 3 s, and two behind it.
        program.launch_longest(2);
        program.launch(3);
        program.launch(4);
        std::thread::sleep(Duration::from_millis(20));
        let began = std::time::Instant::now();
        let report = session.shutdown(Duration::from_millis(60));
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "it waits no longer than it may"
        );

        let operations = gpu::operations(&report);
        let ends: Vec<_> = operations
            .iter()
            .map(|operation| (operation.start.is_some(), operation.end.is_some()))
            .collect();
        assert_eq!(ends, [(true, true), (true, false)], "one done, one begun");
        assert_eq!(
            lost(&report, DropSite::BufferTail),
            1,
            "a tail of those that had not begun"
        );
        program.synchronize();
    });
}

#[test]
fn work_that_is_done_in_time_is_waited_for() {
    isolated("work_that_is_done_in_time_is_waited_for", || {
        let (_sim, program) = Program::on(Config::default());
        let session = gpu::session(Cupti::new());
        program.launch_long(1);
        program.launch(2);
        // No synchronisation: 300 ms of work are under way.
        let report = session.shutdown(Duration::from_secs(10));
        let operations = gpu::operations(&report);
        assert_eq!(operations.len(), 2);
        assert!(operations.iter().all(|operation| operation.end.is_some()));
        assert!(gpu::dropped(&report).is_empty());
    });
}

fn clock() -> u64 {
    lineage_core::hook::now()
}

#[test]
fn records_of_a_session_that_was_dropped_are_not_the_next_ones() {
    let name = "records_of_a_session_that_was_dropped_are_not_the_next_ones";
    isolated(name, || {
        let (_sim, program) = Program::on(Config::default());
        let context = SourceContext::new(clock, Tier::Correlate);
        let mut first = Cupti::new();
        first.start(context).expect("CUPTI is free");
        program.launch(1);
        program.synchronize();
        drop(first);

        let mut second = Cupti::new();
        second.start(context).expect("CUPTI is free again");
        program.launch(2);
        program.synchronize();
        let mut events = Vec::new();
        second.stop(Duration::from_secs(10), &mut |observation| {
            events.push(observation.event)
        });
        let operations = events
            .iter()
            .filter(|event| matches!(event, Event::Operation(_)));
        assert_eq!(operations.count(), 1, "its own");
        let stale = events.iter().find_map(|event| match event {
            Event::Dropped(dropped) if dropped.site == DropSite::BufferQueue => Some(dropped.count),
            _ => None,
        });
        assert_eq!(
            stale,
            Some(2),
            "an API record and a kernel's of the first session"
        );
    });
}
