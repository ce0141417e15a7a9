//! To whom a call belongs, by which sources, and what is said where they disagree.

mod correlator_support;

use correlator_support::*;
use lineage_core::evidence::{Evidence, Rule, TimeSource, Why};
use lineage_core::fault::FaultCode;
use lineage_core::id::{Attribution, CorrelationId, DetachedReason, PackedEpoch, TaskId};
use lineage_core::observation::{
    ApiDomain, ApiId, DeviceSession, Event, Mark, Misuse, MisuseKind, OperationsDue, Received,
    Scope,
};
use lineage_core::row::{Binding, JoinSources, Row, Unattributed};

const NOTHING: Attribution = Attribution::None;

#[test]
fn a_launch_inside_a_boundary_is_bound_by_both_observed_sources_and_by_its_scope() {
    let mut run = Run::new();
    run.see(launch(3, 100, 1_000));
    // Everything has come: the row is given at once, without a flush.
    let row = run.row();
    assert_eq!(row.binding, Binding::Bound(epoch(3)));
    assert_eq!(
        row.sources,
        JoinSources {
            external: Some(of(3)),
            callback: Some(of(3)),
            containment: Some(of(3)),
            reachable: Some(true),
        }
    );
    assert_eq!(row.faults, []);
    assert!(!row.after_retirement && !row.supersedes);
    let call = row.call.as_ref().expect("it has a call");
    assert_eq!((call.session, call.correlation.0, call.tid), (1, 100, 1));
    assert_eq!(call.api.name.as_deref(), Some("cuLaunchKernel"));
    assert_eq!(call.in_boundary, Some(true));

    let observed = |ns, source| Evidence::Observed { at: at(ns), source };
    let stages = row.stages;
    assert_eq!(stages.declared, observed(1_000, TimeSource::RuntimeHook));
    assert_eq!(
        stages.ready,
        Evidence::Unknown {
            why: Why::NotCollected
        }
    );
    assert_eq!(stages.scope_enter, observed(1_010, TimeSource::RuntimeHook));
    assert_eq!(stages.api_enter, observed(1_020, TimeSource::CuptiApi));
    assert_eq!(stages.api_exit, observed(1_030, TimeSource::CuptiApi));
    assert_eq!(
        stages.queued,
        Evidence::Unknown {
            why: Why::NotCollected
        }
    );
    assert_eq!(
        stages.submitted,
        Evidence::Unknown {
            why: Why::NotCollected
        }
    );
    assert_eq!(stages.start, observed(1_050, TimeSource::CuptiKernel));
    assert_eq!(stages.end, observed(1_090, TimeSource::CuptiKernel));

    run.end();
    let totals = run.totals();
    assert_eq!((totals.observations, totals.rows, totals.calls), (6, 1, 1));
    assert_eq!(totals.operations.kernels, 1);
    assert_eq!(
        (totals.bound, totals.bound_by.external_and_callback),
        (1, 1)
    );
    assert_eq!((totals.contained, totals.containment_differs), (1, 0));
    assert_eq!((totals.lost, totals.wrong, totals.pending), (0, 0, 0));
    assert_eq!(totals.epochs.live, 1);
}

#[test]
fn every_order_of_arrival_gives_the_same_row() {
    let events = launch(3, 100, 1_000);
    let expected = ended(events.clone()).rows;
    // The self-test at the start saw external records: they are waited for from the first call on.
    let session: Event = DeviceSession::Started {
        session: 1,
        version: 28,
        at: at(1),
        external_correlation: Some(true),
    }
    .into();
    // All 720 orders but those that break the order of the thread's own ring.
    let mut orders: Vec<Vec<usize>> = vec![vec![]];
    for _ in 0..events.len() {
        orders = orders
            .into_iter()
            .flat_map(|order| {
                (0..events.len()).filter_map(move |next| {
                    let mut longer = order.clone();
                    longer.push(next);
                    (!order.contains(&next)).then_some(longer)
                })
            })
            .collect();
    }
    let legal = |order: &[usize]| order.iter().filter(|&&at| at < 3).is_sorted();
    let legal: Vec<Vec<usize>> = orders.into_iter().filter(|order| legal(order)).collect();
    assert_eq!(legal.len(), 120, "6! / 3!");
    for order in legal {
        let events = order.iter().map(|&at| events[at].clone());
        let run = ended([session.clone()].into_iter().chain(events));
        assert_eq!(run.rows, expected, "{order:?}");
        assert_eq!(run.totals().lost + run.totals().wrong, 0);
    }
}

