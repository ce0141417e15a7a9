//! The runs: lineage off and on in turn, each with a server of its own.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use launch_lineage::{DeviceEvidence, Lineage, LineageBuilder, LineageExt as _};
use lineage_core::ledger::Writer;
use lineage_core::source::Tier;
use lineage_sched::Scheduler;
use tokio::runtime::Runtime;

use crate::cannot_run::CannotRun;
use crate::check::Checked;
use crate::gpu::{self, Gpu};
use crate::load::{self, Loaded, Question};
use crate::model::weights::Weights;
use crate::options::{Options, TierChoice};
use crate::otlp::{self, Exported};
use crate::rates::Rates;
use crate::sabotage::Sabotage;
use crate::server::{Server, Work};
use crate::subscriber::Subscriber;
use crate::summary::{self, Summary};
use crate::truth::Labels;

/// How long CUPTI and the drain thread get to hand over what they have.
const SHUTDOWN: Duration = Duration::from_secs(20);
/// Records in each thread's ring (4 MiB): enough for a whole run of 500 requests, since on a busy
/// machine the thread that empties the rings may not run for a while.
const RING: usize = 1 << 16;
/// Bytes for each thread's switches, of which tokio's make 10,000 a second here: 0.8 s of them, since
/// the thread that reads them may not run for a while either.
const SWITCHES: usize = 256 << 10;
/// Observations and rows that are kept for the check, roughly 200 bytes each: those of about
/// 20,000 requests.
const KEEP: usize = 2_000_000;

/// One run with lineage on.
pub struct Recorded {
    /// What the batcher did.
    pub work: Work,
    /// The load, if it was ours.
    pub loaded: Option<Loaded>,
    /// What is right and wrong with the joins.
    pub checked: Checked,
    /// Handoffs that were broken on purpose.
    pub broken: u64,
    /// What became of its export, if there was one.
    pub exported: Option<Exported>,
}

/// Runs what the options say.
pub fn run(options: &Options) -> Result<Summary, CannotRun> {
    let setting = Setting::new(options)?;
    if options.serve {
        setting.serve()
    } else {
        setting.measure()
    }
}

/// What all runs share.
struct Setting<'a> {
    options: &'a Options,
    gpu: Gpu,
    runtime: Runtime,
    subscriber: Subscriber,
    weights: Arc<Weights>,
    listener: TcpListener,
    out: PathBuf,
}

/// Questions to ask, and the bar that shows how far it is; none to wait for Ctrl-C instead.
type Load<'a> = Option<(&'a [Question], &'a ProgressBar)>;

impl<'a> Setting<'a> {
    fn new(options: &'a Options) -> Result<Self, CannotRun> {
        let listener = TcpListener::bind(options.address()).map_err(|error| {
            CannotRun::new(
                format!(
                    "port {} of the loopback interface cannot be bound: {error}",
                    options.port
                ),
                "take another one with --port, or leave it out for a free one",
            )
        })?;
        Ok(Self {
            options,
            out: options.out_folder()?,
            gpu: gpu::choose(options)?,
            runtime: Runtime::new().map_err(|error| CannotRun::unexpected(&error))?,
            subscriber: Subscriber::install(),
            weights: Arc::new(Weights::new()),
            listener,
        })
    }

    /// Off, on, on, off, …: what drifts, drifts for both.
    fn measure(self) -> Result<Summary, CannotRun> {
        let questions = Question::list(&self.weights, self.options.requests);
        // What is broken on purpose can only be noticed where it is recorded.
        let pairs = if self.options.sabotage.is_some() {
            0
        } else {
            self.options.arms
        };
        let mut arms: Vec<bool> = (0..pairs)
            .flat_map(|pair| [pair % 2 == 1, pair % 2 == 0])
            .collect();
        if arms.is_empty() {
            arms.push(true);
        }
        let warm_up = usize::from(pairs > 0);
        let progress = progress_bar(questions.len() * (warm_up + arms.len()));
        if warm_up > 0 {
            progress.set_prefix("warming up");
            self.unrecorded(&questions, &progress)?;
        }

        let ledger = self.out.join(&self.options.ledger);
        let comparison = if is_run_directory(&ledger) {
            self.out.join("comparison.lineage")
        } else {
            self.out.join("comparison.jsonl")
        };
        let mut rates = Rates::default();
        let mut recorded = Vec::new();
        for on in arms {
            progress.set_prefix(if on { "lineage on" } else { "lineage off" });
            if on {
                let file = if recorded.is_empty() {
                    &ledger
                } else {
                    &comparison
                };
                // Only the run whose ledger is kept is exported.
                let export = recorded.is_empty();
                let run = self.recorded(file, export, Some((&questions, &progress)))?;
                rates.on.extend(run.loaded.map(|loaded| loaded.rate()));
                recorded.push(run);
            } else {
                rates.off.extend(
                    self.unrecorded(&questions, &progress)?
                        .map(|loaded| loaded.rate()),
                );
            }
        }
        progress.finish_and_clear();
        // Written so that every run with lineage on does the same work; there is none after one run.
        let _ = if is_run_directory(&comparison) {
            std::fs::remove_dir_all(comparison)
        } else {
            std::fs::remove_file(comparison)
        };
        Ok(Summary::new(self.gpu, ledger, recorded, rates))
    }

