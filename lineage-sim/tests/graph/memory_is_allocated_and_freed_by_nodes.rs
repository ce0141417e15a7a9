//! The rules are those of `cuGraphAddMemAllocNode` and `cuGraphAddMemFreeNode` in `cuda.h`.

use lineage_sim::{Config, isolated, load};

use crate::call;
use crate::driver::{Driver, Handle};
use crate::program::nothing;

const NAME: &str = "memory_is_allocated_and_freed_by_nodes";

/// `CUgraphNodeType`: set 2, allocation 10, free 11; a copy is 1.
fn types(driver: &Driver, graph: Handle) -> Vec<u32> {
    let of = |node: Handle| {
        let mut node_type = 99;
        let code =
            call!(driver.library, "cuGraphNodeGetType"(node => Handle, &mut node_type => *mut u32));
        assert_eq!(code, 0);
        node_type
    };
    driver.nodes(graph).into_iter().map(of).collect()
}

fn allocate(driver: &Driver, bytes: usize) -> u64 {
    let mut address = 0;
    let code = call!(driver.library, "cuMemAllocAsync"(&mut address => *mut u64, bytes => usize, driver.stream => Handle));
    assert_eq!(code, 0);
    address
}

fn free(driver: &Driver, address: u64) -> u32 {
    call!(driver.library, "cuMemFreeAsync"(address => u64, driver.stream => Handle))
}

fn set(driver: &Driver, address: u64, value: u32) {
    let code = call!(driver.library, "cuMemsetD32Async"(address => u64, value => u32, 16 => usize, driver.stream => Handle));
    assert_eq!(code, 0);
}

fn try_launch(driver: &Driver, exec: Handle) -> u32 {
    call!(driver.library, "cuGraphLaunch"(exec => Handle, driver.stream => Handle))
}

fn instantiate(driver: &Driver, graph: Handle, flags: u64) -> Result<Handle, u32> {
    let mut exec = nothing();
    match call!(driver.library, "cuGraphInstantiateWithFlags"(&mut exec => *mut Handle, graph => Handle, flags => u64))
    {
        0 => Ok(exec),
        code => Err(code),
    }
}

/// Allocated, set, copied out and freed, all of it captured: at each launch again, at the same address.
#[test]
fn a_capture_that_frees_what_it_allocates_is_launched_as_often_as_wanted() {
    isolated(
        &format!("{NAME}::a_capture_that_frees_what_it_allocates_is_launched_as_often_as_wanted"),
        || {
            let gpu = load(Config::default()).unwrap();
            let driver = Driver::open();
            let out = driver.allocate(64);
            let before = gpu.counts();
            assert_eq!(driver.begin_capture(driver.stream, 0), 0);
            let memory = allocate(&driver, 64);
            set(&driver, memory, 7);
            let copied = call!(driver.library, "cuMemcpyDtoDAsync_v2"(out => u64, memory => u64, 64 => usize, driver.stream => Handle));
            assert_eq!(copied, 0);
            assert_eq!(free(&driver, memory), 0);
            let graph = driver.end_capture(driver.stream).unwrap();
            assert_eq!(types(&driver, graph), [10, 2, 1, 11]);
            let exec = driver.instantiate(graph);
            for _ in 0..3 {
                driver.launch_graph(exec, driver.stream);
            }
            let mut bytes = [0_u8; 64];
            driver.copy_to_host(out, &mut bytes);
            driver.synchronize();
            assert_eq!(bytes[..8], [7, 0, 0, 0, 7, 0, 0, 0]);
            // Freed in the graph already.
            assert_eq!(free(&driver, memory), 1);
            assert_eq!(
                call!(driver.library, "cuGraphExecDestroy"(exec => Handle)),
                0
            );
            assert_eq!(call!(driver.library, "cuGraphDestroy"(graph => Handle)), 0);
            let after = gpu.counts();
            assert_eq!(
                (after.allocations, after.allocated_bytes),
                (before.allocations, before.allocated_bytes)
            );
        },
    );
}

