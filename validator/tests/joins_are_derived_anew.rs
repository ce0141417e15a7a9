//! The hard cases of a join, each calculated by hand.

mod recording;

use lineage_core::fault::FaultCode;
use lineage_core::id::*;
use lineage_core::observation::*;
use lineage_validator::{TruthOperation, TruthScore};
use recording::*;

/// Of each operation, by the id of its call, the number of its epoch.
fn score(recording: &Recording, expected: &[(u32, u64)]) -> TruthScore<u64> {
    let truth: Vec<_> = expected
        .iter()
        .map(|&(correlation, id)| TruthOperation::of_call(CorrelationId(correlation), id))
        .collect();
    let validation = recording.validated();
    validation.against_truth(&truth, |epoch| [epoch.id.get()])
}

#[track_caller]
fn all_right(recording: &Recording, expected: &[(u32, u64)]) {
    let score = score(recording, expected);
    assert_eq!(
        (score.right, score.is_right()),
        (expected.len() as u64, true),
        "{score}"
    );
}

/// A runtime call around a driver call, with ids of their own or with the same.
fn nested(runtime: u32, driver: u32, of: u32, called: u64) -> Vec<Event> {
    let launch = Launch::of(epoch(1), 10, driver, called);
    let external = |correlation: u32| ExternalRecord {
        correlation: CorrelationId(correlation),
        beside: None,
        ..launch.external().expect("in a boundary")
    };
    vec![
        launch.call().expect("seen").into(),
        external(driver).into(),
        launch.record().into(),
        external(runtime).into(),
        ApiRecord {
            api: api(ApiDomain::Runtime, "cudaLaunchKernel_v7000"),
            correlation: CorrelationId(runtime),
            start: Some(at(called - 50)),
            end: Some(at(called + 150)),
            ..launch.record()
        }
        .into(),
        kernel(of, called + 1_000, called + 2_000).into(),
    ]
}

#[test]
fn a_runtime_call_and_its_driver_call_are_one_call_whatever_their_ids() {
    // The same id; different ids with the kernel on the driver's; on the runtime's.
    for (runtime, driver, of) in [(20, 20, 20), (20, 21, 21), (20, 21, 20)] {
        let mut recording = Recording::new();
        recording.thread(10, 50);
        recording.declare(1, 10, 100);
        for event in nested(runtime, driver, of, 1_000) {
            recording.saw(event);
        }
        let after = Launch {
            scope: None,
            ..Launch::of(epoch(1), 10, 30, 5_000)
        };
        recording.launch(&after);
        let recording = recording.ended();
        let validation = none(&recording);
        assert_eq!(validation.counts.calls, 2);
        assert_eq!(validation.counts.joined_kernels, 2);
        assert_eq!(validation.counts.launch_without_activity, 0);
        all_right(&recording, &[(of, 1), (30, 1)]);
    }
}

#[test]
fn two_runtime_calls_one_after_the_other_stay_two() {
    let mut recording = Recording::new();
    recording.thread(10, 50);
    recording.declare(1, 10, 100);
    for (first, called) in [(20, 1_000), (22, 2_000)] {
        for event in nested(first, first + 1, first + 1, called) {
            recording.saw(event);
        }
    }
    let validation = none(&recording.ended());
    assert_eq!(
        (validation.counts.calls, validation.counts.joined_kernels),
        (2, 2)
    );
}

