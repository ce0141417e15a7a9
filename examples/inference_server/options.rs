//! The command line.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::cannot_run::CannotRun;
use crate::sabotage::Break;

/// An HTTP inference server under load, its every kernel joined to the requests that caused it.
#[derive(Debug, Clone, Parser)]
#[command(name = "inference_server", version, after_help = AFTER_HELP)]
pub struct Options {
    /// The GPU to run on: a real one, the simulated one, or whichever is there
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "auto|real|sim",
        hide_possible_values = true
    )]
    pub gpu: GpuChoice,

    /// How many requests are sent in each run
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub requests: u32,

    /// How many of them are under way at once
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub concurrency: u16,

    /// Decode by replaying CUDA graphs, one for each size of batch, instead of kernel by kernel
    #[arg(long)]
    pub graphs: bool,

    /// Runs with lineage off and as many with it on, for the requests per second of both; 0 runs
    /// once, with it on
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(..=100))]
    pub arms: u16,

    /// Send nothing; serve until Ctrl-C, then print the summary
    #[arg(long)]
    pub serve: bool,

    /// The loopback port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    pub port: u16,

    /// The folder for the ledger [default: inference_server in cargo's target folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// The ledger's name in that folder: one that ends in .lineage is a run directory, which can be read
    /// while the server runs, any other one is JSON lines
    #[arg(long, default_value = "ledger.jsonl", value_name = "NAME")]
    pub ledger: PathBuf,

    /// How much evidence is collected: what tells whose each kernel was, or also what tells why it
    /// began when it did, the scheduler's switches among it
    #[arg(
        long,
        value_enum,
        default_value = "correlate",
        value_name = "correlate|explain",
        hide_possible_values = true
    )]
    pub tier: TierChoice,

    /// Write the summary as JSON as well
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Send lineage to this OpenTelemetry collector, for example http://127.0.0.1:4317; the OTEL_…
    /// variables say the rest
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,

    /// How the collector is spoken to [default: gRPC at port 4317, else as the environment says, or
    /// HTTP]
    #[arg(
        long,
        value_enum,
        requires = "otlp",
        value_name = "grpc|http",
        hide_possible_values = true
    )]
    pub otlp_protocol: Option<OtlpProtocol>,

    /// How much is sent: everything of every request, or that only of those that are late, slow or
    /// faulty, and sums of the others
    #[arg(
        long,
        value_enum,
        default_value = "everything",
        requires = "otlp",
        value_name = "everything|late",
        hide_possible_values = true
    )]
    pub otlp_detail: OtlpDetail,

    /// Write trace and span id of every span that is sent, to compare with what arrived
    #[arg(long, requires = "otlp", value_name = "FILE")]
    pub otlp_spans: Option<PathBuf>,

    /// Break one handoff on purpose, to see that it is noticed
    #[arg(
        long = "break",
        value_enum,
        value_name = "envelope|restore|swap",
        hide_possible_values = true
    )]
    pub sabotage: Option<Break>,

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

    /// Simulated CUPTI: its version
    #[arg(
        long,
        value_enum,
        default_value = "12.9",
        value_name = "12.9|13.5",
        hide_possible_values = true
    )]
    pub sim_cupti: CuptiChoice,

    /// Used by this program itself: try the real GPU, print what it is, and exit
    #[arg(long, hide = true)]
    pub probe_real_gpu: bool,
}

const AFTER_HELP: &str =
    "Exit status: 0 every join is right; 1 a lost or wrong join; 2 could not run.";

impl Options {
    /// The folder for the ledger, made if it is not there.
    pub fn out_folder(&self) -> Result<PathBuf, CannotRun> {
        let folder = self.out.clone().unwrap_or_else(default_folder);
        std::fs::create_dir_all(&folder).map_err(|error| {
            CannotRun::new(
                format!("the folder {} cannot be made: {error}", folder.display()),
                "name another one with --out",
            )
        })?;
        Ok(folder)
    }

    /// The address to listen on: this machine only.
    pub fn address(&self) -> (Ipv4Addr, u16) {
        (Ipv4Addr::LOCALHOST, self.port)
    }
}

/// `inference_server` in the folder into which cargo built this program, `target` as a rule.
fn default_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    // target/release/examples/inference_server
    let target = program
        .ancestors()
        .nth(3)
        .filter(|target| target.parent().is_some());
    target
        .map_or_else(std::env::temp_dir, PathBuf::from)
        .join("inference_server")
}

/// `--gpu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GpuChoice {
    /// A real one if it works, else the simulated one.
    Auto,
    /// A real one or nothing.
    Real,
    /// The simulated one.
    Sim,
}

/// `--tier`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TierChoice {
    /// Whose each kernel was.
    Correlate,
    /// Why it began when it did, too.
    Explain,
}

/// `--sim-runtime-calls`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RuntimeCallsChoice {
    /// Driver calls only.
    Off,
    /// One id for both.
    Same,
    /// An id each.
    Own,
}

/// `--sim-cupti`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CuptiChoice {
    /// One activity buffer for all threads.
    #[value(name = "12.9")]
    V12_9,
    /// A buffer for each thread.
    #[value(name = "13.5")]
    V13_5,
}

/// `--otlp-protocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OtlpProtocol {
    /// OTLP over gRPC.
    Grpc,
    /// OTLP over HTTP, as binary protobuf.
    Http,
}

/// `--otlp-detail`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OtlpDetail {
    /// Everything of every request.
    Everything,
    /// Everything of those that are late, slow or faulty, sums of the others.
    Late,
}
