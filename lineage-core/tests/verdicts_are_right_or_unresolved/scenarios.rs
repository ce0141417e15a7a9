//! Each cause alone, all pairs, and triples, with every kind of evidence taken away in turn.

use lineage_core::verdict::{Life, VerdictKind};
use lineage_sim_model::Settings;

use crate::scenario::{
    Cause, Scenario, play, play_alone, play_behind, play_graph, play_step, play_waiting,
};
use crate::score::{Score, judge, number_of, score};
use crate::without::Without;

/// A device's latency, so that dispatch is not nothing.
fn usual() -> Settings {
    Settings::default().dispatch_ns(800).doorbell_ns(200)
}

/// The verdicts on the launch that is looked at, each with how long, in ns.
pub(crate) fn verdicts(scenario: &Scenario, without: Without) -> Vec<(VerdictKind, u64)> {
    let (rows, lives) = judge(&scenario.recorded, without);
    let of_target = lives.iter().find(|life| {
        let operation = rows[life.row].operation.as_ref();
        operation.is_some_and(|of| number_of(of) == scenario.target)
    });
    let life = of_target.expect("it is there");
    let segments = life.segments.iter();
    segments
        .map(|of| (of.verdict.kind(), of.duration_ns()))
        .collect()
}

pub(crate) fn total(of: &[(VerdictKind, u64)], kind: VerdictKind) -> u64 {
    of.iter().filter(|of| of.0 == kind).map(|of| of.1).sum()
}

/// Alone, with all evidence, each cause is found, and for as long as the script says. The numbers
/// are the script's own; a stretch of a launch's beginning or end may go to another.
#[test]
fn each_cause_alone_is_found_for_as_long_as_it_was() {
    for (cause, kind, ns) in [
        (
            Cause::ApplicationLate,
            VerdictKind::ApplicationLate,
            300_000,
        ),
        // From the mark until it was handed over.
        (Cause::Overdue, VerdictKind::ApplicationLate, 220_000),
        (Cause::BatchWait, VerdictKind::BatchWait, 200_000),
        (Cause::HostLate, VerdictKind::SubmitterLate, 400_000),
        (Cause::HostAsleep, VerdictKind::SubmitterLate, 180_000),
        (Cause::HostBusy, VerdictKind::SubmitterLate, 250_000),
        // 150,000, and 1,000 before the call.
        (Cause::HostWork, VerdictKind::HostWork, 151_000),
        (Cause::Allocation, VerdictKind::Allocation, 120_000),
        (Cause::Preempted, VerdictKind::SubmitterLate, 350_000),
        (Cause::Asleep, VerdictKind::SubmitterLate, 140_000),
        (Cause::PreemptedInCall, VerdictKind::SubmitterLate, 330_000),
        (Cause::Loading, VerdictKind::ApiSlow, 300_000),
        // Until the next launch's doorbell: 250,000 of rest, 1,000 and 4,000 of its call.
        (Cause::SubmitHeld, VerdictKind::SubmitWait, 255_000),
        (Cause::LongKernel, VerdictKind::LongerThanItsKind, 160_000),
    ] {
        let found = verdicts(&play(&[cause], usual()), Without::Nothing);
        assert_eq!(total(&found, kind), ns, "{cause:?}: {found:?}");
    }
    // These begin with the launch and end with what held it up.
    for (cause, kind, least_ns) in [
        (Cause::SameStream, VerdictKind::DependencyWait, 890_000),
        (Cause::EventWait, VerdictKind::DependencyWait, 1_080_000),
        (
            Cause::SharedChannel,
            VerdictKind::FalseDependency,
            1_180_000,
        ),
        (Cause::CopyEngine, VerdictKind::DeviceWait, 1_280_000),
        (Cause::DeviceFull, VerdictKind::DeviceWait, 1_380_000),
        (Cause::QueueFull, VerdictKind::DependencyWait, 400_000),
    ] {
        let found = verdicts(&play(&[cause], usual()), Without::Nothing);
        assert!(total(&found, kind) >= least_ns, "{cause:?}: {found:?}");
    }
}

