//! After a thread's first launches, what lineage does around a launch, of a kernel or of a graph, allocates
//! nothing: entering and leaving the boundary, the push and pop, and both callbacks.
//!
//! The simulated driver and CUPTI are libraries with an allocator of their own, so what is counted
//! here is ours.
#![cfg(all(target_os = "linux", feature = "record"))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use lineage_core::{Epoch, Lineage};
use lineage_cupti::Cupti;
use lineage_sim::{Config, isolated};

mod common;
use common::gpu::{self, Program};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: all is passed on to the system's allocator; the count is a thread-local without destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's word.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's word.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

#[test]
fn of_its_own() {
    isolated("of_its_own", || {
        let (_sim, program) = Program::on(Config::default());
        // A flush would take the buffer away, and the next launch would have one made.
        let session = Lineage::builder()
            .service("test")
            .keep_in_memory(1 << 20)
            .flush_every(Duration::from_secs(3600))
            .device(Cupti::new())
            .start()
            .expect("no other session is alive");
        let epoch = Epoch::declare("request");
        let at_first = allocations();
        let exec = program.instantiate(program.captured(3));
        let launches = |count: u64| {
            for label in 0..count {
                epoch.launch(|| program.launch(label));
                epoch.launch(|| program.launch_graph(exec));
            }
        };
        launches(20);
        assert!(
            allocations() > at_first,
            "the count works: a ring, a buffer"
        );
        let warm = allocations();
        launches(500);
        assert_eq!(allocations() - warm, 0);
        program.synchronize();
        let report = gpu::end(session);
        assert_eq!(gpu::calls(&report).len(), 3 + 2 * 520);
        assert_eq!(gpu::graph_launches(&report).len(), 520);
    });
}
