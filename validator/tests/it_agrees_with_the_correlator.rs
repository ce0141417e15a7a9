//! The correlator and the validator share no code, and say the same of random sessions, sound and
//! broken.

mod recording;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::fault::FaultCode;
use lineage_core::id::*;
use lineage_core::observation::*;
use lineage_core::row::{Binding, LooseFault, Row, Unattributed};
use lineage_validator::Validation;
use proptest::prelude::*;
use recording::*;
use world::*;

/// What the correlator concludes of a whole recording.
fn concluded(recording: &Recording) -> (Vec<Row>, Vec<LooseFault>) {
    let mut correlator = Correlator::new(Limits::default());
    let (mut rows, mut faults) = (Vec::new(), Vec::new());
    for observation in &recording.observations {
        correlator.observe(observation);
    }
    correlator.end();
    correlator.drain(&mut rows, &mut faults);
    (rows, faults)
}

fn both(recording: &Recording) -> Validation {
    let (rows, faults) = concluded(recording);
    let validation = recording.validated_with(&rows, &faults);
    let reached = |said: Option<bool>| {
        let bound = rows
            .iter()
            .filter(|row| matches!(row.binding, Binding::Bound(_)));
        bound.filter(|row| row.sources.reachable == said).count() as u64
    };
    // Where a call cannot be told the validator counts no reach.
    if !validation.fault_counts.contains_key(&FaultCode::W04) {
        let counts = &validation.counts;
        assert_eq!(
            (reached(Some(true)), reached(Some(false)), reached(None)),
            (counts.reachable, counts.unreachable, counts.reach_unknown),
            "{validation}"
        );
        let internal = Binding::Unattributed(Unattributed::InternalLaunch);
        let internal = rows.iter().filter(|row| row.binding == internal).count() as u64;
        let counted = counts.unattributed.get("internal_launch").copied();
        assert_eq!(internal, counted.unwrap_or_default(), "{validation}");
    }
    validation
}

/// The codes that each of the two raises.
fn codes(validation: &Validation) -> (BTreeSet<FaultCode>, BTreeSet<FaultCode>) {
    let own = validation.fault_counts.keys().copied().collect();
    (own, validation.session_faults.keys().copied().collect())
}

/// One way to break a launch.
#[derive(Debug, Clone, Copy)]
enum Break {
    Operation,
    Epoch,
    External,
    Callback,
    Foreign,
    Task,
    Early,
    Times,
    Backwards,
}

fn breaks() -> impl Strategy<Value = Break> {
    prop_oneof![
        Just(Break::Operation),
        Just(Break::Epoch),
        Just(Break::External),
        Just(Break::Callback),
        Just(Break::Foreign),
        Just(Break::Task),
        Just(Break::Early),
        Just(Break::Times),
        Just(Break::Backwards),
    ]
}

fn broken(launch: &mut Launch, how: Break) {
    let own = launch
        .scope
        .and_then(Attribution::epoch)
        .expect("launches have scopes");
    let other = epoch(1 + own.id.get() % 3);
    match how {
        Break::Operation => launch.operations.clear(),
        Break::Epoch => {
            launch.external = None;
            launch.callback = Some(Attribution::None);
            launch.in_boundary = false;
            launch.scope = Some(Attribution::None);
        }
        Break::External | Break::Callback => {
            let external = matches!(how, Break::External);
            launch.external = Some(if external { other } else { own }.pack().bits());
            launch.callback = Some(Attribution::Epoch(if external { own } else { other }));
        }
        Break::Foreign => {
            launch.external = Some(88);
            launch.callback = Some(Attribution::Epoch(own));
        }
        Break::Task => {
            launch.callback = Some(Attribution::Epoch(own));
            launch.task = Some(5);
            launch.scope_task = Some(6);
        }
        Break::Early => {
            for operation in &mut launch.operations {
                operation.start = Some(at(1));
            }
        }
        Break::Times => {
            for operation in &mut launch.operations {
                (operation.start, operation.end) = (None, None);
            }
        }
        Break::Backwards => {
            for operation in &mut launch.operations {
                operation.end = operation.start.map(|start| HostNanos(start.0 - 1));
            }
        }
    }
}

