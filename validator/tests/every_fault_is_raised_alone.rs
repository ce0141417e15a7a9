//! Of each code a recording in which it is the only fault. Each begins as a sound one.

mod recording;

use lineage_core::fault::FaultCode::*;
use lineage_core::id::*;
use lineage_core::observation::*;
use recording::*;

#[test]
fn a_sound_recording_has_no_fault() {
    let validation = none(&Recording::sound().ended());
    let counts = &validation.counts;
    assert_eq!(
        (counts.calls, counts.kernels, counts.joined_kernels),
        (3, 3, 3)
    );
    assert_eq!(
        (counts.bound, counts.bound_by_two_sources, counts.reachable),
        (3, 3, 3)
    );
    assert_eq!((counts.lost, counts.wrong, counts.pending), (0, 0, 0));
}

#[test]
fn l01_a_launch_without_an_epoch_on_a_thread_that_uses_lineage() {
    let mut recording = Recording::sound();
    recording.launch(&Launch::of_none(10, 4, 4_000));
    let validation = only(&recording.ended(), L01, 1);
    assert_eq!((validation.counts.lost, validation.counts.bound), (1, 3));
}

#[test]
fn l01_a_launch_in_a_boundary_without_an_epoch_on_a_thread_of_its_own() {
    let mut recording = Recording::sound();
    recording.launch(&Launch {
        callback: Some(Attribution::BoundaryWithoutEpoch),
        in_boundary: true,
        external: Some(PackedEpoch::BOUNDARY_WITHOUT_EPOCH.bits()),
        ..Launch::of_none(77, 4, 4_000)
    });
    only(&recording.ended(), L01, 1);
}

#[test]
fn l02_an_operation_whose_call_left_no_record() {
    let mut recording = Recording::sound();
    recording.saw(kernel(4, 5_000, 6_000));
    recording.launch(&Launch::of(epoch(1), 10, 5, 7_000));
    let validation = only(&recording.ended(), L02, 1);
    let counts = &validation.counts;
    assert_eq!(
        (
            counts.activity_without_launch,
            counts.before_recording,
            counts.lost
        ),
        (1, 0, 1)
    );
}

#[test]
fn l03_a_call_whose_operation_left_no_record() {
    let lost =
        |event: &Event| matches!(event, Event::Operation(of) if of.correlation == CorrelationId(2));
    let validation = only(&Recording::sound().ended().without(lost), L03, 1);
    let counts = &validation.counts;
    assert_eq!(
        (
            counts.launch_without_activity,
            counts.calls_without_operation
        ),
        (1, 1)
    );
    assert_eq!(
        (counts.lost, counts.after_recording, counts.pending),
        (1, 0, 0)
    );
}

#[test]
fn l04_an_epoch_that_was_handed_on_and_ended_without_a_launch() {
    let mut recording = Recording::sound();
    recording.declare(2, 10, 150);
    recording.send(1, 2, 10, 200);
    recording.receive(1, 2, 10, 300);
    recording.retire(2, 95_000);
    only(&recording.ended(), L04, 1);
}

/// Who launched after a panic in the callback is not known: only the panic is a fault.
#[test]
fn l04_is_not_said_where_a_callback_panicked() {
    let mut recording = Recording::sound();
    recording.declare(2, 10, 150);
    recording.send(1, 2, 10, 200);
    recording.receive(1, 2, 10, 300);
    recording.retire(2, 95_000);
    recording.saw(Dropped {
        site: DropSite::CallbackPanic,
        count: 1,
        at: at(9_000),
    });
    let validation = only(&recording.ended(), L07, 1);
    assert_eq!(validation.counts.not_decidable, 1);
}

#[test]
fn l05_a_carrier_whose_epoch_was_never_taken_out() {
    let mut recording = Recording::sound();
    recording.send(1, 1, 10, 200);
    let validation = only(&recording.ended(), L05, 1);
    let finding = validation.faults[0].to_string();
    assert!(finding.contains("src/queue.rs:7:1"), "{finding}");
    assert!(finding.contains("src/server.rs:41:9"), "{finding}");
}

#[test]
fn l07_a_gap_in_a_ring_and_a_count_of_cuptis() {
    let mut recording = Recording::sound();
    recording.saw(Gap {
        thread: thread(11),
        count: 5,
        not_before: None,
        not_after: Some(at(60)),
    });
    assert_eq!(only(&recording.clone().ended(), L07, 5).faults.len(), 1);
    recording.saw(Dropped {
        site: DropSite::CuptiBuffer,
        count: 2,
        at: at(9_000),
    });
    assert_eq!(only(&recording.ended(), L07, 7).counts.records_dropped, 7);
}

#[test]
fn l08_an_operation_without_times() {
    for (start, end) in [
        (None, None),
        (Some(at(5_000)), None),
        (None, Some(at(6_000))),
    ] {
        let mut recording = Recording::sound();
        recording.launch(&Launch {
            operations: vec![Operation {
                start,
                end,
                ..kernel(4, 0, 0)
            }],
            ..Launch::of(epoch(1), 10, 4, 4_000)
        });
        let validation = only(&recording.ended(), L08, 1);
        assert_eq!(
            validation.counts.joined_kernels, 4,
            "it is joined all the same"
        );
    }
}

