//! What a simulated launch costs the calling thread: `cargo run --release -p lineage-sim --example host_cost`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use lineage_sim::Config;

const PTX: &str = ".version 8.0 .target sm_90 .entry work(.param .u64 label) { ret; }";
const LAUNCHES: u64 = 100_000;

/// CPU time of the calling thread, in ns.
fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid to be written.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = lineage_sim::load(Config::default().default_kernel_ns(200).truth_capacity(0))?;
    let context = CudaContext::new(0)?;
    let work = context
        .load_module(Ptx::from_src(PTX))?
        .load_function("work")?;
    for threads in [1, 2, 8] {
        let begin = Instant::now();
        let cpu_ns = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (context, work, cpu_ns) = (&context, &work, &cpu_ns);
                scope.spawn(move || {
                    let stream = context.new_stream().expect("a stream");
                    let before = thread_cpu_ns();
                    for label in 0..LAUNCHES / threads {
                        let launch = LaunchConfig::for_num_elems(1);
                        // SAFETY: the kernel takes one number.
                        unsafe { stream.launch_builder(work).arg(&label).launch(launch) }
                            .expect("a launch");
                    }
                    cpu_ns.fetch_add(thread_cpu_ns() - before, Ordering::Relaxed);
                    stream.synchronize().expect("done");
                });
            }
        });
        let each = begin.elapsed() / LAUNCHES as u32;
        let cpu_ns = cpu_ns.into_inner() / LAUNCHES;
        println!(
            "{threads} threads: {cpu_ns} ns of CPU on the calling thread per launch (cudarc's own part included), {each:?} until all had ended"
        );
    }
    println!("operations: {}", gpu.counts().operations_completed);
    Ok(())
}