/// Where only the run-queue delay is known, at least so much of a stretch was without a processor:
/// what was counted, less one in 2,000, less what has room in the windows outside of the stretch.
#[test]
fn a_run_queue_delay_says_how_much_and_not_when() {
    let scenario = play(&[Cause::Preempted], usual());
    let found = verdicts(&scenario, Without::Switches);
    let late = total(&found, VerdictKind::SubmitterLate);
    // 350,000 less 175, and at most one window of 100,000 reaches over the end of the stretch.
    assert!((249_825..=349_825).contains(&late), "{late}: {found:?}");
    assert_eq!(total(&found, VerdictKind::HostWork), 0, "{found:?}");
    // It slept, and was ready to run at no time: that it waited in `poll` is known all the same.
    let found = verdicts(&play(&[Cause::Asleep], usual()), Without::Switches);
    assert_eq!(
        total(&found, VerdictKind::SubmitterLate),
        140_000,
        "{found:?}"
    );
    let found = verdicts(&play(&[Cause::Asleep], usual()), Without::Scheduler);
    assert_eq!(total(&found, VerdictKind::SubmitterLate), 0, "{found:?}");
}

/// What is left of a stage when earlier work of the stream has covered a part of it is told as the
/// stage is, and not by what its thread did, which had nothing to do with it yet.
#[test]
fn a_stage_of_which_a_part_is_covered_is_still_that_stage() {
    for (cause, kind, ns) in [
        (
            Cause::ApplicationLate,
            VerdictKind::ApplicationLate,
            300_000,
        ),
        (Cause::BatchWait, VerdictKind::BatchWait, 200_000),
        (Cause::Overdue, VerdictKind::ApplicationLate, 220_000),
    ] {
        let found = verdicts(
            &play(&[Cause::EarlierWork, cause], usual()),
            Without::Nothing,
        );
        // In the middle of it other work runs for 30,000, and has been submitted 1,000 before.
        let claimed = total(&found, kind);
        assert_eq!(claimed, ns - 31_000, "{cause:?}: {found:?}");
        assert_eq!(
            total(&found, VerdictKind::HostWork),
            1_000,
            "{cause:?}: {found:?}"
        );
        assert_eq!(
            total(&found, VerdictKind::SubmitterLate),
            0,
            "{cause:?}: {found:?}"
        );
    }
}

/// How it came to its thread is not recorded, so that it was late with it is not known.
#[test]
fn a_thread_is_not_late_with_what_it_is_not_known_to_have() {
    for cause in [Cause::HostLate, Cause::HostAsleep, Cause::HostBusy] {
        let found = verdicts(&play(&[cause], usual()), Without::Handoffs);
        assert_eq!(
            total(&found, VerdictKind::SubmitterLate),
            0,
            "{cause:?}: {found:?}"
        );
        assert!(
            total(&found, VerdictKind::Unresolved) >= 180_000,
            "{found:?}"
        );
    }
}

/// By the application's own mark it was due when its thread took it: that it had waited until then is
/// nobody's lateness.
#[test]
fn before_it_was_due_nothing_was_late() {
    for causes in [
        [Cause::DueLater, Cause::HostLate],
        [Cause::DueLater, Cause::HostAsleep],
        [Cause::DueLater, Cause::HostBusy],
        [Cause::DueLater, Cause::ApplicationLate],
    ] {
        let found = verdicts(&play(&causes, usual()), Without::Nothing);
        for kind in [VerdictKind::SubmitterLate, VerdictKind::ApplicationLate] {
            assert_eq!(total(&found, kind), 0, "{causes:?}: {found:?}");
        }
        assert!(total(&found, VerdictKind::Expected) >= 180_000, "{found:?}");
    }
}

/// What is not provable stays unresolved: a launch that may begin early. What excludes nothing is not
/// blamed.
#[test]
fn what_cannot_be_proved_is_not_claimed() {
    let found = verdicts(&play(&[Cause::Programmatic], usual()), Without::Nothing);
    let unresolved = total(&found, VerdictKind::Unresolved);
    assert!(unresolved >= 50_000, "{found:?}");
    let claims = found.iter().filter(|of| of.0.is_claim() && of.1 > 5_000);
    assert_eq!(claims.count(), 0, "{found:?}");
    let found = verdicts(&play(&[Cause::DeviceShared], usual()), Without::Nothing);
    assert_eq!(total(&found, VerdictKind::DeviceWait), 0, "{found:?}");
    // Between the mark and the handoff the script launches what runs beside: 1,000 and 4,000.
    assert_eq!(total(&found, VerdictKind::Unresolved), 5_000, "{found:?}");
}

