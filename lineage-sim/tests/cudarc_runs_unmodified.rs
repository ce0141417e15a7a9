//! A program written against cudarc's safe interface runs on the simulated driver as it is.

#![cfg(target_os = "linux")]

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use lineage_sim::{Config, DeviceRange, Gpu, isolated};

const PTX: &str = "
.version 8.0
.target sm_90
.address_size 64
// y[i] = a * x[i] + y[i]
.visible .entry saxpy(
    .param .u64 saxpy_param_0,
    .param .u64 saxpy_param_1,
    .param .f32 saxpy_param_2,
    .param .u32 saxpy_param_3
) { ret; }
.visible .entry unregistered(.param .u64 p) { ret; }
";

fn gpu() -> Gpu {
    let gpu = lineage_sim::load(Config::default()).expect("the simulator loads");
    gpu.register_kernel("saxpy", |launch| {
        let length = launch.argument::<u32>(3)? as usize;
        let x = DeviceRange::new(launch.argument(0)?, length);
        let y = DeviceRange::new(launch.argument(1)?, length);
        let a = launch.argument::<f32>(2)?;
        let x = launch.slice::<f32>(x)?.to_vec();
        for (y, x) in launch.slice_mut::<f32>(y)?.iter_mut().zip(x) {
            *y += a * x;
        }
        Ok(())
    })
    .expect("the name is valid");
    gpu
}

#[test]
fn context_streams_events_memory_module_and_launch() {
    isolated("context_streams_events_memory_module_and_launch", || {
        let _gpu = gpu();
        let context = CudaContext::new(0).unwrap();
        assert_eq!(context.name().unwrap(), "Simulated GPU (lineage-sim)");
        assert_eq!(context.compute_capability().unwrap(), (9, 0));
        let module = context.load_module(Ptx::from_src(PTX)).unwrap();
        let saxpy = module.load_function("saxpy").unwrap();
        assert!(module.load_function("missing").is_err());

        let first = context.new_stream().unwrap();
        let second = context.new_stream().unwrap();
        let x = first
            .clone_htod(&(0..1_000).map(|i| i as f32).collect::<Vec<_>>())
            .unwrap();
        let mut y = first.alloc_zeros::<f32>(1_000).unwrap();
        let begin = first
            .record_event(Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT))
            .unwrap();
        for _ in 0..3 {
            // SAFETY: the arguments are those of the kernel.
            unsafe {
                first
                    .launch_builder(&saxpy)
                    .arg(&x)
                    .arg(&mut y)
                    .arg(&2.0_f32)
                    .arg(&1_000_u32)
                    .launch(LaunchConfig::for_num_elems(1_000))
            }
            .unwrap();
        }
        let end = first
            .record_event(Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT))
            .unwrap();
        second.wait(&end).unwrap();
        let host = second.clone_dtoh(&y).unwrap();
        second.synchronize().unwrap();
        assert!(host.iter().enumerate().all(|(i, y)| *y == 6.0 * i as f32));
        assert!(begin.elapsed_ms(&end).unwrap() > 0.0);

        let mut copied = second.alloc_zeros::<f32>(1_000).unwrap();
        second.memcpy_dtod(&y, &mut copied).unwrap();
        assert_eq!(second.clone_dtoh(&copied).unwrap(), host);
        let (free, total) = context.mem_get_info().unwrap();
        assert_eq!(total - free, 3 * 4_000);
        context.synchronize().unwrap();
    });
}

#[test]
fn default_stream_and_unregistered_kernels() {
    isolated("default_stream_and_unregistered_kernels", || {
        let gpu = gpu();
        let context = CudaContext::new(0).unwrap();
        let module = context.load_module(Ptx::from_src(PTX)).unwrap();
        let function = module.load_function("unregistered").unwrap();
        let stream = context.default_stream();
        for _ in 0..10 {
            // SAFETY: the arguments are those of the kernel.
            unsafe {
                stream
                    .launch_builder(&function)
                    .arg(&7_u64)
                    .launch(LaunchConfig::for_num_elems(1))
            }
            .unwrap();
        }
        stream.synchronize().unwrap();
        let truth = gpu.truth();
        assert_eq!(truth.operations.len(), 10);
        for pair in truth.operations.windows(2) {
            assert!(pair[0].end_ns <= pair[1].start_ns, "one stream is in order");
        }
        for operation in &truth.operations {
            assert_eq!(operation.end_ns - operation.start_ns, 2_000);
            assert_eq!(operation.name.as_deref(), Some("unregistered"));
        }
    });
}

fn run_thread(context: &Arc<CudaContext>, stream: &Arc<CudaStream>, seed: f32, launches: u32) {
    let module = context.load_module(Ptx::from_src(PTX)).unwrap();
    let saxpy = module.load_function("saxpy").unwrap();
    let x = stream.clone_htod(&vec![seed; 64]).unwrap();
    let mut y = stream.alloc_zeros::<f32>(64).unwrap();
    for _ in 0..launches {
        // SAFETY: the arguments are those of the kernel.
        unsafe {
            stream
                .launch_builder(&saxpy)
                .arg(&x)
                .arg(&mut y)
                .arg(&1.0_f32)
                .arg(&64_u32)
                .launch(LaunchConfig::for_num_elems(64))
        }
        .unwrap();
    }
    let host = stream.clone_dtoh(&y).unwrap();
    assert!(
        host.iter().all(|value| *value == seed * launches as f32),
        "{host:?}"
    );
}

#[test]
fn eight_threads_launch_at_once() {
    isolated("eight_threads_launch_at_once", || {
        let gpu = gpu();
        let context = CudaContext::new(0).unwrap();
        let begin = std::time::Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let context = &context;
                scope.spawn(move || {
                    let stream = context.new_stream().unwrap();
                    run_thread(context, &stream, thread as f32 + 1.0, 5_000);
                });
            }
        });
        let took = begin.elapsed();
        println!("40,000 launches from 8 threads: {took:?}");
        assert_eq!(gpu.counts().panics_caught, 0);
        assert_eq!(gpu.counts().operations_pending, 0);
        let kernels = gpu
            .truth()
            .operations
            .iter()
            .filter(|operation| operation.name.is_some())
            .count();
        assert_eq!(kernels, 40_000);
    });
}
