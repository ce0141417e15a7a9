//! Each fault of graphs that the simulator makes on demand, alone, in a session: the code that is raised for it, what stays right, and that
//! nothing is bound by a guess.
//!
//! Who captured a kernel and whom it is replayed for travels as data: a word in device memory, whose address is a parameter of the captured
//! kernels, and into which both numbers are copied before each replay.

#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg, sys,
};
use cudarc::nvrtc::Ptx;
use launch_lineage::core::evidence::Why;
use launch_lineage::core::fault::FaultCode::{self, L03, L06, L07, L08};
use launch_lineage::id::LaunchEpoch;
use launch_lineage::row::{Binding, Row, Template};
use launch_lineage::{Cupti, Epoch, Lineage, Report};
use lineage_cudarc::{Capture, CapturedGraph};
use lineage_sim::{Config, CuptiVersion, Faults, Gpu, isolated};
use lineage_validator::{Conclusions, Options, validate};

const PTX: &str = ".version 7.0\n.target sm_50\n.address_size 64\n\
                   .visible .entry decode(.param .u64 label) { ret; }\n\
                   .visible .entry prefill(.param .u64 label) { ret; }";
/// Kernels of a graph.
const NODES: usize = 4;
/// Replays of it.
const REPLAYS: usize = 3;
/// The kernels that run.
const KERNELS: u64 = (NODES * REPLAYS) as u64;

/// A program that captures and replays, and who it did so for.
struct Program {
    gpu: Gpu,
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    /// The kernel that another graph is captured of.
    other_kernel: CudaFunction,
    /// A word for each capture.
    words: CudaSlice<u64>,
    captures: Vec<Option<LaunchEpoch>>,
    replays: Vec<Option<LaunchEpoch>>,
    /// They live as long as the program.
    epochs: Vec<Epoch>,
}

impl Program {
    fn start(gpu: &Gpu) -> Self {
        let context = CudaContext::new(0).unwrap();
        // SAFETY: there is one stream.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().unwrap();
        let module = context.load_module(Ptx::from_src(PTX)).unwrap();
        Self {
            kernel: module.load_function("decode").unwrap(),
            other_kernel: module.load_function("prefill").unwrap(),
            // SAFETY: the words are written before each replay.
            words: unsafe { stream.alloc(4) }.unwrap(),
            gpu: gpu.clone(),
            stream,
            captures: Vec::new(),
            replays: Vec::new(),
            epochs: Vec::new(),
        }
    }

    /// A graph, captured under an epoch of its own.
    fn capture(&mut self) -> CapturedGraph {
        let epoch = Epoch::declare("capture");
        let word = self.captures.len();
        self.captures.push(epoch.id());
        let label = self.words.slice(word..=word);
        let graph = Capture::on(&self.stream).run(&epoch, || {
            (0..NODES).try_for_each(|_| {
                let mut launch = self.stream.launch_builder(&self.kernel);
                launch.arg(&label);
                // SAFETY: the kernel's one parameter is that address.
                unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }.map(drop)
            })
        });
        self.epochs.push(epoch);
        graph.expect("nothing is wrong with it")
    }

    /// All replays of it, each under an epoch of its own.
    fn replay(&mut self, graph: &mut CapturedGraph) {
        for _ in 0..REPLAYS {
            let epoch = Epoch::declare("replay");
            self.replays.push(epoch.id());
            let replay = self.replays.len() as u64;
            let mut labels: Vec<u64> = (1..=self.captures.len() as u64)
                .map(|capture| capture << 32 | replay)
                .collect();
            labels.resize(4, 0);
            epoch
                .launch(|| self.stream.memcpy_htod(&labels, &mut self.words))
                .unwrap();
            graph.launch(&epoch).unwrap();
        }
    }

    /// Ends the session and compares its rows with the truth.
    fn end(self, lineage: Lineage) -> Outcome {
        self.stream.synchronize().unwrap();
        let report = lineage.shutdown(Duration::from_secs(10));
        Outcome::of(&self, &report)
    }
}