/// Host time while the stream's earlier work ran cost nothing, and is no claim.
#[test]
fn covered_host_time_is_not_blamed() {
    let found = verdicts(
        &play(&[Cause::SameStream, Cause::HostWork], usual()),
        Without::Nothing,
    );
    // Of the 151,000 of host work all is covered by 900,000 of earlier work.
    assert_eq!(total(&found, VerdictKind::HostWork), 0, "{found:?}");
    assert!(total(&found, VerdictKind::DependencyWait) >= 890_000);
}

/// Neither is a slow call behind more earlier work than the judge looks back to.
#[test]
fn a_slow_call_behind_a_long_queue_is_not_blamed() {
    for (fillers, without) in [
        (40, Without::Nothing),
        (200, Without::Nothing),
        (200, Without::Latency),
        (5_000, Without::Nothing),
    ] {
        let scenario = play_behind(fillers, usual().ring_entries(8_192));
        let found = verdicts(&scenario, without);
        assert_eq!(
            total(&found, VerdictKind::ApiSlow),
            0,
            "{fillers}: {found:?}"
        );
        // It was called long before its turn came.
        assert!(
            total(&found, VerdictKind::DependencyWait) > 500_000,
            "{fillers}: {found:?}"
        );
    }
}

/// A request that waits for its place while the others are served, which is a long time: it is known of
/// each of their kernels when it covered that wait.
#[test]
fn a_long_wait_beside_much_other_work_is_told_apart() {
    let found = verdicts(&play_waiting(300, usual()), Without::Nothing);
    // Each of the 300 is launched by 15,000 of the host's time, and from its submission on takes 3,000 of
    // the device's.
    let waited = total(&found, VerdictKind::BatchWait);
    assert!((299 * 12_000..=301 * 12_000).contains(&waited), "{waited}");
    assert_eq!(total(&found, VerdictKind::Unresolved), 0, "{found:?}");
}

/// The life of a batch's later step begins with that step, and not when the batch was formed.
#[test]
fn a_later_step_does_not_count_the_earlier_ones() {
    let found = verdicts(&play_step(usual()), Without::Nothing);
    let all: u64 = found.iter().map(|of| of.1).sum();
    // Handed over for 20,000; 1,000 in its scope, 4,000 in its call, 1,000 of latency, 40,000 at the device.
    assert_eq!(all, 66_000, "{found:?}");
    let late = total(&found, VerdictKind::SubmitterLate);
    assert_eq!(late, 20_000, "{found:?}");
    assert_eq!(total(&found, VerdictKind::BatchWait), 0, "{found:?}");
}

/// Between its mark and its scope a thread that had the work all along was at something else, and that it
/// ran meanwhile makes it no work for this.
#[test]
fn a_thread_that_had_the_work_all_along_is_late_with_it() {
    let found = verdicts(&play_alone(250_000, usual()), Without::Nothing);
    assert_eq!(
        total(&found, VerdictKind::SubmitterLate),
        250_000,
        "{found:?}"
    );
    assert_eq!(total(&found, VerdictKind::HostWork), 1_000, "{found:?}");
}

/// A node of a graph waits for the node before it, and not for what else is in its graph; the
/// roots for the stream's earlier work; what follows for all of it. Every claim on all of them is
/// right, whatever is missing.
#[test]
fn nodes_of_a_graph_wait_for_their_edges() {
    // The nodes run 200,000 then 50,000, and 400,000 beside them, behind 300,000 of earlier work.
    for (target, least_ns, most_ns) in [
        (0, 280_000, 310_000),
        (1, 480_000, 510_000),
        (3, 650_000, 710_000),
    ] {
        let scenario = play_graph(target, usual());
        let found = verdicts(&scenario, Without::Nothing);
        let waited = total(&found, VerdictKind::DependencyWait);
        assert!(
            (least_ns..=most_ns).contains(&waited),
            "{target}: {found:?}"
        );
        for without in Without::ALL {
            let (all, _) = scored(&scenario, without);
            assert_eq!(all.wrong, [""; 0], "{target} without {without:?}");
        }
    }
}