/// Ids that move on by a few at a time: a correlator with a bounded memory forgets what lies half
/// the range of ids back.
fn small_ids(steps: Vec<Step>) -> Vec<Step> {
    let small = |step: Step| Step {
        ids: step.ids % 4 + 1,
        ..step
    };
    steps.into_iter().map(small).collect()
}

/// Worlds as a session sees them: rings in order, buffers late, ids that may wrap.
fn live_worlds() -> impl Strategy<Value = World> {
    (worlds(), 0u8..4, 12u32..60).prop_map(|(world, delay, until_the_wrap)| World {
        delay: Some(delay),
        steps: small_ids(world.steps),
        before: u32::MAX - until_the_wrap,
        ..world
    })
}

/// Worlds in which the ids do not wrap, and records come in any order at all.
fn unordered_worlds() -> impl Strategy<Value = World> {
    worlds().prop_map(|world| World {
        before: world.before % 1_000,
        steps: small_ids(world.steps),
        ..world
    })
}

fn either() -> impl Strategy<Value = World> {
    prop_oneof![live_worlds(), unordered_worlds()]
}

fn no_id_twice(world: &World) -> bool {
    let ids: BTreeSet<u32> = world
        .truth()
        .iter()
        .map(|truth| truth.correlation)
        .collect();
    ids.len() == world.steps.len()
}

proptest! {
    #![proptest_config(world::cases(128))]

    #[test]
    fn on_sound_sessions(world in either()) {
        let validation = both(&world.recording());
        prop_assert!(validation.is_sound(), "{validation}");
        let rows = validation.counts.rows.expect("rows were given");
        let steps = world.steps.len() as u64;
        prop_assert_eq!((rows.agreeing, rows.differing, rows.extra, rows.missing), (steps, 0, 0, 0));
    }

    #[test]
    fn on_broken_sessions(world in either(), how in breaks(), place in any::<prop::sample::Index>()) {
        prop_assume!(no_id_twice(&world));
        let place = 1 + place.index(world.steps.len() - 2);
        let mut launches = world.launches();
        broken(&mut launches[place].0, how);
        let validation = both(&world.recording_of(&launches));
        let (own, sessions) = codes(&validation);
        prop_assert_eq!(&own, &sessions, "{:?}: {}", how, validation);
        prop_assert!(!own.is_empty(), "{:?}: {}", how, validation);
        let rows = validation.counts.rows.expect("rows were given");
        prop_assert_eq!((rows.differing, rows.extra, rows.missing), (0, 0, 0), "{:?}: {}", how, validation);
    }
}

/// Hand-made cases in which the two must agree on the codes.
/// Something that happens to an epoch.
#[derive(Debug, Clone, Copy)]
enum Happening {
    Send,
    Receive,
    Abandon,
    LinkTo(u64),
    Version,
    Boundary,
    Launch,
    Cancel,
}

fn happenings() -> impl Strategy<Value = Happening> {
    prop_oneof![
        Just(Happening::Send),
        Just(Happening::Receive),
        Just(Happening::Abandon),
        (1u64..4).prop_map(Happening::LinkTo),
        Just(Happening::Version),
        Just(Happening::Boundary),
        Just(Happening::Launch),
        Just(Happening::Cancel),
    ]
}

