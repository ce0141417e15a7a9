//! A cudarc program on the simulated GPU, and the truth about it: `cargo run --example ten_lines`.

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

const PTX: &str = ".version 8.0 .target sm_90 .entry work(.param .u64 label) { ret; }";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = lineage_sim::load(lineage_sim::Config::default())?;
    gpu.kernel("work")
        .label_argument(0)
        .duration_ns(8_000)
        .timed()?;
    let context = CudaContext::new(0)?;
    let work = context
        .load_module(Ptx::from_src(PTX))?
        .load_function("work")?;
    let stream = context.new_stream()?;
    for label in 1..=4_u64 {
        // SAFETY: the kernel takes one number.
        unsafe {
            stream
                .launch_builder(&work)
                .arg(&label)
                .launch(LaunchConfig::for_num_elems(1))
        }?;
    }
    stream.synchronize()?;
    let truth = gpu.truth();
    let begin = truth
        .operations
        .first()
        .map_or(0, |operation| operation.call_start_ns);
    for operation in &truth.operations {
        println!(
            "label {:?}  called {:>6} ns  started {:>6} ns  ended {:>6} ns",
            operation.label,
            operation.call_start_ns - begin,
            operation.start_ns - begin,
            operation.end_ns - begin
        );
    }
    Ok(())
}
