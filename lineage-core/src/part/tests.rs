//! What is held and what is let go of.

use super::*;
use crate::evidence::{Evidence, TimeSource, Why};
use crate::fault::FaultCode;
use crate::id::{CorrelationId, EpochId, EpochVersion, LaunchEpoch, ProcessOrdinal, ThreadKey};
use crate::observation::{
    ActivityKind, Declared, Event, LaunchAttributes, LaunchOrder, Mark, Marked, Observation,
    Operation, Placement, Retired, RetiredAs, RunQueue, Scheduled, SchedulerSession, Stepped,
};
use crate::row::{Binding, JoinSources, Stages};

const BOUNDS: Bounds = Bounds {
    start: HostNanos(0),
    since: HostNanos(1_000),
    from: HostNanos(2_000),
    to: HostNanos(3_000),
};

fn thread() -> ThreadKey {
    ThreadKey {
        tid: 7,
        generation: 1,
    }
}

fn epoch(id: u64, version: u32) -> LaunchEpoch {
    LaunchEpoch {
        id: EpochId::new(id).expect("small"),
        version: EpochVersion::new(version).expect("small"),
    }
}

fn declared(id: u64, at: u64) -> Event {
    Declared {
        epoch: epoch(id, 1),
        thread: thread(),
        task: None,
        at: HostNanos(at),
        name: "request".into(),
        site: None,
    }
    .into()
}

fn stepped(id: u64, version: u32, at: u64) -> Event {
    Stepped {
        epoch: epoch(id, version),
        thread: thread(),
        at: HostNanos(at),
    }
    .into()
}

fn marked(id: u64, version: u32, at: u64) -> Event {
    Marked {
        epoch: epoch(id, version),
        mark: Mark::Ready,
        thread: thread(),
        at: HostNanos(at),
    }
    .into()
}

fn retired(id: u64, at: u64) -> Event {
    Retired {
        epoch: epoch(id, 1),
        how: RetiredAs::Done,
        at: HostNanos(at),
    }
    .into()
}

fn switch(at: u64) -> Event {
    Scheduled {
        tid: 7,
        at: HostNanos(at),
        cpu: None,
        running: true,
        off: None,
        state: None,
    }
    .into()
}

fn operation(start: Option<u64>, end: Option<u64>) -> Operation {
    Operation {
        session: 1,
        kind: ActivityKind::Kernel,
        correlation: CorrelationId(1),
        device: 0,
        context: 1,
        stream: 7,
        queued: None,
        submitted: None,
        start: start.map(HostNanos),
        end: end.map(HostNanos),
        name: None,
        graph_node: None,
        graph: None,
        bytes: 0,
        copies: 0,
        grid: [1; 3],
        block: [1; 3],
        footprint: None,
    }
}

/// A row of an operation that ran then, called from 10 before its start to 5 before it.
fn row(start: u64, end: u64) -> Row {
    let unknown = Evidence::Unknown {
        why: Why::NotCollected,
    };
    let at = |at: u64| Evidence::Observed {
        at: HostNanos(at),
        source: TimeSource::CuptiApi,
    };
    Row {
        process: ProcessOrdinal(0),
        call: None,
        operation: Some(operation(Some(start), Some(end))),
        graph: None,
        binding: Binding::Lost,
        sources: JoinSources::default(),
        stages: Stages {
            declared: at(1),
            ready: at(2),
            scope_enter: unknown,
            api_enter: at(start - 10),
            api_exit: at(start - 5),
            queued: unknown,
            submitted: unknown,
            start: at(start),
            end: at(end),
        },
        faults: Vec::new(),
        after_retirement: false,
        supersedes: false,
    }
}

/// What is left of these, behind a row in the part.
fn held(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
    let mut holding = Holding::new(vec![BOUNDS]);
    holding.row(0, row(2_100, 2_200));
    for event in events {
        holding.observation(0, Observation::live(event));
    }
    let held = holding.finish();
    held.observations.into_iter().map(|of| of.event).collect()
}

