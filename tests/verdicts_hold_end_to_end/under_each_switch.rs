//! Every scenario under each switch of the simulator: what NVIDIA does not document, what differs between
//! versions and devices, who else has the device, and what goes wrong with records. No claim is wrong, and
//! where nothing is lost, as much is found as the evidence allows.

use lineage_core::source::Tier;
use lineage_sim::{Config, CuptiVersion, Faults, RuntimeCalls, isolated};

use crate::evidence::{judge_without, kinds};
use crate::run::{Run, model, report, usual, with};
use crate::scenario::every_combination;

/// Plays all scenarios; at least so many claims are made on the operations they are about.
fn holds(what: &str, config: Config, least: u64) {
    let score = Run::new(config, Tier::Explain).score();
    report(what, &score);
    assert!(score[1].claimed() >= least, "{:?}", score[1].claims);
}

fn faults(faults: Faults) -> Config {
    usual().faults(faults)
}

/// Somebody else has the device in turn: for 1 ms after so many ns.
fn neighbour(slice_ns: u64, granularity_ns: u64) -> Config {
    let model = model()
        .time_slice_ns(slice_ns)
        .neighbour_slice_ns(1_000_000)
        .context_switch_ns(50_000)
        .preemption_granularity_ns(granularity_ns);
    with(model).exclusive_process(false)
}

