//! Random histories whose truth is known: every operation is bound rightly, in any legal order of
//! arrival; and one broken thing gives the code that stands for it.

mod correlator_support;

use correlator_support::history::{History, Plan, Truth, breakable, plan, truth_of};
use correlator_support::*;
use lineage_core::fault::FaultCode;
use lineage_core::id::{Attribution, HostNanos, PackedEpoch, TaskId};
use lineage_core::observation::{Event, Scope};
use lineage_core::row::{Binding, Row};
use proptest::prelude::*;

fn is_right(history: &History, row: &Row) -> Result<(), TestCaseError> {
    let Some(truth) = truth_of(history, row) else {
        return Ok(());
    };
    let named = Attribution::Epoch(truth.epoch);
    prop_assert_eq!(row.binding, Binding::Bound(truth.epoch), "{:#?}", row);
    prop_assert_eq!(row.sources.callback, Some(named));
    prop_assert_eq!(row.sources.external, truth.boundary.then_some(named));
    prop_assert_eq!(row.sources.containment, Some(named));
    prop_assert_eq!(row.sources.reachable, Some(true));
    prop_assert_eq!(row.faults.as_slice(), &[]);
    let call = row.call.as_ref().expect("it has a call");
    prop_assert_eq!((call.tid, call.correlation.wire()), (truth.tid, truth.wire));
    Ok(())
}

fn codes(run: &Run) -> Vec<FaultCode> {
    let rows = run.rows.iter().flat_map(|row| row.faults.iter().copied());
    let mut codes: Vec<FaultCode> = rows.chain(run.loose()).collect();
    codes.sort_unstable();
    codes
}

/// A history, and what came of it when one thing in it was broken.
struct Broken {
    history: History,
    victim: usize,
    run: Run,
}

fn break_one(plan: &Plan, pick: usize, how: impl FnOnce(&mut History, usize, &Truth)) -> Broken {
    let mut history = plan.run();
    let victim = history.victim(pick);
    let truth = history.truths[victim].clone();
    how(&mut history, victim, &truth);
    let run = ended(history.observations());
    Broken {
        history,
        victim,
        run,
    }
}

impl Broken {
    /// The rows of the broken call.
    fn victims(&self) -> Vec<&Row> {
        let truth = &self.history.truths[self.victim];
        let of = |row: &&Row| {
            row.call
                .as_ref()
                .is_some_and(|call| call.correlation.wire() == truth.wire)
                || truth_of(&self.history, row).is_some_and(|of| of.wire == truth.wire)
        };
        self.run.rows.iter().filter(of).collect()
    }

    /// All other rows are right.
    fn others_are_right(&self) -> Result<(), TestCaseError> {
        let victims: Vec<*const Row> = self.victims().into_iter().map(std::ptr::from_ref).collect();
        let others = self
            .run
            .rows
            .iter()
            .filter(|row| !victims.contains(&std::ptr::from_ref(*row)));
        for row in others {
            is_right(&self.history, row)?;
        }
        Ok(())
    }
}

fn is_operation_of(event: &Event, victim: usize) -> bool {
    let name = victim.to_string();
    matches!(event, Event::Operation(operation) if operation.name.as_deref() == Some(name.as_str()))
}

fn contains(scope: &Scope, truth: &Truth, called: Option<HostNanos>) -> bool {
    let around = |called| scope.entered < called && called < scope.exited;
    scope.thread == thread(truth.tid) && called.is_some_and(around)
}

fn is_call_of(event: &Event, truth: &Truth) -> bool {
    match event {
        Event::Call(call) => call.correlation == truth.wire,
        Event::Api(api) => api.correlation == truth.wire,
        Event::External(external) => external.correlation == truth.wire,
        _ => false,
    }
}

