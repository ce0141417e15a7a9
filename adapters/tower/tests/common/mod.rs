//! What the tests share: one recording session at a time, and questions to its report.
#![allow(dead_code, reason = "each test binary uses some of it")]

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lineage_core::id::{Attribution, LaunchEpoch, W3cParent};
use lineage_core::observation::{Declared, Event, Mark, RetiredAs};
use lineage_core::{Lineage, Report};

/// Runs `body` on a runtime of four workers, in a session of its own, and hands back what was
/// recorded. Sessions are one per process, so tests of one binary take turns.
pub(crate) fn recorded<F: Future>(body: impl FnOnce() -> F) -> (F::Output, Recorded) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let lineage = Lineage::builder()
        .service("test")
        .keep_in_memory(1_000_000)
        .start()
        .expect("no other session is running");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime");
    let result = runtime.block_on(body());
    assert_eq!(lineage_core::current(), Attribution::None);
    // Tasks that are still there are dropped with their epochs.
    runtime.shutdown_timeout(Duration::from_secs(10));
    let report = lineage.shutdown(Duration::from_secs(10));
    assert_eq!(report.not_kept, 0);
    (result, Recorded(report))
}

/// The epoch that is current here.
pub(crate) fn current() -> Option<LaunchEpoch> {
    lineage_core::current().epoch()
}

/// A finished session's report.
pub(crate) struct Recorded(pub(crate) Report);

impl Recorded {
    pub(crate) fn events(&self) -> impl Iterator<Item = &Event> {
        self.0.observations.iter().map(|seen| &seen.event)
    }

    pub(crate) fn declared(&self) -> Vec<&Declared> {
        let declared = self.events().filter_map(|event| match event {
            Event::Declared(declared) => Some(declared),
            _ => None,
        });
        let mut declared: Vec<&Declared> = declared.collect();
        // Each thread has a ring of its own: they are not read in the order of time.
        declared.sort_by_key(|declared| declared.at);
        declared
    }

    /// The one epoch that was declared.
    pub(crate) fn only_epoch(&self) -> LaunchEpoch {
        let declared = self.declared();
        assert_eq!(declared.len(), 1, "{declared:?}");
        declared[0].epoch
    }

    pub(crate) fn parents(&self) -> Vec<(LaunchEpoch, W3cParent)> {
        let pick = |event: &Event| match event {
            Event::Parented(parented) => Some((parented.epoch, parented.parent)),
            _ => None,
        };
        self.events().filter_map(pick).collect()
    }

    pub(crate) fn span_links(&self) -> Vec<(LaunchEpoch, W3cParent)> {
        let pick = |event: &Event| match event {
            Event::SpanLinked(linked) => Some((linked.epoch, linked.span)),
            _ => None,
        };
        self.events().filter_map(pick).collect()
    }

    /// How an epoch ended, and whether it was marked as cancelled, which must agree.
    pub(crate) fn ended(&self, epoch: LaunchEpoch) -> RetiredAs {
        let mut retired = self.events().filter_map(|event| match event {
            Event::Retired(retired) if retired.epoch.id == epoch.id => Some(retired.how),
            _ => None,
        });
        let how = retired.next().expect("it is retired");
        assert_eq!(retired.next(), None, "{epoch} was retired twice");
        let marked = self.events().any(|event| {
            matches!(event, Event::Marked(marked)
                if marked.epoch == epoch && marked.mark == Mark::Cancelled)
        });
        assert_eq!(marked, how == RetiredAs::Cancelled);
        how
    }

    /// How many handoffs there were of this epoch.
    pub(crate) fn handoffs(&self, epoch: LaunchEpoch) -> usize {
        let sent = self
            .events()
            .filter(|event| matches!(event, Event::Sent(sent) if sent.handoff.epoch == epoch));
        sent.count()
    }

    pub(crate) fn misuses(&self) -> usize {
        let misuse = |event: &&Event| matches!(event, Event::Misuse(_));
        self.events().filter(misuse).count()
    }
}
