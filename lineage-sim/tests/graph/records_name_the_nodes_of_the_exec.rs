use lineage_sim::{Config, CuptiVersion, isolated, load};

use crate::call;
use crate::client::{CONCURRENT_KERNEL, Cupti, DRIVER, GRAPH_HOST_NODE, HOST_LAUNCH, Record};
use crate::driver::{Driver, Handle};

const NAME: &str = "records_name_the_nodes_of_the_exec";
/// `CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch`, and `CUPTI_ACTIVITY_KIND_GRAPH_TRACE`.
const GRAPH_LAUNCH: u32 = 514;
const GRAPH_TRACE: u32 = 51;

/// What the records say of graphs, at the offsets of the header (`CUpti_ActivityKernel9`/`13`, `Memset4`/`5`).
#[derive(Debug, PartialEq)]
struct Named {
    correlation: u32,
    graph: u32,
    node: u64,
    source_graph: Option<u32>,
    source_node: Option<u64>,
}

static NAMED: std::sync::Mutex<Vec<Named>> = std::sync::Mutex::new(Vec::new());
static TRACES: std::sync::Mutex<Vec<(u32, u32, u64, u64)>> = std::sync::Mutex::new(Vec::new());

mod raw {
    //! A reader of raw records, apart from the client's.
    use super::{NAMED, Named, TRACES};
    use std::ffi::c_void;

    static IS_13_5: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    const BYTES: usize = 64 * 1024;

    pub unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
        // SAFETY: the places are valid during the call.
        unsafe {
            *size = BYTES;
            *most = 0;
            *buffer = Box::into_raw(vec![0_u64; BYTES / 8].into_boxed_slice()).cast();
        }
    }

    pub unsafe extern "C" fn completed(
        _: *mut c_void,
        _: u32,
        buffer: *mut u8,
        _: usize,
        valid: usize,
    ) {
        let is_13_5 = IS_13_5.load(std::sync::atomic::Ordering::SeqCst);
        let mut at = 0;
        while at < valid {
            // SAFETY: inside the valid bytes, by the sizes of the header.
            let read =
                |offset: usize| unsafe { buffer.add(at + offset).cast::<u32>().read_unaligned() };
            let wide = |offset: usize| u64::from(read(offset)) | u64::from(read(offset + 4)) << 32;
            let named = |correlation, graph, node, source| Named {
                correlation: read(correlation),
                graph: read(graph),
                node: wide(node),
                source_graph: is_13_5.then(|| read(source)),
                source_node: is_13_5.then(|| wide(source + 8)),
            };
            at += match read(0) {
                2 => {
                    NAMED.lock().unwrap().push(named(44, 72, 64, 88));
                    if is_13_5 { 104 } else { 88 }
                }
                10 => {
                    NAMED.lock().unwrap().push(named(92, 156, 144, 232));
                    if is_13_5 { 248 } else { 208 }
                }
                4 => 40,
                51 => {
                    TRACES
                        .lock()
                        .unwrap()
                        .push((read(4), read(28), wide(8), wide(16)));
                    56
                }
                other => panic!("kind {other}"),
            };
        }
        // SAFETY: made by `requested`.
        drop(unsafe {
            Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                buffer.cast::<u64>(),
                BYTES / 8,
            ))
        });
    }

    pub fn open(is_13_5: bool) -> libloading::os::unix::Library {
        IS_13_5.store(is_13_5, std::sync::atomic::Ordering::SeqCst);
        // SAFETY: the simulated library, loaded before.
        let library = unsafe { libloading::os::unix::Library::new("libcupti.so") }.unwrap();
        type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
        type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
        let code = crate::call!(library, "cuptiActivityRegisterCallbacks"(requested => Requested, completed => Completed));
        assert_eq!(code, 0);
        library
    }
}

/// A capture of a set and two kernels, launched twice; the exec's and the template's node ids in the order of capture.
fn run(driver: &Driver) -> (Handle, Vec<u64>) {
    let memory = driver.allocate(64);
    assert_eq!(driver.begin_capture(driver.stream, 0), 0);
    let set = call!(driver.library, "cuMemsetD32Async"(memory => u64, 7 => u32, 16 => usize, driver.stream => Handle));
    assert_eq!(set, 0);
    driver.launch(1);
    driver.launch(2);
    let graph = driver.end_capture(driver.stream).unwrap();
    let template = driver
        .nodes(graph)
        .iter()
        .map(|node| driver.node_id(*node))
        .collect();
    let exec = driver.instantiate(graph);
    driver.launch_graph(exec, driver.stream);
    driver.launch_graph(exec, driver.stream);
    driver.synchronize();
    (exec, template)
}

