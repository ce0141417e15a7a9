//! Runs cells, each in a session of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::DriverError;
use launch_lineage::fault::FaultCode;
use launch_lineage::{Cupti, DeviceEvidence, Lineage, Report};
use lineage_validator::{Conclusions, validate};

use crate::baseline::Baselines;
use crate::cell::{Cell, Shape};
use crate::desk::Desk;
use crate::gpu::Gpu;
use crate::pace::{Come, Pace};
use crate::score::{self, Score};
use crate::worker::Worker;

/// How long CUPTI and the drain thread get to hand over what they have.
const SHUTDOWN: Duration = Duration::from_secs(60);
/// Records in each thread's ring.
const RING: usize = 1 << 15;
/// How often CUPTI is asked for its buffers: often, since the workers wait for them.
const FLUSH: Duration = Duration::from_millis(50);
/// Observations and rows that are kept for the check.
const KEEP: usize = 20_000_000;

/// What came of a cell.
pub struct Outcome {
    /// The joins, by truth.
    pub score: Score,
    /// What the other ways said.
    pub baselines: Baselines,
    /// The codes that the session or the validator raised.
    pub codes: BTreeMap<FaultCode, u64>,
    /// What is not as it must be: each a sentence.
    pub problems: Vec<String>,
}

/// Runs one cell.
pub fn run(gpu: &Gpu, cell: Cell) -> Outcome {
    gpu.simulated.clear_truth();
    let pace = Arc::new(Pace::default());
    let lineage = Lineage::builder()
        .service("graph_matrix")
        .device(Cupti::new().library("libcupti.so"))
        .ring_capacity(RING)
        .keep_in_memory(KEEP)
        .flush_every(FLUSH)
        .sink(Come(Arc::clone(&pace)))
        .start()
        .expect("the session before was shut down");
    let desk = Desk::default();
    let failed = work(gpu, cell, &desk, &pace);
    let report = lineage.shutdown(SHUTDOWN);
    let truth = gpu.simulated.truth();
    let noted = desk.noted();
    let score = score::score(cell, &report, &noted, &truth);
    let baselines = Baselines::of(&report, &noted, &truth);

    let codes = codes(&report);
    let problem = |is: bool, what: String| is.then_some(what);
    let dropped = report.totals.dropped.total() + report.totals.dropped_in_rings;
    let panics = gpu.simulated.counts().panics_caught;
    let due = expected_kernels(cell);
    // Where a capture cannot be known, its kernels' rows say so.
    let allowed = |code: FaultCode| code == FaultCode::L06 && score.unknown > 0;
    let unexpected: Vec<String> = codes
        .iter()
        .filter(|(code, _)| !allowed(**code))
        .map(|(code, count)| format!("{count} {code}"))
        .collect();
    let problems = [
        failed.map(|error| format!("the driver refused: {error:?}")),
        problem(
            score.kernels != due,
            format!("{due} kernels were replayed and {} ran", score.kernels),
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
            score.lost + score.wrong + score.capture_lost + score.capture_wrong > 0,
            format!(
                "{} lost, {} wrong; of the captures {} lost, {} wrong",
                score.lost, score.wrong, score.capture_lost, score.capture_wrong
            ),
        ),
        problem(
            !unexpected.is_empty(),
            format!("raised: {}", unexpected.join(", ")),
        ),
        problem(
            dropped > 0,
            format!(
                "{dropped} records were dropped: {:?}",
                report.totals.dropped
            ),
        ),
        problem(panics > 0, format!("{panics} panics in the simulator")),
    ];
    drop(noted);
    Outcome {
        score,
        baselines,
        codes,
        problems: problems.into_iter().flatten().collect(),
    }
}

/// Has the cell's workers do what it says, each on a thread of its own.
fn work(gpu: &Gpu, cell: Cell, desk: &Desk, pace: &Pace) -> Option<DriverError> {
    let threads = match cell.shape {
        Shape::Threads(threads) => threads,
        Shape::One | Shape::Streams(_) => 1,
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| Worker::new(cell, gpu, desk, pace)?.run()))
            .collect();
        let ended = workers.into_iter().map(|worker| worker.join());
        let ended = ended.map(|ended| ended.expect("no worker panics"));
        ended.filter_map(Result::err).last()
    })
}

/// How many kernels the cell's replays have, by the text of `worker.rs`.
fn expected_kernels(cell: Cell) -> u64 {
    use crate::cell::Variation;
    let halves = {
        let second = (cell.replays / 2).max(1);
        (cell.replays.saturating_sub(second).max(1), second)
    };
    let kernels = match cell.variation {
        Variation::Plain | Variation::Clone => cell.replays * cell.nodes,
        Variation::Again | Variation::Update | Variation::Parameters => {
            (halves.0 + halves.1) * cell.nodes
        }
        Variation::Disable => {
            let disabled = cell.nodes.div_ceil(3);
            halves.0 * (cell.nodes - disabled) + halves.1 * cell.nodes
        }
        Variation::Reuse => cell.replays.max(4) * cell.nodes,
    };
    let threads = match cell.shape {
        Shape::Threads(threads) => threads,
        Shape::One | Shape::Streams(_) => 1,
    };
    (kernels * threads) as u64
}

/// What the validator raised, and what only the session did.
fn codes(report: &Report) -> BTreeMap<FaultCode, u64> {
    let conclusions = Conclusions {
        rows: &report.rows,
        faults: &report.faults,
    };
    let options = lineage_validator::Options::default();
    let validation = validate(&report.observations, Some(conclusions), &options);
    let mut codes = validation.fault_counts.clone();
    codes.extend(validation.raised_by_session_only());
    codes
}
