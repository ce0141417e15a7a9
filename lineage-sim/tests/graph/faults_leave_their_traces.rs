//! Each fault about graphs alone: what a tool sees with it, beside the same run without.

use std::ffi::c_void;
use std::sync::Mutex;

use lineage_sim::{Config, Faults, Gpu, isolated, load};

use crate::call;
use crate::client::{
    CONCURRENT_KERNEL, Callback, CallbackData, Cupti, DRIVER, EXTERNAL_CORRELATION, Record,
};
use crate::driver::{Driver, Handle};

const NAME: &str = "faults_leave_their_traces";
/// `CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch`.
const GRAPH_LAUNCH: u32 = 514;
/// `CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED` and `…_CLONED`.
const NODE_CREATED: u32 = 13;
const NODE_CLONED: u32 = 20;

/// Two captured launches are the calls for work 1 and 2; the exec's two launches are 3 and 4. Each call has an external id.
fn replay(faults: Faults) -> (Gpu, Vec<Record>, usize) {
    let gpu = load(Config::default().faults(faults)).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    cupti.enable(&[CONCURRENT_KERNEL, DRIVER, EXTERNAL_CORRELATION]);
    let exec = driver.instantiate(driver.captured(&[1, 2]));
    for request in 1..=2 {
        cupti.push(5, request);
        driver.launch_graph(exec, driver.stream);
        assert_eq!(cupti.pop(5), Ok(request));
    }
    driver.synchronize();
    (gpu, cupti.records(), cupti.dropped())
}

/// Correlation ids of the graph launches' call records, of their external ids, and of kernels.
fn ids(records: &[Record]) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let (mut calls, mut externals, mut kernels) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        match record {
            Record::Api {
                cbid: GRAPH_LAUNCH,
                correlation,
                ..
            } => calls.push(*correlation),
            Record::External { correlation, .. } => externals.push(*correlation),
            Record::Kernel { correlation, .. } => kernels.push(*correlation),
            _ => {}
        }
    }
    kernels.sort_unstable();
    (calls, externals, kernels)
}

#[test]
fn without_one_each_launch_has_its_call() {
    isolated(
        &format!("{NAME}::without_one_each_launch_has_its_call"),
        || {
            let (_, records, dropped) = replay(Faults::default());
            let (calls, externals, kernels) = ids(&records);
            assert_eq!(calls.len(), 2);
            assert_eq!(externals, calls);
            assert_eq!(kernels, [calls[0], calls[0], calls[1], calls[1]]);
            assert_eq!(dropped, 0);
        },
    );
}

fn second_launch_without_its_call(faults: Faults, counted: usize) {
    let (gpu, records, dropped) = replay(faults);
    let (calls, externals, kernels) = ids(&records);
    assert_eq!(calls.len(), 1);
    assert_eq!(externals.len(), 2, "the external ids are there");
    assert_eq!(kernels, [calls[0], calls[0], externals[1], externals[1]]);
    assert_eq!(dropped, counted);
    assert_eq!(gpu.truth().operations.len(), 4, "both were done");
}

#[test]
fn a_lost_call_record_leaves_its_kernels_and_its_external_id() {
    isolated(
        &format!("{NAME}::a_lost_call_record_leaves_its_kernels_and_its_external_id"),
        || second_launch_without_its_call(Faults::default().lose_call_record_every_nth(4), 0),
    );
}

#[test]
fn a_dropped_call_record_is_counted() {
    isolated(&format!("{NAME}::a_dropped_call_record_is_counted"), || {
        second_launch_without_its_call(Faults::default().drop_call_record_every_nth(4), 1);
    });
}

static TOLD: Mutex<Vec<u32>> = Mutex::new(Vec::new());

unsafe extern "C" fn note(_: *mut c_void, domain: u32, id: u32, _: *const CallbackData) {
    assert_eq!(domain, 3);
    TOLD.lock().unwrap().push(id);
}

fn told(faults: Faults) -> Vec<u32> {
    load(Config::default().faults(faults)).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    let subscriber = cupti.subscribe(note as Callback).unwrap();
    let graph = driver.captured(&[1, 2, 3]);
    cupti.enable_callback(subscriber, 3, NODE_CREATED);
    cupti.enable_callback(subscriber, 3, NODE_CLONED);
    driver.instantiate(graph);
    std::mem::take(&mut *TOLD.lock().unwrap())
}

