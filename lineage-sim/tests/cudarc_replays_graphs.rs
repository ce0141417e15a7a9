//! A program written against cudarc captures a graph and replays it, as it is.

#![cfg(target_os = "linux")]

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use lineage_sim::{Config, DeviceRange, isolated};

const PTX: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry add_one(.param .u64 add_one_param_0, .param .u32 add_one_param_1) { ret; }
";

#[test]
fn capture_and_replay() {
    isolated("capture_and_replay", || {
        let gpu = lineage_sim::load(Config::default()).expect("the simulator loads");
        gpu.register_kernel("add_one", |launch| {
            let length = launch.argument::<u32>(1)? as usize;
            let range = DeviceRange::new(launch.argument(0)?, length);
            for value in launch.slice_mut::<f32>(range)? {
                *value += 1.0;
            }
            Ok(())
        })
        .expect("the name is valid");
        let context = CudaContext::new(0).unwrap();
        // SAFETY: one stream only, so nothing needs cudarc's own events; they are not allowed in a capture.
        unsafe { context.disable_event_tracking() };
        let module = context.load_module(Ptx::from_src(PTX)).unwrap();
        let add_one = module.load_function("add_one").unwrap();
        let stream = context.new_stream().unwrap();
        let mut values = stream.alloc_zeros::<f32>(100).unwrap();
        stream.synchronize().unwrap();

        stream
            .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .unwrap();
        for _ in 0..3 {
            // SAFETY: the arguments are those of the kernel.
            unsafe {
                stream
                    .launch_builder(&add_one)
                    .arg(&mut values)
                    .arg(&100_u32)
                    .launch(LaunchConfig::for_num_elems(100))
            }
            .unwrap();
        }
        let graph = stream
            .end_capture(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)
            .unwrap()
            .expect("something was captured");
        graph.upload().unwrap();
        assert_eq!(stream.clone_dtoh(&values).unwrap(), vec![0.0; 100]);
        for _ in 0..5 {
            graph.launch().unwrap();
        }
        assert_eq!(stream.clone_dtoh(&values).unwrap(), vec![15.0; 100]);
        let kernels = gpu.truth();
        let kernels: Vec<_> = kernels
            .operations
            .iter()
            .filter_map(|one| one.graph)
            .collect();
        assert_eq!(kernels.len(), 15);
        assert_eq!(kernels[14].launch, 5);
        drop(graph);
        assert_eq!(gpu.counts().panics_caught, 0);
    });
}
