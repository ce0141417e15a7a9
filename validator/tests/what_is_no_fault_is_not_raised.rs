//! What looks like a loss or a contradiction and is none.

mod recording;

use lineage_core::fault::FaultCode;
use lineage_core::id::*;
use lineage_core::observation::*;
use recording::*;

/// A sound recording with one more launch, of id 4, and one after it.
fn with(launch: &Launch) -> Recording {
    let mut recording = Recording::sound();
    recording.launch(launch);
    recording.launch(&Launch {
        token: 5, // the next one
        ..Launch::of(epoch(1), 10, 9, 60_000)
    });
    recording.ended()
}

fn childless(due: OperationsDue, result: u32) -> Launch {
    Launch {
        due,
        result,
        operations: Vec::new(),
        ..Launch::of(epoch(1), 10, 4, 4_000)
    }
}

#[test]
fn a_captured_call_has_no_operation() {
    let mut recording = Recording::sound();
    let launch = childless(OperationsDue::None, 0);
    // Our callback saw the capture; CUPTI's record only knows the function.
    recording.saw(launch.call().expect("seen"));
    recording.saw(launch.scope().expect("seen"));
    recording.saw(ApiRecord {
        due: OperationsDue::One,
        ..launch.record()
    });
    recording.launch(&Launch::of(epoch(1), 10, 9, 60_000));
    let validation = none(&recording.ended());
    assert_eq!(validation.counts.without_operation_due, 1);
    assert_eq!(validation.counts.launch_without_activity, 0);
}

#[test]
fn a_failed_call_has_no_operation() {
    let validation = none(&with(&childless(OperationsDue::One, 700)));
    let counts = &validation.counts;
    assert_eq!(
        (counts.failed_calls, counts.launch_without_activity),
        (1, 1)
    );
}

#[test]
fn an_empty_copy_may_have_no_operation() {
    let validation = none(&with(&childless(OperationsDue::Any, 0)));
    assert_eq!(validation.counts.maybe_without_operation, 1);
}

#[test]
fn a_call_above_the_largest_operation_is_the_edge_of_the_recording() {
    let mut recording = Recording::sound();
    recording.launch(&childless(OperationsDue::One, 0));
    let validation = none(&recording.ended());
    assert_eq!(validation.counts.after_recording, 1);
}

#[test]
fn an_operation_below_the_smallest_call_is_the_edge_of_the_recording() {
    let mut recording = Recording::new();
    recording.thread(10, 50);
    recording.declare(1, 10, 100);
    recording.saw(kernel(40, 500, 600));
    recording.launch(&Launch::of(epoch(1), 10, 41, 1_000));
    let validation = none(&recording.ended());
    let counts = &validation.counts;
    assert_eq!(
        (counts.before_recording, counts.activity_without_launch),
        (1, 1)
    );
}

#[test]
fn an_operation_above_the_largest_call_is_the_edge_of_the_recording() {
    let mut recording = Recording::sound();
    recording.saw(kernel(4, 5_000, 6_000));
    let validation = none(&recording.ended());
    let counts = &validation.counts;
    assert_eq!(
        (
            counts.operations_after_recording,
            counts.activity_without_launch,
            counts.lost
        ),
        (1, 1, 0)
    );
}

#[test]
fn the_edge_before_a_wrap_is_seen_across_it() {
    // The recording begins just after the ids wrapped.
    let mut recording = Recording::new();
    recording.thread(10, 50);
    recording.declare(1, 10, 100);
    recording.saw(kernel(u32::MAX - 1, 500, 600));
    recording.launch(&Launch::of(epoch(1), 10, 3, 1_000));
    assert_eq!(none(&recording.ended()).counts.before_recording, 1);
}

#[test]
fn a_pageable_copy_to_the_device_may_end_after_its_call() {
    for kind in ["HtoD", "Memcpy HtoD (Pageable -> Device)"] {
        none(&with(&Launch {
            function: "cuMemcpyHtoD_v2",
            operations: vec![copy(4, kind, 4_500, 20_000)],
            ..Launch::of(epoch(1), 10, 4, 4_000)
        }));
    }
}