#[test]
fn ids_that_wrap_keep_their_calls_apart() {
    // The same wire id is used before and after the ids went once around.
    let mut recording = Recording::new();
    recording.thread(10, 50);
    recording.declare(1, 10, 100);
    recording.declare(2, 10, 101);
    let mut token = 0;
    let mut launch = |recording: &mut Recording, id: u64, correlation: u32, called: u64| {
        token += 1;
        let launch = Launch {
            token,
            ..Launch::of(epoch(id), 10, correlation, called)
        };
        recording.launch(&launch);
    };
    launch(&mut recording, 1, 7, 1_000);
    launch(&mut recording, 1, 0x7000_0000, 10_000);
    launch(&mut recording, 1, 0xe000_0000, 20_000);
    launch(&mut recording, 2, u32::MAX, 30_000);
    launch(&mut recording, 2, 1, 40_000);
    launch(&mut recording, 2, 7, 50_000);
    let recording = recording.ended();
    none(&recording);
    let operation = |correlation, ordinal, label| TruthOperation {
        ordinal,
        ..TruthOperation::of_call(CorrelationId(correlation), label)
    };
    let truth = [
        operation(7, 0, 1),
        operation(u32::MAX, 0, 2),
        operation(0x7000_0000, 0, 1),
        operation(7, 1, 2),
    ];
    let score = recording
        .validated()
        .against_truth(&truth, |epoch| [epoch.id.get()]);
    assert!(score.is_right(), "{score}");
}

#[test]
fn the_order_in_which_records_come_does_not_matter() {
    let recording = Recording::sound().ended();
    let forwards = none(&recording);
    let mut backwards = recording.clone();
    backwards.observations.reverse();
    assert_eq!(none(&backwards).counts, forwards.counts);
}

#[test]
fn processes_never_mix() {
    // Two processes with the same ids, threads and epochs, of which the second lost its kernels.
    let mut recording = Recording::sound().ended();
    recording.in_process(1);
    let second = Recording::sound().ended().without(
        |event| matches!(event, Event::Operation(of) if of.correlation != CorrelationId(3)),
    );
    for observation in second.observations {
        recording.saw(observation.event);
    }
    let validation = only(&recording, FaultCode::L03, 2);
    assert!(
        validation
            .faults
            .iter()
            .all(|finding| finding.process == ProcessOrdinal(1))
    );
    assert_eq!(
        (validation.counts.kernels, validation.counts.joined_kernels),
        (4, 4)
    );
}

#[test]
fn sessions_of_one_process_never_mix() {
    // The second session counts its ids from 1 again; our own callback does not say its session.
    let mut recording = Recording::sound();
    recording.end(1, 100_000);
    recording.saw(DeviceSession::Started {
        session: 2,
        version: 28,
        at: at(200_000),
        external_correlation: None,
    });
    recording.declare(2, 10, 200_100);
    for number in 1..=2 {
        let called = 200_000 + u64::from(number) * 1_000;
        let mut launch = Launch {
            session: 2,
            token: u64::from(number) + 3,
            ..Launch::of(epoch(2), 10, number, called)
        };
        for operation in &mut launch.operations {
            operation.session = 2;
        }
        recording.launch(&launch);
    }
    recording.end(2, 300_000);
    let validation = none(&recording);
    assert_eq!((validation.counts.calls, validation.counts.bound), (5, 5));
    let truth = |session, label| TruthOperation {
        session: Some(session),
        ..TruthOperation::of_call(CorrelationId(1), label)
    };
    let score = validation.against_truth(&[truth(1, 1), truth(2, 2)], |epoch| [epoch.id.get()]);
    assert!(score.is_right(), "{score}");
}

#[test]
fn a_tid_that_is_borne_again_is_another_thread() {
    // Thread 10 used lineage and ended; a helper thread of the same id launches later.
    let mut recording = Recording::sound();
    recording.saw(ThreadEnded {
        thread: thread(10),
        at: at(30_000),
    });
    recording.launch(&Launch {
        callback: None,
        ..Launch::of_none(10, 4, 40_000)
    });
    let validation = none(&recording.ended());
    assert_eq!(validation.counts.unattributed["foreign_thread"], 1);
}