/// Epochs 2 to 6, what happens to them, which of them end, and until when records may be lost.
fn epochs_of(
    happened: &[(u64, Happening)],
    retired: [bool; 5],
    gap: Option<Option<u64>>,
) -> Recording {
    let mut recording = Recording::sound();
    for id in 2..=6 {
        recording.declare(id, 10, 100 + 10 * id);
    }
    for (number, &(id, step)) in (0u64..).zip(happened) {
        let now = 5_000 + 1_000 * number;
        let correlation = 4 + u32::try_from(number).expect("few");
        match step {
            Happening::Send => recording.send(number, id, 10, now),
            Happening::Receive => {
                recording.send(number, id, 10, now);
                recording.receive(number, id, 10, now + 10);
            }
            Happening::Abandon => {
                recording.send(number, id, 10, now);
                let handoff = recording.handoff(number, id);
                recording.saw(Abandoned {
                    handoff,
                    at: at(now + 10),
                });
            }
            Happening::LinkTo(further) if id + further <= 6 => {
                recording.link(id + further, LinkKind::Merge, id, now);
            }
            Happening::LinkTo(_) => {}
            Happening::Version => recording.saw(Stepped {
                epoch: version(id, 2),
                thread: thread(10),
                at: at(now),
            }),
            Happening::Boundary => {
                let launch = Launch::of(epoch(id), 50 + number, correlation, now);
                recording.saw(launch.scope().expect("it has one"));
            }
            Happening::Launch => {
                let mut launch = Launch::of(epoch(id), 10, correlation, now);
                launch.token = 4 + number;
                launch.scope = None;
                recording.launch(&launch);
            }
            Happening::Cancel => recording.saw(Marked {
                epoch: epoch(id),
                mark: Mark::Cancelled,
                thread: thread(10),
                at: at(now),
            }),
        }
    }
    for id in (2..=6).filter(|&id| retired[id as usize - 2]) {
        recording.retire(id, 90_000);
    }
    if let Some(until) = gap {
        recording.saw(Gap {
            thread: thread(99),
            count: 3,
            not_before: None,
            not_after: until.map(at),
        });
    }
    recording.ended()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn on_epochs_and_handoffs(
        happened in prop::collection::vec((2u64..=6, happenings()), 0..12),
        retired in any::<[bool; 5]>(),
        gap in prop::option::of(prop::option::of(100u64..20_000)),
    ) {
        let recording = epochs_of(&happened, retired, gap);
        let mut correlator = Correlator::new(Limits::default());
        recording.observations.iter().for_each(|seen| correlator.observe(seen));
        correlator.end();
        let totals = correlator.totals();
        let validation = recording.validated();
        let counts = &validation.counts;
        let raised = |code| validation.fault_counts.get(&code).copied().unwrap_or_default();
        prop_assert_eq!(
            (totals.faults[FaultCode::L04], totals.faults[FaultCode::L05]),
            (raised(FaultCode::L04), raised(FaultCode::L05)),
            "{}",
            validation
        );
        prop_assert_eq!(
            (totals.handoffs.under_way, totals.epochs.ended_without_gpu_work),
            (counts.handoffs_under_way, counts.ended_without_gpu_work)
        );
        prop_assert_eq!(
            totals.handoffs.undecided + totals.epochs.undecided,
            counts.not_decidable
        );
    }
}