#[test]
fn an_asynchronous_copy_may_end_after_its_call() {
    none(&with(&Launch {
        function: "cuMemcpyDtoHAsync_v2",
        operations: vec![copy(4, "DtoH", 4_500, 20_000)],
        ..Launch::of(epoch(1), 10, 4, 4_000)
    }));
}

#[test]
fn a_kernel_may_begin_before_its_call_returns_and_within_the_clocks_error_before_it() {
    for start in [4_050, 3_000] {
        none(&with(&Launch {
            operations: vec![kernel(4, start, 5_500)],
            ..Launch::of(epoch(1), 10, 4, 4_000)
        }));
    }
}

#[test]
fn what_is_not_behind_its_threads_fence_is_pending() {
    let lost = childless(OperationsDue::One, 0);
    let mut recording = Recording::sound();
    recording.launch(&lost);
    recording.launch(&Launch::of(epoch(1), 10, 5, 5_000));
    let flush = |recording: &mut Recording, asked: u64| {
        recording.saw(Flushed {
            session: 1,
            asked: at(asked),
            returned: at(asked + 100),
            last: false,
        });
    };
    assert_eq!(none(&recording).counts.pending, 1, "nothing was flushed");
    flush(&mut recording, 10_000);
    assert_eq!(
        none(&recording).counts.pending,
        1,
        "no later record of the thread"
    );
    recording.launch(&Launch::of(epoch(1), 11, 6, 20_000));
    assert_eq!(
        none(&recording).counts.pending,
        1,
        "a later record of another thread"
    );
    let mut late = recording.clone();
    late.launch(&Launch::of(epoch(1), 10, 7, 9_000));
    assert_eq!(
        none(&late).counts.pending,
        1,
        "a record from before the flush"
    );
    recording.launch(&Launch::of(epoch(1), 10, 7, 20_000));
    let validation = only(&recording, FaultCode::L03, 1);
    assert_eq!(validation.counts.pending, 0);
}

#[test]
fn an_operation_whose_call_may_still_come_is_pending() {
    let mut recording = Recording::sound();
    recording.saw(kernel(4, 5_000, 6_000));
    let validation = none(&recording);
    assert_eq!(
        (
            validation.counts.pending,
            validation.counts.activity_without_launch
        ),
        (1, 1)
    );
}

#[test]
fn work_that_belongs_to_nobody_is_unattributed() {
    let detached = PackedEpoch::detached(DetachedReason(2));
    let warm_up = Launch {
        callback: Some(detached.unpack()),
        external: Some(detached.bits()),
        scope: Some(detached.unpack()),
        ..Launch::of(epoch(1), 10, 4, 4_000)
    };
    let in_scope_only = Launch {
        callback: None,
        external: None,
        ..warm_up.clone()
    };
    for launch in [warm_up, in_scope_only] {
        let validation = none(&with(&launch));
        assert_eq!(validation.counts.unattributed["detached"], 1);
    }

    let helper = none(&with(&Launch::of_none(77, 4, 4_000)));
    assert_eq!(helper.counts.unattributed["foreign_thread"], 1);

    let mut recording = Recording::sound();
    recording.launch(&Launch::of_none(10, 0x7fff_ffff, 60));
    let early = recording.ended().validated();
    assert_eq!(early.counts.unattributed["before_first_declaration"], 1);

    let mut recording = Recording::sound();
    recording.saw(kernel(0, 5_000, 6_000));
    let internal = none(&recording.ended());
    assert_eq!(internal.counts.unattributed["internal_launch"], 1);
    // Counted as without a call, as it is, and why.
    assert_eq!(internal.counts.activity_without_launch, 1);
    assert_eq!(internal.counts.asked_for_by_no_call, 1);
}