#[test]
fn a_launch_outside_a_boundary_has_the_callback_only_and_that_is_no_disagreement() {
    let mut call = call_of(1, 100, 1_020, of(3));
    call.in_boundary = false;
    let mut run = Run::new();
    // Another launch shows that external records work in this session.
    run.see(launch(9, 99, 500));
    run.see([
        declared(1, 3, 1_000),
        call.into(),
        scope(1, 3, 100, 1_010, 1_040),
        api(1, 100, 1_020),
        kernel(100, 1_050, 1_090),
    ]);
    assert_eq!(run.rows.len(), 2, "not waited for");
    let row = &run.rows[1];
    assert_eq!(row.binding, Binding::Bound(epoch(3)));
    assert_eq!(
        (row.sources.external, row.sources.callback),
        (None, Some(of(3)))
    );
    assert_eq!(row.faults, []);
    assert_eq!(run.totals().bound_by.callback_only, 1);
    assert_eq!(run.totals().external_missing, 0);
}

#[test]
fn a_missing_external_record_is_waited_for_only_where_such_records_are_known_to_work() {
    let without_external = |id, correlation, ns| {
        let events = launch(id, correlation, ns).into_iter();
        events.filter(|event| !matches!(event, Event::External(_)))
    };
    let mut run = Run::new();
    run.see(without_external(3, 100, 1_000));
    assert_eq!(run.rows.len(), 1, "none was ever seen: none is due");
    run.see(launch(4, 101, 2_000));
    run.see(without_external(5, 102, 3_000));
    assert_eq!((run.rows.len(), run.pending()), (2, 1), "one is due now");
    run.see(launch(6, 103, 3_500));
    run.see([flushed(4_000)]);
    run.see(launch(7, 104, 5_000));
    assert_eq!(run.rows.len(), 4, "no fence yet");
    run.see([flushed(6_000)]);
    assert_eq!(
        (run.rows.len(), run.pending()),
        (5, 0),
        "its thread's fence came"
    );
    assert_eq!(run.rows[4].binding, Binding::Bound(epoch(5)));
    assert_eq!(run.rows[4].faults, []);
    assert_eq!(run.totals().external_missing, 1);
}

#[test]
fn without_our_callback_the_external_record_binds_and_without_both_the_scope_does() {
    let mut events = launch(3, 100, 1_000);
    events.retain(|event| !matches!(event, Event::Call(_)));
    let run = ended(events.clone());
    assert_eq!(run.row().binding, Binding::Bound(epoch(3)));
    assert_eq!(run.row().sources.callback, None);
    assert_eq!(
        run.row().sources.containment,
        Some(of(3)),
        "by CUPTI's own times"
    );
    assert_eq!(run.totals().bound_by.external_only, 1);

    events.retain(|event| !matches!(event, Event::External(_)));
    let run = ended(events);
    assert_eq!(run.row().binding, Binding::Bound(epoch(3)));
    assert_eq!(run.row().sources.observed(), 0);
    assert_eq!(run.row().sources.reachable, Some(true));
    assert_eq!(run.totals().bound_by.containment_only, 1);
    assert_eq!(
        run.row().call.as_ref().and_then(|call| call.in_boundary),
        None
    );
}

#[test]
fn observed_sources_that_disagree_are_both_kept() {
    let mut events = launch(3, 100, 1_000);
    events[3] = external(4, 100, 1_020);
    events.push(declared(2, 4, 900));
    let run = ended(events);
    let row = run.row();
    assert_eq!(
        row.binding,
        Binding::Disputed(epoch(4), epoch(3)),
        "external, then callback"
    );
    assert_eq!(row.faults, [FaultCode::W03]);
    assert_eq!(
        (row.sources.external, row.sources.callback),
        (Some(of(4)), Some(of(3)))
    );
    assert_eq!(
        (
            run.totals().disputed,
            run.totals().wrong,
            run.totals().bound
        ),
        (1, 1, 0)
    );
}

