use std::ffi::c_void;
use std::sync::Mutex;

use lineage_sim::{Config, CuptiVersion, isolated, load};

use crate::build::SetParams;
use crate::call;
use crate::client::{Callback, CallbackData, Cupti};
use crate::driver::{Driver, Handle};
use crate::program::nothing;

const NAME: &str = "callbacks_tell_of_graphs";

/// `CUpti_CallbackIdResource`.
const GRAPH_CREATED: u32 = 9;
const GRAPH_DESTROY_STARTING: u32 = 10;
const NODE_CREATE_STARTING: u32 = 12;
const NODE_CREATED: u32 = 13;
const NODE_DESTROY_STARTING: u32 = 14;
const DEPENDENCY_CREATED: u32 = 15;
const DEPENDENCY_DESTROY_STARTING: u32 = 16;
const EXEC_CREATE_STARTING: u32 = 17;
const EXEC_CREATED: u32 = 18;
const EXEC_DESTROY_STARTING: u32 = 19;
const NODE_CLONED: u32 = 20;
const NODE_UPDATED: u32 = 22;
const NODE_SET_PARAMS: u32 = 23;

/// `CUpti_GraphData`, behind `CUpti_ResourceData::resourceDescriptor`.
#[repr(C)]
#[derive(Clone, Copy)]
struct GraphData {
    graph: usize,
    original_graph: usize,
    node: usize,
    original_node: usize,
    node_type: u32,
    dependency: usize,
    exec: usize,
}

#[repr(C)]
struct ResourceData {
    context: usize,
    resource: usize,
    descriptor: *const GraphData,
}

static SEEN: Mutex<Vec<(u32, GraphData, std::thread::ThreadId)>> = Mutex::new(Vec::new());

unsafe extern "C" fn note(_: *mut c_void, domain: u32, id: u32, data: *const CallbackData) {
    assert_eq!(domain, 3);
    // SAFETY: for this domain and these ids the data is this, valid during the callback.
    let data = unsafe { *(*data.cast::<ResourceData>()).descriptor };
    let thread = std::thread::current().id();
    SEEN.lock().unwrap().push((id, data, thread));
}

fn subscribe(ids: &[u32]) -> Cupti {
    let cupti = Cupti::open();
    let subscriber = cupti.subscribe(note as Callback).unwrap();
    for id in ids {
        cupti.enable_callback(subscriber, 3, *id);
    }
    cupti
}

fn seen() -> Vec<(u32, GraphData, std::thread::ThreadId)> {
    std::mem::take(&mut *SEEN.lock().unwrap())
}

fn ids(seen: &[(u32, GraphData, std::thread::ThreadId)]) -> Vec<u32> {
    seen.iter().map(|one| one.0).collect()
}

#[test]
fn from_capture_to_destruction() {
    isolated(&format!("{NAME}::from_capture_to_destruction"), || {
        load(Config::default()).unwrap();
        let driver = Driver::open();
        let cupti = subscribe(&[9, 10, 13, 15, 17, 18, 19, 20]);
        let graph = driver.captured(&[1, 2]);
        let captured = seen();
        assert_eq!(
            ids(&captured),
            [
                GRAPH_CREATED,
                NODE_CREATED,
                NODE_CREATED,
                DEPENDENCY_CREATED
            ]
        );
        let nodes = driver.nodes(graph);
        assert_eq!(captured[0].1.graph, graph as usize);
        assert_eq!(
            [captured[1].1.node, captured[2].1.node],
            [nodes[0] as usize, nodes[1] as usize]
        );
        assert_eq!(captured[3].1.node, nodes[0] as usize);
        assert_eq!(captured[3].1.dependency, nodes[1] as usize);

        let exec = driver.instantiate(graph);
        let made = seen();
        assert_eq!(
            ids(&made),
            [
                EXEC_CREATE_STARTING,
                NODE_CREATED,
                NODE_CLONED,
                NODE_CREATED,
                NODE_CLONED,
                EXEC_CREATED
            ]
        );
        assert!(made.iter().all(|one| one.2 == std::thread::current().id()));
        assert_eq!(made[5].1.exec, exec as usize);
        assert_eq!(made[5].1.graph, graph as usize);
        for (cloned, original) in [made[2].1, made[4].1].iter().zip(&nodes) {
            assert_eq!(cloned.original_node, *original as usize);
            assert_eq!(cloned.original_graph, graph as usize);
            // Its id is the one that the records of launches have.
            let mut id = 0_u64;
            let node = std::ptr::without_provenance_mut(cloned.node);
            let code =
                call!(cupti.library, "cuptiGetGraphNodeId"(node => Handle, &mut id => *mut u64));
            assert_eq!((code, id >> 32), (0, u64::from(driver.exec_id(exec))));
        }
        assert_eq!(
            call!(driver.library, "cuGraphExecDestroy"(exec => Handle)),
            0
        );
        assert_eq!(call!(driver.library, "cuGraphDestroy"(graph => Handle)), 0);
        assert_eq!(
            ids(&seen()),
            [EXEC_DESTROY_STARTING, GRAPH_DESTROY_STARTING]
        );
    });
}

