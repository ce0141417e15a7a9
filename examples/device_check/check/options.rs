//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use lineage_sim::{Config, CuptiVersion, RuntimeCalls};
use serde_json::{Value, json};

#[derive(Debug, Parser)]
#[command(
    name = "device_check",
    version,
    about = "Asks CUPTI what NVIDIA does not document"
)]
pub enum Command {
    /// Ask all questions and write the answers
    Run(Run),
    /// Compare what two runs answered, and name the simulator's switches for the first
    Diff(Files),
    /// List the questions
    Questions,
    /// Ask one question in this process
    #[command(hide = true)]
    Ask(Ask),
}

#[derive(Debug, Args)]
pub struct Run {
    /// The folder for the answers; made if it is not there
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
    #[command(flatten)]
    pub of: Of,
    /// Ask only these; `scenarios` means all of them
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Do not ask these; `scenarios` means all of them
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Seconds for all of it; what has not been asked by then is recorded as skipped
    #[arg(long, default_value_t = 180, value_name = "SECONDS")]
    pub within: u64,
    /// Rounds in which the launch loop is run with nothing, with CUPTI, and with lineage, in turn
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20))]
    pub rounds: u32,
    /// Requests of the inference server's run
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub requests: u32,
}

#[derive(Debug, Args)]
pub struct Ask {
    /// The question
    pub name: String,
    /// Where to write the answer
    #[arg(long)]
    pub answer: PathBuf,
    #[command(flatten)]
    pub of: Of,
    /// The CUDA runtime to load, for what the runtime does
    #[arg(long)]
    pub cudart: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Files {
    /// `summary.json` of a run on a real GPU
    pub real: PathBuf,
    /// `summary.json` of a run on the simulated one
    pub simulated: PathBuf,
}

/// Of whom the questions are asked, and how much.
#[derive(Debug, Clone, Args)]
pub struct Of {
    /// The GPU: a real one, or the simulated one
    #[arg(long, value_enum, default_value = "real")]
    pub gpu: GpuChoice,
    /// Launches of the launch loop
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub launches: u32,
    /// Simulated CUPTI: its version
    #[arg(
        long,
        value_enum,
        default_value = "12.9",
        value_name = "12.0|12.4|12.9|13.0|13.1|13.4|13.5",
        hide_possible_values = true
    )]
    pub sim_cupti: CuptiChoice,
    /// Simulated CUPTI: whether an id that is pushed inside its API-enter callback counts for that call
    #[arg(long, default_value_t = false, action = clap::ArgAction::Set, value_name = "true|false", hide_possible_values = true)]
    pub sim_push_inside_enter: bool,
    /// Simulated CUPTI: no runtime calls around the driver's, or ones with the same or their own ids
    #[arg(
        long,
        value_enum,
        default_value = "off",
        value_name = "off|same|own",
        hide_possible_values = true
    )]
    pub sim_runtime_calls: RuntimeCallsChoice,
    /// Simulated CUPTI: a buffer for each thread, whatever its version does
    #[arg(long, value_name = "true|false")]
    pub sim_per_thread_buffers: Option<bool>,
    /// Simulated CUPTI: the code that subscribing fails with
    #[arg(long, value_name = "CODE")]
    pub sim_fail_subscribe_with: Option<u32>,
}

impl Of {
    /// The same, as arguments for a child.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            "--gpu".to_owned(),
            name(&self.gpu),
            format!("--launches={}", self.launches),
            format!("--sim-cupti={}", name(&self.sim_cupti)),
            format!("--sim-push-inside-enter={}", self.sim_push_inside_enter),
            format!("--sim-runtime-calls={}", name(&self.sim_runtime_calls)),
        ];
        if let Some(on) = self.sim_per_thread_buffers {
            arguments.push(format!("--sim-per-thread-buffers={on}"));
        }
        if let Some(code) = self.sim_fail_subscribe_with {
            arguments.push(format!("--sim-fail-subscribe-with={code}"));
        }
        arguments
    }

    pub fn is_simulated(&self) -> bool {
        self.gpu == GpuChoice::Sim
    }

    /// The simulator's switches, as the summary has them; null for a real GPU.
    pub fn switches(&self) -> Value {
        if !self.is_simulated() {
            return Value::Null;
        }
        json!({
            "cupti_version": name(&self.sim_cupti),
            "push_inside_enter_counts": self.sim_push_inside_enter,
            "runtime_calls": name(&self.sim_runtime_calls),
            "per_thread_buffers": self.sim_per_thread_buffers,
            "fail_subscribe_with": self.sim_fail_subscribe_with,
        })
    }

    /// The simulator's configuration. A call costs about what it does on a real GPU, so that what is
    /// added to it is measured against something.
    pub fn config(&self) -> Config {
        Config::default()
            .cupti_version(self.sim_cupti.version())
            .push_inside_enter_counts(self.sim_push_inside_enter)
            .runtime_calls(match self.sim_runtime_calls {
                RuntimeCallsChoice::Off => RuntimeCalls::Off,
                RuntimeCallsChoice::Same => RuntimeCalls::SameCorrelationId,
                RuntimeCallsChoice::Own => RuntimeCalls::OwnCorrelationId,
            })
            .per_thread_buffers(self.sim_per_thread_buffers)
            .fail_subscribe_with(self.sim_fail_subscribe_with)
            .host_cost_ns_per_call(4_500)
    }
}

/// The word for a choice on the command line.
pub fn name(choice: &impl ValueEnum) -> String {
    choice
        .to_possible_value()
        .map(|value| value.get_name().to_owned())
        .unwrap_or_default()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GpuChoice {
    Real,
    Sim,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RuntimeCallsChoice {
    /// Driver calls only.
    Off,
    /// One id for both.
    Same,
    /// An id each.
    Own,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CuptiChoice {
    #[value(name = "12.0")]
    V12_0,
    #[value(name = "12.4")]
    V12_4,
    #[value(name = "12.9")]
    V12_9,
    #[value(name = "13.0")]
    V13_0,
    #[value(name = "13.1")]
    V13_1,
    #[value(name = "13.4")]
    V13_4,
    #[value(name = "13.5")]
    V13_5,
}

impl CuptiChoice {
    /// The newest that is not newer than this number of `cuptiGetVersion`; else the oldest.
    pub fn like(number: u64) -> Self {
        let not_newer = |choice: &&Self| u64::from(choice.version().number()) <= number;
        let newest = Self::value_variants().iter().rev().find(not_newer);
        newest.copied().unwrap_or(Self::V12_0)
    }

    fn version(self) -> CuptiVersion {
        match self {
            Self::V12_0 => CuptiVersion::V12_0,
            Self::V12_4 => CuptiVersion::V12_4,
            Self::V12_9 => CuptiVersion::V12_9,
            Self::V13_0 => CuptiVersion::V13_0,
            Self::V13_1 => CuptiVersion::V13_1,
            Self::V13_4 => CuptiVersion::V13_4,
            Self::V13_5 => CuptiVersion::V13_5,
        }
    }
}
