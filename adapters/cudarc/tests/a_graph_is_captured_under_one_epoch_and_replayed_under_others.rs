//! What a graph's kernels are joined to, what refuses to begin, and what is left behind by a capture that fails.

#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys::CUstreamCaptureStatus;
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use lineage_core::observation::{EdgeKind, Event, GraphChange, GraphEvent, Observation};
use lineage_core::row::{Binding, Row, Template};
use lineage_core::{Attribution, Epoch, LaunchEpoch, Lineage, Report, current};
use lineage_cudarc::{Capture, CaptureError, CaptureMode, GraphExt as _, LaunchError};
use lineage_cudarc::{CapturedGraph, pause_event_tracking};
use lineage_cupti::Cupti;
use lineage_sim::{Config, Gpu, Settings, isolated};

const PTX: &str = ".version 8.0 .target sm_90 .entry work(.param .u64 label) { ret; }";

/// A context with one stream and one kernel, recorded from before the first call.
struct Program {
    gpu: Gpu,
    lineage: Lineage,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    work: CudaFunction,
    label: CudaSlice<u64>,
}

impl Program {
    fn start() -> Self {
        let config = Config::default().model(Settings::default().devices(2));
        let gpu = lineage_sim::load(config).expect("the simulator loads");
        let work = gpu.kernel("work").label_behind_argument(0);
        work.timed().expect("the name is valid");
        let lineage = Lineage::builder()
            .device(Cupti::new().library("libcupti.so"))
            .keep_in_memory(10_000)
            .start()
            .expect("no other session runs");
        let context = CudaContext::new(0).unwrap();
        // SAFETY: each test uses its memory on one stream, or orders its streams itself.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().unwrap();
        let module = context.load_module(Ptx::from_src(PTX)).unwrap();
        Self {
            work: module.load_function("work").unwrap(),
            label: stream.alloc_zeros(1).unwrap(),
            gpu,
            lineage,
            context,
            stream,
        }
    }

    /// One kernel, on the program's stream.
    fn work(&self) -> Result<(), DriverError> {
        let mut launch = self.stream.launch_builder(&self.work);
        launch.arg(&self.label);
        // SAFETY: the kernel's one parameter is that address.
        unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }.map(drop)
    }

    /// A graph of so many kernels.
    fn capture(&self, kernels: usize, epoch: &Epoch) -> CapturedGraph {
        let capture = Capture::on(&self.stream);
        let graph = capture.run(epoch, || (0..kernels).try_for_each(|_| self.work()));
        graph.expect("nothing is wrong with it")
    }

    fn end(self) -> Report {
        self.stream.synchronize().unwrap();
        assert_eq!(self.gpu.counts().panics_caught, 0);
        self.lineage.shutdown(Duration::from_secs(10))
    }
}

fn id(epoch: &Epoch) -> LaunchEpoch {
    epoch.id().expect("a session records")
}

/// The epochs that graph nodes' rows are bound to, in the order of their start.
fn replayed(report: &Report) -> Vec<LaunchEpoch> {
    let of_a_graph = |row: &&Row| {
        let operation = row.operation.as_ref();
        operation.is_some_and(|operation| operation.graph_node.is_some())
    };
    let mut rows: Vec<&Row> = report.rows.iter().filter(of_a_graph).collect();
    rows.sort_by_key(|row| row.operation.as_ref().and_then(|operation| operation.start));
    let bound = rows.iter().map(|row| match row.binding {
        Binding::Bound(epoch) => epoch,
        other => panic!("a replayed kernel is {other:?}"),
    });
    bound.collect()
}

/// What a replayed kernel's node was captured under.
fn captured_under(row: &Row) -> Option<Attribution> {
    row.operation.as_ref()?.graph_node?;
    match row.graph.expect("it ran in a graph").template {
        Template::Known(node) => Some(node.capture),
        other => panic!("its template is {other:?}"),
    }
}