#[test]
fn w01_a_launch_before_its_epoch_was_declared() {
    let mut recording = Recording::sound();
    recording.declare(2, 10, 4_001);
    recording.launch(&Launch::of(epoch(2), 10, 4, 4_000));
    only(&recording.ended(), W01, 1);
}

#[test]
fn w02_a_scope_that_another_task_entered() {
    for (entered, called) in [(Some(5), Some(6)), (Some(5), None)] {
        let mut recording = Recording::sound();
        recording.launch(&Launch {
            scope_task: entered,
            task: called,
            ..Launch::of(epoch(1), 10, 4, 4_000)
        });
        let validation = only(&recording.ended(), W02, 1);
        assert_eq!(validation.counts.wrong, 1);
    }
    // Entered before tasks could be told apart, or around all of a runtime: nothing is known.
    let mut recording = Recording::sound();
    recording.launch(&Launch {
        scope_task: None,
        task: Some(6),
        ..Launch::of(epoch(1), 10, 4, 4_000)
    });
    none(&recording.ended());
}

#[test]
fn w03_two_sources_that_name_different_epochs() {
    let mut recording = Recording::sound();
    recording.declare(2, 10, 200);
    recording.launch(&Launch {
        callback: Some(Attribution::Epoch(epoch(2))),
        ..Launch::of(epoch(1), 10, 4, 4_000)
    });
    let validation = only(&recording.ended(), W03, 1);
    assert_eq!((validation.counts.bound, validation.counts.wrong), (3, 1));
}

#[test]
fn w03_an_id_left_on_cuptis_stack() {
    let mut recording = Recording::sound();
    recording.launch(&Launch {
        external: Some(epoch(1).pack().bits()),
        ..Launch::of_none(10, 4, 4_000)
    });
    only(&recording.ended(), W03, 1);
}

#[test]
fn w03_a_handoff_that_was_received_with_another_epoch() {
    let mut recording = Recording::sound();
    recording.send(1, 1, 10, 200);
    recording.receive(1, 2, 10, 300);
    only(&recording.ended(), W03, 1);
}

#[test]
fn w04_a_correlation_id_that_two_calls_have() {
    let mut recording = Recording::sound();
    recording.launch(&Launch::of(epoch(1), 10, 4, 4_000));
    recording.launch(&Launch {
        token: 5,
        operations: Vec::new(),
        ..Launch::of(epoch(1), 10, 4, 20_000)
    });
    // The first kernel began before the second call was made, so it is the first call's; that the
    // second has none, and is no wrap away, is the reuse.
    let mut after = Launch::of(epoch(1), 10, 6, 30_000);
    after.token = 6;
    recording.launch(&after);
    let codes = recording.ended().codes();
    assert_eq!(codes, [(L03, 1), (W04, 1)]);
}

#[test]
fn w04_a_kernel_that_two_calls_may_have_asked_for() {
    let mut recording = Recording::sound();
    for (token, called) in [(4, 4_000), (5, 20_000)] {
        recording.launch(&Launch {
            token,
            due: OperationsDue::Any,
            operations: Vec::new(),
            ..Launch::of(epoch(1), 10, 4, called)
        });
    }
    recording.saw(kernel(4, 30_000, 31_000));
    // Once for the id, once for the kernel.
    let validation = only(&recording.ended(), W04, 2);
    assert_eq!(
        (validation.counts.joined_kernels, validation.counts.kernels),
        (3, 4)
    );
}

#[test]
fn w04_two_kernels_of_a_call_that_has_one() {
    let mut recording = Recording::sound();
    recording.saw(kernel(3, 9_000, 9_500));
    only(&recording.ended(), W04, 1);
}

#[test]
fn w05_an_external_id_of_another_tool() {
    let mut recording = Recording::sound();
    recording.launch(&Launch {
        external: Some(88),
        ..Launch::of(epoch(1), 10, 4, 4_000)
    });
    let validation = only(&recording.ended(), W05, 1);
    assert_eq!(validation.counts.bound_by_callback_only, 1);
}

#[test]
fn w05_an_epoch_or_a_version_that_never_was() {
    for never in [epoch(9), version(1, 2)] {
        let mut recording = Recording::sound();
        recording.launch(&Launch::of(never, 10, 4, 4_000));
        only(&recording.ended(), W05, 1);
    }
}

#[test]
fn w05_a_foreign_id_that_was_popped() {
    let mut recording = Recording::sound();
    recording.saw(Misuse {
        kind: MisuseKind::ForeignExternalId,
        thread: thread(10),
        attribution: Attribution::Epoch(epoch(1)),
        value: 88,
        at: at(8_000),
    });
    only(&recording.ended(), W05, 1);
}

#[test]
fn w07_every_way_to_misuse_a_scope() {
    for kind in [
        MisuseKind::ScopeUnbalanced,
        MisuseKind::ScopeLeaked,
        MisuseKind::ScopeAcrossTasks,
    ] {
        let mut recording = Recording::sound();
        recording.saw(Misuse {
            kind,
            thread: thread(10),
            attribution: Attribution::Epoch(epoch(1)),
            value: 3,
            at: at(8_000),
        });
        only(&recording.ended(), W07, 1);
    }
}