#[test]
fn another_version_of_the_same_epoch_is_another_epoch() {
    let second = lineage_core::id::LaunchEpoch::from_numbers(3, 2).expect("in range");
    let mut events = launch(3, 100, 1_000);
    events[3] = external_of(PackedEpoch::from(second).bits(), 100, Some(1_020));
    let run = ended(events);
    assert_eq!(run.row().binding, Binding::Disputed(second, epoch(3)));
}

#[test]
fn an_epoch_on_cuptis_stack_while_none_is_current_is_a_disagreement() {
    let mut call = call_of(1, 100, 1_020, NOTHING);
    call.in_boundary = false;
    let run = ended([
        declared(1, 3, 1_000),
        call.into(),
        external(3, 100, 1_020),
        api(1, 100, 1_020),
        kernel(100, 1_050, 1_090),
    ]);
    assert_eq!(run.row().binding, Binding::Lost);
    assert_eq!(run.row().faults, [FaultCode::W03]);
    assert_eq!(
        (run.totals().lost, run.totals().wrong),
        (0, 1),
        "counted by its code"
    );
}

#[test]
fn an_external_id_that_cannot_be_ours_is_w05_and_the_callback_binds() {
    for (bits, what) in [
        (88, Attribution::Foreign(88)),
        (1 << 24, Attribution::Foreign(1 << 24)),
    ] {
        let mut events = launch(3, 100, 1_000);
        events[3] = external_of(bits, 100, Some(1_020));
        let run = ended(events);
        assert_eq!(run.row().binding, Binding::Bound(epoch(3)));
        assert_eq!(run.row().faults, [FaultCode::W05]);
        assert_eq!(run.row().sources.external, Some(what));
        assert_eq!(run.totals().wrong, 1);
    }
}

#[test]
fn an_external_id_of_an_epoch_that_nobody_declared_is_w05() {
    let mut events = launch(3, 100, 1_000);
    events[3] = external(777, 100, 1_020);
    let run = ended(events);
    assert_eq!(run.row().faults, [FaultCode::W03, FaultCode::W05]);
}

#[test]
fn a_callback_that_names_an_epoch_nobody_declared_is_w05_unless_its_record_was_lost() {
    let undeclared = |lost: Option<Event>| {
        let mut events = launch(3, 100, 1_000);
        events.remove(0);
        events.insert(0, declared(1, 2, 990));
        events.extend(lost);
        ended(events).row().faults.clone()
    };
    assert_eq!(undeclared(None), [FaultCode::W05]);
    // Also a gap of another thread may hide the declaration.
    assert_eq!(undeclared(Some(gap(9, 10, 20))), []);
    // One that was retired long ago is known, though nothing else of it is.
    let mut run = Run::new();
    run.see(launch(3, 100, 1_000)).see([retired(3, 1_200)]);
    for ns in [2_000, 3_000, 4_000] {
        run.see([flushed(ns)]);
    }
    run.see([call(1, 101, 5_020, 3), scope(1, 3, 200, 5_010, 5_040)]);
    run.see([api(1, 101, 5_020), kernel(101, 5_050, 5_090)])
        .end();
    assert!(run.rows.iter().all(|row| row.faults.is_empty()));
}

#[test]
fn what_the_driver_launches_for_itself_belongs_to_nobody_whatever_is_around_it() {
    let mut internal = api_of(1, 101, 1_023);
    internal.api = ApiId {
        domain: ApiDomain::Driver,
        cbid: 0,
        name: Some("internal launch".into()),
    };
    internal.end = Some(at(1_025));
    internal.due = OperationsDue::Any;
    let mut events = launch(3, 100, 1_000);
    events.push(runtime_api(1, 99, 1_015, 1_035));
    events.extend([
        external(3, 101, 1_023),
        internal.clone().into(),
        kernel(101, 1_060, 1_070),
    ]);
    // One without an operation.
    internal.correlation = CorrelationId(102);
    events.extend([internal.clone().into(), last_flush(9_000)]);
    let run = ended(events);
    let row_of = |correlation| {
        let of = |row: &&Row| {
            row.call
                .as_ref()
                .is_some_and(|call| call.correlation.0 == correlation)
        };
        run.rows.iter().find(of).expect("given")
    };
    let nobodys = Binding::Unattributed(Unattributed::InternalLaunch);
    assert_eq!(row_of(101).binding, nobodys);
    assert_eq!(row_of(101).sources.external, Some(of(3)), "and it is kept");
    assert_eq!(row_of(102).binding, nobodys);
    assert_eq!(row_of(100).binding, Binding::Bound(epoch(3)));
    assert!(run.rows.iter().all(|row| row.faults.is_empty()));
    assert_eq!(run.totals().unattributed.internal_launch, 2);
    assert_eq!((run.totals().lost, run.totals().wrong), (0, 0));
}

