//! `Drop` never blocks on the source; the session ends by itself, and another may start then.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lineage_core::observation::Observation;
use lineage_core::source::{EvidenceSource, NoEvidence, SourceContext};
use lineage_core::{DeviceEvidence, StartError};

static STOPPED: AtomicBool = AtomicBool::new(false);

/// A source whose end takes long, as a flush of a busy device does.
struct Slow;

impl EvidenceSource for Slow {
    fn start(&mut self, _: SourceContext) -> Result<(), NoEvidence> {
        Ok(())
    }

    fn drain(&mut self, _: &mut dyn FnMut(Observation)) {}

    fn flush(&mut self) {}

    fn stop(&mut self, _: Duration, _: &mut dyn FnMut(Observation)) {
        std::thread::sleep(Duration::from_millis(400));
        STOPPED.store(true, Ordering::Release);
    }
}

/// A source that cannot start.
struct Missing;

impl EvidenceSource for Missing {
    fn start(&mut self, _: SourceContext) -> Result<(), NoEvidence> {
        Err(NoEvidence::new("libcupti was not found"))
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

#[test]
fn dropping_a_session_does_not_wait() {
    let lineage = common::session().device(Slow).start().expect("a session");
    let begun = Instant::now();
    drop(lineage);
    assert!(!STOPPED.load(Ordering::Acquire) || begun.elapsed() >= Duration::from_millis(400));
    let mut refused = 0;
    let next = loop {
        match common::session().device(Missing).start() {
            Ok(next) => break next,
            Err(StartError::StillEnding) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        std::thread::sleep(Duration::from_millis(5));
        assert!(begun.elapsed() < Duration::from_secs(20));
    };
    assert!(refused > 0, "the session before was still ending");
    assert!(STOPPED.load(Ordering::Acquire));
    assert!(next.flush(Duration::from_secs(1)));
    let report = common::end(next);
    assert_eq!(
        report.device,
        DeviceEvidence::Absent {
            why: "libcupti was not found".into()
        }
    );
    assert_eq!(
        report.device.to_string(),
        "no device evidence: libcupti was not found"
    );
}
