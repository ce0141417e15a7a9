//! Properties: what is sound stays sound in any order, what is broken is named, nothing panics.

mod recording;
mod world;

use lineage_core::fault::FaultCode;
use lineage_core::id::*;
use lineage_core::observation::*;
use lineage_validator::{Options, TruthOperation, validate};
use proptest::prelude::*;
use recording::*;
use world::*;

fn codes(recording: &Recording) -> Vec<(FaultCode, u64)> {
    recording.codes()
}

/// A world and one of its inner steps.
fn with_inner_step() -> impl Strategy<Value = (World, usize)> {
    worlds().prop_flat_map(|world| {
        let inner = 1..world.steps.len() - 1;
        (Just(world), inner)
    })
}

proptest! {
    #![proptest_config(world::cases(96))]

    #[test]
    fn a_sound_session_has_no_fault_and_every_binding_is_the_true_one(world in worlds()) {
        let recording = world.recording();
        let validation = recording.validated();
        prop_assert!(validation.is_sound(), "{validation}");
        let steps = world.steps.len() as u64;
        prop_assert_eq!(validation.counts.calls, steps);
        prop_assert_eq!(validation.counts.bound, steps);
        prop_assert_eq!(validation.counts.joined_operations(), steps);
        prop_assert_eq!(validation.counts.reachable, steps);
        // Wire ids may come twice, a wrap apart: the ordinal tells them apart, by time.
        let all = world.truth();
        let truth: Vec<_> = all.iter().map(|truth| TruthOperation {
            ordinal: all.iter().filter(|other| {
                other.correlation == truth.correlation && other.called < truth.called
            }).count() as u32,
            ..TruthOperation::of_call(CorrelationId(truth.correlation), truth.epoch)
        }).collect();
        let score = validation.against_truth(&truth, |epoch| [epoch.id.get()]);
        prop_assert!(score.is_right(), "{score}");
    }

    #[test]
    fn the_order_of_records_changes_nothing(world in worlds(), order in any::<u64>()) {
        let other = World { order, ..world.clone() };
        prop_assert_eq!(
            world.recording().validated().counts,
            other.recording().validated().counts
        );
    }

    #[test]
    fn a_lost_operation_is_l03((world, place) in with_inner_step()) {
        let mut launches = world.launches();
        launches[place].0.operations.clear();
        prop_assert_eq!(codes(&world.recording_of(&launches)), [(FaultCode::L03, 1)]);
    }

    #[test]
    fn a_lost_call_is_l02((world, place) in with_inner_step()) {
        // Where ids come twice, the operation goes to the other call of its id.
        let truth = world.truth();
        let mut ids: Vec<u32> = truth.iter().map(|truth| truth.correlation).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assume!(ids.len() == truth.len());
        // From one call to the next the ids move by less than half their range.
        let step = |at: usize| u64::from(world.steps[at].ids) + 1;
        prop_assume!(step(place) + step(place + 1) < 1 << 31);
        let mut launches = world.launches();
        let (launch, runtime) = &mut launches[place];
        launch.record = false;
        launch.callback = None;
        launch.external = None;
        *runtime = None;
        prop_assert_eq!(codes(&world.recording_of(&launches)), [(FaultCode::L02, 1)]);
    }

    #[test]
    fn a_lost_epoch_is_l01((world, place) in with_inner_step()) {
        let mut launches = world.launches();
        let launch = &mut launches[place].0;
        launch.external = None;
        launch.callback = Some(Attribution::None);
        launch.in_boundary = false;
        launch.scope = Some(Attribution::None);
        prop_assert_eq!(codes(&world.recording_of(&launches)), [(FaultCode::L01, 1)]);
    }

    #[test]
    fn another_epoch_in_one_source_is_w03((world, place) in with_inner_step(), external in any::<bool>()) {
        let mut launches = world.launches();
        let launch = &mut launches[place].0;
        let own = launch.scope.and_then(Attribution::epoch).expect("launches have scopes");
        // Epochs 1 to 3 always exist.
        let other = epoch(1 + own.id.get() % 3);
        launch.external = Some(if external { other } else { own }.pack().bits());
        launch.callback = Some(Attribution::Epoch(if external { own } else { other }));
        prop_assert_eq!(codes(&world.recording_of(&launches)), [(FaultCode::W03, 1)]);
    }
}

/// Times and ids that meet each other often, and the extremes.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0u64..12, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1), 1 => any::<u64>()]
}

fn time() -> impl Strategy<Value = HostNanos> {
    number().prop_map(HostNanos)
}

fn maybe_time() -> impl Strategy<Value = Option<HostNanos>> {
    prop_oneof![1 => Just(None), 4 => time().prop_map(Some)]
}

fn some_epoch() -> impl Strategy<Value = LaunchEpoch> {
    (1u64..5, 1u32..3).prop_map(|(id, number)| version(id, number))
}

fn attribution() -> impl Strategy<Value = Attribution> {
    prop_oneof![
        Just(Attribution::None),
        some_epoch().prop_map(Attribution::Epoch),
        Just(Attribution::BoundaryWithoutEpoch),
        Just(Attribution::Detached(DetachedReason(1))),
        number().prop_map(Attribution::Foreign),
    ]
}

fn some_thread() -> impl Strategy<Value = ThreadKey> {
    (0u64..3, 0u32..3).prop_map(|(tid, generation)| ThreadKey { tid, generation })
}

fn correlation() -> impl Strategy<Value = CorrelationId> {
    prop_oneof![8 => 0u32..6, 1 => Just(u32::MAX), 1 => any::<u32>()].prop_map(CorrelationId)
}

