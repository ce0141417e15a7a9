//! What the command is asked.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use lineage_core::fault::FaultCode;
use lineage_core::verdict::VerdictKind;

use crate::part::Within;

/// Whose request was this GPU work, and why did it begin when it did? Reads recordings of launch lineage,
/// Nsight Systems and PyTorch's profiler.
#[derive(Debug, Parser)]
#[command(name = "lineage", version, after_help = FIRST_STEPS)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colours; NO_COLOR and CLICOLOR_FORCE are obeyed with `auto`
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
}

const EXIT_CODES: &str = "exit codes: 0 fine, 1 faults were found, 2 bad input or use";

// Lines of a terminal of 80 columns.
const FIRST_STEPS: &str = "\
First steps, with any recording (a ledger.jsonl or NAME.lineage, an export of
`nsys export --type sqlite`, a trace.json.gz of PyTorch's profiler):
  lineage show FILE                      what it holds, and what it cannot tell
  lineage diagnose FILE                  where time went, the slowest operation
  lineage diagnose --by running FILE     the kernel that ran longest
  lineage diagnose --kernel NAME FILE    the slowest with NAME in its name
  lineage service FILE                   how busy each device was
  lineage compare BEFORE AFTER           what takes longer since a change
  lineage explain WORD                   what a word of these outputs rests on

exit codes: 0 fine, 1 faults were found, 2 bad input or use";

const DIAGNOSE_HELP: &str = "\
Try:
  lineage diagnose FILE                           the slowest operation's life
  lineage diagnose --by running --slowest 5 FILE  the five that ran longest
  lineage diagnose --kernel gemm FILE             the slowest gemm
  lineage diagnose --request 0192f3 FILE          the slowest of one request
  lineage diagnose --last 10m FILE                the run's last ten minutes
  lineage diagnose --from 12m30s --to 14m FILE    a part of it, from its start
  lineage diagnose --from 2026-11-30T02:14:00Z --to 2026-11-30T02:20:00Z FILE

exit codes: 0 fine, 2 bad input or use";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Derive every join of a recording anew, and say what is lost, wrong or impossible
    #[command(after_help = EXIT_CODES)]
    Validate(Validate),
    /// Say what recordings hold, what evidence they lack, and what that leaves open
    #[command(after_help = "exit codes: 0 fine, 2 bad input or use")]
    Show(Show),
    /// Say where time went, and draw the slowest operations' lives: which waits are proved, which need no
    /// explanation, which are unresolved and what would settle them
    #[command(after_help = DIAGNOSE_HELP)]
    Diagnose(Diagnose),
    /// Say what users of a service felt, token by token, and what its devices did meanwhile
    #[command(after_help = "exit codes: 0 fine, 2 bad input or use")]
    Service(Service),
    /// Say what work takes longer in one recording than in another, and for which reasons
    #[command(after_help = "exit codes: 0 fine, 2 bad input or use")]
    Compare(Compare),
    /// Write a ledger in another form: JSON lines, a run directory, SQLite or Parquet tables
    #[command(after_help = "exit codes: 0 fine, 2 bad input or use")]
    Convert(Convert),
    /// Say what works on this machine, what recordings made here will not know, and how to get it
    #[command(
        after_help = "exit codes: 0 device evidence can be recorded here, 1 it cannot, 2 bad use"
    )]
    Doctor(Doctor),
    /// Say what a fault code means and how to mend it, or what a verdict rests on and what to try
    Explain(Explain),
    /// Launch kernels of your lengths on a model of a GPU, and see who waits for whom, and why
    #[command(after_help = LAB_HELP)]
    Lab(Lab),
    /// Print the JSON Schema of an output, or of a ledger's lines
    Schema {
        /// Which
        #[arg(value_enum)]
        of: Described,
    },
    /// Print a shell's completion script
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print a man page: `lineage man validate | man -l -`
    Man {
        /// The subcommand; without one, the page of `lineage` itself
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
}

/// What a JSON Schema is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Described {
    /// A line of a JSON-lines ledger
    Ledger,
    /// The object of `lineage validate --json`
    Validate,
    /// The object of `lineage show --json`
    Show,
    /// The object of `lineage doctor --json`
    Doctor,
    /// The object of `lineage service --json`
    Service,
    /// The object of `lineage compare --json`
    Compare,
    /// The object of `lineage lab --json`
    Lab,
    /// The object of `lineage diagnose --json`
    Diagnose,
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// Ledgers (JSON lines, or run directories NAME.lineage), SQLite exports of Nsight Systems, Kineto
    /// traces (JSON, plain or gzipped)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print one JSON object per file instead of tables; `lineage schema validate` describes it
    #[arg(long)]
    pub(crate) json: bool,

    /// Fail where no operation was joined to an epoch (in another tool's recording without
    /// `--epochs-from`: to a call), since nothing is asserted of such a recording
    #[arg(long)]
    pub(crate) require_joins: bool,

    /// Findings to list for each fault code; all are counted
    #[arg(long, default_value_t = 5, value_name = "COUNT")]
    pub(crate) list: usize,

    /// Error of the device's clock against the host's, in nanoseconds
    #[arg(long, default_value_t = 5_000, value_name = "NS")]
    pub(crate) clock_error_ns: u64,

    /// Validate a trace that is cut short as far as it goes, instead of refusing it
    #[arg(long)]
    pub(crate) partial: bool,

    #[command(flatten)]
    pub(crate) candidates: Candidates,
}