const PAIR: [u32; 2] = [NODE_CREATED, NODE_CLONED];

#[test]
fn without_one_each_clone_is_told() {
    isolated(&format!("{NAME}::without_one_each_clone_is_told"), || {
        assert_eq!(told(Faults::default()), [PAIR, PAIR, PAIR].concat());
    });
}

#[test]
fn a_lost_clone_callback_leaves_a_node_that_was_created_only() {
    isolated(
        &format!("{NAME}::a_lost_clone_callback_leaves_a_node_that_was_created_only"),
        || {
            let told = told(Faults::default().lose_clone_callback_every_nth(2));
            assert_eq!(told, [&PAIR[..], &[NODE_CREATED], &PAIR].concat());
        },
    );
}

/// Names in the records of two launches: the exec's one node is set to another kernel between them.
fn names(faults: Faults) -> (Vec<String>, Vec<String>) {
    let gpu = load(Config::default().faults(faults)).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    cupti.enable(&[CONCURRENT_KERNEL]);
    let graph = driver.captured(&[1]);
    let exec = driver.instantiate(graph);
    driver.launch_graph(exec, driver.stream);
    let (mut label, mut list) = (9, [std::ptr::null_mut()]);
    let mut params = driver.kernel_params(&mut label, &mut list);
    params.function = driver.get_function(c"other");
    let (mut small, mut byte) = (1_u32, 1_u8);
    let mut three = [
        (&raw mut small).cast(),
        (&raw mut label).cast(),
        (&raw mut byte).cast::<c_void>(),
    ];
    params.parameters = three.as_mut_ptr();
    let node = driver.nodes(graph)[0];
    let code = call!(driver.library, "cuGraphExecKernelNodeSetParams_v2"(
        exec => Handle, node => Handle, (&raw const params).cast() => *const c_void,
    ));
    assert_eq!(code, 0);
    driver.launch_graph(exec, driver.stream);
    driver.synchronize();
    let recorded = cupti
        .records()
        .into_iter()
        .filter_map(|record| match record {
            Record::Kernel { name, .. } => Some(name),
            _ => None,
        });
    let truly = gpu
        .truth()
        .operations
        .into_iter()
        .map(|one| one.name.unwrap().to_string());
    (recorded.collect(), truly.collect())
}

#[test]
fn without_one_a_record_shows_what_ran() {
    isolated(
        &format!("{NAME}::without_one_a_record_shows_what_ran"),
        || {
            let (recorded, truly) = names(Faults::default());
            assert_eq!(recorded, ["work", "other"]);
            assert_eq!(truly, recorded);
        },
    );
}

#[test]
fn a_stale_record_shows_the_kernel_from_before() {
    isolated(
        &format!("{NAME}::a_stale_record_shows_the_kernel_from_before"),
        || {
            let (recorded, truly) = names(Faults::default().stale_node_records(true));
            assert_eq!(recorded, ["work", "work"]);
            assert_eq!(truly, ["work", "other"]);
        },
    );
}

/// A tool that comes when the exec is there: its launches are recorded with the exec's nodes, of which no callback has told.
#[test]
fn a_tool_that_comes_late_sees_nodes_that_nobody_told_of() {
    isolated(
        &format!("{NAME}::a_tool_that_comes_late_sees_nodes_that_nobody_told_of"),
        || {
            let gpu = load(Config::default()).unwrap();
            let driver = Driver::open();
            let exec = driver.instantiate(driver.captured(&[1, 2]));
            driver.launch_graph(exec, driver.stream);
            driver.synchronize();
            let cupti = Cupti::open();
            let subscriber = cupti.subscribe(note as Callback).unwrap();
            for id in [NODE_CREATED, NODE_CLONED, 18] {
                cupti.enable_callback(subscriber, 3, id);
            }
            cupti.enable(&[CONCURRENT_KERNEL, DRIVER]);
            driver.launch_graph(exec, driver.stream);
            driver.synchronize();
            let (calls, _, kernels) = ids(&cupti.records());
            assert_eq!(kernels, [calls[0], calls[0]], "of the second launch only");
            assert_eq!(*TOLD.lock().unwrap(), []);
            assert_eq!(gpu.truth().operations.len(), 4);
        },
    );
}
