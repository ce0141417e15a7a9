//! A part of a recording is judged by what is held of it: every claim is right, and none that is not made
//! for the whole, wherever it is cut.

use std::collections::BTreeMap;

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::id::{HostNanos, ProcessOrdinal};
use lineage_core::observation::Observation;
use lineage_core::part::{Bounds, Held, Holding, moment_of};
use lineage_core::row::Row;
use lineage_core::verdict::{DispatchFloor, Judge, Life, Segment, Settings, VerdictKind};
use lineage_sim_model::Settings as Device;

use crate::scenario::{Cause, Scenario, play, play_alone, play_behind, play_graph, play_step};
use crate::score::{number_of, score};

/// A recording, joined.
struct Whole {
    observations: Vec<Observation>,
    rows: Vec<Row>,
    /// By the number of the operation.
    lives: BTreeMap<u64, Life>,
    floor: Option<DispatchFloor>,
}

fn number(row: &Row) -> u64 {
    number_of(row.operation.as_ref().expect("all are launches"))
}

fn whole(scenario: &Scenario) -> Whole {
    let events = scenario.recorded.events.iter().cloned();
    let observations: Vec<Observation> = events.map(Observation::live).collect();
    let mut correlator = Correlator::new(Limits::default());
    observations.iter().for_each(|of| correlator.observe(of));
    correlator.end();
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    correlator.drain(&mut rows, &mut faults);
    let mut judge = Judge::new(Settings::default());
    let lives = judge.judge(&observations, &rows);
    Whole {
        lives: lives
            .into_iter()
            .map(|life| (number(&rows[life.row]), life))
            .collect(),
        floor: judge.dispatch_floor(ProcessOrdinal(0)),
        observations,
        rows,
    }
}

/// What is held of a part. Rows come behind what they were joined from, all at the end or, as in a ledger,
/// in between.
fn hold(of: &Whole, bounds: Bounds, in_between: bool) -> Held {
    let mut holding = Holding::new(vec![bounds]);
    let mut rows = of.rows.iter().cloned();
    for (at, observation) in of.observations.iter().enumerate() {
        holding.observation(0, observation.clone());
        if in_between && at % 8 == 0 {
            rows.next().into_iter().for_each(|row| holding.row(0, row));
        }
    }
    rows.for_each(|row| holding.row(0, row));
    holding.finish()
}

/// The lives of a part's rows, and the floor that they were judged by.
fn judged(held: &Held, bounds: Bounds) -> (Vec<Life>, Option<DispatchFloor>) {
    let mut judge = Judge::new(Settings::default());
    held.limit(&mut judge);
    let mut lives = judge.judge(&held.observations, &held.rows);
    lives.retain(|life| bounds.has(&held.rows[life.row]));
    (lives, judge.dispatch_floor(ProcessOrdinal(0)))
}

/// What a claim is measured by: the part has its own measure, and may see in it what the whole does not.
fn rests_on_the_floor(kind: VerdictKind) -> bool {
    matches!(
        kind,
        VerdictKind::DependencyWait | VerdictKind::DeviceWait | VerdictKind::FalseDependency
    )
}

#[derive(Debug, Default)]
struct Sum {
    parts: u64,
    lives: u64,
    claims: u64,
    of_own_measure: u64,
}

/// Holds a part against truth, and against the whole.
fn check(scenario: &Scenario, of: &Whole, bounds: Bounds, in_between: bool, sum: &mut Sum) {
    let held = hold(of, bounds, in_between);
    let (lives, floor) = judged(&held, bounds);
    let expected = of.rows.iter().filter(|row| bounds.has(row)).count();
    assert_eq!((lives.len(), held.counts.rows), (expected, expected as u64));
    let all = held.counts.rows + held.counts.rows_outside + held.counts.rows_without_time;
    assert_eq!(all, of.rows.len() as u64);
    let scored = score(&scenario.recorded, &held.rows, &lives);
    assert_eq!(scored.wrong, [""; 0], "{bounds:?}");
    sum.parts += 1;
    sum.lives += lives.len() as u64;
    for life in &lives {
        assert!(life.is_exact());
        let known = &of.lives[&number(&held.rows[life.row])];
        for segment in life
            .segments
            .iter()
            .filter(|of| of.verdict.kind().is_claim())
        {
            sum.claims += 1;
            let kind = segment.verdict.kind();
            if claims(known, segment) {
                continue;
            }
            let own = (rests_on_the_floor(kind) && floor != of.floor)
                || (matches!(kind, VerdictKind::LongerThanItsKind | VerdictKind::ApiSlow));
            assert!(
                own,
                "{segment:?} is not claimed of the whole, which has {:#?}; {bounds:?}",
                known.segments
            );
            sum.of_own_measure += 1;
        }
    }
}