    /// Serves until Ctrl-C.
    fn serve(self) -> Result<Summary, CannotRun> {
        let ledger = self.out.join(&self.options.ledger);
        let recorded = vec![self.recorded(&ledger, true, None)?];
        Ok(Summary::new(self.gpu, ledger, recorded, Rates::default()))
    }

    /// A run with lineage switched off: the same program, the same calls.
    fn unrecorded(
        &self,
        questions: &[Question],
        progress: &ProgressBar,
    ) -> Result<Option<Loaded>, CannotRun> {
        let lineage = self.start(Lineage::builder().enabled(false))?;
        let labels = Arc::default();
        let load = Some((questions, progress));
        let (_, loaded) =
            self.runtime
                .block_on(self.session(&labels, Sabotage::default(), load))?;
        drop(lineage);
        Ok(loaded)
    }

    /// A run with lineage on: recorded, written to the ledger, checked.
    fn recorded(&self, ledger: &Path, export: bool, load: Load<'_>) -> Result<Recorded, CannotRun> {
        if let Some(simulated) = &self.gpu.simulated {
            simulated.clear_truth();
        }
        let mut builder = Lineage::builder()
            .service("inference_server")
            .device(self.gpu.cupti())
            .ring_capacity(RING)
            .keep_in_memory(KEEP);
        if self.options.tier == TierChoice::Explain {
            // When this process's threads were off their processors, and why.
            let scheduler = Scheduler::new().ring_bytes(SWITCHES);
            builder = builder.tier(Tier::Explain).scheduler(scheduler);
        }
        builder = if is_run_directory(ledger) {
            builder.sink(lineage_arrow::Writer::new(ledger).replace(true))
        } else {
            let file = File::create(ledger).map_err(|error| {
                CannotRun::new(
                    format!("{} cannot be written: {error}", ledger.display()),
                    "name another folder with --out",
                )
            })?;
            builder.sink(Writer::new(file))
        };
        let mut exported = None;
        if export && let Some((otlp, told)) = otlp::sink(self.options)? {
            builder = builder.sink(otlp);
            exported = Some(told);
        }
        let lineage = self.start(builder)?;
        if let DeviceEvidence::Absent { why } = lineage.report().device {
            return Err(CannotRun::new(
                format!("there is no device evidence: {why}"),
                "see that the CUPTI of the driver's CUDA version is found, or run with --gpu sim",
            ));
        }
        let labels = Arc::default();
        let sabotage = Sabotage::new(self.options.sabotage);
        let (work, loaded) =
            self.runtime
                .block_on(self.session(&labels, sabotage.clone(), load))?;
        let report = lineage.shutdown(SHUTDOWN);
        let truth = self.gpu.simulated.as_ref().map(lineage_sim::Gpu::truth);
        let checked = Checked::new(&report, truth.as_ref().map(|truth| (truth, &*labels)));
        Ok(Recorded {
            work,
            loaded,
            checked,
            broken: sabotage.done(),
            exported,
        })
    }

    fn start(&self, builder: LineageBuilder) -> Result<Lineage, CannotRun> {
        let lineage = builder.start().map_err(|error| {
            let room = format!("see that {} has room for the ledger", self.out.display());
            let next = match self.options.otlp {
                Some(_) => format!("mend what --otlp or the OTEL_… variables say, or {room}"),
                None => room,
            };
            CannotRun::new(format!("lineage does not start: {error}"), next)
        })?;
        self.subscriber
            .use_layer(lineage.layer())
            .map_err(|error| CannotRun::unexpected(&error))?;
        Ok(lineage)
    }

    /// Starts a server, loads it or waits for Ctrl-C, and stops it.
    async fn session(
        &self,
        labels: &Arc<Labels>,
        sabotage: Sabotage,
        load: Load<'_>,
    ) -> Result<(Work, Option<Loaded>), CannotRun> {
        let listener = self
            .listener
            .try_clone()
            .map_err(|error| CannotRun::unexpected(&error))?;
        let server = Server::start(
            listener,
            &self.weights,
            labels,
            sabotage,
            self.options.graphs,
        )
        .await
        .map_err(|error| CannotRun::unexpected(&error))?;
        let url = format!("http://{}/generate", server.address());
        let loaded = match load {
            Some((questions, progress)) => {
                let loaded =
                    load::run(&url, questions, self.options.concurrency.into(), progress).await;
                Some(loaded.map_err(|error| CannotRun::unexpected(&error))?)
            }
            None => {
                summary::print_serving(&url, &self.gpu);
                told_to_stop()
                    .await
                    .map_err(|error| CannotRun::unexpected(&error))?;
                None
            }
        };
        let work = server
            .stop()
            .await
            .map_err(|error| CannotRun::unexpected(&error))?;
        Ok((work, loaded))
    }
}

/// Ctrl-C, or SIGTERM, which is what most supervisors send.
async fn told_to_stop() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminated = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted,
            _ = terminated.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// Drawn on the terminal only: indicatif hides it elsewhere.
fn progress_bar(requests: usize) -> ProgressBar {
    let bar = ProgressBar::new(requests as u64);
    if let Ok(style) = ProgressStyle::with_template(
        "  {prefix:<12} {bar:40.green/dim} {human_pos:>7} of {human_len} requests",
    ) {
        bar.set_style(style.progress_chars("━━─"));
    }
    bar
}

/// Whether a ledger of this name is a run directory, rather than JSON lines.
fn is_run_directory(ledger: &Path) -> bool {
    ledger
        .extension()
        .is_some_and(|of| of == lineage_arrow::EXTENSION)
}