fn due() -> impl Strategy<Value = OperationsDue> {
    prop_oneof![
        Just(OperationsDue::None),
        Just(OperationsDue::One),
        Just(OperationsDue::Many),
        Just(OperationsDue::Any),
    ]
}

fn domain() -> impl Strategy<Value = ApiId> {
    prop_oneof![Just(ApiDomain::Driver), Just(ApiDomain::Runtime)]
        .prop_map(|of| api(of, "cuMemcpyDtoH_v2"))
}

fn handoff() -> impl Strategy<Value = Handoff> {
    (0u64..4, some_epoch()).prop_map(|(id, epoch)| Handoff {
        id: HandoffId(id),
        epoch,
        carrier: CarrierKind::Custom,
    })
}

/// Any event at all.
fn soup() -> impl Strategy<Value = Event> {
    let threads = || (some_thread(), time());
    let session = 1u32..3;
    prop_oneof![
        threads().prop_map(|(thread, at)| ThreadStarted {
            thread,
            name: None,
            at
        }
        .into()),
        threads().prop_map(|(thread, at)| ThreadEnded { thread, at }.into()),
        (some_epoch(), threads()).prop_map(|(epoch, (thread, at))| Declared {
            epoch,
            thread,
            task: None,
            at,
            name: "x".into(),
            site: None,
        }
        .into()),
        (some_epoch(), some_epoch(), 0u8..4, time()).prop_map(|(epoch, from, kind, at)| Linked {
            epoch,
            from,
            kind: [
                LinkKind::Fork,
                LinkKind::Merge,
                LinkKind::Continues,
                LinkKind::Retry
            ][usize::from(kind)],
            at,
        }
        .into()),
        (some_epoch(), threads())
            .prop_map(|(epoch, (thread, at))| Stepped { epoch, thread, at }.into()),
        (some_epoch(), time()).prop_map(|(epoch, at)| Retired {
            epoch,
            how: RetiredAs::Done,
            at
        }
        .into()),
        (handoff(), threads()).prop_map(|(handoff, (thread, at))| Sent {
            handoff,
            thread,
            at,
            site: None
        }
        .into()),
        (handoff(), threads()).prop_map(|(handoff, (thread, at))| Received {
            handoff,
            thread,
            task: None,
            at
        }
        .into()),
        (handoff(), time()).prop_map(|(handoff, at)| Abandoned { handoff, at }.into()),
        (
            some_thread(),
            attribution(),
            number(),
            time(),
            time(),
            any::<bool>()
        )
            .prop_map(
                |(thread, attribution, token, entered, exited, boundary)| Scope {
                    thread,
                    attribution,
                    token: ScopeToken(token),
                    entered,
                    exited,
                    task: None,
                    boundary,
                    pushed: boundary,
                }
                .into()
            ),
        (
            some_thread(),
            domain(),
            correlation(),
            time(),
            maybe_time(),
            attribution(),
            due()
        )
            .prop_map(
                |(thread, api, correlation, entered, exited, attribution, due)| Call {
                    thread,
                    api,
                    correlation,
                    entered,
                    exited,
                    result: 0,
                    attribution,
                    in_boundary: false,
                    task: None,
                    due,
                }
                .into()
            ),
        (some_thread(), number(), maybe_time(), maybe_time()).prop_map(
            |(thread, count, not_before, not_after)| {
                Gap {
                    thread,
                    count,
                    not_before,
                    not_after,
                }
                .into()
            }
        ),
        (session.clone(), time()).prop_map(|(session, at)| DeviceSession::Started {
            session,
            version: 1,
            at,
            external_correlation: None,
        }
        .into()),
        (session.clone(), time())
            .prop_map(|(session, at)| DeviceSession::Ended { session, at }.into()),
        (
            session.clone(),
            domain(),
            correlation(),
            0u64..3,
            maybe_time(),
            maybe_time(),
            0u32..2,
            due()
        )
            .prop_map(
                |(session, api, correlation, tid, start, end, result, due)| ApiRecord {
                    session,
                    api,
                    correlation,
                    tid,
                    start,
                    end,
                    result,
                    due,
                }
                .into()
            ),
        (session.clone(), number(), correlation(), maybe_time()).prop_map(
            |(session, external_id, correlation, beside)| {
                ExternalRecord {
                    session,
                    kind: 5,
                    own_kind: true,
                    external_id,
                    correlation,
                    beside,
                }
                .into()
            }
        ),
        (
            session.clone(),
            correlation(),
            maybe_time(),
            maybe_time(),
            maybe_time()
        )
            .prop_map(|(session, correlation, queued, start, end)| Operation {
                session,
                correlation,
                queued,
                start,
                end,
                ..copy(0, "DtoH", 0, 0)
            }
            .into()),
        (session, time(), time(), any::<bool>()).prop_map(|(session, asked, returned, last)| {
            Flushed {
                session,
                asked,
                returned,
                last,
            }
            .into()
        }),
        (number(), time()).prop_map(|(count, at)| Dropped {
            site: DropSite::Undecodable,
            count,
            at
        }
        .into()),
    ]
}

proptest! {
    #![proptest_config(world::cases(512))]

    #[test]
    fn no_recording_whatever_makes_the_validator_panic(
        events in prop::collection::vec((0u32..2, soup()), 0..60),
        clock_error_ns in number(),
    ) {
        let mut recording = Recording::default();
        for (process, event) in events {
            recording.in_process(process);
            recording.saw(event);
        }
        let options = Options::default().clock_error_ns(clock_error_ns).listed_per_code(3);
        let validation = validate(&recording.observations, None, &options);
        let counts = &validation.counts;
        prop_assert!(counts.joined_operations() <= counts.operations());
        prop_assert!(validation.faults.len() <= 60);
        prop_assert!(!validation.to_string().is_empty());
    }
}