#[test]
fn one_source_alone_binds_a_launch_and_is_counted_as_that() {
    let launch = Launch::of(epoch(1), 10, 4, 4_000);
    let cases = [
        Launch {
            external: None,
            in_boundary: false,
            ..launch.clone()
        },
        Launch {
            callback: None,
            ..launch.clone()
        },
        Launch {
            callback: None,
            external: None,
            ..launch
        },
    ];
    for (number, launch) in cases.iter().enumerate() {
        let mut recording = Recording::sound();
        recording.launch(launch);
        let recording = recording.ended();
        let counts = none(&recording).counts;
        let by = [
            counts.bound_by_callback_only,
            counts.bound_by_external_only,
            counts.bound_by_containment,
        ];
        let mut expected = [0; 3];
        expected[number] = 1;
        assert_eq!((by, counts.bound), (expected, 4));
        all_right(&recording, &[(4, 1)]);
    }
}

#[test]
fn the_innermost_scope_counts_also_where_scopes_end_out_of_order() {
    let mut recording = Recording::sound();
    recording.declare(2, 10, 200);
    let scope = |token, id, entered, exited| Scope {
        thread: thread(10),
        attribution: Attribution::Epoch(epoch(id)),
        token: ScopeToken(token),
        entered: at(entered),
        exited: at(exited),
        task: None,
        boundary: false,
        pushed: false,
    };
    // 5 is inside 4 and outlives it: the call at 20,000 is in 5, though 4 encloses it as well.
    recording.saw(scope(4, 1, 10_000, 30_000));
    recording.saw(scope(5, 2, 15_000, 40_000));
    let bare = |correlation, called| Launch {
        callback: None,
        external: None,
        scope: None,
        ..Launch::of(epoch(1), 10, correlation, called)
    };
    recording.launch(&bare(14, 12_000));
    recording.launch(&bare(15, 20_000));
    recording.launch(&bare(16, 35_000));
    let recording = recording.ended();
    none(&recording);
    all_right(&recording, &[(14, 1), (15, 2), (16, 2)]);
}

#[test]
fn no_containment_is_inferred_across_a_gap_or_a_scope_without_end() {
    let bare = Launch {
        callback: None,
        external: None,
        ..Launch::of(epoch(1), 10, 4, 10_000)
    };
    let mut gap = Recording::sound();
    gap.launch(&bare);
    gap.saw(Gap {
        thread: thread(10),
        count: 1,
        not_before: Some(at(9_950)),
        not_after: Some(at(10_150)),
    });
    assert_eq!(
        gap.ended().codes(),
        [(FaultCode::L01, 1), (FaultCode::L07, 1)]
    );

    // Scope 5 was entered inside of 4 and has no record: it may have been the current one.
    let mut hole = Recording::sound();
    hole.launch(&bare);
    hole.launch(&Launch {
        token: 6,
        ..Launch::of(epoch(1), 10, 5, 20_000)
    });
    only(&hole.ended(), FaultCode::L01, 1);
}

#[test]
fn reach_is_by_handoffs_to_the_thread_or_the_task() {
    // (received on thread, called on thread, in task, declared in task) → reachable
    let reach_seen = |seen: bool,
                      received_on: Option<u64>,
                      called_on: u64,
                      task: Option<u64>,
                      declared_in: Option<u64>| {
        let mut recording = Recording::new();
        recording.thread(10, 50);
        recording.thread(11, 50);
        recording.declare_in(1, 10, declared_in, 100);
        if let Some(tid) = received_on {
            recording.send(1, 1, 10, 200);
            recording.receive(1, 1, tid, 300);
        }
        let launch = Launch::of(epoch(1), called_on, 1, 1_000);
        recording.launch(&Launch {
            task,
            // A boundary that no task entered says nothing of polling.
            scope: None,
            callback: launch.callback.filter(|_| seen),
            ..launch
        });
        let counts = none(&recording.ended()).counts;
        (counts.reachable, counts.unreachable, counts.reach_unknown)
    };
    let reach = |received_on, called_on, task, declared_in| {
        reach_seen(true, received_on, called_on, task, declared_in)
    };
    assert_eq!(reach(None, 10, None, None), (1, 0, 0), "declared there");
    assert_eq!(
        reach(None, 11, None, None),
        (0, 1, 0),
        "nothing brought it there"
    );
    assert_eq!(reach(Some(11), 11, None, None), (1, 0, 0), "received there");
    assert_eq!(
        reach(None, 11, Some(5), Some(5)),
        (1, 0, 0),
        "the task moved to another thread"
    );
    assert_eq!(reach(None, 11, Some(6), Some(5)), (0, 1, 0), "another task");
    assert_eq!(
        reach(None, 11, None, Some(5)),
        (0, 1, 0),
        "called by no task: a stale cell"
    );
    assert_eq!(
        reach_seen(false, None, 11, None, Some(5)),
        (0, 0, 1),
        "only CUPTI saw the call, so its task is not known"
    );
}