/// What a session under a fault ended with.
#[derive(Debug, Default)]
struct Outcome {
    /// What was raised, by the session or the validator.
    codes: BTreeMap<FaultCode, u64>,
    /// Kernels that are joined to their replay and their capture.
    right: u64,
    /// Kernels that are joined to their replay, by why their capture is not known.
    unknown: BTreeMap<Why, u64>,
    /// Kernels that have no row, or one that is bound to nobody.
    lost: u64,
    /// What is joined to another than its own: always none.
    wrong: Vec<String>,
    /// Kernels whose row has another kernel's name.
    misnamed: u64,
}

impl Outcome {
    fn of(program: &Program, report: &Report) -> Self {
        let conclusions = Conclusions {
            rows: &report.rows,
            faults: &report.faults,
        };
        let validation = validate(&report.observations, Some(conclusions), &Options::default());
        let mut codes = validation.fault_counts.clone();
        codes.extend(validation.raised_by_session_only());
        let mut outcome = Self {
            codes,
            ..Self::default()
        };
        let mut rows: HashMap<(u32, u64), &Row> = HashMap::new();
        for row in &report.rows {
            if let Some(operation) = &row.operation
                && let Some(node) = operation.graph_node
            {
                rows.insert((operation.correlation.0, node), row);
            }
        }
        for kernel in &program.gpu.truth().operations {
            let (Some(node), Some(label)) = (kernel.graph, kernel.label) else {
                continue;
            };
            let capture = program.captures[(label >> 32) as usize - 1];
            let replay = program.replays[label as u32 as usize - 1];
            match rows.get(&(kernel.correlation_id, node.node_id)) {
                Some(row) => {
                    let named = row.operation.as_ref().and_then(|of| of.name.as_ref());
                    outcome.misnamed += u64::from(named != kernel.name.as_ref());
                    outcome.judge(row, capture, replay);
                }
                None => outcome.lost += 1,
            }
        }
        eprintln!("{outcome:#?}");
        outcome
    }

    fn judge(&mut self, row: &Row, capture: Option<LaunchEpoch>, replay: Option<LaunchEpoch>) {
        match row.binding {
            Binding::Bound(epoch) if Some(epoch) == replay => {}
            Binding::Lost => {
                self.lost += 1;
                return;
            }
            other => {
                self.wrong.push(format!("{other:?} and not {replay:?}"));
                return;
            }
        }
        match row.graph.map(|graph| graph.template) {
            Some(Template::Known(node)) if node.capture.epoch() == capture => self.right += 1,
            Some(Template::Unknown { why }) => *self.unknown.entry(why).or_default() += 1,
            other => self.wrong.push(format!("{other:?} and not {capture:?}")),
        }
    }

    fn assert(&self, right: u64, unknown: &[(Why, u64)], codes: &[(FaultCode, u64)]) {
        assert_eq!(self.wrong, Vec::<String>::new());
        assert_eq!(self.right, right);
        assert_eq!(self.unknown, unknown.iter().copied().collect());
        assert_eq!(self.codes, codes.iter().copied().collect());
    }
}

fn load(config: Config) -> Gpu {
    let gpu = lineage_sim::load(config).expect("the simulator loads");
    for name in ["decode", "prefill"] {
        let kernel = gpu.kernel(name).label_behind_argument(0);
        kernel.duration_ns(10_000).timed().expect("a valid name");
    }
    gpu
}

fn session() -> Lineage {
    Lineage::builder()
        .device(Cupti::new().library("libcupti.so"))
        .keep_in_memory(10_000)
        .start()
        .expect("the only session")
}

/// One graph, replayed, under these faults.
fn under(faults: Faults) -> Outcome {
    let gpu = load(Config::default().faults(faults));
    let lineage = session();
    let mut program = Program::start(&gpu);
    let mut graph = program.capture();
    program.replay(&mut graph);
    program.end(lineage)
}

#[test]
fn without_a_fault_every_owner_is_known() {
    isolated("without_a_fault_every_owner_is_known", || {
        let outcome = under(Faults::default());
        outcome.assert(KERNELS, &[], &[]);
        assert_eq!(outcome.lost, 0);
    });
}

