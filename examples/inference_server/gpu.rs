//! Which GPU to run on.

use launch_lineage::Cupti;
use lineage_sim::{Config, CuptiVersion, RuntimeCalls};

use crate::cannot_run::CannotRun;
use crate::model::host;
use crate::options::{CuptiChoice, GpuChoice, Options, RuntimeCallsChoice};
use crate::probe::{self, Probed};

/// What each driver call costs the calling thread on the simulated GPU: about as much as on a real
/// one, so that what lineage adds is measured against something.
const SIMULATED_CALL_NS: u64 = 4_500;
/// How much truth is kept, in operations.
const TRUTH_CAPACITY: usize = 1 << 22;

/// The GPU of this run.
pub struct Gpu {
    /// The simulated one; `None` for a real one.
    pub simulated: Option<lineage_sim::Gpu>,
    /// What it is and why it was taken, in one line.
    pub description: String,
}

impl Gpu {
    /// The device evidence that belongs to it.
    pub fn cupti(&self) -> Cupti {
        match self.simulated {
            // The simulated CUPTI is in the process already, under this name; what the environment
            // says is meant for a real one.
            Some(_) => Cupti::new().library("libcupti.so"),
            None => Cupti::new(),
        }
    }
}

/// Chooses as `--gpu` says.
pub fn choose(options: &Options) -> Result<Gpu, CannotRun> {
    if options.gpu == GpuChoice::Sim {
        return simulated(options, "as asked for");
    }
    match probe::ask_child() {
        Probed::Works { description } => Ok(Gpu {
            simulated: None,
            description,
        }),
        Probed::Not { what, .. } if options.gpu == GpuChoice::Auto => simulated(options, &what),
        Probed::Not {
            what,
            evidence,
            next,
        } => Err(CannotRun::new(
            format!("no usable real gpu: {what}"),
            format!("{next}, or run with --gpu sim"),
        )
        .besides(evidence)),
    }
}

fn simulated(options: &Options, why: &str) -> Result<Gpu, CannotRun> {
    let config = Config::default()
        .cupti_version(match options.sim_cupti {
            CuptiChoice::V12_9 => CuptiVersion::V12_9,
            CuptiChoice::V13_5 => CuptiVersion::V13_5,
        })
        .runtime_calls(match options.sim_runtime_calls {
            RuntimeCallsChoice::Off => RuntimeCalls::Off,
            RuntimeCallsChoice::Same => RuntimeCalls::SameCorrelationId,
            RuntimeCallsChoice::Own => RuntimeCalls::OwnCorrelationId,
        })
        .push_inside_enter_counts(options.sim_push_inside_enter)
        .host_cost_ns_per_call(SIMULATED_CALL_NS)
        .truth_capacity(TRUTH_CAPACITY);
    let cannot = |error: &dyn std::error::Error| {
        CannotRun::new(
            format!("the simulated gpu does not start: {error}"),
            "run it with cargo on linux; on other systems only a real gpu will do",
        )
    };
    // Before anything else looks for libcuda: the first one that is loaded is the process's.
    let gpu = lineage_sim::load(config).map_err(|error| cannot(&error))?;
    host::register(&gpu).map_err(|error| cannot(&error))?;
    Ok(Gpu {
        simulated: Some(gpu),
        description: format!("simulated: {why}"),
    })
}