/// `future.instrument(span)` and `tokio::spawn`: the span's scope is entered by the task that was
/// spawned, on a thread that no handoff was made to.
#[test]
fn an_epoch_that_a_task_polls_on_a_thread_came_there_with_the_task() {
    let reach = |scope_epoch, scope_task| {
        let mut recording = Recording::new();
        recording.thread(10, 50);
        recording.thread(11, 50);
        recording.declare(1, 10, 100);
        recording.declare(2, 10, 110);
        recording.launch(&Launch {
            task: Some(7),
            scope_task,
            scope: Some(Attribution::Epoch(epoch(scope_epoch))),
            ..Launch::of(epoch(1), 11, 1, 1_000)
        });
        recording.launch(&Launch::of(epoch(2), 10, 2, 5_000));
        let counts = recording.ended().validated().counts;
        (counts.reachable, counts.unreachable)
    };
    assert_eq!(reach(1, Some(7)), (2, 0), "polled there");
    assert_eq!(reach(1, Some(8)), (1, 1), "polled there by another task");
    assert_eq!(reach(2, Some(7)), (1, 1), "another epoch was polled there");
}

#[test]
fn who_steps_an_epoch_has_it_in_hand_and_a_gap_may_hide_that_it_came() {
    let reach = |change: &dyn Fn(&mut Recording)| {
        let mut recording = Recording::new();
        recording.thread(10, 50);
        recording.thread(11, 50);
        recording.declare(1, 10, 100);
        change(&mut recording);
        recording.launch(&Launch::of(epoch(1), 11, 1, 1_000));
        let counts = recording.ended().validated().counts;
        (counts.reachable, counts.unreachable, counts.reach_unknown)
    };
    let step = |tid| {
        move |recording: &mut Recording| {
            recording.saw(Stepped {
                epoch: version(1, 2),
                thread: thread(tid),
                at: at(500),
            });
        }
    };
    assert_eq!(reach(&step(11)), (1, 0, 0));
    assert_eq!(reach(&step(10)), (0, 1, 0));
    let gap = |tid, not_before| {
        move |recording: &mut Recording| {
            recording.saw(Gap {
                thread: thread(tid),
                count: 1,
                not_before: Some(at(not_before)),
                not_after: Some(at(not_before + 50)),
            });
        }
    };
    assert_eq!(reach(&gap(11, 500)), (0, 0, 1), "lost before the call");
    assert_eq!(reach(&gap(11, 1_500)), (0, 1, 0), "lost after it");
    assert_eq!(reach(&gap(10, 500)), (0, 1, 0), "lost elsewhere");
}

#[test]
fn what_the_driver_launches_for_itself_belongs_to_nobody_whatever_is_around_it() {
    let mut recording = Recording::sound();
    recording.launch(&Launch::of(epoch(1), 10, 8, 40_000));
    recording.internal_launch(9, 40_040);
    recording.saw(kernel(9, 45_000, 46_000));
    recording.internal_launch(11, 40_070);
    let validation = none(&recording.ended());
    let counts = validation.counts;
    assert_eq!(counts.unattributed["internal_launch"], 2);
    assert_eq!((counts.bound, counts.joined_kernels), (4, 5));
}