#[test]
fn external_ids_of_other_tools_kinds_say_nothing() {
    let mut events = launch(3, 100, 1_000);
    let Event::External(other) = &mut events[3] else {
        panic!("it is the external record")
    };
    other.own_kind = false;
    let run = ended(events);
    assert_eq!(run.row().sources.external, None);
    assert_eq!(run.row().faults, []);
    assert_eq!(run.totals().external_of_others, 1);
}

#[test]
fn a_call_without_an_epoch_is_lost_on_a_thread_that_has_lineage_events() {
    // The thread received an envelope before.
    let run = ended([
        declared(2, 3, 900),
        sent(2, 1, 3, 910),
        received(1, 1, 3, 950),
        call_of(1, 100, 1_020, NOTHING).into(),
        api(1, 100, 1_020),
        kernel(100, 1_050, 1_090),
    ]);
    assert_eq!(run.row().binding, Binding::Lost);
    assert_eq!(run.row().faults, [FaultCode::L01]);
    assert_eq!(run.totals().lost, 1);
}

#[test]
fn a_call_in_a_boundary_without_an_epoch_is_lost_whatever_the_thread_saw() {
    let reserved = PackedEpoch::BOUNDARY_WITHOUT_EPOCH;
    let run = ended([
        call_of(1, 100, 1_020, reserved.unpack()).into(),
        scope_of(1, reserved.unpack(), 1, 1_010, 1_040).into(),
        external_of(reserved.bits(), 100, Some(1_020)),
        api(1, 100, 1_020),
        kernel(100, 1_050, 1_090),
    ]);
    assert_eq!(run.row().binding, Binding::Lost);
    assert_eq!(run.row().faults, [FaultCode::L01]);
    assert_eq!(
        run.row().sources.external,
        Some(Attribution::BoundaryWithoutEpoch)
    );
}

#[test]
fn work_that_belongs_to_no_epoch_by_nature_is_unattributed_with_the_reason() {
    let plain = |tid| {
        [
            call_of(tid, 100, 1_020, NOTHING).into(),
            api(tid, 100, 1_020),
            kernel(100, 1_050, 1_090),
        ]
    };
    let detached = PackedEpoch::detached(DetachedReason(2));
    let inside_detached = [
        declared(1, 3, 500),
        call_of(1, 100, 1_020, detached.unpack()).into(),
        scope_of(1, detached.unpack(), 1, 1_010, 1_040).into(),
        external_of(detached.bits(), 100, Some(1_020)),
        api(1, 100, 1_020),
        kernel(100, 1_050, 1_090),
    ];
    let before = plain(1).into_iter().chain([declared(1, 3, 5_000)]);
    let foreign = [declared(1, 3, 500)].into_iter().chain(plain(2));
    for (events, why) in [
        (inside_detached.to_vec(), Unattributed::Detached),
        (before.collect(), Unattributed::BeforeFirstDeclaration),
        (foreign.collect(), Unattributed::ForeignThread),
        (plain(1)[1..].to_vec(), Unattributed::NoEpochEvidence),
    ] {
        let run = ended(events);
        assert_eq!(run.row().binding, Binding::Unattributed(why));
        assert_eq!(run.row().faults, [], "{why:?}");
        assert_eq!(run.totals().unattributed.total(), 1);
        assert_eq!(run.totals().lost + run.totals().wrong, 0);
    }
}

#[test]
fn the_innermost_scope_is_the_one_with_the_greatest_token_though_it_ends_last() {
    // Guards that end out of order: 5 was entered first and ends first.
    let run = ended([
        declared(1, 3, 900),
        declared(1, 4, 901),
        call(1, 100, 1_020, 4),
        scope(1, 3, 5, 1_000, 1_040),
        scope(1, 4, 6, 1_010, 1_060),
        external(4, 100, 1_020),
        api(1, 100, 1_020),
        kernel(100, 1_050, 1_090),
    ]);
    let row = run.row();
    assert_eq!(row.sources.containment, Some(of(4)));
    assert_eq!(row.stages.scope_enter.at(), Some(at(1_010)));
    assert_eq!(run.totals().containment_differs, 0);
}