#[test]
fn w07_a_scope_that_has_no_end_although_its_thread_has() {
    let mut recording = Recording::sound();
    recording.launch(&Launch {
        token: 5, // 4 was entered and never ended.
        ..Launch::of(epoch(1), 10, 4, 4_000)
    });
    recording.saw(ThreadEnded {
        thread: thread(10),
        at: at(80_000),
    });
    only(&recording.ended(), W07, 1);
}

#[test]
fn t01_a_kernel_that_began_before_its_call() {
    let mut recording = Recording::sound();
    recording.launch(&Launch {
        operations: vec![kernel(4, 30_000, 41_000)],
        ..Launch::of(epoch(1), 10, 4, 40_000)
    });
    let validation = only(&recording.ended(), T01, 1);
    assert_eq!(
        validation.counts.joined_kernels, 4,
        "it is joined all the same"
    );
}

#[test]
fn t02_intervals_that_end_before_they_begin() {
    let mut recording = Recording::sound();
    recording.launch(&Launch {
        operations: vec![kernel(4, 6_000, 5_999)],
        ..Launch::of(epoch(1), 10, 4, 4_000)
    });
    only(&recording.ended(), T02, 1);

    let mut recording = Recording::sound();
    recording.saw(Flushed {
        session: 1,
        asked: at(5_001),
        returned: at(5_000),
        last: false,
    });
    only(&recording.ended(), T02, 1);

    let mut recording = Recording::sound();
    let launch = Launch {
        record: false,
        ..Launch::of(epoch(1), 10, 4, 4_000)
    };
    recording.launch(&Launch {
        callback: None,
        ..launch.clone()
    });
    recording.saw(ApiRecord {
        end: Some(at(3_000)),
        ..launch.record()
    });
    only(&recording.ended(), T02, 1);
}

#[test]
fn t03_a_thread_whose_clock_went_back() {
    let mut recording = Recording::sound();
    recording.launch(&Launch::of(epoch(1), 10, 4, 50_000));
    recording.launch(&Launch::of(epoch(1), 10, 5, 40_000));
    only(&recording.ended(), T03, 1);
}

#[test]
fn t03_a_kernel_that_ended_after_its_session() {
    let mut recording = Recording::sound();
    recording.launch(&Launch {
        operations: vec![kernel(4, 100_000_000_000_000, 100_000_000_001_000)],
        ..Launch::of(epoch(1), 10, 4, 4_000)
    });
    only(&recording.ended(), T03, 1);
}

#[test]
fn t03_a_blocking_copy_that_ended_after_its_call_had_returned() {
    for kind in [
        "DtoH",
        "Memcpy DtoH (Device -> Pageable)",
        "Memcpy HtoD (Pinned -> Device)",
    ] {
        let mut recording = Recording::sound();
        recording.launch(&Launch {
            function: "cuMemcpyDtoH_v2",
            operations: vec![copy(4, kind, 4_500, 20_000)],
            ..Launch::of(epoch(1), 10, 4, 4_000)
        });
        only(&recording.ended(), T03, 1);
    }
}

#[test]
fn t04_stages_in_an_impossible_order() {
    for (queued, submitted) in [
        (Some(20_000), Some(11_000)), // queued after submitted
        (None, Some(50_000)),         // submitted after the start
        (Some(50_000), None),         // queued after the start
        (Some(2_000), Some(15_000)),  // queued before the call
    ] {
        let mut recording = Recording::sound();
        recording.launch(&Launch {
            operations: vec![Operation {
                queued: queued.map(at),
                submitted: submitted.map(at),
                ..kernel(4, 30_000, 60_000)
            }],
            ..Launch::of(epoch(1), 10, 4, 10_000)
        });
        only(&recording.ended(), T04, 1);
    }
}

#[test]
fn t04_handoffs_and_epochs_that_run_backwards() {
    let mut recording = Recording::sound();
    recording.send(1, 1, 10, 300);
    recording.receive(1, 1, 10, 299);
    only(&recording.ended(), T04, 1);

    let mut recording = Recording::sound();
    recording.saw(Stepped {
        epoch: version(1, 2),
        thread: thread(10),
        at: at(99),
    });
    only(&recording.ended(), T04, 1);
}

#[test]
fn many_faults_are_counted_and_some_are_listed() {
    let mut recording = Recording::sound();
    for number in 4..104 {
        recording.launch(&Launch::of_none(
            10,
            number,
            10_000 + u64::from(number) * 500,
        ));
    }
    recording.declare(2, 10, 150);
    recording.send(1, 2, 10, 200);
    recording.receive(1, 2, 10, 300);
    recording.retire(2, 95_000);
    let validation = recording.ended().validated();
    assert_eq!(validation.fault_counts[&L01], 100);
    assert_eq!(validation.fault_count(), 101);
    // 20 of the one code do not crowd out the other.
    assert_eq!(validation.faults.len(), 21);
    assert_eq!(validation.not_listed, 80);
}
