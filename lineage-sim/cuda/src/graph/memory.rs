//! Memory that graphs allocate and free.
//!
//! Documented with `cuGraphAddMemAllocNode` and `cuGraphAddMemFreeNode`: an allocation has one address for as long as its graph lives; what is allocated in a launch
//! is freed by a node of that graph, by another graph or by the program, before the next launch allocates it again; a graph with such nodes has one exec at a time, is not
//! cloned, and loses no nodes or edges. Here the memory is there from the node's making until its graph and the exec are gone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use crate::driver::memory::allocate as allocate_now;
use crate::graph::content::Content;
use crate::graph::flat::FlatNode;
use crate::memory::{self, Kind};
use crate::result;
use crate::sync::lock;

pub(crate) struct GraphMemory {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// Allocated by a launch, and not freed since, in the order of calls.
    is_live: AtomicBool,
    /// An exec has its node.
    has_exec: AtomicBool,
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        lock(all()).remove(&self.address);
        // What is still allocated is the program's to free. The rest may have gone with its context.
        if !self.is_live.load(Ordering::Acquire) {
            let _ = memory::free(self.address);
        }
    }
}

fn all() -> &'static Mutex<HashMap<u64, Weak<GraphMemory>>> {
    static ALL: OnceLock<Mutex<HashMap<u64, Weak<GraphMemory>>>> = OnceLock::new();
    ALL.get_or_init(Default::default)
}

/// Memory for an allocation node.
pub(crate) fn allocate(bytes: usize) -> Result<Arc<GraphMemory>, u32> {
    let memory = Arc::new(GraphMemory {
        address: allocate_now(bytes, Kind::Graph)?,
        bytes: bytes as u64,
        is_live: AtomicBool::new(false),
        has_exec: AtomicBool::new(false),
    });
    lock(all()).insert(memory.address, Arc::downgrade(&memory));
    Ok(memory)
}

/// The memory of the allocation node with this address.
pub(crate) fn find(address: u64) -> Result<Arc<GraphMemory>, u32> {
    let found = lock(all()).get(&address).and_then(Weak::upgrade);
    found.ok_or(result::INVALID_VALUE)
}

impl GraphMemory {
    /// The program frees what a launch has allocated. The memory stays the graph's; who has freed it in a stream keeps it until that is reached.
    pub(crate) fn free(&self) -> Result<(), u32> {
        if self.is_live.swap(false, Ordering::AcqRel) {
            Ok(())
        } else {
            Err(result::INVALID_VALUE)
        }
    }
}

/// Whether nodes like these keep a graph from being cloned and from losing nodes or edges.
pub(crate) fn is_about_memory(content: &Content) -> bool {
    matches!(content, Content::Allocate(_) | Content::Free(_))
}

/// An exec takes the allocations of its nodes, if no other has them.
pub(crate) fn take(nodes: &[FlatNode]) -> Result<(), u32> {
    let mut taken = Vec::new();
    for memory in allocated(nodes) {
        if memory.has_exec.swap(true, Ordering::AcqRel) {
            taken.into_iter().for_each(release);
            return Err(result::NOT_SUPPORTED);
        }
        taken.push(memory);
    }
    Ok(())
}

/// The exec is destroyed.
pub(crate) fn give_back(nodes: &[FlatNode]) {
    allocated(nodes).for_each(release);
}

fn release(memory: &Arc<GraphMemory>) {
    memory.has_exec.store(false, Ordering::Release);
}

/// A launch allocates and frees. Not if something is still allocated, unless the exec frees that itself; nor if there is nothing to be freed.
pub(crate) fn launch(nodes: &[FlatNode], frees_first: bool) -> Result<(), u32> {
    let is_own = |address: u64| allocated(nodes).any(|memory| memory.address == address);
    let is_live = |memory: &Arc<GraphMemory>| memory.is_live.load(Ordering::Acquire);
    if allocated(nodes).any(is_live) && !frees_first
        || freed(nodes).any(|memory| !is_own(memory.address) && !is_live(memory))
    {
        return Err(result::INVALID_VALUE);
    }
    for memory in allocated(nodes) {
        memory.is_live.store(true, Ordering::Release);
    }
    for memory in freed(nodes) {
        memory.is_live.store(false, Ordering::Release);
    }
    Ok(())
}

fn allocated(nodes: &[FlatNode]) -> impl Iterator<Item = &Arc<GraphMemory>> {
    nodes.iter().filter_map(|node| match &node.content {
        Content::Allocate(memory) => Some(memory),
        _ => None,
    })
}

fn freed(nodes: &[FlatNode]) -> impl Iterator<Item = &Arc<GraphMemory>> {
    nodes.iter().filter_map(|node| match &node.content {
        Content::Free(memory) => Some(memory),
        _ => None,
    })
}
