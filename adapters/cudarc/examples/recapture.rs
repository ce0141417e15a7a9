//! Captures a graph, replays it, throws it away, and again, without an end: what is kept of graphs that are gone
//! must not grow.
//!
//! `cargo run --release -p lineage-cudarc --example recapture -- SECONDS` prints a line of JSON every second, and exits with 1 where a
//! replayed kernel's capture is not known, a fault was raised, or the resident memory grew.

#[cfg(target_os = "linux")]
fn main() -> Result<std::process::ExitCode, Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map(|text| text.parse());
    recapture::run(seconds.transpose()?.unwrap_or(10))
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the simulated gpu is for Linux");
}

#[cfg(target_os = "linux")]
mod recapture {
    use std::process::ExitCode;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use cudarc::driver::{CudaContext, CudaFunction, LaunchConfig, PushKernelArg};
    use cudarc::nvrtc::Ptx;
    use lineage_core::{Epoch, Lineage};
    use lineage_cudarc::Capture;
    use lineage_cupti::Cupti;
    use lineage_sim::{Config, TruthMode};

    type Fallible<T> = Result<T, Box<dyn std::error::Error>>;
    type OnThread<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

    const PTX: &str = ".version 8.0 .target sm_90 .entry decode(.param .u64 step) { ret; }";
    /// Threads, each with a stream of its own.
    const THREADS: usize = 2;
    /// Kernels of a graph: from one to so many in turn.
    const NODES: usize = 32;
    /// Replays of each graph.
    const REPLAYS: u64 = 8;
    /// How long a thread rests before the next graph: two busy processors have the drain thread's work to do, too.
    const REST: Duration = Duration::from_millis(5);
    /// What the second half of the time may add to the most that was resident in the first, once it had begun: what lies in buffers
    /// while the drain thread gets no processor, which the allocator keeps. One hundred bytes kept of each change would be ten times as much
    /// in ten minutes.
    const GROWTH_KIB: u64 = 32_768;

    pub(crate) fn run(seconds: u64) -> Fallible<ExitCode> {
        let gpu = lineage_sim::load(Config::default().truth(TruthMode::Off))?;
        gpu.kernel("decode").duration_ns(500).timed()?;
        let lineage = Lineage::builder()
            .device(Cupti::new().library("libcupti.so"))
            .ring_capacity(1 << 15)
            .start()?;
        let context = CudaContext::new(0)?;
        // SAFETY: no memory is used.
        unsafe { context.disable_event_tracking() };
        let module = context.load_module(Ptx::from_src(PTX))?;
        let decode = module.load_function("decode")?;

        let began = Instant::now();
        let end = began + Duration::from_secs(seconds);
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (context, decode) = (Arc::clone(&context), decode.clone());
                std::thread::spawn(move || thread(&context, &decode, end))
            })
            .collect();
        let mut samples = Vec::new();
        while Instant::now() < end {
            std::thread::sleep(Duration::from_secs(1));
            let totals = lineage.report().totals;
            let resident_kib = resident_kib()?;
            let seconds = began.elapsed().as_secs_f64();
            let (captures, replays) = (totals.graphs.executables, totals.graphs.launches);
            println!(
                "{{\"seconds\": {seconds:.1}, \"resident_kib\": {resident_kib}, \"captures\": {captures}, \"replays\": {replays}, \
                 \"kernels\": {}}}",
                totals.operations.kernels
            );
            samples.push(resident_kib);
        }
        let mut captured = 0;
        let mut kernels = 0;
        for thread in threads {
            let ended = thread.join().map_err(|_| "a thread panicked")?;
            let (graphs, replayed) = ended.map_err(|error| error.to_string())?;
            captured += graphs;
            kernels += replayed;
        }
        let report = lineage.shutdown(Duration::from_secs(60));
        let totals = report.totals;
        let graphs = &totals.graphs;
        let known = (graphs.executables, graphs.known, graphs.unknown());
        let faults: Vec<_> = totals.faults.iter().collect();
        // The first tenth is for buffers and tables that are made once.
        let half = samples.len() / 2;
        let most = |of: &[u64]| of.iter().copied().max().unwrap_or_default();
        let (first, second) = (
            most(&samples[samples.len() / 10..half]),
            most(&samples[half..]),
        );
        eprintln!(
            "{captured} graphs and {kernels} replayed kernels in {seconds} s, of which {} and {} are known, and {} not; {faults:?}; at most \
             {first} KiB resident in the first half and {second} KiB in the second",
            known.0, known.1, known.2
        );
        let holds =
            known == (captured, kernels, 0) && faults.is_empty() && second <= first + GROWTH_KIB;
        Ok(ExitCode::from(u8::from(!holds)))
    }

    /// Answers with how many graphs it captured, and how many kernels its replays had.
    fn thread(
        context: &Arc<CudaContext>,
        decode: &CudaFunction,
        end: Instant,
    ) -> OnThread<(u64, u64)> {
        let stream = context.new_stream()?;
        let (mut graphs, mut kernels) = (0, 0);
        for nodes in (1..=NODES).cycle() {
            if Instant::now() >= end {
                break;
            }
            let capture = Epoch::declare("capture");
            let mut graph = Capture::on(&stream).run(&capture, || {
                (0..nodes as u64).try_for_each(|step| {
                    let mut launch = stream.launch_builder(decode);
                    launch.arg(&step);
                    // SAFETY: the kernel's one parameter is a number.
                    unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }.map(drop)
                })
            })?;
            for _ in 0..REPLAYS {
                graph.launch(&Epoch::declare("replay"))?;
            }
            graphs += 1;
            kernels += REPLAYS * nodes as u64;
            // Destroyed while its replays are under way.
            drop(graph);
            stream.synchronize()?;
            std::thread::sleep(REST);
        }
        Ok((graphs, kernels))
    }

    fn resident_kib() -> Fallible<u64> {
        let status = std::fs::read_to_string("/proc/self/status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.unwrap_or("0").parse()?)
    }
}