#[test]
fn on_hand_made_cases() {
    let sound = Recording::sound;
    let mut cases: Vec<(&str, Recording)> = vec![("sound", sound().ended())];
    let mut add = |name, change: &dyn Fn(&mut Recording)| {
        let mut recording = sound();
        change(&mut recording);
        cases.push((name, recording.ended()));
    };
    add("never launched", &|recording| {
        recording.declare(2, 10, 150);
        recording.retire(2, 95_000);
    });
    add("served by a batch", &|recording| {
        recording.declare(4, 10, 150);
        recording.declare(5, 10, 160);
        recording.link(5, LinkKind::Merge, 4, 161);
        recording.retire(4, 50_000);
        recording.retire(5, 51_000);
        recording.launch(&Launch::of(epoch(5), 10, 9, 40_000));
    });
    add("not received", &|recording| recording.send(1, 1, 10, 200));
    add("a gap", &|recording| {
        recording.saw(Gap {
            thread: thread(11),
            count: 5,
            not_before: None,
            not_after: Some(at(60)),
        });
    });
    add("a drop", &|recording| {
        recording.saw(Dropped {
            site: DropSite::CuptiBuffer,
            count: 2,
            at: at(9_000),
        });
    });
    add("a panic in a callback", &|recording| {
        recording.declare(2, 10, 150);
        recording.send(1, 2, 10, 200);
        recording.receive(1, 2, 10, 300);
        recording.retire(2, 95_000);
        recording.saw(Dropped {
            site: DropSite::CallbackPanic,
            count: 1,
            at: at(9_000),
        });
    });
    add("before its declaration", &|recording| {
        recording.declare(2, 10, 10_000);
        recording.launch(&Launch::of(epoch(2), 10, 4, 4_000));
    });
    add("a stale id on CUPTI's stack", &|recording| {
        recording.launch(&Launch {
            external: Some(epoch(1).pack().bits()),
            ..Launch::of_none(10, 4, 4_000)
        });
    });
    add("an operation without a call", &|recording| {
        recording.saw(kernel(4, 5_000, 6_000));
        recording.launch(&Launch::of(epoch(1), 10, 5, 7_000));
    });
    add("a boundary without an epoch", &|recording| {
        recording.launch(&Launch {
            callback: Some(Attribution::BoundaryWithoutEpoch),
            in_boundary: true,
            external: Some(PackedEpoch::BOUNDARY_WITHOUT_EPOCH.bits()),
            ..Launch::of_none(77, 4, 4_000)
        });
    });
    add("a helper thread", &|recording| {
        recording.launch(&Launch::of_none(77, 4, 4_000));
    });
    add("detached", &|recording| {
        let detached = PackedEpoch::detached(DetachedReason(2));
        recording.launch(&Launch {
            callback: Some(detached.unpack()),
            external: Some(detached.bits()),
            scope: Some(detached.unpack()),
            ..Launch::of(epoch(1), 10, 4, 4_000)
        });
    });
    add("failed", &|recording| {
        recording.launch(&Launch {
            result: 700,
            operations: Vec::new(),
            ..Launch::of(epoch(1), 10, 4, 4_000)
        });
        recording.launch(&Launch::of(epoch(1), 10, 9, 60_000));
    });
    add("a foreign id popped", &|recording| {
        recording.saw(Misuse {
            kind: MisuseKind::ForeignExternalId,
            thread: thread(10),
            attribution: Attribution::Epoch(epoch(1)),
            value: 88,
            at: at(8_000),
        });
    });
    add("a leaked scope", &|recording| {
        recording.saw(Misuse {
            kind: MisuseKind::ScopeLeaked,
            thread: thread(10),
            attribution: Attribution::Epoch(epoch(1)),
            value: 3,
            at: at(8_000),
        });
    });
    add("two kernels of one call", &|recording| {
        recording.saw(kernel(3, 9_000, 9_500))
    });
    add("submitted after the start", &|recording| {
        recording.launch(&Launch {
            operations: vec![Operation {
                submitted: Some(at(50_000)),
                ..kernel(4, 30_000, 60_000)
            }],
            ..Launch::of(epoch(1), 10, 4, 10_000)
        });
    });
    add("a call above the last operation", &|recording| {
        recording.launch(&Launch {
            operations: Vec::new(),
            ..Launch::of(epoch(1), 10, 9, 60_000)
        });
    });
    add("an epoch that nobody declared, by both", &|recording| {
        recording.launch(&Launch::of(epoch(7), 10, 4, 4_000));
    });
    add(
        "an epoch that nobody declared, by the callback",
        &|recording| {
            recording.launch(&Launch {
                external: None,
                ..Launch::of(epoch(7), 10, 4, 4_000)
            });
        },
    );
    add(
        "an epoch that nobody declared, by the external",
        &|recording| {
            recording.launch(&Launch {
                callback: None,
                ..Launch::of(epoch(7), 10, 4, 4_000)
            });
        },
    );
    add("a version that nobody made", &|recording| {
        recording.launch(&Launch::of(version(1, 2), 10, 4, 4_000));
    });
    add("a declaration that a gap may hide", &|recording| {
        recording.saw(Gap {
            thread: thread(11),
            count: 5,
            not_before: None,
            not_after: Some(at(60)),
        });
        recording.launch(&Launch::of(epoch(7), 10, 4, 4_000));
    });
    add("one id on one thread at two times", &|recording| {
        recording.launch(&Launch::of(epoch(1), 10, 3, 30_000));
    });
    add(
        "one id on one thread, twice the same record",
        &|recording| {
            recording.launch(&Launch::of(epoch(1), 10, 3, 3_000));
        },
    );
    for (name, second) in [
        ("two driver calls of one runtime call, with its id", 8),
        (
            "two driver calls of one runtime call, with ids of their own",
            9,
        ),
    ] {
        add(name, &move |recording| {
            let inner = |id, called| Launch {
                operations: vec![kernel(id, called + 1_000, called + 1_100)],
                token: called,
                ..Launch::of(epoch(1), 10, id, called)
            };
            recording.launch(&inner(8, 40_000));
            recording.launch(&inner(second, 40_400));
            let runtime = CorrelationId(if second == 8 { 8 } else { 7 });
            recording.saw(ApiRecord {
                api: api(ApiDomain::Runtime, "cudaLaunchKernel_v7000"),
                correlation: runtime,
                start: Some(at(39_950)),
                end: Some(at(40_600)),
                ..inner(8, 40_000).record()
            });
        });
    }
    add("declared a nanosecond after the call", &|recording| {
        recording.declare(2, 10, 4_001);
        recording.launch(&Launch::of(epoch(2), 10, 4, 4_000));
    });
    add("declared as the call was entered", &|recording| {
        recording.declare(2, 10, 4_000);
        recording.launch(&Launch::of(epoch(2), 10, 4, 4_000));
    });
    add("internal launches", &|recording| {
        recording.launch(&Launch::of(epoch(1), 10, 8, 40_000));
        recording.internal_launch(9, 40_040);
        recording.saw(kernel(9, 45_000, 46_000));
        recording.internal_launch(11, 40_070);
    });
    add(
        "an internal launch that bears the id of a call",
        &|recording| {
            recording.internal_launch(2, 2_040);
        },
    );
    add("polled where no handoff went", &|recording| {
        recording.launch(&Launch {
            task: Some(7),
            scope_task: Some(7),
            ..Launch::of(epoch(1), 11, 4, 4_000)
        });
    });
    add("no task, where no handoff went", &|recording| {
        recording.declare_in(2, 10, Some(6), 150);
        recording.launch(&Launch::of(epoch(2), 11, 4, 4_000));
    });
    add("no callback, where no handoff went", &|recording| {
        recording.declare_in(2, 10, Some(6), 150);
        recording.launch(&Launch {
            callback: None,
            ..Launch::of(epoch(2), 11, 4, 4_000)
        });
    });
    add("before the first call", &|recording| {
        recording.saw(kernel(u32::MAX, 60, 70));
    });
    let mut nothing_ran = Recording::sound();
    nothing_ran
        .observations
        .retain(|observation| !matches!(observation.event, Event::Operation(_)));
    cases.push(("no operation at all", nothing_ran.clone().ended()));
    cases.push(("no operation so far", nothing_ran));
    // Agreeing is not enough where the contract was read in two ways: this is what it says.
    let decided: BTreeMap<&str, &[FaultCode]> = BTreeMap::from([
        ("a call above the last operation", &[][..]),
        ("no operation at all", &[FaultCode::L03]),
        ("no operation so far", &[]),
        ("an epoch that nobody declared, by both", &[FaultCode::W05]),
        (
            "an epoch that nobody declared, by the callback",
            &[FaultCode::W05],
        ),
        (
            "an epoch that nobody declared, by the external",
            &[FaultCode::W05],
        ),
        ("a version that nobody made", &[FaultCode::W05]),
        ("a declaration that a gap may hide", &[FaultCode::L07]),
        ("one id on one thread at two times", &[FaultCode::W04]),
        ("one id on one thread, twice the same record", &[]),
        ("two driver calls of one runtime call, with its id", &[]),
        (
            "two driver calls of one runtime call, with ids of their own",
            &[],
        ),
        ("declared a nanosecond after the call", &[FaultCode::W01]),
        ("declared as the call was entered", &[]),
        ("internal launches", &[]),
        ("an internal launch that bears the id of a call", &[]),
        ("polled where no handoff went", &[]),
        ("no task, where no handoff went", &[]),
        ("no callback, where no handoff went", &[]),
    ]);
    let named: BTreeSet<&str> = cases.iter().map(|(name, _)| *name).collect();
    assert!(decided.keys().all(|name| named.contains(name)));
    let mut differing = Vec::new();
    for (name, recording) in cases {
        let validation = both(&recording);
        let (own, sessions) = codes(&validation);
        if let Some(decided) = decided.get(name) {
            let decided: BTreeSet<FaultCode> = decided.iter().copied().collect();
            assert_eq!(own, decided, "{name}: {validation}");
        }
        let rows = validation.counts.rows.expect("rows were given");
        if own != sessions || rows.differing + rows.extra + rows.missing + rows.other_reason > 0 {
            differing.push(format!(
                "{name}: validator {own:?}, correlator {sessions:?}, rows {rows:?}"
            ));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