#[test]
fn a_thread_that_only_ever_launched_never_saw_lineage() {
    // Its ring is made when its first call is recorded: after that call was entered.
    let mut recording = Recording::sound();
    recording.saw(ThreadStarted {
        thread: thread(77),
        name: None,
        at: at(4_010),
    });
    recording.launch(&Launch::of_none(77, 4, 4_000));
    recording.launch(&Launch::of_none(77, 5, 5_000));
    recording.launch(&Launch::of(epoch(1), 10, 9, 60_000));
    let validation = none(&recording.ended());
    assert_eq!(validation.counts.unattributed["foreign_thread"], 2);
}

#[test]
fn a_recording_without_any_epoch_has_no_epochs_to_lose() {
    let mut recording = Recording::new();
    recording.launch(&Launch {
        callback: None,
        ..Launch::of_none(10, 1, 1_000)
    });
    let validation = none(&recording.ended());
    assert_eq!(validation.counts.unattributed["no_epoch_evidence"], 1);
    assert_eq!(validation.counts.joined_kernels, 1);
}

#[test]
fn a_cancelled_epoch_and_one_that_went_on_under_another_need_no_launch() {
    let mut recording = Recording::sound();
    recording.declare(2, 10, 150);
    recording.saw(Marked {
        epoch: epoch(2),
        mark: Mark::Cancelled,
        thread: thread(10),
        at: at(200),
    });
    recording.retire(2, 300);
    recording.declare(3, 10, 150);
    recording.saw(Retired {
        epoch: epoch(3),
        how: RetiredAs::Cancelled,
        at: at(300),
    });
    // A request in a batch, and the batch launches.
    recording.declare(4, 10, 150);
    recording.declare(5, 10, 160);
    recording.link(5, LinkKind::Merge, 4, 161);
    recording.retire(4, 50_000);
    recording.retire(5, 51_000);
    recording.launch(&Launch::of(epoch(5), 10, 9, 40_000));
    none(&recording.ended());
}

#[test]
fn a_member_whose_batch_never_launched_is_named_with_its_batch() {
    let mut recording = Recording::sound();
    recording.declare(4, 10, 150);
    recording.declare(5, 10, 160);
    recording.link(5, LinkKind::Merge, 4, 161);
    recording.retire(4, 50_000);
    let under_way = none(&recording.clone().ended());
    assert_eq!(under_way.counts.not_decidable, 1, "the batch lives");
    recording.retire(5, 51_000);
    let validation = only(&recording.ended(), FaultCode::L04, 1);
    let finding = validation.faults[0].to_string();
    assert!(finding.contains("epoch 4.1"), "{finding}");
    assert!(finding.contains("went on in  5.1"), "{finding}");
}

#[test]
fn an_epoch_that_ended_where_it_was_declared_is_only_counted() {
    let mut recording = Recording::sound();
    // An early return.
    recording.declare(2, 10, 150);
    recording.retire(2, 95_000);
    // Its carrier was dropped with its work.
    recording.declare(3, 10, 150);
    recording.send(1, 3, 10, 200);
    let handoff = recording.handoff(1, 3);
    recording.saw(Abandoned {
        handoff,
        at: at(300),
    });
    recording.retire(3, 95_000);
    let validation = none(&recording.clone().ended());
    assert_eq!(validation.counts.ended_without_gpu_work, 2);
    assert_eq!(validation.counts.not_decidable, 0);

    let mut stepped = recording.clone();
    stepped.saw(Stepped {
        epoch: version(2, 2),
        thread: thread(10),
        at: at(200),
    });
    only(&stepped.ended(), FaultCode::L04, 1);
    for (boundary, without_work) in [(true, 1), (false, 2)] {
        let mut entered = recording.clone();
        let scope = Launch::of(epoch(2), 10, 4, 500)
            .scope()
            .expect("it has one");
        entered.saw(Scope { boundary, ..scope });
        let validation = lineage_validator::validate(
            &entered.ended().observations,
            None,
            &lineage_validator::Options::default(),
        );
        assert_eq!(validation.counts.ended_without_gpu_work, without_work);
    }
}

