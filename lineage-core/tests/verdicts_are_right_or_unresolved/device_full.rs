//! Kernels that wait for room: claimed is what the footprints prove, and nothing else.

use lineage_core::verdict::VerdictKind;
use lineage_sim_model::{Footprint, Settings, Work};

use crate::scenario::Scenario;
use crate::scenarios::{total, verdicts};
use crate::score::{judge, score};
use crate::without::Without;
use crate::world::{Launch, World};

/// Four multiprocessors of 2,048 threads, 65,536 registers, 233,472 bytes of shared memory and 32
/// blocks each.
fn four() -> Settings {
    Settings::default()
        .dispatch_ns(800)
        .doorbell_ns(200)
        .multiprocessors(4)
}

fn kernel(stream: u32, name: &'static str, of: Footprint, ns: u64) -> Launch {
    Launch {
        work: Work::kernel_with(of, ns),
        ..Launch::kernel(stream, name, ns)
    }
}

/// A world in which the dispatch floor is known.
fn warm(settings: Settings) -> (World, u32) {
    let mut world = World::new(settings);
    let first = world.stream();
    for _ in 0..30 {
        world.launch(Launch::kernel(first, "gemv", 40_000));
    }
    world.synchronise(first);
    (world, first)
}

/// A kernel of 400,000 runs in one stream, and 10,000 later another is launched in a second one.
fn play(running: Footprint, waiting: Footprint, settings: Settings) -> Scenario {
    let (mut world, first) = warm(settings);
    let second = world.stream();
    world.launch(kernel(first, "running", running, 400_000));
    world.rest(10_000);
    let (number, _) = world.launch(kernel(second, "waiting", waiting, 20_000));
    Scenario {
        target: u64::from(number),
        recorded: world.finish(),
    }
}

/// The wrong claims, and how many waits for the device are claimed.
fn wrong(scenario: &Scenario, without: Without) -> (Vec<String>, usize) {
    let (rows, lives) = judge(&scenario.recorded, without);
    let segments = lives.iter().flat_map(|life| &life.segments);
    let waits = segments.filter(|of| of.verdict.kind() == VerdictKind::DeviceWait);
    let waits = waits.count();
    (score(&scenario.recorded, &rows, &lives).wrong, waits)
}

/// Which limit it is, by hand: what runs takes all of four multiprocessors, or what it leaves of each
/// is too little for one block.
#[test]
fn a_kernel_without_room_waits_for_the_one_that_left_none() {
    let of = Footprint::new;
    for (limit, running, waiting) in [
        // 2 blocks of 1,024 threads on each of four.
        ("threads", of(8, 1_024), of(1, 32)),
        // 32 of 32.
        ("blocks", of(128, 32), of(1, 32)),
        // 256 threads of 128 registers are half of 65,536; the same once more has no room.
        (
            "registers",
            of(8, 256).registers(32_768),
            of(2, 256).registers(32_768),
        ),
        // One of 160 KiB on each, and 228 in all.
        (
            "shared memory",
            of(4, 128).shared_bytes(163_840),
            of(1, 128).shared_bytes(81_920),
        ),
    ] {
        let scenario = play(running, waiting, four());
        let found = verdicts(&scenario, Without::Nothing);
        // 400,000, less the rest of 10,000, and twice 5,000 and a little of the calls.
        let waited = total(&found, VerdictKind::DeviceWait);
        assert!((380_000..=390_000).contains(&waited), "{limit}: {found:?}");
        assert_eq!(total(&found, VerdictKind::Unresolved), 0, "{limit}");
        for without in Without::ALL {
            assert_eq!(wrong(&scenario, without).0, [""; 0], "{limit} {without:?}");
        }
        for without in [
            Without::Footprints,
            Without::Descriptions,
            Without::OrderCalls,
        ] {
            let found = verdicts(&scenario, without);
            assert_eq!(
                total(&found, VerdictKind::DeviceWait),
                0,
                "{limit} {without:?}"
            );
            let unresolved = total(&found, VerdictKind::Unresolved);
            assert!(unresolved > 380_000, "{limit} {without:?}: {found:?}");
        }
    }
}