/// The callbacks about updates came with CUPTI 13.0.
fn updates(version: CuptiVersion, told: usize) {
    load(Config::default().cupti_version(version)).unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    let subscriber = cupti.subscribe(note as Callback).unwrap();
    // The whole domain: the id by itself is refused where it does not exist.
    let enabled =
        call!(cupti.library, "cuptiEnableDomain"(1 => u32, subscriber => *mut c_void, 3 => u32));
    assert_eq!(enabled, 0);
    let exec = driver.instantiate(driver.captured(&[1, 2]));
    let other = driver.captured(&[3, 4]);
    let mut info = [9_u64; 3];
    let code = call!(driver.library, "cuGraphExecUpdate_v2"(exec => Handle, other => Handle, info.as_mut_ptr() => *mut u64));
    assert_eq!((code, info[0] as u32), (0, 0));
    let mut seen = seen();
    seen.retain(|one| one.0 == NODE_UPDATED);
    assert_eq!(seen.len(), told);
    for (one, original) in seen.iter().zip(driver.nodes(other)) {
        assert_eq!(one.1.original_node, original as usize);
        assert_eq!(one.1.exec, exec as usize);
    }
}

#[test]
fn not_of_updates_in_12_9() {
    isolated(&format!("{NAME}::not_of_updates_in_12_9"), || {
        updates(CuptiVersion::V12_9, 0);
    });
}

#[test]
fn of_updates_in_13_5() {
    isolated(&format!("{NAME}::of_updates_in_13_5"), || {
        updates(CuptiVersion::V13_5, 2);
    });
}

