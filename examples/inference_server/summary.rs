//! What came out: for a person, as JSON, and as an exit status.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lineage_core::totals::Totals;
use serde_json::{Map, Value, json};

use crate::cannot_run::CannotRun;
use crate::check::{Checked, Judged};
use crate::gpu::Gpu;
use crate::options::Options;
use crate::run::Recorded;

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const RED: &str = "\x1b[1;31m";
const GREEN: &str = "\x1b[1;32m";
const PLAIN: &str = "\x1b[0m";

/// Requests per second of each run.
#[derive(Debug, Default)]
pub struct Rates {
    /// With lineage off.
    pub off: Vec<f64>,
    /// With lineage on.
    pub on: Vec<f64>,
}

/// All that is shown at the end.
pub struct Summary {
    gpu: Gpu,
    ledger: PathBuf,
    /// Runs with lineage on. The first one's ledger is kept and its figures are shown; the others
    /// are for the comparison, and checked as well.
    recorded: Vec<Recorded>,
    rates: Rates,
}

impl Summary {
    /// Of these runs; the ledger is the first one's.
    pub fn new(gpu: Gpu, ledger: PathBuf, recorded: Vec<Recorded>, rates: Rates) -> Self {
        Self {
            gpu,
            ledger,
            recorded,
            rates,
        }
    }

    /// Whether every join of every run is right.
    pub fn is_right(&self) -> bool {
        self.recorded.iter().all(|run| run.checked.is_right())
    }