/// What fits beside another does not wait for it.
#[test]
fn a_kernel_that_fits_beside_another_did_not_wait_for_it() {
    let of = Footprint::new;
    for (running, waiting) in [
        // Half of the threads are free.
        (of(4, 1_024), of(1, 1_024)),
        // A block less than all: one multiprocessor has room.
        (of(7, 1_024), of(1, 1_024)),
        (of(127, 32), of(1, 32)),
        // 64 KiB are free.
        (
            of(4, 128).shared_bytes(163_840),
            of(1, 128).shared_bytes(65_536),
        ),
    ] {
        let found = verdicts(&play(running, waiting, four()), Without::Nothing);
        assert_eq!(total(&found, VerdictKind::DeviceWait), 0, "{found:?}");
        assert_eq!(total(&found, VerdictKind::Unresolved), 0, "{found:?}");
    }
}

/// In the last wave there is room: how long a kernel left none is not known of one that began before
/// the other ended.
#[test]
fn what_begins_in_the_tail_of_another_is_not_claimed_to_have_waited_for_it() {
    // Two waves: 8 blocks, then 2.
    let scenario = play(Footprint::new(10, 1_024), Footprint::new(1, 1_024), four());
    let found = verdicts(&scenario, Without::Nothing);
    assert_eq!(total(&found, VerdictKind::DeviceWait), 0, "{found:?}");
    // One wave of the two, less what the host took.
    let unresolved = total(&found, VerdictKind::Unresolved);
    assert!((380_000..=390_000).contains(&unresolved), "{found:?}");
    // Two full ones are known as one is.
    let scenario = play(Footprint::new(16, 1_024), Footprint::new(1, 1_024), four());
    let found = verdicts(&scenario, Without::Nothing);
    let waited = total(&found, VerdictKind::DeviceWait);
    assert!((780_000..=790_000).contains(&waited), "{found:?}");
}

/// A kernel of a higher priority takes the room that another's end made, though it came later. That the
/// one that was overtaken waited for either is not claimed.
#[test]
fn what_is_overtaken_is_not_claimed_to_have_waited() {
    let full = Footprint::new(8, 1_024);
    let (mut world, first) = warm(four());
    let (second, urgent) = (world.stream(), world.stream_of(-1));
    world.launch(kernel(first, "running", full, 400_000));
    world.rest(10_000);
    let (number, _) = world.launch(kernel(second, "waiting", full, 20_000));
    world.rest(10_000);
    let (overtakes, _) = world.launch(kernel(urgent, "urgent", full, 300_000));
    let recorded = world.finish();
    for (target, claimed) in [(number, false), (overtakes, true)] {
        let scenario = Scenario {
            target: u64::from(target),
            recorded: recorded.clone(),
        };
        let found = verdicts(&scenario, Without::Nothing);
        let waited = total(&found, VerdictKind::DeviceWait);
        assert_eq!(waited > 0, claimed, "{target}: {found:?}");
        assert_eq!(wrong(&scenario, Without::Nothing).0, [""; 0]);
    }
}

/// What is ahead in its channel waits for the kernel that fills the device, and ends with it: the room is
/// not what was waited for.
#[test]
fn what_was_behind_others_in_its_channel_is_not_claimed_to_have_waited_for_room() {
    let full = Footprint::new(8, 1_024);
    for launches_behind in [true, false] {
        let (mut world, first) = warm(four().channels(2));
        // The third shares the first one's channel, and the fourth the second one's.
        let [second, _, fourth] = [world.stream(), world.stream(), world.stream()];
        world.launch(kernel(first, "running", full, 400_000));
        world.rest(10_000);
        world.wait_event(first, second);
        if launches_behind {
            world.launch(Launch::kernel(second, "behind", 5_000));
        }
        let (number, _) = world.launch(kernel(fourth, "waiting", full, 20_000));
        let scenario = Scenario {
            target: u64::from(number),
            recorded: world.finish(),
        };
        let found = verdicts(&scenario, Without::Nothing);
        assert_eq!(total(&found, VerdictKind::DeviceWait), 0, "{found:?}");
        for without in Without::ALL {
            assert_eq!(wrong(&scenario, without).0, [""; 0], "{without:?}");
        }
    }
}

/// An event's record waits for what is before it in its stream, and holds up its channel meanwhile.
#[test]
fn what_was_behind_an_events_record_in_its_channel_is_not_claimed_to_have_waited_for_room() {
    let full = Footprint::new(8, 1_024);
    let (mut world, first) = warm(four().channels(2));
    // The third shares the first one's channel.
    let [second, third] = [world.stream(), world.stream()];
    world.launch(kernel(first, "running", full, 400_000));
    world.wait_event(first, second);
    let (number, _) = world.launch(kernel(third, "waiting", full, 20_000));
    unclaimed(number, world);
}

