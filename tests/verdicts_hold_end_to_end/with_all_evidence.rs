//! With all evidence: what is claimed of which cause, and that it is right.

use lineage_core::source::Tier;
use lineage_core::verdict::VerdictKind::{
    self, Allocation, ApiSlow, ApplicationLate, BatchWait, DependencyWait, DeviceWait,
    FalseDependency, HostSyncWait, HostWork, LongerThanItsKind, SubmitterLate, Unresolved,
};
use lineage_sim::isolated;

use crate::run::{Run, report, usual};
use crate::scenario::Cause;

/// What is claimed of a cause alone, for how long in ns, and how much less it may be: the numbers are the
/// script's own.
const EXPECTED: [(Cause, VerdictKind, u64, u64); 23] = [
    (Cause::ApplicationLate, ApplicationLate, 300_000, 0),
    (Cause::BatchWait, BatchWait, 200_000, 0),
    (Cause::HostLate, SubmitterLate, 400_000, 0),
    (Cause::HostBusy, SubmitterLate, 250_000, 0),
    // Before its call the program spends 1,000, and asks for the kernel's handle for as long.
    (Cause::HostWork, HostWork, 152_000, 0),
    // From the return of the copy's call on; that ran for 4,096, behind 1,100,000.
    (Cause::ReadBack, HostSyncWait, 1_105_096, 5_000),
    // The call that allocates, and the one that frees behind a kernel of 1,500,000.
    (Cause::Allocation, Allocation, 1_502_000, 1_000),
    (Cause::Preempted, SubmitterLate, 350_000, 0),
    // The compiler, and the function's first launch.
    (Cause::Compiling, ApiSlow, 500_000, 0),
    (Cause::Loading, ApiSlow, 300_000, 0),
    // The call waits for room while what is before it runs: it cost nothing.
    (Cause::QueueFull, DependencyWait, 785_600, 0),
    (Cause::SameStream, DependencyWait, 901_000, 0),
    (Cause::EventWait, DependencyWait, 1_101_000, 0),
    (Cause::GraphEdge, DependencyWait, 31_000, 1_000),
    (Cause::SameExec, DependencyWait, 1_531_800, 0),
    (Cause::SharedChannel, FalseDependency, 1_200_000, 12_000),
    (Cause::CopyEngine, DeviceWait, 1_300_000, 8_000),
    (Cause::LongKernel, LongerThanItsKind, 160_000, 0),
    // All threads are taken, for one of 32 as for one of 1,024.
    (Cause::DeviceFull, DeviceWait, 1_400_000, 8_000),
    (Cause::Cooperative, DeviceWait, 1_400_000, 8_000),
    // It may begin early, and wait inside.
    (Cause::Programmatic, Unresolved, 103_800, 0),
    // Up to the end of what is before the function; the function itself has no record that is read.
    (Cause::HostFunction, DependencyWait, 1_101_000, 0),
    // Nothing but the way from the mark to the handoff.
    (Cause::DeviceShared, Unresolved, 6_000, 0),
];

#[test]
fn each_cause_is_found_for_as_long_as_it_was_and_every_claim_is_right() {
    isolated(
        "with_all_evidence::each_cause_is_found_for_as_long_as_it_was_and_every_claim_is_right",
        || {
            let run = Run::new(usual(), Tier::Explain);
            for scenario in &run.scenarios {
                let said = run.said(scenario).into_iter();
                let said: Vec<String> = said
                    .map(|(kind, ns)| format!("{kind} {:.1} µs", ns as f64 / 1_000.0))
                    .collect();
                println!("  {}: {}", scenario.name(), said.join(", "));
            }
            let score = run.score();
            println!("  {:?}", score[0].claims);
            report("with all evidence", &score);
            for (cause, kind, ns, less_ns) in EXPECTED {
                let mut alone = run.scenarios.iter().filter(|of| of.causes == [cause]);
                let said = run.said(alone.next().expect("each is played alone"));
                let found = said.get(&kind).copied().unwrap_or_default();
                assert!((ns - less_ns..=ns).contains(&found), "{cause:?}: {said:?}");
                // Of what is unresolved nothing long is claimed beside it.
                if kind == Unresolved {
                    let mut claims = said.iter().filter(|(of, ns)| of.is_claim() && **ns > 5_000);
                    assert_eq!(claims.next(), None, "{cause:?}");
                }
            }
        },
    );
}