#[test]
fn no_containment_is_inferred_across_a_gap() {
    let around = |not_before, not_after| {
        let mut events = launch(3, 100, 1_000);
        events.insert(2, gap(1, not_before, not_after));
        ended(events)
    };
    // The call is at 1,020, the scope ends at 1,040: an inner scope's record may be lost.
    let run = around(1_030, 1_040);
    assert_eq!(run.row().sources.containment, None);
    assert_eq!(
        run.row().stages.scope_enter,
        Evidence::Unknown { why: Why::Dropped }
    );
    assert_eq!(run.row().binding, Binding::Bound(epoch(3)));
    assert_eq!(run.loose(), [FaultCode::L07]);
    assert_eq!(run.totals().dropped_in_rings, 3);
    assert_eq!(run.totals().faults[FaultCode::L07], 3);
    // Before the call nothing that contains it can have ended.
    assert_eq!(around(900, 1_010).row().sources.containment, Some(of(3)));
}

#[test]
fn what_was_lost_before_a_call_may_have_brought_its_epoch_there() {
    // Declared elsewhere, and no edge to thread 1.
    let unreachable = |extra: Option<Event>| {
        let mut events = launch(3, 100, 1_000);
        events[0] = declared(2, 3, 1_000);
        ended(extra.into_iter().chain(events))
    };
    let run = unreachable(None);
    assert_eq!(run.row().sources.reachable, Some(false));
    assert_eq!(run.row().faults, [], "information, not a fault");
    assert_eq!(run.totals().unreachable, 1);
    assert_eq!(
        unreachable(Some(gap(1, 900, 950))).row().sources.reachable,
        None
    );
    assert_eq!(
        unreachable(Some(received(1, 9, 3, 1_005)))
            .row()
            .sources
            .reachable,
        Some(true)
    );
    assert_eq!(
        unreachable(Some(received(1, 9, 3, 1_025)))
            .row()
            .sources
            .reachable,
        Some(false),
        "later"
    );
}

#[test]
fn an_epoch_is_reachable_by_the_task_it_was_received_in_on_whichever_thread_polls_it() {
    let task = Some(TaskId(40));
    let mut call = call_of(1, 100, 1_020, of(3));
    call.task = task;
    let run = ended([
        declared(2, 3, 900),
        Received {
            handoff: handoff(1, 3),
            thread: thread(5),
            task,
            at: at(950),
        }
        .into(),
        call.clone().into(),
        Scope {
            task,
            ..scope_of(1, of(3), 7, 1_010, 1_040)
        }
        .into(),
        external(3, 100, 1_020),
        api(1, 100, 1_020),
        kernel(100, 1_050, 1_090),
    ]);
    assert_eq!(run.row().sources.reachable, Some(true));
    assert_eq!(run.row().faults, []);
}

#[test]
fn a_call_in_another_task_than_the_one_that_entered_the_scope_is_w02() {
    let in_task = |scope_task: Option<u64>, call_task: Option<u64>| {
        let mut events = launch(3, 100, 1_000);
        let mut call = call_of(1, 100, 1_020, of(3));
        call.task = call_task.map(TaskId);
        events[1] = call.into();
        events[2] = Scope {
            task: scope_task.map(TaskId),
            ..scope_of(1, of(3), 7, 1_010, 1_040)
        }
        .into();
        ended(events).row().faults.clone()
    };
    assert_eq!(in_task(Some(4), Some(5)), [FaultCode::W02]);
    assert_eq!(
        in_task(Some(4), None),
        [FaultCode::W02],
        "left open when the task was not polled"
    );
    assert_eq!(in_task(Some(4), Some(4)), []);
    assert_eq!(
        in_task(None, Some(5)),
        [],
        "a thread's own scope around a runtime"
    );
}