/// Which ranges of another tool's recording become candidate epochs.
#[derive(Debug, Args)]
pub(crate) struct Candidates {
    /// Take these ranges of another tool's recording as epochs; they are candidates, and never due
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) epochs_from: Option<EpochSource>,

    /// Only ranges whose text contains this
    #[arg(long, requires = "epochs_from", value_name = "TEXT")]
    pub(crate) epoch_name: Option<String>,
}

/// How recordings are read and joined.
#[derive(Debug, Args)]
pub(crate) struct Reading {
    /// Error of the device's clock against the host's, in nanoseconds
    #[arg(long, default_value_t = 5_000, value_name = "NS")]
    pub(crate) clock_error_ns: u64,

    /// Take a trace that is cut short as far as it goes, instead of refusing it
    #[arg(long)]
    pub(crate) partial: bool,

    #[command(flatten)]
    pub(crate) candidates: Candidates,
}

impl Candidates {
    /// No candidates.
    pub(crate) const fn none() -> Self {
        Self {
            epochs_from: None,
            epoch_name: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EpochSource {
    /// NVTX ranges
    Nvtx,
    /// Annotations, as PyTorch's record_function makes them
    Annotations,
    /// Ranges with a request id in their arguments or name
    RequestIds,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Ledgers (JSON lines, or run directories NAME.lineage), SQLite exports of Nsight Systems, Kineto
    /// traces (JSON, plain or gzipped)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Print one JSON object per file instead of text; `lineage schema show` describes it
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Diagnose {
    /// Ledgers (JSON lines, or run directories NAME.lineage), SQLite exports of Nsight Systems, Kineto
    /// traces (JSON, plain or gzipped)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// How many of the slowest operations to draw
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    pub(crate) slowest: usize,

    /// Which time the slowest have most of
    #[arg(long, value_enum, default_value_t = Slow::Whole, value_name = "WHICH")]
    pub(crate) by: Slow,

    /// Draw only operations of epochs whose name contains this, or whose trace id begins with it
    #[arg(long, value_name = "TEXT")]
    pub(crate) request: Option<String>,

    /// Draw only operations of this epoch, by its number, or by its number and version: 88 or 88.3
    #[arg(long, value_name = "EPOCH", value_parser = epoch)]
    pub(crate) epoch: Option<(u64, Option<u32>)>,

    /// Draw only operations whose name contains this; … stands for any text, as where a name was cut
    #[arg(long, value_name = "TEXT")]
    pub(crate) kernel: Option<String>,

    /// Print one JSON object per file instead of text; `lineage schema diagnose` describes it
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) within: Within,

    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// Which time of an operation is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Slow {
    /// From its first known stage to its end
    Whole,
    /// On the device, from its start to its end
    Running,
    /// Before it began
    Waiting,
}

/// An epoch's number, perhaps with its version.
fn epoch(text: &str) -> Result<(u64, Option<u32>), String> {
    let wrong = |_| "an epoch's number is wanted, or its number and version, as 88.3".to_owned();
    match text.split_once('.') {
        Some((id, version)) => Ok((
            id.parse().map_err(wrong)?,
            Some(version.parse().map_err(wrong)?),
        )),
        None => Ok((text.parse().map_err(wrong)?, None)),
    }
}

#[derive(Debug, Args)]
pub(crate) struct Service {
    /// Recordings, as of `lineage diagnose`
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Keep requests apart that were declared within so long after the first: 2s, 500ms
    #[arg(long, default_value = "0ns", value_name = "TIME", value_parser = time_ns)]
    pub(crate) warm_up: u64,

    /// Count first tokens that came later than so long after their request was declared
    #[arg(long, value_name = "TIME", value_parser = time_ns)]
    pub(crate) first_token: Option<u64>,

    /// Count tokens that came later than so long after the one before
    #[arg(long, value_name = "TIME", value_parser = time_ns)]
    pub(crate) between_tokens: Option<u64>,

    /// Print one JSON object per file instead of text; `lineage schema service` describes it
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reading: Reading,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// The recording to compare with: how it was before
    #[arg(value_name = "BEFORE")]
    pub(crate) before: PathBuf,

    /// The recording that is slower, or faster
    #[arg(value_name = "AFTER")]
    pub(crate) after: PathBuf,

    /// Print one JSON object instead of text; `lineage schema compare` describes it
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) within: Within,

    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// A span of time with its unit, as ns: 50us, 2.5ms, 3s.
fn time_ns(text: &str) -> Result<u64, String> {
    let wrong = || "a time with its unit is wanted, as 500ns, 50us, 2.5ms or 3s".to_owned();
    let units = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
    ];
    let parsed = units.iter().find_map(|(unit, ns)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * ns)
    });
    match parsed {
        // Beyond it numbers are no longer exact; it is a hundred days.
        Some(ns) if (0.0..=9e15).contains(&ns) => Ok(ns.round() as u64),
        _ => Err(wrong()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// A JSON-lines ledger, a run directory (NAME.lineage), or a folder of several processes'
    pub(crate) from: PathBuf,

    /// What to write, which must not be there; by the end of its name: .jsonl, .lineage, .sqlite (one table
    /// each for launches, operations, calls, …)
    #[cfg_attr(feature = "parquet", doc = "or .parquet (a folder with a file each)")]
    #[cfg_attr(
        not(feature = "parquet"),
        doc = "and, in a build with `--features parquet`, which this one is not, .parquet"
    )]
    pub(crate) to: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The code or name of a fault, for example L01 or launch-without-epoch, or a verdict, for example
    /// dependency_wait; without one, all are listed
    #[arg(value_name = "CODE", value_parser = subject)]
    pub(crate) code: Option<Subject>,
}