macro_rules! switches {
    ($($(#[$doc:meta])* $name:ident: $config:expr, $least:expr;)+) => {
        $($(#[$doc])* #[test]
        fn $name() {
            isolated(concat!("under_each_switch::", stringify!($name)), || {
                holds(stringify!($name), $config, $least);
            });
        })+
    };
}

switches! {
    cupti_12_0: usual().cupti_version(CuptiVersion::V12_0), 70;
    cupti_12_4: usual().cupti_version(CuptiVersion::V12_4), 80;
    cupti_12_9: usual().cupti_version(CuptiVersion::V12_9), 90;
    cupti_13_0: usual().cupti_version(CuptiVersion::V13_0), 90;
    cupti_13_1: usual().cupti_version(CuptiVersion::V13_1), 90;
    cupti_13_4: usual().cupti_version(CuptiVersion::V13_4), 90;
    // What nobody says.
    ids_pushed_inside_the_callback_count: usual().push_inside_enter_counts(true), 90;
    runtime_calls_share_ids: usual().runtime_calls(RuntimeCalls::SameCorrelationId), 90;
    runtime_calls_have_ids: usual().runtime_calls(RuntimeCalls::OwnCorrelationId), 90;
    correlation_ids_wrap: usual().first_correlation_id(u32::MAX - 400), 90;
    programmatic_launches_never_overlap: with(model().programmatic_overlap_percent(0)), 90;
    half_of_programmatic_launches_overlap: with(model().programmatic_overlap_percent(50).seed(7)), 90;
    a_doorbell_covers_two: with(model().operations_per_doorbell(2)), 90;
    a_doorbell_covers_four: with(model().operations_per_doorbell(4)), 90;
    failed_waits_are_recorded: usual().failed_waits_are_recorded(true), 90;
    graph_ids_come_again: usual().reuse_graph_ids(true), 90;
    buffers_are_not_per_thread: usual().per_thread_buffers(Some(false)), 90;
    the_neighbour_preempts_at_any_time: neighbour(2_000_000, 0), 80;
    the_neighbour_preempts_at_points: neighbour(1_000_000, 100_000), 80;
    the_neighbour_waits_for_kernels: neighbour(2_000_000, u64::MAX), 80;
    // Devices and drivers.
    contexts_are_shared_via_mps: usual().mps(true), 80;
    device_time_ticks_in_32_ns: with(model().device_tick_ns(32)), 90;
    device_time_ticks_in_1_us: with(model().device_tick_ns(1_000)), 90;
    device_time_is_ahead: with(model().device_skew_ns(700)), 90;
    device_time_is_behind: with(model().device_skew_ns(-700)), 90;
    dispatch_takes_6_us: with(model().dispatch_ns(6_000)), 90;
    the_device_has_no_latency: with(model().dispatch_ns(0).doorbell_ns(0)), 90;
    there_are_two_channels: with(model().channels(2)), 90;
    fences_take_long: with(model().spin_fence_ns(3_000).sleep_fence_ns(30_000)), 90;
    the_tracer_takes_long: usual().instrumentation_ns(700).buffer_request_ns(20_000), 90;
    // Records.
    records_are_lost: faults(Faults::default().lose_record_every_nth(11)), 1;
    records_are_dropped: faults(Faults::default().drop_record_every_nth(11)), 1;
    records_of_calls_are_lost: faults(Faults::default().lose_call_record_every_nth(11)), 1;
    records_of_calls_are_dropped: faults(Faults::default().drop_call_record_every_nth(11)), 1;
    records_are_incomplete: faults(Faults::default().incomplete_record_every_nth(11)), 1;
    records_have_no_times: usual().zero_time_every_nth(7), 1;
    records_come_twice: faults(Faults::default().duplicate_record_every_nth(5)), 90;
    records_come_in_any_order: faults(Faults::default().shuffle_buffers(true).seed(3)), 90;
    clone_callbacks_are_lost: faults(Faults::default().lose_clone_callback_every_nth(2)), 80;
    device_time_steps_back: with(model().device_step_at_ns(1_110_000_000).device_step_ns(-3_000_000)), 1;
    device_time_steps_ahead: with(model().device_step_at_ns(1_110_000_000).device_step_ns(3_000_000)), 1;
}

/// All pairs of causes, and triples by chance, with each kind of evidence taken away.
fn holds_for_all(what: &str, config: Config) {
    let run = Run::of(&every_combination(200), config, Tier::Explain);
    report(&format!("all pairs, {what}"), &run.score());
    for without in kinds() {
        let (rows, lives) = judge_without(without, &run.recorded.report.observations);
        report(
            &format!("all pairs, {what}, without {without:?}"),
            &run.score_of(&rows, &lives),
        );
    }
}

macro_rules! switches_for_all {
    ($($name:ident: $config:expr;)+) => {
        $(#[test]
        #[ignore = "half a minute: .ci/long"]
        fn $name() {
            isolated(concat!("under_each_switch::", stringify!($name)), || {
                holds_for_all(stringify!($name), $config);
            });
        })+
    };
}

switches_for_all! {
    all_usual: usual();
    all_a_doorbell_covers_two: with(model().operations_per_doorbell(2));
    all_there_are_two_channels: with(model().channels(2));
    all_the_neighbour_waits_for_kernels: neighbour(2_000_000, u64::MAX);
    all_cupti_12_0: usual().cupti_version(CuptiVersion::V12_0);
    all_records_are_lost: faults(Faults::default().lose_record_every_nth(11).seed(5));
    all_records_of_calls_are_lost: faults(Faults::default().lose_call_record_every_nth(7).seed(2));
    all_records_are_incomplete: faults(Faults::default().incomplete_record_every_nth(7).seed(2));
    all_clone_callbacks_are_lost: faults(Faults::default().lose_clone_callback_every_nth(3).seed(2));
    all_records_have_no_times: usual().zero_time_every_nth(5);
    all_the_device_has_no_latency: with(model().dispatch_ns(0).doorbell_ns(0));
    all_the_device_is_slow: with(model().dispatch_ns(6_000).doorbell_ns(3_000));
    all_half_of_programmatic_launches_overlap: with(model().programmatic_overlap_percent(50).seed(3));
    all_device_time_ticks_in_1_us: with(model().device_tick_ns(1_000).operations_per_doorbell(3));
    all_device_time_is_behind: with(model().device_skew_ns(-900));
}

/// Some number of each switch and fault at once, by chance; `LINEAGE_SEED` chooses another one.
#[test]
#[ignore = "half a minute: .ci/long"]
fn all_by_chance() {
    isolated("under_each_switch::all_by_chance", || {
        let seed = std::env::var("LINEAGE_SEED")
            .ok()
            .and_then(|of| of.parse().ok());
        let mut state: u64 = seed.unwrap_or(1);
        let mut draw = |of: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % of
        };
        let model = model()
            .operations_per_doorbell(1 + draw(4) as u32)
            .channels(2 + draw(5) as u32)
            .dispatch_ns(draw(5) * 700)
            .doorbell_ns(draw(3) * 300)
            .device_tick_ns([1, 32, 500][draw(3) as usize])
            .programmatic_overlap_percent(draw(3) as u32 * 50)
            .ring_entries(48 + draw(3) as u32 * 500)
            .seed(draw(100));
        let every = |draw: u64| if draw < 3 { 0 } else { 7 + draw as u32 };
        // Of one launch not both records are lost: of that nobody would know.
        let lost = match (draw(2), every(draw(9))) {
            (0, nth) => Faults::default().lose_record_every_nth(nth),
            (_, nth) => Faults::default().lose_call_record_every_nth(nth),
        };
        let faults = lost
            .seed(draw(50))
            .incomplete_record_every_nth(every(draw(9)))
            .duplicate_record_every_nth(every(draw(9)))
            .lose_clone_callback_every_nth(every(draw(9)))
            .shuffle_buffers(draw(2) == 1);
        let versions = CuptiVersion::ALL;
        let version = versions[draw(versions.len() as u64) as usize];
        let config = with(model).faults(faults).cupti_version(version);
        println!("{config:?}");
        holds_for_all("by chance", config);
    });
}
