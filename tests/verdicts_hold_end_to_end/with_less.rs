//! With one kind of evidence taken away from the same recording: less is claimed, and nothing is wrong.

use lineage_core::observation::{Event, Observation, SynchronizationKind};
use lineage_core::source::Tier;
use lineage_core::verdict::VerdictKind;
use lineage_sim::isolated;

use crate::evidence::{judge, judge_without, kinds};
use crate::run::{Run, report, usual};

#[test]
fn what_is_taken_away_makes_claims_unresolved_and_none_wrong() {
    isolated(
        "with_less::what_is_taken_away_makes_claims_unresolved_and_none_wrong",
        || {
            let run = Run::new(usual(), Tier::Explain);
            let full = run.score();
            for without in kinds() {
                let (rows, lives) = judge_without(without, &run.recorded.report.observations);
                let score = run.score_of(&rows, &lives);
                report(&format!("without {without:?}"), &score);
                let [now, before] = [&score[0], &full[0]].map(|of| of.claimed_ns);
                assert!(now < before, "{without:?}: {now} of {before}");
            }
        },
    );
}

/// In tier `correlate` no set of dependencies is known to be complete: only what began right behind
/// something is claimed.
#[test]
fn in_tier_correlate_only_dependencies_are_claimed() {
    isolated(
        "with_less::in_tier_correlate_only_dependencies_are_claimed",
        || {
            let score = Run::new(usual(), Tier::Correlate).score();
            report("in tier correlate", &score);
            let claimed: Vec<VerdictKind> = score[0].claims.keys().copied().collect();
            assert_eq!(claimed, [VerdictKind::DependencyWait]);
        },
    );
}

/// What this measure is worth: where a recorder says that it collects something and does not, the claims
/// that rest on it are wrong, and seen to be. A session that says what it collects never does that.
#[test]
fn a_recorder_that_lies_makes_claims_that_are_seen_to_be_wrong() {
    isolated(
        "with_less::a_recorder_that_lies_makes_claims_that_are_seen_to_be_wrong",
        || {
            let run = Run::new(usual(), Tier::Explain);
            let wrong = |lie: &str, tells: &dyn Fn(&Event) -> bool| {
                let all = run.recorded.report.observations.iter();
                let told: Vec<Observation> = all.filter(|of| tells(&of.event)).cloned().collect();
                let (rows, lives) = judge(told);
                let wrong = run.score_of(&rows, &lives)[0].wrong.len();
                println!("on the simulator, {lie}: {wrong} claims are wrong");
                wrong
            };
            // The thread is watched, and its switches are kept back: it seems to have run throughout. In two
            // scenarios the script preempts it in its scope while nothing covers that.
            let switches = wrong("a thread's switches kept back", &|event| {
                !matches!(event, Event::Scheduled(_))
            });
            assert_eq!(switches, 2);
            // Waits for events, without a trace of them: seven scenarios have one.
            let waits = wrong("waits for events kept back", &|event| match event {
                Event::Synchronization(of) => of.kind != SynchronizationKind::StreamWait,
                Event::Api(of) => of.api.name.as_deref() != Some("cuStreamWaitEvent"),
                _ => true,
            });
            assert!(waits >= 5, "{waits}");
        },
    );
}
