//! Runs cells, each in a session of its own, and looks at what is left behind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use launch_lineage::fault::FaultCode;
use launch_lineage::{Cupti, DeviceEvidence, Lineage, LineageExt as _, Report};
use lineage_sim::Counts;
use lineage_validator::{Conclusions, validate};

use crate::baseline::Missed;
use crate::cell::Cell;
use crate::gpu::{Gpu, NoGpu};
use crate::matrix::{Carrier, Column};
use crate::mutation::Mutation;
use crate::request::Desk;
use crate::score::{self, Score};
use crate::subscriber::Subscriber;
use crate::threads::Threads;

/// How long CUPTI and the drain thread get to hand over what they have.
const SHUTDOWN: Duration = Duration::from_secs(30);
/// Records in each thread's ring: enough for what a thread does while the drain thread waits for
/// one of two busy cores.
const RING: usize = 1 << 15;
/// The same where each request has threads of its own: there are thousands of them.
const SMALL_RING: usize = 1 << 12;
/// Observations and rows that are kept for the check.
const KEEP: usize = 20_000_000;

/// What came of a cell.
pub struct Outcome {
    /// The carrier's name.
    pub carrier: &'static str,
    /// What ran the work.
    pub column: Column,
    /// What was broken on purpose.
    pub mutation: Option<Mutation>,
    /// The joins, by truth.
    pub score: Score,
    /// The codes that the session raised while the program ran.
    pub codes: BTreeMap<FaultCode, u64>,
    /// What the current span would have said.
    pub by_span: Missed,
    /// What a plain thread-local would have said.
    pub by_thread_local: Missed,
    /// What is not as it must be, whatever was broken: each a sentence.
    pub problems: Vec<String>,
    /// What was left behind or found in a cell in which nothing was broken: each a sentence.
    pub leaks: Vec<String>,
}

/// What all cells share.
pub struct Setting {
    gpu: Arc<Gpu>,
    subscriber: Subscriber,
    callers: u64,
}

impl Setting {
    /// Loads the simulated GPU and installs the subscriber: once per process.
    pub fn new(callers: u64, push_inside_enter: bool) -> Result<Self, NoGpu> {
        Ok(Self {
            gpu: Arc::new(Gpu::load(push_inside_enter)?),
            subscriber: Subscriber::install(),
            callers,
        })
    }

    /// Runs one cell, in which each caller makes so many pairs of requests.
    pub fn run(
        &self,
        carrier: &Carrier,
        column: Column,
        mutation: Option<Mutation>,
        pairs: u64,
    ) -> Outcome {
        let simulated = self.gpu.simulated();
        simulated.clear_truth();
        let before = simulated.counts();
        let ring = if carrier.threads_per_request {
            SMALL_RING
        } else {
            RING
        };
        let lineage = Lineage::builder()
            .service("handoff_matrix")
            .device(Cupti::new().library("libcupti.so"))
            .ring_capacity(ring)
            .keep_in_memory(KEEP)
            .start()
            .expect("the session before was shut down");
        let layer = self.subscriber.use_layer(lineage.layer());
        layer.expect("the global subscriber has the layer");

        let desk = Arc::new(Desk::new(Arc::clone(&self.gpu)));
        let threads = Threads::default();
        let cell = Cell {
            column,
            callers: self.callers,
            pairs,
            mutation,
            desk: Arc::clone(&desk),
            threads: threads.clone(),
        };
        // A thread of its own: what it leaves behind ends with it, and is seen.
        let run = carrier.run;
        let ended = std::thread::spawn(move || {
            let _watch = cell.threads.watch();
            run(&cell);
        });
        let panicked = ended.join().is_err();
        let synchronized = self.gpu.synchronize();
        let after = simulated.counts();
        let report = lineage.shutdown(SHUTDOWN);

        let truth = simulated.truth();
        let score = score::score(&report, &desk.notes(), &truth);
        let (launched, refused) = desk.launches();
        let problem = |is: bool, what: String| is.then_some(what);
        let problems = [
            problem(panicked, "the carrier panicked".to_owned()),
            problem(
                synchronized.is_err(),
                "the device does not synchronise".to_owned(),
            ),
            problem(refused > 0, format!("{refused} launches were refused")),
            problem(
                score.kernels != launched || launched == 0,
                format!("{launched} launches became {} kernels", score.kernels),
            ),
            problem(
                report.not_kept > 0 || truth.operations_not_kept > 0,
                "there was no room for all evidence".to_owned(),
            ),
            problem(
                !matches!(report.device, DeviceEvidence::Present { .. }),
                report.device.to_string(),
            ),
            problem(
                mutation.is_none() && score.lost + score.wrong > 0,
                format!("{} lost, {} wrong", score.lost, score.wrong),
            ),
        ];
        let leaks = match mutation {
            None => leaks(&report, &before, &after, &threads),
            Some(_) => Vec::new(),
        };
        Outcome {
            carrier: carrier.name,
            column,
            mutation,
            score,
            codes: score::codes(&report),
            by_span: desk.baselines().span(),
            by_thread_local: desk.baselines().thread_local(),
            problems: problems.into_iter().flatten().collect(),
            leaks,
        }
    }
}

/// What is left behind, or faulty, after a cell in which nothing was broken.
fn leaks(report: &Report, before: &Counts, after: &Counts, threads: &Threads) -> Vec<String> {
    let mut leaks = Vec::new();
    let mut found = |is: bool, what: String| {
        if is {
            leaks.push(what);
        }
    };
    let (ended, with_an_epoch) = threads.ended();
    found(ended == 0, "no thread was looked at".to_owned());
    found(
        with_an_epoch > 0,
        format!("{with_an_epoch} of {ended} threads ended with an epoch current"),
    );
    let epochs = report.totals.epochs;
    found(
        epochs.live > 0 || epochs.declared != epochs.retired,
        format!(
            "{} epochs were declared and {} retired",
            epochs.declared, epochs.retired
        ),
    );
    let (pushes, pops) = (after.pushes - before.pushes, after.pops - before.pops);
    found(pushes == 0, "nothing was pushed for CUPTI".to_owned());
    found(
        pushes != pops || after.pops_of_empty_stacks != before.pops_of_empty_stacks,
        format!("{pushes} ids were pushed for CUPTI and {pops} popped"),
    );
    found(
        !after.stacks.is_empty(),
        format!("{} of CUPTI's stacks are not empty", after.stacks.len()),
    );
    let dropped = report.totals.dropped.total() + report.totals.dropped_in_rings;
    found(dropped > 0, format!("{dropped} records were dropped"));
    let conclusions = Conclusions {
        rows: &report.rows,
        faults: &report.faults,
    };
    let options = lineage_validator::Options::default();
    let validation = validate(&report.observations, Some(conclusions), &options);
    for (code, count) in &validation.fault_counts {
        let first = validation.faults.iter().find(|of| of.code == *code);
        let first = first.map_or_else(String::new, |first| format!(", the first: {first}"));
        found(true, format!("the validator raised {count} {code}{first}"));
    }
    for (code, count) in validation.raised_by_session_only() {
        let first = report.faults.iter().find(|fault| fault.code == code);
        let first = first.map_or("", |first| &first.detail);
        found(
            true,
            format!("the session alone raised {count} {code}: {first}"),
        );
    }
    leaks
}