/// The kinds of the edges that an observation tells.
fn edges(observation: &Observation) -> Vec<EdgeKind> {
    match &observation.event {
        Event::Graph(GraphEvent {
            change: GraphChange::Edges { edges, .. },
            ..
        }) => edges.iter().map(|edge| edge.kind).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn each_replay_belongs_to_its_own_epoch_whoever_captured() {
    isolated(
        "each_replay_belongs_to_its_own_epoch_whoever_captured",
        || {
            let program = Program::start();
            let capture = Epoch::declare("capture");
            let [first, second, third] = ["first", "second", "third"].map(Epoch::declare);
            let mut graph = program.capture(2, &capture);
            assert_eq!(graph.capture_epoch(), Some(id(&capture)));
            assert_eq!(graph.edges(), Ok(Some(1)), "one node behind the other");
            graph.launch(&first).unwrap();
            graph.launch(&second).unwrap();
            let other = program.context.new_stream().unwrap();
            other.join(&program.stream).unwrap();
            graph.launch_on(&other, &third).unwrap();
            // cudarc's own graph, in its own words.
            graph.graph().launch_in_epoch(&first).unwrap();
            // An inert epoch's boundary is that of what is current.
            second.run(|| graph.launch(&Epoch::inert())).unwrap();
            other.synchronize().unwrap();
            let expected = [&first, &second, &third, &first, &second].map(id);
            let captured = Attribution::Epoch(id(&capture));
            let report = program.end();
            assert_eq!(replayed(&report), expected.map(|epoch| [epoch; 2]).concat());
            let templates: Vec<_> = report.rows.iter().filter_map(captured_under).collect();
            assert_eq!(templates, [captured; 10]);
            let kinds: Vec<EdgeKind> = report.observations.iter().flat_map(edges).collect();
            assert_eq!(kinds, [EdgeKind::Completion]);
        },
    );
}

#[test]
fn a_graph_is_sent_to_another_thread_launched_and_dropped_there() {
    isolated(
        "a_graph_is_sent_to_another_thread_launched_and_dropped_there",
        || {
            let program = Program::start();
            let mut graph = program.capture(1, &Epoch::declare("capture"));
            let request = Epoch::declare("request");
            let expected = id(&request);
            std::thread::spawn(move || graph.launch(&request).unwrap())
                .join()
                .unwrap();
            program.context.check_err().unwrap();
            assert_eq!(replayed(&program.end()), [expected]);
        },
    );
}

#[test]
fn another_contexts_stream_is_refused() {
    isolated("another_contexts_stream_is_refused", || {
        let program = Program::start();
        let epoch = Epoch::declare("request");
        let mut graph = program.capture(1, &epoch);
        let other = CudaContext::new(1).unwrap().new_stream().unwrap();
        let refused = graph.launch_on(&other, &epoch);
        assert!(
            matches!(refused, Err(LaunchError::OtherContext)),
            "{refused:?}"
        );
        assert_eq!(replayed(&program.end()), []);
    });
}

#[test]
fn a_context_that_tracks_events_cannot_capture_until_tracking_is_paused() {
    isolated(
        "a_context_that_tracks_events_cannot_capture_until_tracking_is_paused",
        || {
            let mut program = Program::start();
            // SAFETY: the slice that was made without tracking is replaced right away.
            unsafe { program.context.enable_event_tracking() };
            program.label = program.stream.alloc_zeros(1).unwrap();
            let epoch = Epoch::declare("capture");
            let calls = program.gpu.counts().api_calls;
            let refused = Capture::on(&program.stream).run(&epoch, || program.work());
            assert!(
                matches!(refused, Err(CaptureError::EventTracking)),
                "{refused:?}"
            );
            assert_eq!(program.gpu.counts().api_calls, calls, "nothing was begun");

            // What it is refused for: by hand it fails at the first launch.
            program
                .stream
                .begin_capture(CaptureModeOfTheDriver::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
                .unwrap();
            program.work().unwrap_err();
            // The capture is invalid, and its end says so.
            assert!(program.stream.end_capture(no_flags()).is_err());

            program.stream.synchronize().unwrap();
            let mut graph = {
                // SAFETY: this thread alone uses the context, and makes no slice meanwhile.
                let _paused = unsafe { pause_event_tracking(&program.context) };
                program.capture(1, &epoch)
            };
            assert!(program.context.is_event_tracking(), "as it was before");
            graph.launch(&epoch).unwrap();
            let expected = id(&epoch);
            assert_eq!(replayed(&program.end()), [expected]);
        },
    );
}

#[test]
fn tracking_that_was_off_stays_off() {
    isolated("tracking_that_was_off_stays_off", || {
        let program = Program::start();
        // SAFETY: this thread alone uses the context, which tracks nothing anyway.
        drop(unsafe { pause_event_tracking(&program.context) });
        assert!(!program.context.is_event_tracking());
        program.end();
    });
}

#[test]
fn a_capture_that_fails_or_panics_leaves_nothing_open() {
    isolated("a_capture_that_fails_or_panics_leaves_nothing_open", || {
        let program = Program::start();
        let epoch = Epoch::declare("capture");
        let not_capturing = || {
            let status = program.stream.capture_status().unwrap();
            status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
        };

        let failed = Capture::on(&program.stream).run(&epoch, || {
            program.work().unwrap();
            Err(std::fmt::Error)
        });
        assert!(matches!(failed, Err(CaptureError::Work(_))), "{failed:?}");
        assert!(not_capturing());

        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            Capture::on(&program.stream)
                .mode(CaptureMode::Relaxed)
                .run::<DriverError>(&epoch, || panic!("in the middle of a capture"))
        }));
        assert!(panicked.is_err());
        assert!(not_capturing());
        assert!(current().epoch().is_none(), "the boundary was left, too");

        // A synchronisation is forbidden, and makes the capture invalid: 901 at its end.
        let invalid = Capture::on(&program.stream).run::<DriverError>(&epoch, || {
            program.stream.synchronize().unwrap_err();
            Ok(())
        });
        assert!(matches!(invalid, Err(CaptureError::End(_))), "{invalid:?}");
        assert!(not_capturing());

        let default = program.context.default_stream();
        let legacy = Capture::on(&default).run(&epoch, || Ok::<(), DriverError>(()));
        assert!(matches!(legacy, Err(CaptureError::Begin(_))), "{legacy:?}");

        program.capture(1, &epoch).launch(&epoch).unwrap();
        let expected = id(&epoch);
        assert_eq!(replayed(&program.end()), [expected]);
    });
}

use cudarc::driver::sys::CUgraphInstantiate_flags;
use cudarc::driver::sys::CUstreamCaptureMode as CaptureModeOfTheDriver;

fn no_flags() -> CUgraphInstantiate_flags {
    CUgraphInstantiate_flags(0)
}