    /// 0 or 1.
    pub fn exit_code(&self) -> ExitCode {
        if self.is_right() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(1)
        }
    }

    /// To the terminal; without colours where it is none.
    pub fn print(&self, options: &Options) {
        anstream::print!("{}", self.text(options));
    }

    /// There is always one: `run` records before it makes a summary.
    fn first(&self) -> &Recorded {
        &self.recorded[0]
    }

    fn text(&self, options: &Options) -> String {
        let mut table = Table(String::new());
        let checked = &self.first().checked;
        table.gap();
        self.what_was_done(&mut table, options);
        table.gap();
        joins(&mut table, checked);
        if let Some(what) = options.sabotage {
            table.gap();
            table.row("broken", self.first().broken, Tone::Bad, what.description());
            if let Judged::ByTruth(score) = &checked.judged {
                let note =
                    "lost or wrong operations whose rows have no fault: only the truth shows them";
                table.row(
                    "unseen",
                    score.unnoticed,
                    Tone::zero_is_good(score.unnoticed),
                    note,
                );
            }
        }
        if let (Some(off), Some(on)) = (Spread::of(&self.rates.off), Spread::of(&self.rates.on)) {
            table.gap();
            let note = format!(
                "with lineage on, {off} off; on/off {:.3}",
                on.median / off.median
            );
            table.row("requests/s", on.median.round() as u64, Tone::Plain, &note);
            for line in on.against(&off) {
                table.line("", &line);
            }
        }
        table.gap();
        let path = shown(&self.ledger);
        table.line("ledger", &path);
        table.line(
            "next",
            &format!("cargo run --release --bin lineage -- validate {path}"),
        );
        table.gap();
        table.0.push_str(&self.verdict(options));
        table.0
    }

    fn what_was_done(&self, table: &mut Table, options: &Options) {
        let Recorded {
            work,
            loaded,
            checked,
            ..
        } = self.first();
        let Totals {
            calls, operations, ..
        } = &checked.totals;
        table.line("gpu", &self.gpu.description);
        table.line("evidence", &evidence(checked));
        table.gap();
        let answers = loaded.map_or_else(String::new, |loaded| {
            format!(
                "{} at once; {} tokens, every answer equal to the plain Rust reference",
                options.concurrency,
                grouped(loaded.tokens)
            )
        });
        table.row("requests", work.requests, Tone::Plain, &answers);
        table.row(
            "batches",
            work.batches,
            Tone::Plain,
            "sets of requests that were decoded together",
        );
        table.row(
            "steps",
            work.steps,
            Tone::Plain,
            "a token for each request of a batch",
        );
        table.row(
            "calls",
            *calls,
            Tone::Plain,
            "CUDA calls that asked for work",
        );
        let kinds = format!(
            "{} kernels, {} copies",
            grouped(operations.kernels),
            grouped(operations.copies)
        );
        table.row("operations", operations.total(), Tone::Plain, &kinds);
    }

    fn verdict(&self, options: &Options) -> String {
        let first = &self.first().checked;
        let faulty = self
            .recorded
            .iter()
            .skip(1)
            .filter(|run| !run.checked.is_right())
            .count();
        let (colour, what, note) = match (first.is_right(), options.sabotage) {
            (true, _) if faulty > 0 => (
                RED,
                "lost or wrong joins",
                format!(" in {faulty} of the runs for the comparison"),
            ),
            (true, _) => match &first.judged {
                Judged::ByTruth(_) => (
                    GREEN,
                    "every join is right",
                    ": none lost, none wrong".to_owned(),
                ),
                Judged::ByValidator { why, .. } => {
                    (GREEN, "every join is self-consistent", format!("; {why}"))
                }
            },
            (false, Some(_)) => (
                RED,
                "lost or wrong joins",
                ", as they were asked for: exit status 1".to_owned(),
            ),
            (false, None) => (RED, "lost or wrong joins", ": exit status 1".to_owned()),
        };
        format!("  {colour}{what}{PLAIN}{note}\n")
    }

    /// Writes `--json`.
    pub fn write_json(&self, options: &Options) -> Result<(), CannotRun> {
        let Some(path) = &options.json else {
            return Ok(());
        };
        let mut text = self.json().to_string();
        text.push('\n');
        std::fs::write(path, text).map_err(|error| {
            CannotRun::new(
                format!("{} cannot be written: {error}", path.display()),
                "give --json a file in a folder that exists",
            )
        })
    }

    fn json(&self) -> Value {
        let Recorded {
            work,
            checked,
            broken,
            ..
        } = self.first();
        let Checked { totals, faults, .. } = checked;
        let faults: Map<String, Value> = faults
            .iter()
            .map(|(code, count)| (code.code().to_owned(), json!(count)))
            .collect();
        json!({
            "requests": work.requests,
            "batches": work.batches,
            "steps": work.steps,
            "calls": totals.calls,
            "operations": totals.operations.total(),
            "bound": totals.bound,
            "lost": checked.lost(),
            "wrong": checked.wrong(),
            "unattributed": totals.unattributed.total(),
            "judged_by": match checked.judged {
                Judged::ByTruth(_) => "truth carried by data",
                Judged::ByValidator { .. } => "the validator alone",
            },
            "boundaries_without_external_id": totals.external_missing,
            "joins": {
                "external_and_callback": totals.bound_by.external_and_callback,
                "external_only": totals.bound_by.external_only,
                "callback_only": totals.bound_by.callback_only,
                "containment_only": totals.bound_by.containment_only,
            },
            "faults": faults,
            "broken": broken,
            "requests_per_second_off": Spread::of(&self.rates.off).map(|rates| rates.median),
            "requests_per_second_on": Spread::of(&self.rates.on).map(|rates| rates.median),
            "runs_off": self.rates.off,
            "runs_on": self.rates.on,
            "right": self.is_right(),
            "gpu": self.gpu.description,
            "simulated": self.gpu.simulated.is_some(),
            "device_evidence": evidence(checked),
            "ledger": self.ledger,
            "version": env!("CARGO_PKG_VERSION"),
        })
    }
}