fn with_version(test: &str, version: CuptiVersion) {
    isolated(&format!("{NAME}::{test}"), || {
        load(Config::default().cupti_version(version)).unwrap();
        let is_13_5 = version == CuptiVersion::V13_5;
        let driver = Driver::open();
        let cupti = raw::open(is_13_5);
        for kind in [2, 4, 10] {
            assert_eq!(call!(cupti, "cuptiActivityEnable"(kind => u32)), 0);
        }
        let (exec, template) = run(&driver);
        assert_eq!(call!(cupti, "cuptiActivityFlushAll"(0 => u32)), 0);
        let mut named = std::mem::take(&mut *NAMED.lock().unwrap());
        named.sort_by_key(|one| (one.correlation, one.node));
        assert_eq!(
            named.len(),
            6,
            "two launches of three nodes; nothing of the capture"
        );
        let (first, second) = named.split_at(3);
        assert!(first[0].correlation > 0 && second[0].correlation > first[0].correlation);
        for launch in [first, second] {
            let nodes: Vec<u64> = launch.iter().map(|one| one.node).collect();
            assert_eq!(
                nodes,
                first.iter().map(|one| one.node).collect::<Vec<_>>(),
                "the same nodes"
            );
            for (one, source) in launch.iter().zip(&template) {
                assert_eq!(one.correlation, launch[0].correlation, "the launch's");
                assert_eq!(one.graph, driver.exec_id(exec));
                assert_eq!(
                    one.node >> 32,
                    u64::from(one.graph),
                    "the graph is in the upper half"
                );
                assert_ne!(one.node, *source, "the exec's nodes are clones");
                assert_eq!(one.source_node, is_13_5.then_some(*source));
                assert_eq!(one.source_graph, is_13_5.then_some((*source >> 32) as u32));
            }
        }
    });
}

#[test]
fn in_12_9() {
    with_version("in_12_9", CuptiVersion::V12_9);
}

#[test]
fn in_13_5_with_their_sources() {
    with_version("in_13_5_with_their_sources", CuptiVersion::V13_5);
}

#[test]
fn launches_as_a_whole_hide_their_nodes() {
    isolated(
        &format!("{NAME}::launches_as_a_whole_hide_their_nodes"),
        || {
            let gpu = load(Config::default()).unwrap();
            let driver = Driver::open();
            let cupti = raw::open(false);
            for kind in [2, 10, GRAPH_TRACE] {
                assert_eq!(call!(cupti, "cuptiActivityEnable"(kind => u32)), 0);
            }
            let (exec, _) = run(&driver);
            assert_eq!(call!(cupti, "cuptiActivityFlushAll"(0 => u32)), 0);
            assert_eq!(NAMED.lock().unwrap().len(), 0);
            let traces = TRACES.lock().unwrap();
            assert_eq!(traces.len(), 2);
            let operations = gpu.truth().operations;
            assert_eq!(operations.len(), 6, "they ran all the same");
            for (at, (_, graph, start, end)) in traces.iter().enumerate() {
                assert_eq!(*graph, driver.exec_id(exec));
                let nodes = &operations[3 * at..3 * at + 3];
                let busy = nodes[2].end_ns - nodes[0].start_ns;
                assert!(end - start >= busy, "{} and {busy}", end - start);
            }
        },
    );
}

#[test]
fn a_graph_launch_is_one_call() {
    isolated(&format!("{NAME}::a_graph_launch_is_one_call"), || {
        load(Config::default()).unwrap();
        let driver = Driver::open();
        let cupti = Cupti::open();
        cupti.enable(&[DRIVER]);
        run(&driver);
        let launches = cupti
            .records()
            .iter()
            .filter(|record| {
                matches!(
                    record,
                    Record::Api {
                        cbid: GRAPH_LAUNCH,
                        ..
                    }
                )
            })
            .count();
        assert_eq!(launches, 2);
    });
}

unsafe extern "C" fn do_nothing(_: *mut std::ffi::c_void) {}

/// Between two kernels: its record names the exec's node and the launch's call, and its end bounds the second kernel's start.
#[test]
fn host_nodes_have_records_since_13_1() {
    isolated(
        &format!("{NAME}::host_nodes_have_records_since_13_1"),
        || {
            load(Config::default().cupti_version(CuptiVersion::V13_1)).unwrap();
            let driver = Driver::open();
            let cupti = Cupti::open();
            cupti.enable(&[DRIVER, GRAPH_HOST_NODE, HOST_LAUNCH, CONCURRENT_KERNEL]);
            assert_eq!(driver.begin_capture(driver.stream, 0), 0);
            driver.launch(1);
            type HostFunction = unsafe extern "C" fn(*mut std::ffi::c_void);
            let code = call!(driver.library, "cuLaunchHostFunc"(
                driver.stream => Handle, do_nothing => HostFunction, std::ptr::null_mut() => *mut std::ffi::c_void,
            ));
            assert_eq!(code, 0);
            driver.launch(2);
            let graph = driver.end_capture(driver.stream).unwrap();
            let exec = driver.instantiate(graph);
            driver.launch_graph(exec, driver.stream);
            driver.synchronize();
            let records = cupti.records();
            let call = records.iter().find_map(|record| match record {
                Record::Api {
                    cbid: GRAPH_LAUNCH,
                    correlation,
                    ..
                } => Some(*correlation),
                _ => None,
            });
            let hosts: Vec<_> = records
                .iter()
                .filter_map(|record| match record {
                    Record::HostNode {
                        correlation,
                        graph,
                        node,
                        start,
                        end,
                    } => Some((*correlation, *graph, *node, *start, *end)),
                    Record::HostLaunch { .. } => panic!("that is of streams"),
                    _ => None,
                })
                .collect();
            let [(correlation, of, node, start, end)] = hosts[..] else {
                panic!("{hosts:?}")
            };
            assert_eq!(Some(correlation), call);
            assert_eq!(of, driver.exec_id(exec));
            assert_eq!(node >> 32, u64::from(of));
            assert_ne!(
                node,
                driver.node_id(driver.nodes(graph)[1]),
                "the exec's, not the template's"
            );
            let kernels: Vec<_> = records
                .iter()
                .filter_map(|record| match record {
                    Record::Kernel { start, end, .. } => Some((*start, *end)),
                    _ => None,
                })
                .collect();
            assert!(kernels[0].1 <= start && start <= end && end <= kernels[1].0);
        },
    );
}
