//! Starting, ending, starting again, and using what is left over from before.

mod common;

use lineage_core::observation::{DropSite, Dropped};
use lineage_core::{Attribution, DeclareError, Epoch, StartError, current};

fn fast_clock() -> u64 {
    1
}

#[test]
fn a_session_has_one_lifetime_after_the_other() {
    // Before the first session an epoch is inert.
    assert!(Epoch::declare("too-early").is_inert());
    assert_eq!(
        Epoch::try_declare("too-early").err(),
        Some(DeclareError::NotRecording)
    );

    let first = common::session().start().expect("the first session");
    assert!(matches!(
        common::session().start(),
        Err(StartError::AlreadyRunning)
    ));
    let kept = Epoch::declare("kept-too-long");
    let (first_process, kept_id) = (first.process(), kept.id().expect("live"));
    let report = common::end(first);
    assert_eq!(report.process, first_process);
    assert_eq!(events!(report, Declared).len(), 1);

    // After shutdown an old epoch does nothing, and that is counted in the next session.
    kept.run(|| assert_eq!(current(), Attribution::None));
    assert!(Epoch::declare("between").is_inert());

    // A clock that differs is refused, and the refusal leaves room for another start.
    let other_clock = common::session().clock(fast_clock).start();
    assert!(matches!(
        other_clock,
        Ok(_) | Err(StartError::ClockAlreadySet)
    ));
    drop(other_clock);
    let second = loop {
        match common::session().start() {
            Ok(session) => break session,
            Err(StartError::StillEnding) => std::thread::yield_now(),
            Err(other) => panic!("{other}"),
        }
    };
    assert_ne!(second.process(), first_process);
    let fresh = Epoch::declare("fresh");
    assert!(
        fresh.id().expect("live").id > kept_id.id,
        "ids are never used twice"
    );
    kept.run(|| {
        assert_eq!(
            current(),
            Attribution::None,
            "an epoch of an earlier session stays out"
        )
    });
    drop(kept);
    drop(fresh);
    let report = common::end(second);
    assert_eq!(events!(report, Declared).len(), 1);
    assert_eq!(
        events!(report, Retired).len(),
        1,
        "only the second session's epoch retires in it"
    );
    let late: u64 = events!(report, Dropped)
        .iter()
        .filter(|Dropped { site, .. }| *site == DropSite::AfterShutdown)
        .map(|dropped| dropped.count)
        .sum();
    assert!(late >= 1, "what came after shutdown is counted");
}
