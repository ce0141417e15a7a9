//! What the tests share: one recording session at a time, and questions to its report.
#![allow(dead_code, reason = "each test binary uses some of it")]
#![allow(unreachable_pub, reason = "a module of a test binary")]

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lineage_core::id::{Attribution, LaunchEpoch};
use lineage_core::observation::{
    CarrierKind, Declared, Event, LinkKind, Linked, Mark, Misuse, MisuseKind, RetiredAs,
};
use lineage_core::{Lineage, Report};

/// Runs `body` in a session of its own and hands back what was recorded. Sessions are one per
/// process, so tests of one binary take turns.
pub fn recorded<R>(body: impl FnOnce(&Lineage) -> R) -> (R, Recorded) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let lineage = Lineage::builder()
        .service("test")
        .keep_in_memory(1_000_000)
        .start()
        .expect("no other session is running");
    let result = body(&lineage);
    assert_eq!(
        lineage_core::current(),
        Attribution::None,
        "the test's own thread was left with something current"
    );
    let report = lineage.shutdown(Duration::from_secs(10));
    (result, Recorded(report))
}

/// The epoch that is current here.
pub fn current() -> Option<LaunchEpoch> {
    lineage_core::current().epoch()
}

/// A runtime with this many workers.
pub fn runtime(workers: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// Makes sure that nothing is current on any worker when all work is done.
///
/// Tokio does not promise that a worker wakes for a task that waits behind one that blocks, so no
/// task waits for another here: each keeps its worker busy for a moment, until all workers had one.
pub fn assert_nothing_is_current_on(runtime: &tokio::runtime::Runtime, workers: usize) {
    let mut seen = HashSet::new();
    for _ in 0..10_000 {
        let tasks: Vec<_> = (0..workers)
            .map(|_| {
                runtime.spawn(async {
                    std::thread::sleep(Duration::from_micros(200));
                    (std::thread::current().id(), lineage_core::current())
                })
            })
            .collect();
        for task in tasks {
            let (worker, left) = runtime.block_on(task).expect("no panic");
            assert_eq!(left, Attribution::None, "an epoch leaked on a worker");
            seen.insert(worker);
        }
        if seen.len() == workers {
            return;
        }
    }
    panic!("{} of {workers} workers took a task", seen.len());
}

/// A finished session's report.
pub struct Recorded(pub Report);

impl Recorded {
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.0
            .observations
            .iter()
            .map(|observation| &observation.event)
    }

    pub fn declared(&self) -> Vec<&Declared> {
        let declared = self.events().filter_map(|event| match event {
            Event::Declared(declared) => Some(declared),
            _ => None,
        });
        let mut declared: Vec<&Declared> = declared.collect();
        // Each thread has a ring of its own: they are not read in the order of time.
        declared.sort_by_key(|declared| declared.at);
        declared
    }

    pub fn declaration(&self, epoch: LaunchEpoch) -> &Declared {
        let mut all = self.declared();
        all.retain(|declared| declared.epoch == epoch);
        assert_eq!(all.len(), 1, "{epoch:?} was declared {} times", all.len());
        all[0]
    }

    pub fn links(&self) -> Vec<(LaunchEpoch, LaunchEpoch, LinkKind)> {
        let pick = |event: &Event| match event {
            Event::Linked(Linked {
                epoch, from, kind, ..
            }) => Some((*epoch, *from, *kind)),
            _ => None,
        };
        self.events().filter_map(pick).collect()
    }

    pub fn misuses(&self) -> Vec<(MisuseKind, Attribution)> {
        let pick = |event: &Event| match event {
            Event::Misuse(Misuse {
                kind, attribution, ..
            }) => Some((*kind, *attribution)),
            _ => None,
        };
        self.events().filter_map(pick).collect()
    }

    pub fn retired(&self, epoch: LaunchEpoch) -> Option<RetiredAs> {
        let mut retired = self.events().filter_map(|event| match event {
            Event::Retired(retired) if retired.epoch.id == epoch.id => Some(retired.how),
            _ => None,
        });
        let first = retired.next();
        assert_eq!(retired.next(), None, "{epoch:?} was retired twice");
        first
    }

    pub fn cancelled(&self, epoch: LaunchEpoch) -> bool {
        self.events().any(|event| {
            matches!(event, Event::Marked(marked)
                if marked.epoch == epoch && marked.mark == Mark::Cancelled)
        })
    }

    /// Of the handoffs that carried this epoch by this kind: sent, received, abandoned.
    pub fn handoffs(&self, epoch: LaunchEpoch, kind: CarrierKind) -> Handoffs {
        let mut handoffs = Handoffs::default();
        for event in self.events() {
            let (handoff, count) = match event {
                Event::Sent(sent) => (sent.handoff, &mut handoffs.sent),
                Event::Received(received) => (received.handoff, &mut handoffs.received),
                Event::Abandoned(abandoned) => (abandoned.handoff, &mut handoffs.abandoned),
                _ => continue,
            };
            if handoff.epoch == epoch && handoff.carrier == kind {
                *count += 1;
            }
        }
        handoffs
    }
}

/// How many handoffs took each way.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Handoffs {
    pub sent: usize,
    pub received: usize,
    pub abandoned: usize,
}