#[test]
fn an_epoch_that_continues_another_lives_where_that_one_did() {
    let mut recording = Recording::sound();
    recording.link(2, LinkKind::Continues, 1, 500);
    recording.launch(&Launch::of(epoch(2), 10, 4, 4_000));
    let counts = none(&recording.ended()).counts;
    assert_eq!((counts.reachable, counts.unreachable), (4, 0));
}

#[test]
fn a_circle_of_links_ends() {
    let mut recording = Recording::sound();
    recording.link(2, LinkKind::Continues, 1, 500);
    recording.link(1, LinkKind::Continues, 2, 500);
    recording.launch(&Launch::of(epoch(2), 11, 4, 4_000));
    recording.launch(&Launch {
        callback: Some(Attribution::Epoch(epoch(2))),
        ..Launch::of(epoch(1), 10, 5, 5_000)
    });
    let validation = only(&recording.ended(), FaultCode::W03, 1);
    assert!(!validation.to_string().is_empty());
}

#[test]
fn records_that_are_there_twice_are_counted_once() {
    let mut recording = Recording::sound();
    let twice: Vec<_> = recording
        .observations
        .iter()
        .filter(|observation| matches!(observation.event, Event::Api(_) | Event::Operation(_)))
        .cloned()
        .collect();
    recording.observations.extend(twice);
    let counts = none(&recording.ended()).counts;
    assert_eq!(
        (counts.calls, counts.kernels, counts.duplicate_records),
        (3, 3, 6)
    );
}

#[test]
fn a_record_without_a_time_joins_if_one_call_has_its_id() {
    let mut recording = Recording::sound();
    let launch = Launch::of(epoch(1), 10, 4, 4_000);
    recording.launch(&Launch {
        record: false,
        ..launch.clone()
    });
    recording.saw(ApiRecord {
        start: None,
        end: None,
        ..launch.record()
    });
    assert_eq!(none(&recording.ended()).counts.calls, 4);

    // An operation without times, too.
    let mut recording = Recording::sound();
    recording.launch(&Launch {
        operations: vec![Operation {
            start: None,
            end: None,
            ..kernel(4, 0, 0)
        }],
        ..launch
    });
    all_right(&recording.ended(), &[(4, 1)]);
}

#[test]
fn external_ids_of_other_tools_kinds_are_left_alone() {
    let mut recording = Recording::sound();
    recording.saw(ExternalRecord {
        session: 1,
        kind: 3,
        own_kind: false,
        external_id: 88,
        correlation: CorrelationId(1),
        beside: None,
    });
    assert_eq!(none(&recording.ended()).counts.external_of_other_tools, 1);
}

#[test]
fn truth_tells_what_no_source_can() {
    // Two envelopes were swapped: every source agrees, and each launch is the other's.
    let mut recording = Recording::new();
    recording.thread(10, 50);
    recording.declare(1, 10, 100);
    recording.declare(2, 10, 101);
    recording.launch(&Launch::of(epoch(2), 10, 1, 1_000));
    recording.launch(&Launch::of(epoch(1), 10, 2, 2_000));
    recording.launch(&Launch {
        external: None,
        ..Launch::of_none(77, 3, 3_000)
    });
    let recording = recording.ended();
    none(&recording);
    let score = score(&recording, &[(1, 1), (2, 2), (3, 2), (9, 1)]);
    assert_eq!((score.right, score.lost, score.wrong), (0, 2, 2));
    let text = score.to_string();
    assert!(
        text.contains("operation 0 of call 1, whose label is 1, is bound to epoch 2.1"),
        "{text}"
    );
    assert!(
        text.contains("operation 0 of call 3, whose label is 2, is bound to no epoch"),
        "{text}"
    );
    assert!(
        text.contains("operation 0 of call 9, whose label is 1, was not recorded"),
        "{text}"
    );

    let nobodys = [TruthOperation {
        label: None,
        ..TruthOperation::of_call(CorrelationId(3), 0)
    }];
    assert!(
        recording
            .validated()
            .against_truth(&nobodys, |epoch| [epoch.id.get()])
            .is_right()
    );
}