/// 64 cases each, or as many as `PROPTEST_CASES` asks for.
fn config() -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: if asked { default.cases } else { 64 },
        failure_persistence: None,
        ..default
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_operation_is_bound_to_the_right_epoch_by_the_right_sources(plan in plan()) {
        let history = plan.run();
        let run = ended(history.observations());
        for row in &run.rows {
            is_right(&history, row)?;
        }
        let (mut operations, mut failed) = (0, 0);
        for truth in &history.truths {
            operations += truth.operations as u64;
            failed += u64::from(truth.failed);
        }
        let totals = run.totals();
        prop_assert_eq!(codes(&run), []);
        prop_assert_eq!((totals.lost, totals.wrong, totals.pending), (0, 0, 0));
        prop_assert_eq!(totals.calls, history.truths.len() as u64);
        prop_assert_eq!(totals.operations.total(), operations);
        prop_assert_eq!(totals.rows, operations + failed);
        prop_assert_eq!(totals.bound, totals.rows);
        prop_assert_eq!((totals.superseded, totals.duplicates, totals.evicted), (0, 0, 0));
        prop_assert_eq!(totals.handoffs.received, history.handoffs);
        prop_assert_eq!(totals.epochs.live, 0);
        let of_operations = run.rows.iter().filter(|row| row.operation.is_some()).count() as u64;
        prop_assert_eq!(of_operations, operations);
    }

    #[test]
    fn a_dropped_operation_is_l03(plan in breakable(6), pick: usize) {
        let broken = break_one(&plan, pick, |history, victim, _| {
            history.each(|event| !is_operation_of(event, victim));
        });
        broken.others_are_right()?;
        prop_assert_eq!(codes(&broken.run), [FaultCode::L03]);
        let row = broken.victims()[0];
        prop_assert!(row.operation.is_none());
        prop_assert_eq!(row.binding, Binding::Bound(broken.history.truths[broken.victim].epoch));
    }

    #[test]
    fn a_dropped_call_leaves_its_operation_l02(plan in breakable(6), pick: usize) {
        let broken = break_one(&plan, pick, |history, _, truth| {
            history.each(|event| !is_call_of(event, truth));
        });
        broken.others_are_right()?;
        prop_assert_eq!(codes(&broken.run), [FaultCode::L02]);
        prop_assert_eq!(broken.victims()[0].binding, Binding::Lost);
    }

    #[test]
    fn every_record_may_come_twice(plan in plan(), which: usize) {
        let history = plan.run();
        let expected = ended(history.observations());
        let mut twice = history.observations();
        let again: Vec<Event> = twice
            .iter()
            .filter(|event| matches!(event, Event::Call(_) | Event::Api(_) | Event::Operation(_) | Event::External(_)))
            .cloned()
            .collect();
        // The whole session's last flush stays the last.
        let last = twice.pop().expect("the last flush");
        if !again.is_empty() {
            twice.push(again[which % again.len()].clone());
        }
        twice.push(last);
        let run = ended(twice);
        // A second record may only show earlier that all had come.
        let in_order = |rows: &[Row]| {
            let mut rows = rows.to_vec();
            rows.sort_by_key(|row| {
                let operation = row.operation.as_ref();
                (row.stages.api_enter.at(), operation.and_then(|operation| operation.start))
            });
            rows
        };
        prop_assert_eq!(in_order(&run.rows), in_order(&expected.rows));
        prop_assert_eq!(run.totals().rows, expected.totals().rows);
    }

    #[test]
    fn operations_that_swap_their_ids_are_t01(plan in breakable(8), pick: usize) {
        let mut history = plan.run();
        let plain = |truth: &Truth| truth.operations == 1 && !truth.failed;
        let middle: Vec<usize> =
            (0..history.truths.len()).filter(|&at| plain(&history.truths[at])).collect();
        let first = middle[pick % (middle.len() - 1)];
        let second = middle[pick % (middle.len() - 1) + 1];
        let wires = (history.truths[first].wire, history.truths[second].wire);
        history.each(|event| {
            let swapped = if is_operation_of(event, first) { wires.1 } else { wires.0 };
            let either = is_operation_of(event, first) || is_operation_of(event, second);
            if let (Event::Operation(operation), true) = (event, either) {
                operation.correlation = swapped;
            }
            true
        });
        let run = ended(history.observations());
        // The earlier one began before the call whose id it bears; nothing tells of the other.
        // What stands at the end: where the other's thread holds its buffers, a call is missed until
        // they come.
        let stands: Vec<(FaultCode, u64)> = run.totals().faults.iter().collect();
        prop_assert_eq!(stands, [(FaultCode::T01, 1)]);
    }

    #[test]
    fn an_operation_without_times_is_l08_and_joined_all_the_same(plan in breakable(6), pick: usize) {
        let broken = break_one(&plan, pick, |history, victim, _| {
            history.each(|event| {
                if is_operation_of(event, victim) && let Event::Operation(operation) = event {
                    (operation.start, operation.end) = (None, None);
                }
                true
            });
        });
        broken.others_are_right()?;
        prop_assert_eq!(codes(&broken.run), [FaultCode::L08]);
        prop_assert_eq!(broken.victims()[0].binding, Binding::Bound(broken.history.truths[broken.victim].epoch));
    }

    #[test]
    fn a_gap_in_place_of_our_call_leaves_the_external_record(plan in breakable(6), pick: usize) {
        let broken = break_one(&plan, pick, |history, _, truth| {
            let mut before = 0;
            history.each(|event| {
                if let Event::Call(call) = event && call.correlation == truth.wire {
                    let (from, to) = (call.entered.0 - 1, call.entered.0 + 3_000);
                    *event = gap(truth.tid, from, to);
                    before += 1;
                }
                true
            });
            assert_eq!(before, 1);
        });
        prop_assert_eq!(codes(&broken.run), [FaultCode::L07]);
        let (row, truth) = (broken.victims()[0], &broken.history.truths[broken.victim]);
        prop_assert_eq!(row.binding, Binding::Bound(truth.epoch));
        prop_assert_eq!(row.sources.callback, None);
        prop_assert_eq!(row.sources.containment, None, "not across a gap");
    }

    #[test]
    fn a_gap_in_place_of_a_scope_takes_the_containment_and_nothing_else(plan in breakable(6), pick: usize) {
        let broken = break_one(&plan, pick, |history, _, truth| {
            let mut called = None;
            history.each(|event| {
                match event {
                    Event::Call(call) if call.correlation == truth.wire => called = Some(call.entered),
                    Event::Scope(scope) if contains(scope, truth, called) => {
                        *event = gap(truth.tid, scope.exited.0 - 1, scope.exited.0 + 1);
                    }
                    _ => {}
                }
                true
            });
        });
        prop_assert!(codes(&broken.run).iter().all(|code| *code == FaultCode::L07));
        let (row, truth) = (broken.victims()[0], &broken.history.truths[broken.victim]);
        prop_assert_eq!(row.binding, Binding::Bound(truth.epoch));
        prop_assert_eq!(row.sources.containment, None);
        prop_assert_eq!(row.sources.observed(), 2);
    }

    #[test]
    fn another_epoch_on_cuptis_stack_is_w03(plan in breakable(6), pick: usize) {
        let other = epoch(1_000_000);
        let broken = break_one(&plan, pick, |history, _, truth| {
            // It lives, somewhere else.
            let elsewhere = declared(900, 1_000_000, 1);
            history.rounds[0].rings.push((900, vec![elsewhere]));
            history.each(|event| {
                if let Event::External(external) = event && external.correlation == truth.wire {
                    external.external_id = PackedEpoch::from(other).bits();
                }
                true
            });
        });
        broken.others_are_right()?;
        prop_assert_eq!(codes(&broken.run), [FaultCode::W03]);
        let epoch = broken.history.truths[broken.victim].epoch;
        prop_assert_eq!(broken.victims()[0].binding, Binding::Disputed(other, epoch));
    }

    #[test]
    fn a_foreign_id_on_cuptis_stack_is_w05(plan in breakable(6), pick: usize, bits in 0..(1u64 << 24)) {
        let broken = break_one(&plan, pick, |history, _, truth| {
            history.each(|event| {
                if let Event::External(external) = event && external.correlation == truth.wire {
                    external.external_id = bits;
                }
                true
            });
        });
        broken.others_are_right()?;
        prop_assert_eq!(codes(&broken.run), [FaultCode::W05]);
    }

    #[test]
    fn a_call_whose_epoch_did_not_come_along_is_l01(plan in breakable(6), pick: usize) {
        let broken = break_one(&plan, pick, |history, _, truth| {
            history.each(|event| match event {
                Event::Call(call) if call.correlation == truth.wire => {
                    (call.attribution, call.in_boundary) = (Attribution::None, false);
                    true
                }
                Event::External(external) => external.correlation != truth.wire,
                _ => true,
            });
        });
        broken.others_are_right()?;
        // The thread received an envelope before.
        prop_assert_eq!(codes(&broken.run), [FaultCode::L01]);
        prop_assert_eq!(broken.victims()[0].binding, Binding::Lost);
    }

    #[test]
    fn a_call_in_another_task_than_its_scopes_is_w02(plan in breakable(6), pick: usize) {
        let broken = break_one(&plan, pick, |history, _, truth| {
            let mut called = None;
            history.each(|event| {
                match event {
                    Event::Call(call) if call.correlation == truth.wire => {
                        call.task = Some(TaskId(1));
                        called = Some(call.entered);
                    }
                    Event::Scope(scope) if contains(scope, truth, called) => {
                        scope.task = Some(TaskId(2));
                    }
                    _ => {}
                }
                true
            });
        });
        prop_assert!(broken.victims()[0].faults.contains(&FaultCode::W02));
        prop_assert!(codes(&broken.run).iter().all(|code| *code == FaultCode::W02));
    }

    #[test]
    fn a_handoff_that_was_not_received_is_l05(plan in breakable(6), pick: usize) {
        let mut history = plan.run();
        let lost = 1 + pick as u64 % history.handoffs;
        history.each(|event| !matches!(event, Event::Received(received) if received.handoff.id.0 == lost));
        let run = ended(history.observations());
        prop_assert_eq!(codes(&run), [FaultCode::L05]);
        prop_assert_eq!(run.totals().lost, 1);
    }

    #[test]
    fn an_operation_that_comes_after_its_fence_takes_the_lost_rows_place(plan in breakable(6), pick: usize) {
        let mut history = plan.run();
        let victim = history.victim(pick);
        let mut late = None;
        history.each(|event| {
            let is_it = is_operation_of(event, victim);
            if is_it {
                late = Some(event.clone());
            }
            !is_it
        });
        let mut run = Run::new();
        run.see(history.observations());
        prop_assert_eq!(run.totals().lost, 1);
        run.see(late).end();
        prop_assert_eq!((run.totals().lost, run.totals().superseded), (0, 1));
        let row = run.rows.last().expect("given");
        prop_assert!(row.supersedes);
        is_right(&history, row)?;
    }
}
