//! Where the judge asks for more than that a looser rule would: a recording for each, on which the
//! looser rule would claim what was not so.

use lineage_core::verdict::VerdictKind;
use lineage_sim_model::Settings;

use crate::scenario::{Cause, play, play_behind_blocked_copy};
use crate::scenarios::{total, verdicts};
use crate::without::Without;

fn usual() -> Settings {
    Settings::default()
        .dispatch_ns(800)
        .doorbell_ns(200)
        .copy_engines_to_device(1)
}

/// Looser: a dependency was binding if the work had been submitted before it ended. Here the stream
/// waits for an event, too, which ends 200,000 later and is not recorded: had the dependency ended at
/// once, the work would have begun no sooner.
#[test]
fn a_dependency_that_ended_long_before_is_not_binding_if_others_are_not_known() {
    let scenario = play(&[Cause::SameStream, Cause::EventWait], usual());
    let found = verdicts(&scenario, Without::OrderCalls);
    assert_eq!(total(&found, VerdictKind::DependencyWait), 0, "{found:?}");
    // With all evidence it is the event that is named, and for as long as it held the work back.
    let found = verdicts(&scenario, Without::Nothing);
    assert!(total(&found, VerdictKind::DependencyWait) > 1_000_000);
}

/// Looser: a call is slow that takes longer than its history. Here its thread was preempted in it, and
/// the call was none of the cause.
#[test]
fn a_call_is_not_slow_in_which_the_thread_may_not_have_run() {
    let scenario = play(&[Cause::PreemptedInCall], usual());
    for without in [Without::Scheduler, Without::Switches] {
        let found = verdicts(&scenario, without);
        assert_eq!(total(&found, VerdictKind::ApiSlow), 0, "{found:?}");
    }
}

/// Looser: host time is critical unless earlier work of the stream *ran* meanwhile. Here that had been
/// called and waited for the copy engine, for longer than the host took: the host's time cost nothing.
#[test]
fn host_time_is_not_critical_while_earlier_work_may_have_been_at_the_device() {
    let scenario = play_behind_blocked_copy(usual());
    for without in [Without::Latency, Without::Nothing] {
        let found = verdicts(&scenario, without);
        assert_eq!(
            total(&found, VerdictKind::HostWork),
            0,
            "{without:?}: {found:?}"
        );
    }
}