#[test]
fn a_lost_clone_callback_is_l06_for_its_node_alone() {
    isolated("a_lost_clone_callback_is_l06_for_its_node_alone", || {
        // The first and the third of the four.
        let outcome = under(Faults::default().lose_clone_callback_every_nth(2));
        outcome.assert(
            KERNELS / 2,
            &[(Why::Dropped, KERNELS / 2)],
            &[(L06, KERNELS / 2)],
        );
        assert_eq!(outcome.lost, 0);
    });
}

#[test]
fn a_launch_whose_call_record_was_dropped_is_known_by_our_own_callback() {
    isolated(
        "a_launch_whose_call_record_was_dropped_is_known_by_our_own_callback",
        || {
            let outcome = under(Faults::default().drop_call_record_every_nth(1));
            // Of the captured calls, the copies and the replays; CUPTI counts them.
            outcome.assert(KERNELS, &[], &[(L07, 4 + 3 + 3)]);
            assert_eq!(outcome.lost, 0);
        },
    );
}

#[test]
fn a_launch_whose_call_record_was_lost_is_known_by_our_own_callback() {
    isolated(
        "a_launch_whose_call_record_was_lost_is_known_by_our_own_callback",
        || {
            let outcome = under(Faults::default().lose_call_record_every_nth(1));
            outcome.assert(KERNELS, &[], &[]);
            assert_eq!(outcome.lost, 0);
        },
    );
}

#[test]
fn a_dropped_record_of_a_node_is_counted_and_no_other_takes_its_place() {
    isolated(
        "a_dropped_record_of_a_node_is_counted_and_no_other_takes_its_place",
        || {
            // Of the copies' and the nodes' records in turn: 3 × (1 + 4) of them, the 1st, 4th, 7th, 10th and 13th.
            let outcome = under(Faults::default().drop_record_every_nth(3));
            // The 1st is a copy's, whose call has no operation then. The others' launches have some.
            outcome.assert(KERNELS - 4, &[], &[(L03, 1), (L07, 5)]);
            assert_eq!(outcome.lost, 4);
        },
    );
}

#[test]
fn a_node_without_times_is_l08_and_still_joined() {
    isolated("a_node_without_times_is_l08_and_still_joined", || {
        let gpu = load(Config::default().zero_time_every_nth(5));
        let lineage = session();
        let mut program = Program::start(&gpu);
        let mut graph = program.capture();
        program.replay(&mut graph);
        let outcome = program.end(lineage);
        outcome.assert(KERNELS, &[], &[(L08, 3)]);
    });
}

#[test]
fn a_record_that_comes_twice_is_no_second_iteration() {
    isolated("a_record_that_comes_twice_is_no_second_iteration", || {
        let outcome = under(Faults::default().duplicate_record_every_nth(2));
        outcome.assert(KERNELS, &[], &[]);
    });
}

#[test]
fn ids_that_come_again_mean_the_graph_of_their_moment() {
    isolated("ids_that_come_again_mean_the_graph_of_their_moment", || {
        let gpu = load(Config::default().reuse_graph_ids(true));
        let lineage = session();
        let mut program = Program::start(&gpu);
        for _ in 0..4 {
            let mut graph = program.capture();
            program.replay(&mut graph);
            // Destroyed while its replays are under way.
        }
        let execs: Vec<u32> = {
            program.stream.synchronize().unwrap();
            let truth = gpu.truth();
            let graphs = truth.operations.iter().filter_map(|kernel| kernel.graph);
            graphs.map(|node| node.graph_id).collect()
        };
        assert!(execs.windows(2).all(|two| two[0] == two[1]), "{execs:?}");
        program.end(lineage).assert(4 * KERNELS, &[], &[]);
    });
}

#[test]
fn a_graph_that_is_older_than_the_session_is_l06() {
    isolated("a_graph_that_is_older_than_the_session_is_l06", || {
        let gpu = load(Config::default());
        let mut program = Program::start(&gpu);
        let mut graph = program.capture();
        let lineage = session();
        program.replay(&mut graph);
        let outcome = program.end(lineage);
        outcome.assert(0, &[(Why::BeforeSession, KERNELS)], &[(L06, KERNELS)]);
        assert_eq!(outcome.lost, 0);
    });
}