/// An event whose record is held up in its channel happens later than what is before it in its stream
/// ends, and no record says when.
#[test]
fn what_waited_for_an_event_that_no_time_is_known_of_is_not_claimed_to_have_waited_for_room() {
    let full = Footprint::new(8, 1_024);
    let (mut world, first) = warm(four().channels(2));
    let [second, third] = [world.stream(), world.stream()];
    world.launch(Launch::kernel(third, "before", 5_000));
    world.rest(50_000);
    world.launch(kernel(first, "running", full, 400_000));
    // It holds the third stream's channel until that has ended.
    world.launch(Launch::kernel(first, "behind", 5_000));
    world.wait_event(third, second);
    let (number, _) = world.launch(kernel(second, "waiting", full, 20_000));
    unclaimed(number, world);
}

/// That it waited for room is not claimed, whatever is missing.
fn unclaimed(number: u32, world: World) {
    let scenario = Scenario {
        target: u64::from(number),
        recorded: world.finish(),
    };
    for without in Without::ALL {
        let found = verdicts(&scenario, without);
        assert_eq!(total(&found, VerdictKind::DeviceWait), 0, "{found:?}");
    }
    let waits_unresolved = total(
        &verdicts(&scenario, Without::Nothing),
        VerdictKind::Unresolved,
    );
    assert!(waits_unresolved > 300_000, "{waits_unresolved}");
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn footprint(&mut self) -> Footprint {
        let threads = [32, 64, 256, 512, 1_024][self.below(5) as usize];
        let registers = [0, 16, 32, 40, 64][self.below(5) as usize];
        let shared = [0, 0, 0, 16_384, 81_920, 163_840][self.below(6) as usize];
        let blocks = [1, 2, 4, 8, 16, 32, 64, 128, 130][self.below(9) as usize];
        Footprint::new(blocks, threads)
            .registers(registers * threads)
            .shared_bytes(shared)
    }
}

/// Kernels of all sizes in several streams, of several priorities, behind events and copies, on devices
/// with few channels and many: every claim is right.
#[test]
fn every_wait_for_room_is_right_among_kernels_of_all_sizes() {
    let mut claims = 0;
    // Of the second range are two that were wrong once, and of the first eight claims of a dependency.
    for seed in (0..120).chain(1_050..1_100) {
        let mut chance = Chance(seed * 7_919 + 1);
        let channels = [0, 0, 2, 3][chance.below(4) as usize];
        let multiprocessors = [1, 2, 4, 0][chance.below(4) as usize];
        let settings = four()
            .channels(channels)
            .multiprocessors(multiprocessors)
            .device_tick_ns([1, 32, 1_000][chance.below(3) as usize])
            .device_skew_ns([0, 0, 700, -700][chance.below(4) as usize])
            .operations_per_doorbell([1, 1, 3][chance.below(3) as usize]);
        let (mut world, first) = warm(settings);
        let priority = |chance: &mut Chance| -(chance.below(4) as i32) / 3;
        let streams = [
            first,
            world.stream_of(priority(&mut chance)),
            world.stream_of(priority(&mut chance)),
            world.stream(),
        ];
        for _ in 0..24 {
            let stream = streams[chance.below(4) as usize];
            let of = chance.footprint();
            let ns = 5_000 + chance.below(200_000);
            match chance.below(16) {
                0 => {
                    // Of no direction, so that none is said to wait for another.
                    let name = "memcpy";
                    world.launch(Launch {
                        name,
                        ..Launch::copy(stream, ns)
                    });
                }
                1 => world.wait_event(streams[chance.below(4) as usize], stream),
                2 => _ = world.synchronise(stream),
                // The same once more in another stream.
                3..=6 => {
                    world.launch(kernel(stream, "twice", of, ns));
                    let other = streams[chance.below(4) as usize];
                    world.launch(kernel(other, "twice", of, ns));
                }
                _ => _ = world.launch(kernel(stream, "once", of, ns)),
            }
            let rest = [0, 1_000, 30_000, 150_000][chance.below(4) as usize];
            world.rest(rest);
        }
        let scenario = Scenario {
            target: 1,
            recorded: world.finish(),
        };
        for without in [Without::Nothing, Without::Latency, Without::Events] {
            let (wrong, waits) = wrong(&scenario, without);
            assert_eq!(wrong, [""; 0], "{seed} {without:?} {settings:?}");
            claims += waits;
        }
        assert_eq!(wrong(&scenario, Without::Footprints).1, 0);
    }
    println!("on the simulator: {claims} waits for room claimed, all right");
    assert!(claims > 100, "{claims}");
}
