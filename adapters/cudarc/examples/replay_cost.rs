//! What a replay costs its thread, on the simulated GPU with 4.5 µs a driver call: without CUPTI, with CUPTI alone, and with CUPTI
//! and lineage.
//!
//! `cargo run --release -p lineage-cudarc --example replay_cost`. Thread processor time, so that other load of the machine counts little. The
//! arms are processes of their own, run in turn. What CUPTI takes is the simulator's: the figures are *simulated*, and the
//! difference between the last two arms is lineage's own.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    replay_cost::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the simulated gpu is for Linux");
}

#[cfg(target_os = "linux")]
mod replay_cost {
    use std::alloc::{Layout, alloc, dealloc};
    use std::ffi::c_void;
    use std::time::Duration;

    use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
    use cudarc::nvrtc::Ptx;
    use lineage_core::{Epoch, Lineage};
    use lineage_cudarc::Capture;
    use lineage_cupti::Cupti;
    use lineage_sim::{Config, TruthMode};

    type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

    const PTX: &str = ".version 8.0 .target sm_90 .entry decode(.param .u64 step) { ret; }";
    const ARMS: [&str; 3] = ["off", "CUPTI only", "CUPTI and lineage"];
    /// Each arm is run so often.
    const ROUNDS: usize = 5;
    /// What each driver call burns on its thread.
    const CALL_NS: u64 = 4_500;
    /// Kernels of the graph.
    const NODES: u64 = 20;
    /// Replays that are timed together: fewer than the driver's queue takes.
    const SEGMENT: u64 = 500;
    const SEGMENTS: usize = 20;

    pub(crate) fn main() -> Fallible<()> {
        if let Some(arm) = std::env::args().nth(1) {
            println!("{}", run(&arm)?);
            return Ok(());
        }
        let mut taken = ARMS.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for (arm, taken) in ARMS.iter().zip(&mut taken) {
                let program = std::env::current_exe()?;
                let output = std::process::Command::new(program).arg(arm).output()?;
                let text = String::from_utf8(output.stdout)?;
                taken.push(text.trim().parse::<u64>()?);
            }
        }
        println!(
            "thread processor time of a replay of {NODES} kernels, simulated, {CALL_NS} ns a call:"
        );
        for (arm, mut taken) in ARMS.iter().zip(taken) {
            taken.sort_unstable();
            let (least, most) = (taken[0], taken[ROUNDS - 1]);
            println!(
                "  {arm:<18} {:>6} ns  ({least} to {most})",
                taken[ROUNDS / 2]
            );
        }
        Ok(())
    }

    /// Nanoseconds of a replay: the median of the segments.
    fn run(arm: &str) -> Fallible<u64> {
        let config = Config::default()
            .truth(TruthMode::Off)
            .host_cost_ns_per_call(CALL_NS);
        let gpu = lineage_sim::load(config)?;
        gpu.kernel("decode").duration_ns(50).timed()?;
        let mut lineage = None;
        if arm == ARMS[1] {
            record_with_cupti()?;
        } else if arm == ARMS[2] {
            let cupti = Cupti::new().library("libcupti.so");
            let builder = Lineage::builder().device(cupti).ring_capacity(1 << 16);
            lineage = Some(builder.start()?);
        }
        let context = CudaContext::new(0)?;
        // SAFETY: no memory is used.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream()?;
        let decode = context
            .load_module(Ptx::from_src(PTX))?
            .load_function("decode")?;
        let mut graph = Capture::on(&stream).run(&Epoch::declare("capture"), || {
            (0..NODES).try_for_each(|step| {
                let mut launch = stream.launch_builder(&decode);
                launch.arg(&step);
                // SAFETY: the kernel's one parameter is a number.
                unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }.map(drop)
            })
        })?;
        let mut segments = Vec::new();
        for _ in 0..=SEGMENTS {
            let request = Epoch::declare("request");
            let before = thread_cpu_ns();
            for _ in 0..SEGMENT {
                graph.launch(&request)?;
            }
            segments.push((thread_cpu_ns() - before) / SEGMENT);
            stream.synchronize()?;
        }
        // The first is to warm up.
        segments.remove(0);
        segments.sort_unstable();
        if let Some(lineage) = lineage {
            let totals = lineage.shutdown(Duration::from_secs(60)).totals;
            if totals.graphs.launches != (SEGMENTS as u64 + 1) * SEGMENT {
                return Err("not every replay was recorded".into());
            }
        }
        Ok(segments[SEGMENTS / 2])
    }

    fn thread_cpu_ns() -> u64 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the clock exists on Linux, and there is room for its time.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    const BUFFER: Layout = match Layout::from_size_align(1 << 20, 8) {
        Ok(layout) => layout,
        Err(_) => panic!("a power of two"),
    };

    unsafe extern "C" fn give(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
        // SAFETY: CUPTI passes three places to be written.
        unsafe {
            *buffer = alloc(BUFFER);
            *size = BUFFER.size();
            *most = 0;
        }
    }

    unsafe extern "C" fn take(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, _: usize) {
        // SAFETY: CUPTI hands back what `give` gave.
        unsafe { dealloc(buffer, BUFFER) };
    }

    unsafe extern "C" fn called(_: *mut c_void, _: u32, _: u32, _: *const c_void) {}

    /// What lineage asks of CUPTI, with callbacks that do nothing.
    fn record_with_cupti() -> Fallible<()> {
        type Subscribe = unsafe extern "C" fn(
            *mut *mut c_void,
            unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void),
            *mut c_void,
        ) -> u32;
        type EnableDomain = unsafe extern "C" fn(u32, *mut c_void, u32) -> u32;
        type Register = unsafe extern "C" fn(
            unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize),
            unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize),
        ) -> u32;
        type Enable = unsafe extern "C" fn(u32) -> u32;
        // SAFETY: the simulated library is in the process already, and these are the types of `cupti.h`; the callbacks
        // live as long as the process, and so does the library, which is never closed.
        let codes = unsafe {
            let library = std::mem::ManuallyDrop::new(libloading::Library::new("libcupti.so")?);
            let subscribe = library.get::<Subscribe>(b"cuptiSubscribe")?;
            let enable_domain = library.get::<EnableDomain>(b"cuptiEnableDomain")?;
            let register = library.get::<Register>(b"cuptiActivityRegisterCallbacks")?;
            let enable = library.get::<Enable>(b"cuptiActivityEnable")?;
            let mut subscriber = std::ptr::null_mut();
            let mut codes = vec![
                subscribe(&mut subscriber, called, std::ptr::null_mut()),
                register(give, take),
            ];
            // Driver calls, and resources, which tell of graphs.
            codes.extend([1, 3].map(|domain| enable_domain(1, subscriber, domain)));
            // Copies, sets, driver calls, kernels, external ids.
            codes.extend([1, 2, 4, 10, 39].map(|kind| enable(kind)));
            codes
        };
        match codes.iter().find(|code| **code != 0) {
            None => Ok(()),
            Some(code) => Err(format!("CUPTI answers {code}").into()),
        }
    }
}
