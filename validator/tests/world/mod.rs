//! Random sessions that are sound by construction, and ways to break them.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses what it needs"
)]

use lineage_core::id::*;
use lineage_core::observation::*;
use proptest::prelude::*;

use crate::recording::{Launch, Recording, api, at, epoch};

/// So many cases, unless the environment asks for another number.
pub fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig {
        cases: if asked { default.cases } else { cases },
        failure_persistence: None,
        ..default
    }
}

/// One launch of a world.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// Which thread.
    pub thread: u8,
    /// Which of the thread's epochs.
    pub epoch: u8,
    /// Nanoseconds since the launch before it, on whatever thread.
    pub pause: u16,
    /// How far the id moves on.
    pub ids: u32,
    /// Inside a runtime call, whose id is its own or the same.
    pub runtime: Option<bool>,
    /// The operation's kind.
    pub kind: ActivityKind,
    /// What is seen of the epoch: external record, callback.
    pub external: bool,
    /// Whether our own callback saw it; one of the two did.
    pub callback: bool,
}

/// A session: its steps, its threads, and the id before its first.
#[derive(Debug, Clone)]
pub struct World {
    pub steps: Vec<Step>,
    pub threads: u8,
    pub before: u32,
    /// Seed of the order in which records come.
    pub order: u64,
    /// By how many launches a buffer may come late; `None` if records come in any order at all.
    pub delay: Option<u8>,
}

/// An operation's call on the wire, its start, and whose it is.
#[derive(Debug, Clone, Copy)]
pub struct Truth {
    pub correlation: u32,
    pub called: u64,
    pub epoch: u64,
}

pub fn steps() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        4 => Just(ActivityKind::Kernel),
        1 => Just(ActivityKind::Copy),
        1 => Just(ActivityKind::Set),
    ];
    let ids = prop_oneof![9 => 1u32..4, 1 => 0x2000_0000u32..0x6000_0000];
    let runtime = prop_oneof![3 => Just(None), 1 => Just(Some(true)), 1 => Just(Some(false))];
    let sources =
        prop_oneof![4 => Just((true, true)), 1 => Just((true, false)), 1 => Just((false, true))];
    (0u8..3, 0u8..3, 500u16..5_000, ids, runtime, kind, sources).prop_map(
        |(thread, epoch, pause, ids, runtime, kind, (external, callback))| Step {
            thread,
            epoch,
            pause,
            ids,
            runtime,
            kind,
            external,
            callback,
        },
    )
}

pub fn worlds() -> impl Strategy<Value = World> {
    let before = prop_oneof![Just(0u32), Just(u32::MAX - 5), any::<u32>()];
    (
        prop::collection::vec(steps(), 3..25),
        1u8..4,
        before,
        any::<u64>(),
    )
        .prop_map(|(steps, threads, before, order)| World {
            steps,
            threads,
            before,
            order,
            delay: None,
        })
}

/// A small generator of its own, so that an order is the same wherever it is used.
pub fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for at in (1..items.len()).rev() {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        items.swap(at, (seed >> 33) as usize % (at + 1));
    }
}

/// Rings, buffers of calls and buffers of operations, three to a launch: rings come in order,
/// buffers up to so many launches late.
fn late(chunks: &mut Vec<Recording>, seed: u64, delay: u8) {
    let mut delays: Vec<usize> = (0..chunks.len())
        .map(|at| at % (usize::from(delay) + 1))
        .collect();
    shuffle(&mut delays, seed);
    let comes =
        |(at, delay): (usize, usize)| 3 * (at / 3 + if at % 3 == 0 { 0 } else { delay }) + at % 3;
    let places: Vec<usize> = delays.into_iter().enumerate().map(comes).collect();
    let mut placed: Vec<(usize, Recording)> = places.into_iter().zip(chunks.drain(..)).collect();
    placed.sort_by_key(|(place, _)| *place);
    chunks.extend(placed.into_iter().map(|(_, chunk)| chunk));
}