/// What a program with nodes of two types is told, from beginning to end. `kernel` and `set`: whether updates of such nodes are told.
fn whole_life(version: CuptiVersion, kernel: bool, set: bool) {
    load(Config::default().cupti_version(version)).unwrap();
    let driver = Driver::open();
    let library = &driver.library;
    let cupti = Cupti::open();
    let subscriber = cupti.subscribe(note as Callback).unwrap();
    let memory = driver.allocate(64);
    let enabled =
        call!(cupti.library, "cuptiEnableDomain"(1 => u32, subscriber => *mut c_void, 3 => u32));
    assert_eq!(enabled, 0);
    let take = || ids(&seen());
    let params = |value: u32| SetParams {
        to: memory,
        pitch: 0,
        value,
        element_bytes: 4,
        width: 16,
        height: 1,
    };
    let graph = driver.new_graph();
    assert_eq!(take(), [GRAPH_CREATED]);
    let first = driver.add_kernel(graph, &[], 1);
    assert_eq!(take(), [NODE_CREATE_STARTING, NODE_CREATED]);
    let (mut second, set_params) = (nothing(), params(1));
    let added = call!(library, "cuGraphAddMemsetNode"(
        &mut second => *mut Handle, graph => Handle, &first => *const Handle, 1 => usize,
        &set_params => *const SetParams, driver.context => Handle,
    ));
    assert_eq!(added, 0);
    assert_eq!(
        take(),
        [NODE_CREATE_STARTING, NODE_CREATED, DEPENDENCY_CREATED]
    );
    let removed = call!(library, "cuGraphRemoveDependencies"(graph => Handle, &first => *const Handle, &second => *const Handle, 1 => usize));
    assert_eq!(removed, 0);
    assert_eq!(take(), [DEPENDENCY_DESTROY_STARTING]);
    let third = driver.add_kernel(graph, &[], 3);
    let _ = take();
    assert_eq!(call!(library, "cuGraphDestroyNode"(third => Handle)), 0);
    let destroyed = seen();
    assert_eq!(ids(&destroyed), [NODE_DESTROY_STARTING]);
    assert_eq!(destroyed[0].1.node, third as usize);
    let exec = driver.instantiate(graph);
    let of_node = [NODE_CREATE_STARTING, NODE_CREATED, NODE_CLONED];
    let made = [
        &[EXEC_CREATE_STARTING][..],
        &of_node,
        &of_node,
        &[EXEC_CREATED],
    ]
    .concat();
    assert_eq!(take(), made);

    // Parameters of one exec's nodes: a kernel's, a set's.
    let when = |told: bool, id: u32| if told { vec![id] } else { vec![] };
    assert_eq!(driver.set_label_in(exec, first, 9), 0);
    assert_eq!(take(), when(kernel, NODE_SET_PARAMS));
    let set_params = params(2);
    let changed = call!(library, "cuGraphExecMemsetNodeSetParams"(
        exec => Handle, second => Handle, &set_params => *const SetParams, driver.context => Handle,
    ));
    assert_eq!(changed, 0);
    assert_eq!(take(), when(set, NODE_SET_PARAMS));
    // All of them at once: by the template itself.
    let mut info = [9_u64; 3];
    let updated = call!(library, "cuGraphExecUpdate_v2"(exec => Handle, graph => Handle, info.as_mut_ptr() => *mut u64));
    assert_eq!(updated, 0);
    let both = [when(kernel, NODE_UPDATED), when(set, NODE_UPDATED)].concat();
    assert_eq!(take(), both);
    assert_eq!(call!(library, "cuGraphExecDestroy"(exec => Handle)), 0);
    assert_eq!(call!(library, "cuGraphDestroy"(graph => Handle)), 0);
    assert_eq!(take(), [EXEC_DESTROY_STARTING, GRAPH_DESTROY_STARTING]);
}

macro_rules! whole_lives {
    ($($name:ident: $version:ident, $kernel:literal, $set:literal;)+) => { $(
        #[test]
        fn $name() {
            isolated(concat!("callbacks_tell_of_graphs::", stringify!($name)), || {
                whole_life(CuptiVersion::$version, $kernel, $set);
            });
        }
    )+ };
}
whole_lives! {
    a_whole_life_in_12_0: V12_0, false, false;
    a_whole_life_in_12_4: V12_4, false, false;
    a_whole_life_in_12_9: V12_9, false, false;
    a_whole_life_in_13_0: V13_0, true, false;
    a_whole_life_in_13_1: V13_1, true, false;
    a_whole_life_in_13_4: V13_4, true, true;
    a_whole_life_in_13_5: V13_5, true, true;
}

/// The ids of a template, its exec, and its exec after that one is gone.
fn ids_given(reuse: bool) -> [u32; 3] {
    load(Config::default().reuse_graph_ids(reuse)).unwrap();
    let driver = Driver::open();
    let graph = driver.captured(&[1]);
    let first = driver.instantiate(graph);
    let ids = [driver.graph_id(graph), driver.exec_id(first)];
    assert_eq!(
        call!(driver.library, "cuGraphExecDestroy"(first => Handle)),
        0
    );
    let second = driver.instantiate(graph);
    [ids[0], ids[1], driver.exec_id(second)]
}

#[test]
fn ids_are_given_once() {
    isolated(&format!("{NAME}::ids_are_given_once"), || {
        assert_eq!(ids_given(false), [1, 2, 3]);
    });
}

#[test]
fn ids_come_again_by_switch() {
    isolated(&format!("{NAME}::ids_come_again_by_switch"), || {
        assert_eq!(ids_given(true), [1, 2, 2]);
    });
}