fn combinations() -> Vec<Vec<Cause>> {
    let all = Cause::ALL;
    let mut out: Vec<Vec<Cause>> = all.iter().map(|of| vec![*of]).collect();
    for (at, first) in all.iter().enumerate() {
        out.extend(all[at + 1..].iter().map(|second| vec![*first, *second]));
    }
    out.extend([
        vec![Cause::HostLate, Cause::SameStream, Cause::SubmitHeld],
        vec![Cause::HostWork, Cause::EventWait, Cause::LongKernel],
        vec![Cause::ApplicationLate, Cause::Preempted, Cause::Loading],
        vec![Cause::BatchWait, Cause::ReadBack, Cause::SharedChannel],
        vec![Cause::Allocation, Cause::CopyEngine, Cause::SubmitHeld],
        vec![Cause::HostBusy, Cause::Programmatic, Cause::DeviceShared],
    ]);
    out
}

/// The judge's claims on every launch, and of them those on the launch that is looked at.
fn scored(scenario: &Scenario, without: Without) -> (Score, Score) {
    let (rows, lives) = judge(&scenario.recorded, without);
    let of_target = lives.iter().filter(|life| {
        let operation = rows[life.row].operation.as_ref();
        operation.is_some_and(|of| number_of(of) == scenario.target)
    });
    let of_target: Vec<Life> = of_target.cloned().collect();
    (
        score(&scenario.recorded, &rows, &lives),
        score(&scenario.recorded, &rows, &of_target),
    )
}

/// Every claim on every launch of every combination is right; and of every eighth combination,
/// whatever evidence is missing.
#[test]
fn every_claim_is_right_whatever_is_missing() {
    let scenarios: Vec<(Vec<Cause>, Scenario)> = combinations()
        .into_iter()
        .map(|causes| {
            let scenario = play(&causes, usual());
            (causes, scenario)
        })
        .collect();
    println!(
        "on the simulator, {} combinations of causes:",
        scenarios.len()
    );
    let mut full_ns = 0;
    for without in Without::ALL {
        let mut sums = [Score::default(), Score::default()];
        let mut of_sample_ns = 0;
        for (number, (causes, scenario)) in scenarios.iter().enumerate() {
            let in_sample = number % 8 == 0;
            if without != Without::Nothing && !in_sample {
                continue;
            }
            let (all, target) = scored(scenario, without);
            assert_eq!(all.wrong, [""; 0], "{causes:?} without {without:?}");
            if in_sample {
                of_sample_ns += target.claimed_ns;
            }
            sums[0].add(&all);
            sums[1].add(&target);
        }
        let share = sums[1].unresolved_ns * 1_000 / sums[1].before_start_ns;
        println!(
            "  without {without:?}: {} claims, {} of them on the launches looked at, all right; of the time \
             before those began {}.{} % is unresolved",
            sums[0].claims,
            sums[1].claims,
            share / 10,
            share % 10
        );
        if without == Without::Nothing {
            full_ns = of_sample_ns;
        } else {
            // A call that is slow is known by its history, too, as long as its thread is seen to run; a
            // thread that was off its processor is, whatever it waited in.
            let kept = matches!(without, Without::Overheads | Without::OsCalls);
            let kept = kept && of_sample_ns == full_ns;
            assert!(
                kept || of_sample_ns < full_ns,
                "{without:?} takes claims away"
            );
        }
    }
}

/// What NVIDIA does not document, or what differs between devices, moves no claim from right to wrong.
#[test]
fn every_claim_is_right_on_other_devices() {
    let mut sum = Score::default();
    for (number, settings) in [
        Settings::default(),
        usual().device_tick_ns(32),
        usual().device_tick_ns(1_000),
        usual().device_skew_ns(700),
        usual().device_skew_ns(-700),
        usual().programmatic_overlap_percent(0),
        usual().programmatic_overlap_percent(50).seed(7),
        usual().dispatch_ns(6_000),
        usual().operations_per_doorbell(4),
        usual().channels(2),
    ]
    .into_iter()
    .enumerate()
    {
        // Each device has other combinations, so that all come up.
        for causes in combinations().iter().skip(number).step_by(10) {
            let scenario = play(causes, settings);
            for without in [Without::Nothing, Without::Latency] {
                let (all, target) = scored(&scenario, without);
                assert_eq!(
                    all.wrong, [""; 0],
                    "{causes:?} without {without:?}, {settings:?}"
                );
                sum.add(&target);
            }
        }
    }
    println!(
        "on the simulator, other devices: {} claims on the launches looked at, all right",
        sum.claims
    );
    // Of 196 combinations, each twice, most have a claim.
    assert!(sum.claims > 300, "{}", sum.claims);
}
