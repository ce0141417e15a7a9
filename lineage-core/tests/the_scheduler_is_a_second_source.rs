//! A session asks two sources, the device's and the scheduler's; each may be absent on its own.

mod common;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lineage_core::id::HostNanos;
use lineage_core::observation::{
    DropSite, Dropped, Event, Observation, Scheduled, SchedulerSession, SwitchedOff,
};
use lineage_core::source::{EvidenceSource, NoEvidence, SourceContext};
use lineage_core::{DeviceEvidence, Epoch, SchedulerEvidence};

type Log = Arc<Mutex<Vec<String>>>;

/// A source that notes what it is asked.
struct Noting {
    name: &'static str,
    log: Log,
    /// What it gives at its first drain and when it stops.
    gives: [Vec<Event>; 2],
}

impl Noting {
    fn note(&self, what: &str) {
        let line = format!("{} {what}", self.name);
        let mut log = self.log.lock().expect("not poisoned");
        if log.last() != Some(&line) {
            log.push(line);
        }
    }

    fn give(&mut self, at: usize, out: &mut dyn FnMut(Observation)) {
        for event in std::mem::take(&mut self.gives[at]) {
            out(Observation::live(event));
        }
    }
}

impl EvidenceSource for Noting {
    fn start(&mut self, _: SourceContext) -> Result<(), NoEvidence> {
        self.note("start");
        Ok(())
    }

    fn drain(&mut self, out: &mut dyn FnMut(Observation)) {
        self.give(0, out);
    }

    fn flush(&mut self) {
        self.note("flush");
    }

    fn stop(&mut self, _: Duration, out: &mut dyn FnMut(Observation)) {
        self.note("stop");
        self.give(1, out);
    }
}

struct Missing(&'static str);

impl EvidenceSource for Missing {
    fn start(&mut self, _: SourceContext) -> Result<(), NoEvidence> {
        Err(NoEvidence::new(self.0))
    }

    fn drain(&mut self, _: &mut dyn FnMut(Observation)) {
        panic!("a source that did not start is not asked");
    }

    fn flush(&mut self) {
        panic!("a source that did not start is not asked");
    }

    fn stop(&mut self, _: Duration, _: &mut dyn FnMut(Observation)) {
        panic!("a source that did not start is not asked");
    }
}

fn at(ns: u64) -> HostNanos {
    HostNanos(ns)
}

#[test]
fn the_scheduler_is_a_second_source() {
    both_are_asked_in_turn();
    one_may_be_absent();
    none_was_asked_for();
}

fn both_are_asked_in_turn() {
    let log = Log::default();
    let device = Noting {
        name: "device",
        log: Arc::clone(&log),
        gives: [Vec::new(), Vec::new()],
    };
    let watched = |tid| SchedulerSession::Watched {
        tid,
        at: at(1),
        running: Some(true),
    };
    let run_queue_only = SchedulerSession::RunQueueOnly {
        tid: 9,
        why: "no descriptor is left".into(),
        at: at(1),
    };
    let switch = Scheduled {
        tid: 7,
        at: at(2),
        cpu: Some(0),
        running: false,
        off: Some(SwitchedOff::Blocked),
        state: None,
    };
    let lost = Dropped {
        site: DropSite::SchedulerRing,
        count: 3,
        at: at(3),
    };
    let scheduler = Noting {
        name: "scheduler",
        log: Arc::clone(&log),
        gives: [
            vec![
                SchedulerSession::Started { at: at(0) }.into(),
                watched(7).into(),
                watched(8).into(),
                run_queue_only.into(),
            ],
            vec![
                switch.clone().into(),
                lost.into(),
                SchedulerSession::Ended { at: at(4) }.into(),
            ],
        ],
    };
    let lineage = common::session()
        .device(device)
        .scheduler(scheduler)
        .flush_every(Duration::from_secs(600))
        .start()
        .expect("a session");
    assert!(lineage.flush(Duration::from_secs(1)));
    drop(Epoch::declare("request"));
    let report = common::end(lineage);

    let asked = log.lock().expect("not poisoned").clone();
    let expected = [
        "device start",
        "scheduler start",
        "device flush",
        "scheduler flush",
        "device stop",
        "scheduler stop",
    ];
    assert_eq!(asked, expected);
    assert_eq!(report.device, DeviceEvidence::NotAsked, "it said nothing");
    let text = report.scheduler.to_string();
    assert_eq!(
        text,
        "scheduler evidence: every switch of 2 threads, only the run-queue delay of 1 (no descriptor \
         is left)"
    );
    assert!(report.to_string().contains(&text));
    assert_eq!(report.totals.dropped[DropSite::SchedulerRing], 3);
    // What it gave when it stopped came after the last record of the rings.
    let position = |is: &dyn Fn(&Event) -> bool| {
        let seen = report.observations.iter();
        let mut seen = seen.map(|seen| &seen.event);
        seen.position(is).expect("observed")
    };
    let retired = position(&|event| matches!(event, Event::Retired(_)));
    let switched = position(&|event| *event == Event::Scheduled(switch.clone()));
    assert!(retired < switched);
}

fn one_may_be_absent() {
    let log = Log::default();
    let device = Noting {
        name: "device",
        log: Arc::clone(&log),
        gives: [Vec::new(), Vec::new()],
    };
    let lineage = common::session()
        .device(device)
        .scheduler(Missing("not permitted"))
        .start()
        .expect("a session");
    assert!(lineage.flush(Duration::from_secs(1)));
    let report = common::end(lineage);
    let why = "not permitted".into();
    assert_eq!(report.scheduler, SchedulerEvidence::Absent { why });
    let text = report.to_string();
    assert!(
        text.contains("\nno scheduler evidence: not permitted\n"),
        "{text}"
    );
    let absent = crate::events!(report, SchedulerSession);
    assert!(
        matches!(*absent, [SchedulerSession::Absent { why, .. }] if &**why == "not permitted"),
        "{absent:?}"
    );
    assert_eq!(
        log.lock().expect("not poisoned").last().map(String::as_str),
        Some("device stop")
    );
}

fn none_was_asked_for() {
    let report = common::end(common::session().start().expect("a session"));
    assert_eq!(report.scheduler, SchedulerEvidence::NotAsked);
    assert!(!report.to_string().contains("scheduler"));
}