fn joins(table: &mut Table, checked: &Checked) {
    let Totals {
        bound,
        bound_by,
        unattributed,
        ..
    } = &checked.totals;
    let mut note = format!(
        "by external id and callback alike {}",
        grouped(bound_by.external_and_callback)
    );
    for (count, name) in [
        (bound_by.external_only, "by the external id alone"),
        (bound_by.callback_only, "by the callback alone"),
        (bound_by.containment_only, "by containment alone"),
    ] {
        if count > 0 {
            let _ = write!(note, ", {name} {}", grouped(count));
        }
    }
    table.row("bound", *bound, Tone::Plain, &note);

    let reasons = [
        (
            unattributed.detached,
            "detached on purpose: the model's weights",
        ),
        (
            unattributed.before_first_declaration,
            "before the first declaration",
        ),
        (
            unattributed.foreign_thread,
            "on a thread that never saw lineage",
        ),
        (unattributed.internal_launch, "by the driver for itself"),
        (unattributed.outside_recording, "outside the recording"),
        (
            unattributed.no_epoch_evidence,
            "without any evidence of epochs",
        ),
    ];
    let reasons: Vec<_> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(_, reason)| *reason)
        .collect();
    table.row(
        "unattributed",
        unattributed.total(),
        Tone::Plain,
        &reasons.join(", "),
    );

    let (lost, wrong) = match &checked.judged {
        Judged::ByTruth(score) => (
            format!(
                "joined to nobody, by the truth that {} operations carried in their data",
                grouped(score.operations)
            ),
            "joined to other requests than the truth's".to_owned(),
        ),
        Judged::ByValidator { why, .. } => (
            "whose call, record or epoch is missing, by the validator".to_owned(),
            format!("of which the records contradict one another; {why}"),
        ),
    };
    table.row(
        "lost",
        checked.lost(),
        Tone::zero_is_good(checked.lost()),
        &lost,
    );
    table.row(
        "wrong",
        checked.wrong(),
        Tone::zero_is_good(checked.wrong()),
        &wrong,
    );
    if let Judged::ByTruth(score) = &checked.judged {
        for example in &score.examples {
            table.line("", &format!("{DIM}{example}{PLAIN}"));
        }
    }
    let faults = checked.faults.values().sum();
    let note = "seen by the validator, which derives every join with its own code";
    table.row("faults", faults, Tone::zero_is_good(faults), note);
    for (code, count) in &checked.faults {
        table.line("", &format!("{:>7}  {code}", grouped(*count)));
    }
}

fn evidence(checked: &Checked) -> String {
    let text = checked.device.to_string();
    text.strip_prefix("device evidence: ")
        .unwrap_or(&text)
        .to_owned()
}

/// Names, numbers and notes in three columns.
struct Table(String);

#[derive(Clone, Copy)]
enum Tone {
    Plain,
    Good,
    Bad,
}

impl Tone {
    fn zero_is_good(count: u64) -> Self {
        if count == 0 { Self::Good } else { Self::Bad }
    }
}

impl Table {
    fn row(&mut self, name: &str, number: u64, tone: Tone, note: &str) {
        let colour = match tone {
            Tone::Plain => BOLD,
            Tone::Good => GREEN,
            Tone::Bad => RED,
        };
        let number = grouped(number);
        let _ = writeln!(self.0, "  {name:<12} {colour}{number:>9}{PLAIN}   {note}");
    }

    fn line(&mut self, name: &str, text: &str) {
        let _ = match name {
            "" => writeln!(self.0, "{:27}{text}", ""),
            _ => writeln!(self.0, "  {name:<12} {text}"),
        };
    }

    fn gap(&mut self) {
        self.0.push('\n');
    }
}

/// With a comma after every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Requests per second of several runs.
struct Spread {
    least: f64,
    median: f64,
    greatest: f64,
    runs: usize,
}

impl Spread {
    fn of(rates: &[f64]) -> Option<Self> {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, greatest) = (*sorted.first()?, *sorted.last()?);
        let upper = sorted.len() / 2;
        let lower = (sorted.len() - 1) / 2;
        Some(Self {
            least,
            median: f64::midpoint(sorted[lower], sorted[upper]),
            greatest,
            runs: sorted.len(),
        })
    }

    /// How much the figures are worth.
    fn against(&self, off: &Self) -> Vec<String> {
        if self.runs == 1 {
            return vec!["one short run each: no measure of the difference".to_owned()];
        }
        let overlap = self.greatest >= off.least && off.greatest >= self.least;
        let worth = if overlap {
            "the ranges overlap: no difference is shown"
        } else {
            "the ranges are apart"
        };
        vec![
            format!("medians of {} runs each, in turn", self.runs),
            format!("on {}, off {}; {worth}", self.range(), off.range()),
        ]
    }

    fn range(&self) -> String {
        let whole = |rate: f64| grouped(rate.round() as u64);
        format!("{} to {}", whole(self.least), whole(self.greatest))
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&grouped(self.median.round() as u64))
    }
}

/// Says where the server is to be found, before it waits.
pub fn print_serving(url: &str, gpu: &Gpu) {
    let mut table = Table(String::new());
    table.line("gpu", &gpu.description);
    table.line("serving", url);
    table.line(
        "try",
        &format!("curl -N {url} --json '{{\"prompt\": \"a kernel \", \"max_tokens\": 24}}'"),
    );
    table.line("stop", "Ctrl-C ends it with the summary");
    table.gap();
    anstream::print!("{}", table.0);
}

/// As it can be typed from here: relative where that is shorter.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here)
        .unwrap_or(path)
        .display()
        .to_string()
}