/// What is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Fault(FaultCode),
    Verdict(VerdictKind),
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

const LAB_HELP: &str = "\
What the columns mean, all in µs:
  called    the launch call begins: when the call before it returned
  enqueued  the call has put the kernel into its queue, and returns: called + host,
            and later where the queue was full
  started   the later of enqueued and the end of what the kernel has to wait for
  ended     started + gpu
  waited    what is between the call and the start, beside the host's own time
  for       behind N: launch N, before it in its stream or in the graph
            channel: N: launch N of another stream, ahead of it in their channel
            queue full: room in the queue

Try:
  lineage lab --host 3 --gpu 8 --launches 4      the host runs ahead of the device
  lineage lab --host 8 --gpu 2 --launches 4      the device waits for the host
  lineage lab --host 8 --gpu 1 --launches 4      half the kernel, and hardly sooner
  lineage lab --host 8 --gpu 2 --launches 4 --graph            one call for all four
  lineage lab --host 1 --gpu 10 --streams 2 --channels 1 --depth-first
                                                 streams that share a channel
  lineage lab --host 1 --gpu 10 --launches 8 --depth 2         a queue that is full";

#[derive(Debug, Args)]
pub(crate) struct Lab {
    /// Host time of each launch call, in µs
    #[arg(long, default_value = "3", value_name = "US", value_parser = micros)]
    host: u64,

    /// How long each kernel runs, in µs
    #[arg(long, default_value = "8", value_name = "US", value_parser = micros)]
    gpu: u64,

    /// How many kernels are launched, one after the other
    #[arg(long, default_value_t = 4, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) launches: u32,

    /// Over how many streams, in turn; kernels of one stream follow each other, those of several may overlap
    #[arg(long, default_value_t = 1, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) streams: u32,

    /// On how many hardware channels the streams are; streams that share one leave it in order; 0: each has its own
    #[arg(long, default_value_t = 0, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(0..=1_000))]
    pub(crate) channels: u32,

    /// How many kernels a channel's queue holds, beside the one that runs; a full one blocks the call
    #[arg(long, default_value_t = 1_024, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) depth: u32,

    /// Launch all kernels of the first stream, then all of the second, instead of in turn
    #[arg(long)]
    pub(crate) depth_first: bool,

    /// Launch all kernels as one graph, in one call
    #[arg(long)]
    pub(crate) graph: bool,

    /// Print one JSON object instead of text; `lineage schema lab` describes it
    #[arg(long)]
    pub(crate) json: bool,
}

impl Lab {
    pub(crate) const fn host_ns(&self) -> u64 {
        self.host
    }

    pub(crate) const fn gpu_ns(&self) -> u64 {
        self.gpu
    }
}

/// A time in µs, with up to three decimals, as ns.
fn micros(text: &str) -> Result<u64, String> {
    const MOST: u64 = 1_000_000_000;
    let wrong =
        || "a number of µs is wanted, from 0 to 1000000000, with up to three decimals".to_owned();
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(decimals) || decimals.len() > 3 {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let decimals: u64 = format!("{decimals:0<3}").parse().map_err(|_| wrong())?;
    if whole > MOST {
        return Err(wrong());
    }
    Ok(whole * 1_000 + decimals)
}

fn subject(text: &str) -> Result<Subject, String> {
    let named = |code: &&FaultCode| code.name().eq_ignore_ascii_case(text);
    let fault = FaultCode::from_code(text).or_else(|| FaultCode::ALL.iter().find(named).copied());
    let verdict = || VerdictKind::from_name(text).map(Subject::Verdict);
    fault.map(Subject::Fault).or_else(verdict).ok_or_else(|| {
        "no fault has this code or name, and no verdict this name; `lineage explain` lists them"
            .to_owned()
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

impl Color {
    /// Sets the choice for this process.
    pub(crate) fn choose(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }
}
