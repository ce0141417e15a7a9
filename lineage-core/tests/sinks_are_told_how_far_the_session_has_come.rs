//! `Sink::progress`: what was recorded before the moment it names was handed on, and the last one
//! says that nothing more comes.

mod common;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lineage_core::Epoch;
use lineage_core::id::{HostNanos, LaunchEpoch};
use lineage_core::observation::{Event, Observation};
use lineage_core::row::{LooseFault, Row};
use lineage_core::source::{Progress, SessionInfo, Sink, SinkError};

#[derive(Default)]
struct Seen {
    started_unix_ns: Option<u64>,
    retired: Vec<(LaunchEpoch, HostNanos)>,
    /// Until when the rings were read, until when all is settled, and how many epochs had retired
    /// before then by what was handed on.
    progress: Vec<(HostNanos, HostNanos, usize)>,
    finished: bool,
}

#[derive(Clone, Default)]
struct Noting(Arc<Mutex<Seen>>);

impl Sink for Noting {
    fn begin(&mut self, session: &SessionInfo) -> Result<(), SinkError> {
        self.0.lock().expect("not poisoned").started_unix_ns = session.started_unix_ns;
        Ok(())
    }

    fn observations(&mut self, batch: &[Observation]) -> Result<(), SinkError> {
        let mut seen = self.0.lock().expect("not poisoned");
        for observation in batch {
            if let Event::Retired(retired) = &observation.event {
                seen.retired.push((retired.epoch, retired.at));
            }
        }
        Ok(())
    }

    fn rows(&mut self, _: &[Row], _: &[LooseFault]) -> Result<(), SinkError> {
        Ok(())
    }

    fn progress(&mut self, progress: &Progress<'_>) -> Result<(), SinkError> {
        let mut seen = self.0.lock().expect("not poisoned");
        assert!(!seen.finished, "progress comes before the end");
        let until = progress.read_until;
        let before = seen.retired.iter().filter(|(_, at)| *at < until).count();
        seen.progress.push((until, progress.settled_before, before));
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.0.lock().expect("not poisoned").finished = true;
        Ok(())
    }
}

#[test]
fn sinks_are_told_how_far_the_session_has_come() {
    let noting = Noting::default();
    let lineage = common::session()
        .sink(noting.clone())
        .flush_every(Duration::from_millis(5))
        .start()
        .expect("a session");
    // Epochs that retire on several threads while progress is told, however late that is on a busy
    // machine.
    let told = || noting.0.lock().expect("not poisoned").progress.len();
    let begun = Instant::now();
    let declared = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut declared = 0;
                    while declared < 200 || told() < 4 {
                        assert!(begun.elapsed() < Duration::from_secs(60), "{} told", told());
                        drop(Epoch::declare("request"));
                        declared += 1;
                        std::thread::sleep(Duration::from_micros(200));
                    }
                    declared
                })
            })
            .collect();
        let each = threads.into_iter().map(|thread| thread.join());
        each.map(|declared| declared.expect("ends")).sum::<usize>()
    });
    lineage.shutdown(Duration::from_secs(5));

    let seen = noting.0.lock().expect("not poisoned");
    assert!(seen.finished);
    assert!(
        seen.started_unix_ns
            .is_some_and(|at| at > 1_700_000_000_000_000_000)
    );
    assert_eq!(seen.retired.len(), declared);
    for &(until, settled, before) in &seen.progress {
        let really = seen.retired.iter().filter(|(_, at)| *at < until).count();
        assert_eq!(before, really, "handed on by {until:?}");
        assert!(settled <= until);
    }
    let times: Vec<HostNanos> = seen.progress.iter().map(|told| told.0).collect();
    assert!(times.is_sorted(), "{times:?}");
    let end = HostNanos(u64::MAX);
    assert_eq!(
        seen.progress.last().map(|told| (told.0, told.1)),
        Some((end, end))
    );
}