#[test]
fn a_row_belongs_to_the_part_in_which_its_operation_ended() {
    let mut holding = Holding::new(vec![BOUNDS]);
    for (start, end) in [
        (100, 999),
        // Under way in the lead-in: held, and not counted.
        (500, 1_000),
        (1_500, 1_999),
        // In the part, however long before it began.
        (50, 2_000),
        (2_999, 3_000),
        // Of the next.
        (2_999, 3_001),
        (3_500, 3_600),
    ] {
        holding.row(0, row(start, end));
    }
    let held = holding.finish();
    let ends = held.rows.iter().filter_map(moment_of).map(|at| at.0);
    assert_eq!(
        ends.collect::<Vec<_>>(),
        [1_000, 1_999, 2_000, 3_000, 3_001]
    );
    let Counts {
        rows, rows_outside, ..
    } = held.counts;
    assert_eq!((rows, rows_outside), (2, 5));
}

#[test]
fn a_row_whose_times_cannot_be_is_where_its_call_returned() {
    let mut broken = row(2_100, u64::MAX);
    broken.faults.push(FaultCode::T02);
    assert_eq!(moment_of(&broken), Some(HostNanos(2_095)));
    let mut alone = row(2_100, 2_200);
    alone.operation = None;
    assert_eq!(moment_of(&alone), Some(HostNanos(2_095)));
    let unknown = Evidence::Unknown {
        why: Why::NotCollected,
    };
    let mut timeless = row(2_100, 2_200);
    timeless.operation = Some(operation(None, None));
    (timeless.stages.api_enter, timeless.stages.api_exit) = (unknown, unknown);
    assert_eq!(moment_of(&timeless), None);
    let mut holding = Holding::new(vec![BOUNDS]);
    holding.row(0, timeless);
    let held = holding.finish();
    // What it may have held up is not known, so it is held.
    assert_eq!((held.rows.len(), held.counts.rows_without_time), (1, 1));
}

#[test]
fn an_epoch_is_known_until_it_was_retired_before_what_is_held() {
    let left = held([
        declared(1, 10),
        declared(2, 10),
        declared(3, 10),
        retired(1, 999),
        retired(2, 1_000),
        // Said by another thread, whose records come later.
        stepped(1, 2, 900),
        declared(1, 10),
    ]);
    assert_eq!(left.len(), 2);
    let ids = left.iter().filter_map(|of| match of {
        Event::Declared(of) => Some(of.epoch.id.get()),
        _ => None,
    });
    let mut ids: Vec<u64> = ids.collect();
    ids.sort_unstable();
    assert_eq!(ids, [2, 3]);
}

#[test]
fn of_an_epoch_that_is_not_known_no_more_is_told_than_from_its_scope_on() {
    let of_epoch = |id: u64| {
        let mut row = row(2_100, 2_200);
        row.binding = Binding::Bound(epoch(id, 1));
        row
    };
    let mut holding = Holding::new(vec![BOUNDS]);
    for event in [declared(1, 10), declared(2, 10), retired(1, 500)] {
        holding.observation(0, Observation::live(event));
    }
    for id in [1, 2, 3] {
        holding.row(0, of_epoch(id));
    }
    let rows = holding.finish().rows;
    let declared: Vec<bool> = rows
        .iter()
        .map(|row| row.stages.declared.at().is_some())
        .collect();
    assert_eq!(declared, [false, true, false]);
    assert!(rows.iter().all(|row| row.stages.start.at().is_some()));
}

/// An engine that lives as long as the service, and steps a million times, is held in bounds; and what
/// was said of its last versions is all there.
#[test]
fn of_an_epoch_with_many_versions_the_last_are_held() {
    let steps = (2..=10_000).flat_map(|version| {
        let at = u64::from(version) / 100;
        [stepped(1, version, at), marked(1, version, at)]
    });
    let left = held(std::iter::once(declared(1, 1)).chain(steps));
    assert!(left.len() < 100, "{}", left.len());
    for version in 9_992..=10_000 {
        let is_of = |of: &LaunchEpoch| of.version.get() == version;
        let both = left.iter().filter(|event| match event {
            Event::Stepped(of) => is_of(&of.epoch),
            Event::Marked(of) => is_of(&of.epoch),
            _ => false,
        });
        assert_eq!(both.count(), 2, "{version}");
    }
    let mut holding = Holding::new(vec![BOUNDS]);
    holding.observation(0, Observation::live(declared(1, 1)));
    for version in 2..=10_000 {
        holding.observation(0, Observation::live(stepped(1, version, 1)));
    }
    for version in [5, 10_000] {
        let mut row = row(2_100, 2_200);
        row.binding = Binding::Bound(epoch(1, version));
        holding.row(0, row);
    }
    let rows = holding.finish().rows;
    assert_eq!(rows[0].stages.declared.at(), None);
    assert!(rows[1].stages.declared.at().is_some());
}

