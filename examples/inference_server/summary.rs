//! What came out: for a person, as JSON, and as an exit status.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use launch_lineage::DeviceEvidence;
use lineage_core::totals::Totals;
use serde_json::{Map, Value, json};

use crate::cannot_run::CannotRun;
use crate::check::{Checked, Judged};
use crate::gpu::Gpu;
use crate::numbers::grouped;
use crate::options::{Options, TierChoice};
use crate::otlp::Exported;
use crate::rates::{Rates, Spread};
use crate::run::Recorded;
use crate::table::{Table, Tone, shown};

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

    /// To the terminal.
    pub fn print(&self, options: &Options) {
        self.table(options).print();
    }

    /// There is always one: `run` records before it makes a summary.
    fn first(&self) -> &Recorded {
        &self.recorded[0]
    }

    fn table(&self, options: &Options) -> Table {
        let mut table = Table::default();
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
                table.note(&line);
            }
        }
        if let Some(exported) = &self.first().exported {
            table.gap();
            exported.show(&mut table);
        }
        table.gap();
        let path = shown(&self.ledger);
        table.line("ledger", &path);
        table.line(
            "next",
            &format!("cargo run --release --bin lineage -- validate {path}"),
        );
        if options.tier == TierChoice::Explain {
            let command = "cargo run --release --bin lineage -- diagnose --slowest 3";
            table.line("", &format!("{command} {path}"));
        }
        table.gap();
        table.sentence(&self.verdict(options));
        table
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
        let graphs = &checked.totals.graphs;
        if graphs.launches > 0 {
            let note = format!(
                "of {} graphs, one for each size of batch; the capture of {} of their kernels is known",
                graphs.executables,
                grouped(graphs.known)
            );
            table.row("replays", graphs.launches, Tone::Plain, &note);
        }
    }

    fn verdict(&self, options: &Options) -> String {
        const FAULTY: &str = "lost or wrong joins";
        let first = &self.first().checked;
        let others = self.recorded.iter().skip(1);
        let faulty_others = others.filter(|run| !run.checked.is_right()).count();
        if !first.is_right() {
            let why = match options.sabotage {
                Some(_) => ", as they were asked for: exit status 1",
                None => ": exit status 1",
            };
            return Tone::Bad.paint(FAULTY) + why;
        }
        if faulty_others > 0 {
            let which =
                format!(" in {faulty_others} of the runs for the comparison: exit status 1");
            return Tone::Bad.paint(FAULTY) + &which;
        }
        match &first.judged {
            Judged::ByTruth(_) => {
                Tone::Good.paint("every join is right") + ": none is lost, none is wrong"
            }
            Judged::ByValidator { why, .. } => {
                Tone::Good.paint("every join is self-consistent") + "; " + why
            }
        }
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
            exported,
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
            "graphs": {
                "executables": totals.graphs.executables,
                "replays": totals.graphs.launches,
                "known": totals.graphs.known,
                "unknown": totals.graphs.unknown(),
                "judged": match &checked.judged {
                    Judged::ByTruth(score) => Some(score.replayed),
                    Judged::ByValidator { .. } => None,
                },
            },
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
            "otlp": exported.as_ref().map(Exported::json),
            "versions": {
                "launch_lineage": env!("CARGO_PKG_VERSION"),
                "cupti": match checked.device {
                    DeviceEvidence::Present { cupti_version, .. } => Some(cupti_version),
                    _ => None,
                },
            },
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
            "detached on purpose: what the device is set up with",
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
            table.note(&Tone::Aside.paint(example));
        }
    }
    let faults = checked.faults.values().sum();
    let note = "seen by the validator, which derives every join with its own code";
    table.row("faults", faults, Tone::zero_is_good(faults), note);
    for (code, count) in &checked.faults {
        table.note(&format!("{:>7}  {code}", grouped(*count)));
    }
}

fn evidence(checked: &Checked) -> String {
    let text = checked.device.to_string();
    text.strip_prefix("device evidence: ")
        .unwrap_or(&text)
        .to_owned()
}

/// Says where the server is to be found, before it waits.
pub fn print_serving(url: &str, gpu: &Gpu) {
    let mut table = Table::default();
    table.line("gpu", &gpu.description);
    table.line("serving", url);
    table.line(
        "try",
        &format!("curl -N {url} --json '{{\"prompt\": \"a kernel \", \"max_tokens\": 24}}'"),
    );
    table.line("stop", "Ctrl-C ends it with the summary");
    table.gap();
    table.print();
}