/// Whether of the whole the same is claimed for all of a segment.
fn claims(whole: &Life, segment: &Segment) -> bool {
    let meets = whole
        .segments
        .iter()
        .filter(|of| of.from < segment.to && segment.from < of.to);
    let mut covered = 0;
    for of in meets {
        if of.verdict.kind() != segment.verdict.kind() {
            return false;
        }
        covered += of.to.0.min(segment.to.0) - of.from.0.max(segment.from.0);
    }
    covered == segment.duration_ns()
}

/// Numbers that are as good as any, and the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}

fn scenarios() -> Vec<(String, Scenario)> {
    let usual = || Device::default().dispatch_ns(800).doorbell_ns(200);
    let mut out: Vec<(String, Scenario)> = Vec::new();
    for (at, &cause) in Cause::ALL.iter().enumerate() {
        out.push((format!("{cause:?}"), play(&[cause], usual())));
        let other = Cause::ALL[(at * 7 + 3) % Cause::ALL.len()];
        out.push((
            format!("{cause:?} {other:?}"),
            play(&[cause, other], usual()),
        ));
    }
    out.push(("step".to_owned(), play_step(usual())));
    out.push(("behind".to_owned(), play_behind(70, usual())));
    out.push(("alone".to_owned(), play_alone(400_000, usual())));
    out.push(("graph".to_owned(), play_graph(2, usual())));
    out
}

#[test]
fn what_is_claimed_for_a_part_is_right_and_is_claimed_for_the_whole() {
    let mut sum = Sum::default();
    let mut numbers = Numbers(1);
    for (name, scenario) in scenarios() {
        let of = whole(&scenario);
        let moments = of.rows.iter().filter_map(moment_of);
        let mut moments: Vec<u64> = moments.map(|at| at.0).collect();
        moments.sort_unstable();
        let (first, last) = (moments[0], *moments.last().expect("there are rows"));
        let before = sum.claims;
        for cut in 0..32 {
            // What is interesting is at the end; and cuts in the middle of a life, or just at its end.
            let late = last.saturating_sub(numbers.below(2_500_000)).max(first);
            let from = match cut % 3 {
                0 => late,
                1 => first + numbers.below(last - first),
                _ => moments[numbers.below(moments.len() as u64) as usize],
            };
            let to = match cut % 4 {
                0 => from + numbers.below(last - from + 1),
                _ => u64::MAX,
            };
            let lead_in = [0, 20_000, 300_000, 3_000_000][numbers.below(4) as usize];
            let bounds = Bounds {
                start: HostNanos(0),
                since: HostNanos(from.saturating_sub(lead_in)),
                from: HostNanos(from),
                to: HostNanos(to),
            };
            check(&scenario, &of, bounds, cut % 2 == 0, &mut sum);
        }
        // With all of it in the lead-in it is the whole.
        let bounds = Bounds {
            start: HostNanos(0),
            since: HostNanos(0),
            from: HostNanos(first),
            to: HostNanos(last),
        };
        let (lives, floor) = judged(&hold(&of, bounds, true), bounds);
        assert_eq!(floor, of.floor, "{name}");
        for life in lives {
            let known = &of.lives[&number(&of.rows[life.row])];
            assert_eq!(life.segments, known.segments, "{name}");
        }
        assert!(
            sum.claims > before,
            "{name}: nothing is claimed of any part"
        );
    }
    println!("{sum:?}");
    // Of what is claimed little rests on a measure of the part's own.
    assert!(sum.of_own_measure * 50 < sum.claims, "{sum:?}");
}