/// Half of the replays come after an update from another capture.
fn updated(version: CuptiVersion) -> Outcome {
    let gpu = load(Config::default().cupti_version(version));
    let lineage = session();
    let mut program = Program::start(&gpu);
    let mut graph = program.capture();
    program.replay(&mut graph);
    let other = program.capture();
    update(&graph, &other).unwrap();
    program.replay(&mut graph);
    program.end(lineage)
}

fn update(graph: &CapturedGraph, other: &CapturedGraph) -> Result<(), DriverError> {
    let mut info = sys::CUgraphExecUpdateResultInfo_st {
        result: sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS,
        errorNode: std::ptr::null_mut(),
        errorFromNode: std::ptr::null_mut(),
    };
    let (exec, from) = (graph.graph().cu_graph_exec(), other.graph().cu_graph());
    // SAFETY: both live, this thread alone has them, and there is room for the answer.
    unsafe { sys::cuGraphExecUpdate_v2(exec, from, &mut info) }.result()
}

#[test]
fn what_an_update_left_in_a_graph_is_unknown_before_cupti_13() {
    isolated(
        "what_an_update_left_in_a_graph_is_unknown_before_cupti_13",
        || {
            let outcome = updated(CuptiVersion::V12_9);
            outcome.assert(KERNELS, &[(Why::ExecUpdated, KERNELS)], &[(L06, KERNELS)]);
            assert_eq!(outcome.lost, 0);
        },
    );
}

#[test]
fn what_an_update_left_in_a_graph_is_known_since_cupti_13() {
    isolated(
        "what_an_update_left_in_a_graph_is_known_since_cupti_13",
        || {
            updated(CuptiVersion::V13_1).assert(2 * KERNELS, &[], &[]);
        },
    );
}

/// Has the executable graph's first node run what the other graph's first node does, for the epoch that
/// captured that.
fn take_parameters_over(program: &Program, graph: &CapturedGraph, other: &CapturedGraph) {
    let first = |graph: &CapturedGraph| {
        let (mut node, mut count) = (std::ptr::null_mut(), 1);
        // SAFETY: the graph is live, and there is room for one node.
        unsafe { sys::cuGraphGetNodes(graph.graph().cu_graph(), &mut node, &mut count) }
            .result()
            .unwrap();
        node
    };
    let mut parameters = std::mem::MaybeUninit::<sys::CUDA_KERNEL_NODE_PARAMS>::zeroed();
    // SAFETY: it is a live kernel node, and there is room for the answer.
    unsafe { sys::cuGraphKernelNodeGetParams_v2(first(other), parameters.as_mut_ptr()) }
        .result()
        .unwrap();
    let (exec, node) = (graph.graph().cu_graph_exec(), first(graph));
    let epoch = program.epochs.last().expect("the other was captured");
    epoch
        .launch(|| {
            // SAFETY: both are live and this thread's alone; the driver has written the parameters, whose
            // values are the other graph's, which lives.
            unsafe { sys::cuGraphExecKernelNodeSetParams_v2(exec, node, parameters.as_ptr()) }
                .result()
        })
        .unwrap();
}

#[test]
fn a_stale_record_has_the_name_from_before_and_is_joined_all_the_same() {
    isolated(
        "a_stale_record_has_the_name_from_before_and_is_joined_all_the_same",
        || {
            let faults = Faults::default().stale_node_records(true);
            let gpu = load(
                Config::default()
                    .cupti_version(CuptiVersion::V12_9)
                    .faults(faults),
            );
            let lineage = session();
            let mut program = Program::start(&gpu);
            let mut graph = program.capture();
            program.replay(&mut graph);
            std::mem::swap(&mut program.kernel, &mut program.other_kernel);
            let other = program.capture();
            take_parameters_over(&program, &graph, &other);
            program.replay(&mut graph);
            let outcome = program.end(lineage);
            outcome.assert(2 * KERNELS, &[], &[]);
            assert_eq!((outcome.lost, outcome.misnamed), (0, REPLAYS as u64));
        },
    );
}