#[test]
fn a_scope_that_ends_after_the_rows_were_given_still_tells_of_another_task() {
    let mut events = launch(3, 100, 1_000);
    let mut call = call_of(1, 100, 1_020, of(3));
    call.task = Some(TaskId(5));
    events[1] = call.into();
    events.remove(2);
    let mut run = Run::new();
    run.see(events);
    assert_eq!(
        (run.rows.len(), run.pending()),
        (0, 1),
        "the scope may end soon"
    );
    run.see([flushed(2_000), flushed(3_000)]);
    let row = run.row();
    assert_eq!(
        (row.faults.as_slice(), row.sources.containment),
        (&[][..], None)
    );
    assert_eq!(
        row.stages.scope_enter,
        Evidence::Unknown { why: Why::Pending }
    );
    run.see([Scope {
        task: Some(TaskId(4)),
        ..scope_of(1, of(3), 7, 1_010, 9_000)
    }
    .into()]);
    assert_eq!(run.loose(), [FaultCode::W02]);
    assert_eq!(
        (run.faults[0].count, run.faults[0].epoch),
        (1, Some(epoch(3)))
    );
    assert_eq!(run.totals().wrong, 1);
}

#[test]
fn work_bound_before_its_declaration_is_w01_by_one_clock() {
    let declared_at = |ns| {
        let mut events = launch(3, 100, 1_000);
        events[0] = declared(1, 3, ns);
        ended(events).row().faults.clone()
    };
    assert_eq!(declared_at(1_021), [FaultCode::W01]);
    assert_eq!(declared_at(1_020), []);
}

#[test]
fn work_bound_after_retirement_is_information() {
    let mut events = vec![retired(3, 1_015)];
    events.extend(launch(3, 100, 1_000));
    let run = ended(events);
    assert!(run.row().after_retirement);
    assert_eq!(run.row().faults, []);
    assert_eq!(run.totals().after_retirement, 1);
}

#[test]
fn ready_is_the_mark_of_this_version_and_only_of_it() {
    let mut events = launch(3, 100, 1_000);
    events.insert(1, marked(1, 3, Mark::Ready, 1_005));
    let run = ended(events);
    let source = TimeSource::Application;
    assert_eq!(
        run.row().stages.ready,
        Evidence::Observed {
            at: at(1_005),
            source
        }
    );
}

#[test]
fn a_scope_that_was_open_at_the_first_launch_has_no_known_beginning() {
    let outer = Scope {
        boundary: false,
        pushed: false,
        ..scope_of(1, of(3), 1, 1_020, 1_400)
    };
    let mut call = call_of(1, 100, 1_020, of(3));
    call.in_boundary = false;
    let run = ended([
        declared(1, 3, 900),
        call.into(),
        outer.into(),
        api(1, 100, 1_020),
        kernel(100, 1_050, 1_090),
    ]);
    assert_eq!(
        run.row().stages.scope_enter,
        Evidence::Bounded {
            not_before: None,
            not_after: Some(at(1_020)),
            rule: Rule::OpenAtFirstLaunch,
        }
    );
}

#[test]
fn misuse_of_the_interface_is_a_fault_of_no_row() {
    let misuse = |kind| {
        Event::from(Misuse {
            kind,
            thread: thread(1),
            attribution: of(3),
            value: 9,
            at: at(1_000),
        })
    };
    let run = ended([
        misuse(MisuseKind::ScopeUnbalanced),
        misuse(MisuseKind::ScopeLeaked),
        misuse(MisuseKind::ScopeAcrossTasks),
        misuse(MisuseKind::ForeignExternalId),
    ]);
    use FaultCode::{W05, W07};
    assert_eq!(run.loose(), [W07, W07, W07, W05]);
    assert_eq!((run.totals().faults[W07], run.totals().faults[W05]), (3, 1));
    assert_eq!(run.totals().wrong, 0, "no join is wrong by it");
}

#[test]
fn processes_are_never_mixed() {
    use lineage_core::id::ProcessOrdinal;
    use lineage_core::observation::Observation;
    let mut run = Run::new();
    for process in [0, 1] {
        for event in launch(3 + process, 100, 1_000) {
            let process = ProcessOrdinal(process as u32);
            run.observe(&Observation { process, event });
        }
    }
    run.end();
    let bound: Vec<Binding> = run.rows.iter().map(|row| row.binding).collect();
    assert_eq!(bound, [Binding::Bound(epoch(3)), Binding::Bound(epoch(4))]);
    assert_eq!(run.totals().duplicates, 0);
}