/// A thread that ran when it was first watched is not known to run when the part begins; and one that is not
/// watched any more stays so.
#[test]
fn how_a_thread_is_watched_holds_on_and_whether_it_ran_does_not() {
    let watched = |at| SchedulerSession::Watched {
        tid: 7,
        at: HostNanos(at),
        running: Some(true),
    };
    let unwatched = SchedulerSession::Unwatched {
        tid: 7,
        why: "so asked for".into(),
        at: HostNanos(600),
    };
    // In the ledger's order, which is not that of time.
    let left = held([
        unwatched.clone().into(),
        watched(100).into(),
        switch(700),
        switch(1_700),
        watched(1_500).into(),
    ]);
    let moved = SchedulerSession::Watched {
        tid: 7,
        at: HostNanos(1_000),
        running: None,
    };
    let later = SchedulerSession::Unwatched {
        tid: 7,
        why: "so asked for".into(),
        at: HostNanos(1_000),
    };
    assert_eq!(
        left,
        [
            switch(1_700),
            moved.into(),
            later.into(),
            watched(1_500).into()
        ]
    );
}

#[test]
fn what_began_before_is_held_as_far_as_it_says_something_of_later() {
    let queue = |from: u64, to: u64| -> Event {
        RunQueue {
            tid: 7,
            not_before: HostNanos(from),
            not_after: HostNanos(to),
            waited_ns: 1,
            ran_ns: 0,
            turns: 1,
        }
        .into()
    };
    assert_eq!(
        held([queue(900, 1_100), queue(1_000, 1_100), queue(3_100, 3_200)]),
        [queue(1_000, 1_100)]
    );
}

#[test]
fn what_has_no_time_is_held_where_it_was_written_next_to_what_is() {
    let placement = |correlation: u32| -> Event {
        Placement {
            session: 1,
            correlation: CorrelationId(correlation),
            graph_node: None,
            channel: 3,
        }
        .into()
    };
    let attributes: Event = LaunchAttributes {
        session: 1,
        correlation: CorrelationId(1),
        order: LaunchOrder::Strict,
        records_event: false,
    }
    .into();
    let far = (0..20_000).map(|_| switch(5));
    let events = [attributes.clone(), placement(1)]
        .into_iter()
        .chain(far)
        .chain([placement(2), switch(1_500), placement(3)]);
    let left = held(events);
    assert_eq!(
        left,
        [attributes, placement(1), switch(1_500), placement(3)]
    );
}

/// A recording of which no row was made yet: all of it is needed to join it.
#[test]
fn without_rows_all_that_was_observed_is_held_in_its_order() {
    let events = [switch(5), declared(1, 10), retired(1, 20), switch(5_000)];
    let mut holding = Holding::new(vec![BOUNDS]);
    for event in events.clone() {
        holding.observation(0, Observation::live(event));
    }
    let held = holding.finish();
    assert!(!held.has_rows);
    // Unless rows are known to come.
    let mut holding = Holding::new(vec![BOUNDS]);
    holding.expect_rows();
    holding.observation(0, Observation::live(switch(5)));
    assert_eq!(holding.finish().observations, []);
    let left: Vec<Event> = held.observations.into_iter().map(|of| of.event).collect();
    assert_eq!(left, events);
}

#[test]
fn epochs_with_work_behind_the_part_go_on() {
    let mut holding = Holding::new(vec![BOUNDS]);
    for (id, end) in [(1, 2_500), (2, 2_500), (2, 3_500)] {
        let mut row = row(end - 10, end);
        row.binding = Binding::Bound(epoch(id, 1));
        holding.row(0, row);
    }
    let held = holding.finish();
    let goes_on = |id| held.goes_on(ProcessOrdinal(0), id);
    assert_eq!((goes_on(1), goes_on(2)), (false, true));
}
