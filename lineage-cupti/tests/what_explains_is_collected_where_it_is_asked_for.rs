//! The tier `explain` collects what tells causes apart: calls that order work, waits and events, what
//! kind a stream is, channels, overheads, times of queueing and submission, attributes of launches.
//! The tier `correlate` collects none of it.
#![cfg(all(target_os = "linux", feature = "record"))]

use std::ffi::{CStr, c_void};

use lineage_core::observation::{
    Collected, DeviceDescribed, Event, EventRecord, LaunchAttributes, LaunchOrder, Multiprocessors,
    Overhead, OverheadKind, Placement, StreamDescribed, StreamKind, Synchronization,
    SynchronizationKind, Tenancy,
};
use lineage_core::source::Tier;
use lineage_core::{Epoch, Lineage, Report};
use lineage_cupti::Cupti;
use lineage_sim::{Config, CuptiVersion, Settings, isolated};

mod common;
use common::gpu::{self, Program};

fn all<'a, T>(report: &'a Report, of: fn(&'a Event) -> Option<&'a T>) -> Vec<&'a T> {
    let events = report.observations.iter();
    events.filter_map(|seen| of(&seen.event)).collect()
}

macro_rules! events {
    ($report:expr, $name:ident($inner:ident)) => {
        all::<$inner>($report, |event| match event {
            Event::$name(inner) => Some(inner),
            _ => None,
        })
    };
}

/// A launch by `cuLaunchKernelEx` with one attribute, a flag.
fn launch_with(program: &Program, attribute: u32) {
    let mut label = 1_u64;
    let mut parameters: [*mut c_void; 1] = [(&raw mut label).cast()];
    // `CUlaunchAttribute`: id, padding, 64 bytes of value.
    let mut flag = [0_u64; 9];
    flag[0] = u64::from(attribute);
    flag[1] = 1;
    // `CUlaunchConfig`: grid, block, shared memory, stream, attributes, their number.
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let config = [
        pair(1, 1),
        pair(1, 32),
        pair(1, 1),
        pair(0, 0),
        program.stream() as u64,
        flag.as_ptr() as u64,
        pair(1, 0),
    ];
    let code = program.call(
        c"cuLaunchKernelEx",
        [
            config.as_ptr() as usize,
            program.kernel(),
            parameters.as_mut_ptr() as usize,
            0,
        ],
    );
    assert_eq!(code, 0, "cuLaunchKernelEx");
}

/// A kernel, an event behind it, a second stream that does not block and waits for it; two launches
/// with attributes: one that may overlap, and a priority.
fn run(version: CuptiVersion, tier: Tier) -> Report {
    // A ring of two entries is full at the third launch.
    let settings = Settings::default().ring_entries(2);
    let config = Config::default().cupti_version(version).model(settings);
    let sim = lineage_sim::load(config).expect("the simulator loads");
    sim.kernel("work")
        .label_argument(0)
        .duration_ns(200_000_000)
        .timed()
        .expect("a valid name");
    let session = Lineage::builder()
        .service("test")
        .tier(tier)
        .keep_in_memory(1 << 20)
        .device(Cupti::new())
        .start()
        .expect("no other session is alive");
    let program = Program::new();
    let call = |name: &CStr, parameters: [usize; 3]| {
        assert_eq!(program.call(name, parameters), 0, "{name:?}");
    };
    let (mut second, mut event) = (0_usize, 0_usize);
    call(c"cuStreamCreate", [&raw mut second as usize, 1, 0]);
    call(c"cuEventCreate", [&raw mut event as usize, 0, 0]);
    let epoch = Epoch::declare("request");
    let id = epoch.id().expect("recording").pack().bits();
    epoch.launch(|| {
        program.launch(id);
        call(c"cuEventRecord", [event, program.stream(), 0]);
        call(c"cuStreamWaitEvent", [second, event, 0]);
        launch_with(&program, 6);
        launch_with(&program, 8);
        program.launch(id);
    });
    program.synchronize();
    call(c"cuStreamSynchronize", [second, 0, 0]);
    gpu::end(session)
}

