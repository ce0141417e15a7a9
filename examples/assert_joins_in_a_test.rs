//! Twenty lines that assert, in a test, that every kernel was joined to its request.
//!
//! ```text
//! cargo test --example assert_joins_in_a_test     # as the test that it is
//! cargo run  --example assert_joins_in_a_test     # to see what it found
//! ```
//!
//! The GPU is simulated, so this runs on any Linux machine: cudarc and libcupti find the simulated
//! libraries in the places of NVIDIA's.

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the simulated gpu is for Linux");
}

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::every_kernel_is_joined_to_its_request()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::time::Duration;

    use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
    use cudarc::nvrtc::Ptx;
    use launch_lineage::id::CorrelationId;
    use launch_lineage::prelude::*;
    use lineage_validator::{TruthOperation, assert_joins, check_joins};

    const PTX: &str = ".version 7.0\n.target sm_50\n.address_size 64\n\
                       .visible .entry work(.param .u64 request) { ret; }";

    #[cfg_attr(test, test)]
    pub(crate) fn every_kernel_is_joined_to_its_request() -> Result<(), Box<dyn std::error::Error>>
    {
        let gpu = lineage_sim::load(lineage_sim::Config::default())?;
        gpu.kernel("work").label_argument(0).timed()?;
        let device = Cupti::new();
        let lineage = Lineage::builder().device(device).keep_in_memory(10_000);
        let lineage = lineage.start()?;

        // The work. The request's number is the kernel's argument: the truth travels as data.
        let context = CudaContext::new(0)?;
        let module = context.load_module(Ptx::from_src(PTX))?;
        let (stream, kernel) = (context.default_stream(), module.load_function("work")?);
        let mut request_of = HashMap::new();
        for number in 1..=100_u64 {
            let request = Epoch::declare("request");
            request_of.insert(request.id(), number);
            let mut call = stream.launch_builder(&kernel);
            call.arg(&number);
            // SAFETY: the kernel's one parameter is a `u64`.
            request.launch(|| unsafe { call.launch(LaunchConfig::for_num_elems(1)) })?;
        }
        stream.synchronize()?;
        let report = lineage.shutdown(Duration::from_secs(10));

        // The records agree with one another. In most tests this line is all there is to it.
        assert_joins(&report);

        // And they are right: each kernel ran with the number of the request it is joined to.
        let ran = gpu.truth().operations;
        let ran = ran.iter().filter_map(|ran| {
            let id = CorrelationId(ran.correlation_id);
            Some(TruthOperation::of_call(id, ran.label?))
        });
        let ran: Vec<_> = ran.collect();
        let score = check_joins(&report)?
            .against_truth(&ran, |epoch| request_of.get(&Some(epoch)).copied());
        assert!(score.is_right() && score.right == 100, "{score}");
        println!("{score}; {}", report.device);
        Ok(())
    }
}