/// What a launch leaves allocated is used and freed behind it, and not allocated again before that (CUDA_ERROR_INVALID_VALUE 1), unless
/// the exec frees it itself (`CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH` 1).
#[test]
fn what_a_launch_leaves_is_freed_before_the_next() {
    isolated(
        &format!("{NAME}::what_a_launch_leaves_is_freed_before_the_next"),
        || {
            let gpu = load(Config::default()).unwrap();
            let driver = Driver::open();
            assert_eq!(driver.begin_capture(driver.stream, 0), 0);
            let memory = allocate(&driver, 64);
            set(&driver, memory, 5);
            let graph = driver.end_capture(driver.stream).unwrap();
            assert_eq!(free(&driver, memory), 1, "nothing is allocated yet");
            let exec = instantiate(&driver, graph, 0).unwrap();
            assert_eq!(try_launch(&driver, exec), 0);
            assert_eq!(try_launch(&driver, exec), 1);
            let mut bytes = [0_u8; 4];
            driver.copy_to_host(memory, &mut bytes);
            assert_eq!(free(&driver, memory), 0);
            assert_eq!(free(&driver, memory), 1, "twice");
            assert_eq!(try_launch(&driver, exec), 0);
            // One exec at a time (CUDA_ERROR_NOT_SUPPORTED 801); then one that frees by itself.
            assert_eq!(instantiate(&driver, graph, 1), Err(801));
            assert_eq!(
                call!(driver.library, "cuGraphExecDestroy"(exec => Handle)),
                0
            );
            let exec = instantiate(&driver, graph, 1).unwrap();
            assert_eq!(
                (try_launch(&driver, exec), try_launch(&driver, exec)),
                (0, 0)
            );
            // It is there for the work behind, even when graph and exec are gone, until it is freed.
            assert_eq!(
                call!(driver.library, "cuGraphExecDestroy"(exec => Handle)),
                0
            );
            assert_eq!(call!(driver.library, "cuGraphDestroy"(graph => Handle)), 0);
            driver.copy_to_host(memory, &mut bytes);
            assert_eq!(free(&driver, memory), 0);
            driver.synchronize();
            assert_eq!(bytes, [5, 0, 0, 0]);
            assert_eq!(gpu.counts().allocations, 0);
        },
    );
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`; another graph frees what the first one allocates, each once.
#[test]
fn nodes_are_added_one_by_one_and_keep_their_graph_as_it_is() {
    #[repr(C)]
    struct Params {
        allocation_type: u32,
        handle_types: u32,
        location: [u32; 2],
        reserved: [u64; 9],
        accesses: [usize; 2],
        bytes: usize,
        address: u64,
    }
    isolated(
        &format!("{NAME}::nodes_are_added_one_by_one_and_keep_their_graph_as_it_is"),
        || {
            load(Config::default()).unwrap();
            let driver = Driver::open();
            let library = &driver.library;
            let mut params = Params {
                allocation_type: 1,
                handle_types: 0,
                location: [1, 0],
                reserved: [0; 9],
                accesses: [0; 2],
                bytes: 256,
                address: 0,
            };
            let (first, second) = (driver.new_graph(), driver.new_graph());
            let mut node = nothing();
            let added = call!(library, "cuGraphAddMemAllocNode"(
                &mut node => *mut Handle, first => Handle, std::ptr::null() => *const Handle, 0 => usize, &mut params => *mut Params,
            ));
            assert_eq!(added, 0);
            let memory = params.address;
            params.address = 0;
            let asked = call!(library, "cuGraphMemAllocNodeGetParams"(node => Handle, &mut params => *mut Params));
            assert_eq!((asked, params.address, params.bytes), (0, memory, 256));
            let kernel = driver.add_kernel(first, &[node], 1);
            let mut freed = nothing();
            let mut add_free = |graph: Handle, address: u64| {
                call!(library, "cuGraphAddMemFreeNode"(
                    &mut freed => *mut Handle, graph => Handle, std::ptr::null() => *const Handle, 0 => usize, address => u64,
                ))
            };
            assert_eq!(add_free(second, driver.allocate(64)), 1, "no node's");
            assert_eq!(add_free(second, memory), 0);
            assert_eq!(add_free(second, memory), 1, "twice");
            let mut address = 0;
            let asked = call!(library, "cuGraphMemFreeNodeGetParams"(freed => Handle, &mut address => *mut u64));
            assert_eq!((asked, address), (0, memory));
            let (first_exec, second_exec) = (driver.instantiate(first), driver.instantiate(second));
            assert_eq!(try_launch(&driver, second_exec), 1, "nothing to be freed");
            for _ in 0..2 {
                assert_eq!(try_launch(&driver, first_exec), 0);
                assert_eq!(try_launch(&driver, second_exec), 0);
            }
            driver.synchronize();
            // No clone, no child, and nothing is taken away.
            let mut clone = nothing();
            assert_eq!(
                call!(library, "cuGraphClone"(&mut clone => *mut Handle, first => Handle)),
                801
            );
            let outer = driver.new_graph();
            let child = call!(library, "cuGraphAddChildGraphNode"(
                &mut clone => *mut Handle, outer => Handle, std::ptr::null() => *const Handle, 0 => usize, first => Handle,
            ));
            assert_eq!(child, 801);
            assert_eq!(call!(library, "cuGraphDestroyNode"(kernel => Handle)), 801);
            let removed = call!(library, "cuGraphRemoveDependencies"(first => Handle, &node => *const Handle, &kernel => *const Handle, 1 => usize));
            assert_eq!(removed, 801);
        },
    );
}