#[test]
fn what_a_gap_may_have_swallowed_is_not_missed() {
    for (until, missed) in [
        (Some(149), vec![(FaultCode::L04, 1), (FaultCode::L05, 1)]),
        (Some(160), vec![(FaultCode::L05, 1)]),
        (Some(200), vec![]),
        (None, vec![]),
    ] {
        let mut recording = Recording::sound();
        recording.declare(2, 10, 150);
        recording.send(1, 2, 10, 200);
        recording.retire(2, 95_000);
        recording.saw(Gap {
            thread: thread(11),
            count: 1,
            not_before: None,
            not_after: until.map(at),
        });
        let mut codes = recording.ended().codes();
        codes.retain(|(code, _)| *code != FaultCode::L07);
        assert_eq!(codes, missed, "{until:?}");
    }
}

#[test]
fn an_epoch_is_no_loss_where_its_launch_could_not_have_been_seen() {
    // No device session at all.
    let mut recording = Recording::default();
    recording.declare(2, 10, 150);
    recording.retire(2, 300);
    assert_eq!(none(&recording).counts.not_decidable, 1);
    // The device session began after the declaration.
    let mut recording = Recording::new();
    recording.declare(2, 10, 5);
    recording.retire(2, 300);
    assert_eq!(none(&recording.ended()).counts.not_decidable, 1);
    // The flush that would bring the launch has not returned.
    let mut recording = Recording::new();
    recording.declare(2, 10, 150);
    recording.retire(2, 300);
    assert_eq!(none(&recording).counts.not_decidable, 1);
}

#[test]
fn a_carrier_that_is_under_way_or_was_dropped_with_its_work_is_not_lost() {
    let mut recording = Recording::new();
    recording.thread(10, 50);
    recording.declare(1, 10, 100);
    recording.send(1, 1, 10, 200);
    recording.launch(&Launch::of(epoch(1), 10, 9, 40_000));
    let validation = none(&recording.clone().ended());
    assert_eq!(
        (
            validation.counts.handoffs,
            validation.counts.handoffs_under_way
        ),
        (1, 1)
    );

    let handoff = recording.handoff(1, 1);
    recording.saw(Abandoned {
        handoff,
        at: at(300),
    });
    recording.retire(1, 90_000);
    assert_eq!(none(&recording.ended()).counts.handoffs_under_way, 0);
}

#[test]
fn work_queued_before_its_epoch_was_retired_still_belongs_to_it() {
    let mut recording = Recording::new();
    recording.thread(10, 50);
    recording.declare(1, 10, 100);
    recording.retire(1, 900);
    recording.launch(&Launch::of(epoch(1), 10, 9, 1_000));
    let validation = none(&recording.ended());
    assert_eq!(
        (validation.counts.bound, validation.counts.after_retirement),
        (1, 1)
    );
}

#[test]
fn nothing_follows_from_an_absence_where_records_are_known_to_be_lost() {
    let mut recording = Recording::sound();
    recording.declare(2, 10, 150);
    recording.retire(2, 95_000);
    recording.send(1, 1, 10, 200);
    recording.launch(&Launch::of(epoch(9), 10, 4, 4_000));
    recording.saw(Gap {
        thread: thread(11),
        count: 1,
        not_before: None,
        not_after: None,
    });
    let validation = only(&recording.ended(), FaultCode::L07, 1);
    assert_eq!(validation.counts.not_decidable, 2);
    assert_eq!(validation.counts.epochs_unknown, 1);
}

#[test]
fn scopes_from_before_the_thread_launched_have_no_records() {
    // Tokens 1 to 6 were scopes of its life before; 7 was open at the first launch.
    let mut recording = Recording::new();
    recording.thread(10, 50);
    recording.declare(1, 10, 100);
    let mut launch = Launch::of(epoch(1), 10, 1, 1_000);
    launch.token = 7;
    recording.launch(&launch);
    recording.saw(ThreadEnded {
        thread: thread(10),
        at: at(80_000),
    });
    none(&recording.ended());
}

#[test]
fn a_recording_of_nothing_is_sound() {
    let validation = none(&Recording::default());
    assert_eq!(validation.counts, lineage_validator::Counts::default());
}