fn explained(version: CuptiVersion) {
    let report = run(version, Tier::Explain);
    assert!(
        gpu::dropped(&report).is_empty(),
        "{:?}",
        gpu::dropped(&report)
    );
    let [collected] = events!(&report, Collected(Collected))[..] else {
        panic!("said once");
    };
    assert!(collected.order_calls && collected.latency && collected.events);
    assert!(collected.overheads && collected.launch_attributes);

    let names: Vec<String> = gpu::api_records(&report)
        .iter()
        .map(|record| record.api.to_string())
        .collect();
    for name in ["cuEventRecord", "cuStreamWaitEvent", "cuStreamSynchronize"] {
        assert!(
            names.iter().any(|known| known == name),
            "{name} in {names:?}"
        );
    }

    let waits = events!(&report, Synchronization(Synchronization));
    let stream_waits: Vec<_> = waits
        .iter()
        .filter(|wait| wait.kind == SynchronizationKind::StreamWait)
        .collect();
    let records = events!(&report, EventRecord(EventRecord));
    let ([wait], [record]) = (&stream_waits[..], &records[..]) else {
        panic!("one wait and one record: {waits:?}, {records:?}");
    };
    assert_eq!(wait.event, record.event);
    assert_eq!(
        wait.event_sync.is_some() && wait.event_sync == record.event_sync,
        version >= CuptiVersion::V12_9,
        "what joins the two came with 12.8"
    );
    // When the device came to the event, CUPTI says from 13.0 on.
    let kernels = gpu::operations(&report);
    let first_end = kernels.iter().filter_map(|kernel| kernel.end).min();
    match record.device {
        Some(at) => assert!(Some(at) >= first_end, "behind the kernel"),
        None => assert!(version < CuptiVersion::V13_0),
    }
    let synchronized = waits
        .iter()
        .filter(|wait| wait.kind == SynchronizationKind::Stream);
    assert_eq!(synchronized.count(), 2);

    let streams = events!(&report, StreamDescribed(StreamDescribed));
    let kind_of = |stream: u32| {
        let described = streams.iter().find(|described| described.stream == stream);
        described.map(|described| described.kind)
    };
    assert_eq!(kind_of(kernels[0].stream), Some(StreamKind::Blocking));
    assert_eq!(
        kind_of(wait.stream.expect("named")),
        Some(StreamKind::NonBlocking)
    );
    assert!(
        streams
            .iter()
            .any(|of| of.kind == StreamKind::LegacyDefault)
    );

    // As `cuda.h` numbers them, the simulated device has two copy engines and the default compute mode.
    let [device] = events!(&report, DeviceDescribed(DeviceDescribed))[..] else {
        panic!("there is one device, and it is described once");
    };
    assert_eq!((device.device, device.copy_engines), (0, Some(2)));
    assert_eq!(device.tenancy, Some(Tenancy::Shared));
    // And, where the model sets no limit, the multiprocessors of a large device.
    let expected = Multiprocessors {
        count: Some(132),
        threads: Some(2_048),
        registers: Some(65_536),
        shared_bytes: Some(233_472),
        blocks: Some(32),
    };
    assert_eq!(device.multiprocessors, Some(expected));

    assert_eq!(kernels.len(), 4);
    for kernel in &kernels {
        let (queued, submitted) = (
            kernel.queued.expect("asked"),
            kernel.submitted.expect("asked"),
        );
        assert!(queued <= submitted && Some(submitted) <= kernel.start);
        let placed = events!(&report, Placement(Placement));
        let of_it = placed
            .iter()
            .filter(|placed| placed.correlation == kernel.correlation);
        assert_eq!(of_it.count(), 1);
    }

    let attributes = events!(&report, LaunchAttributes(LaunchAttributes));
    let orders: Vec<_> = attributes
        .iter()
        .map(|of| (of.order, of.records_event))
        .collect();
    assert_eq!(
        orders,
        [
            (LaunchOrder::Programmatic, false),
            (LaunchOrder::Strict, false)
        ],
        "of the two that have any, in their order"
    );

    let overheads = events!(&report, Overhead(Overhead));
    let full: Vec<_> = overheads
        .iter()
        .filter(|overhead| overhead.kind == OverheadKind::CommandBufferFull)
        .collect();
    // From CUDA 12.4 on.
    assert_eq!(
        full.is_empty(),
        version < CuptiVersion::V12_4,
        "{overheads:?}"
    );
    let placed = events!(&report, Placement(Placement));
    for overhead in full {
        assert_eq!(overhead.channel, Some(placed[0].channel));
        assert!(overhead.thread.is_some() && overhead.start <= overhead.end);
    }
}

#[test]
fn on_12_0() {
    isolated("on_12_0", || explained(CuptiVersion::V12_0));
}

#[test]
fn on_12_9() {
    isolated("on_12_9", || explained(CuptiVersion::V12_9));
}

#[test]
fn on_13_5() {
    isolated("on_13_5", || explained(CuptiVersion::V13_5));
}

#[test]
fn to_correlate_none_of_it_is_collected() {
    isolated("to_correlate_none_of_it_is_collected", || {
        let report = run(CuptiVersion::V13_5, Tier::Correlate);
        assert_eq!(gpu::operations(&report).len(), 4);
        assert!(
            gpu::operations(&report)
                .iter()
                .all(|one| one.queued.is_none())
        );
        let explains = report.observations.iter().filter(|seen| {
            matches!(
                seen.event,
                Event::Collected(_)
                    | Event::Synchronization(_)
                    | Event::EventRecord(_)
                    | Event::StreamDescribed(_)
                    | Event::Placement(_)
                    | Event::LaunchAttributes(_)
                    | Event::Overhead(_)
                    | Event::DeviceDescribed(_)
            )
        });
        assert_eq!(explains.count(), 0);
        let orders = gpu::api_records(&report);
        assert!(
            orders
                .iter()
                .all(|record| !record.api.to_string().contains("Event"))
        );
    });
}
