//! What a simulated launch costs the calling thread: `cargo run --release -p lineage-sim --example host_cost`.

use std::time::Instant;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use lineage_sim::Config;

const PTX: &str = ".version 8.0 .target sm_90 .entry work(.param .u64 label) { ret; }";
const LAUNCHES: u64 = 100_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = lineage_sim::load(Config::default().default_kernel_ns(200).truth_capacity(0))?;
    let context = CudaContext::new(0)?;
    let work = context
        .load_module(Ptx::from_src(PTX))?
        .load_function("work")?;
    for threads in [1, 2, 8] {
        let begin = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let (context, work) = (&context, &work);
                scope.spawn(move || {
                    let stream = context.new_stream().expect("a stream");
                    for label in 0..LAUNCHES / threads {
                        let launch = LaunchConfig::for_num_elems(1);
                        // SAFETY: the kernel takes one number.
                        unsafe { stream.launch_builder(work).arg(&label).launch(launch) }
                            .expect("a launch");
                    }
                    stream.synchronize().expect("done");
                });
            }
        });
        let each = begin.elapsed() / LAUNCHES as u32;
        println!("{threads} threads: {each:?} per launch, until all had ended");
    }
    println!("operations: {}", gpu.counts().operations_completed);
    Ok(())
}
