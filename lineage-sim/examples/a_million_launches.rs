//! A million launches on the virtual clock: under ten seconds, in bounded memory.
//!
//! `cargo run --release -p lineage-sim --example a_million_launches`; exits with 1 where either does not hold.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use lineage_sim::{Config, Settings, TruthMode};

const PTX: &str = ".version 8.0 .target sm_90 .entry work(.param .u64 label) { ret; }";
const LAUNCHES: u64 = 1_000_000;
const LIMIT: Duration = Duration::from_secs(10);
/// What the second half may add to the resident memory.
const GROWTH_KIB: u64 = 8_192;

/// The host takes 1 µs for a call and the kernel 1.5 µs, so that the queue is full most of the time; the streams share channels and multiprocessors.
fn config() -> Config {
    let model = Settings::default()
        .call_ns(1_000)
        .channels(2)
        .multiprocessors(132)
        .dispatch_ns(200);
    Config::default()
        .model(model)
        .virtual_clock()
        .truth(TruthMode::Ring)
        .truth_capacity(10_000)
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let gpu = lineage_sim::load(config())?;
    gpu.kernel("work")
        .label_argument(0)
        .duration_ns(1_500)
        .timed()?;
    let context = CudaContext::new(0)?;
    let work = context
        .load_module(Ptx::from_src(PTX))?
        .load_function("work")?;
    let streams = [(); 4].map(|()| context.new_stream());
    let streams = streams.into_iter().collect::<Result<Vec<_>, _>>()?;
    let launch = LaunchConfig::for_num_elems(1 << 16);
    let half = |labels: std::ops::Range<u64>| -> Result<u64, Box<dyn std::error::Error>> {
        for label in labels {
            let stream = &streams[label as usize % streams.len()];
            // SAFETY: the kernel takes one number.
            unsafe { stream.launch_builder(&work).arg(&label).launch(launch) }?;
        }
        context.synchronize()?;
        resident_kib()
    };
    let begin = Instant::now();
    let before = half(0..LAUNCHES / 2)?;
    let after = half(LAUNCHES / 2..LAUNCHES)?;
    let took = begin.elapsed();
    let counts = gpu.counts();
    println!(
        "{} launches in {took:.2?}: {:.0} a second; {before} KiB resident after half of them, {after} KiB after all",
        counts.operations_completed,
        LAUNCHES as f64 / took.as_secs_f64()
    );
    let holds = took < LIMIT && after < before + GROWTH_KIB;
    Ok(ExitCode::from(u8::from(
        !holds || counts.operations_completed != LAUNCHES,
    )))
}

fn resident_kib() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.unwrap_or("0").parse()?)
}