impl World {
    /// The epoch of a step.
    fn epoch_of(&self, step: &Step) -> u64 {
        1 + u64::from(step.thread % self.threads) * 3 + u64::from(step.epoch)
    }

    pub fn tid(&self, step: &Step) -> u64 {
        100 + u64::from(step.thread % self.threads)
    }

    /// The launches with their times and ids, and the runtime call around each.
    pub fn launches(&self) -> Vec<(Launch, Option<ApiRecord>)> {
        let (mut called, mut id) = (10_000_u64, self.before);
        let mut tokens = [0_u64; 4];
        let mut advance = |by: u32| {
            // CUPTI gives no call the id 0, which means "none".
            id = id.wrapping_add(by);
            id = if id == 0 { 1 } else { id };
            id
        };
        let mut launches = Vec::new();
        for step in &self.steps {
            called += u64::from(step.pause) + 400;
            let thread = usize::from(step.thread % self.threads);
            tokens[thread] += 1;
            let outer = advance(step.ids);
            let inner = match step.runtime {
                Some(true) => advance(1),
                _ => outer,
            };
            let mut launch = Launch::of(epoch(self.epoch_of(step)), self.tid(step), inner, called);
            launch.token = tokens[thread];
            for operation in &mut launch.operations {
                operation.kind = step.kind;
                operation.stream = 7 + u32::try_from(thread).unwrap_or_default();
            }
            launch.external = launch.external.filter(|_| step.external);
            launch.callback = launch.callback.filter(|_| step.callback);
            launch.in_boundary = step.external;
            let runtime = step.runtime.map(|_| ApiRecord {
                api: api(ApiDomain::Runtime, "cudaLaunchKernel_v7000"),
                correlation: CorrelationId(outer),
                start: Some(at(called - 50)),
                end: Some(at(called + 150)),
                ..launch.record()
            });
            launches.push((launch, runtime));
        }
        launches
    }

    /// Whose each operation is.
    pub fn truth(&self) -> Vec<Truth> {
        let launches = self.launches();
        let of = |((launch, _), step): (&(Launch, Option<ApiRecord>), &Step)| Truth {
            correlation: launch.correlation,
            called: launch.called,
            epoch: self.epoch_of(step),
        };
        launches.iter().zip(&self.steps).map(of).collect()
    }

    /// The whole recording, made of these launches; its records in the world's order.
    pub fn recording_of(&self, launches: &[(Launch, Option<ApiRecord>)]) -> Recording {
        let mut recording = Recording::new();
        for thread in 0..self.threads {
            recording.thread(100 + u64::from(thread), 20);
            for number in 0..3 {
                let id = 1 + u64::from(thread) * 3 + number;
                recording.declare(id, 100 + u64::from(thread), 1_000 + id);
            }
        }
        // Rings are read thread by thread; buffers come in any order, each in its own.
        let mut chunks: Vec<Recording> = Vec::new();
        for (launch, runtime) in launches {
            let mut rings = Recording::default();
            rings.launch(&Launch {
                external: None,
                record: false,
                operations: Vec::new(),
                ..launch.clone()
            });
            let mut buffer = Recording::default();
            buffer.launch(&Launch {
                callback: None,
                scope: None,
                operations: Vec::new(),
                ..launch.clone()
            });
            if let Some(runtime) = runtime {
                buffer.saw(runtime.clone());
            }
            let mut device = Recording::default();
            for operation in &launch.operations {
                device.saw(operation.clone());
            }
            chunks.extend([rings, buffer, device]);
        }
        match self.delay {
            None => shuffle(&mut chunks, self.order),
            Some(delay) => late(&mut chunks, self.order, delay),
        }
        for chunk in chunks {
            recording.observations.extend(chunk.observations);
        }
        recording.end(1, 10_000_000);
        recording
    }

    pub fn recording(&self) -> Recording {
        self.recording_of(&self.launches())
    }
}

/// Whether a step at this place has one after it, so that it is no edge of the recording.
pub fn is_inner(world: &World, place: usize) -> bool {
    place > 0 && place + 1 < world.steps.len()
}
