//! With one kind of evidence taken away from the same recording: less is claimed, and nothing is wrong.

use lineage_core::source::Tier;
use lineage_core::verdict::VerdictKind;
use lineage_sim::isolated;

use crate::evidence::Without;
use crate::run::{Run, report, usual};

#[test]
fn what_is_taken_away_makes_claims_unresolved_and_none_wrong() {
    isolated(
        "with_less::what_is_taken_away_makes_claims_unresolved_and_none_wrong",
        || {
            let run = Run::new(usual(), Tier::Explain);
            let full = run.score();
            for without in Without::ALL {
                let (rows, lives) = without.judge(&run.recorded.report.observations);
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
