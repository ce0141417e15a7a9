//! What `offer` takes from the thread that calls it: `cargo bench -p lineage-otlp --bench offer`.
//!
//! A span of 350 bytes is offered 100,000 times in a row, which fills 34 batches, to a collector that is not there: every batch
//! is a new buffer, as in an outage. The least and the middle of 21 such rows are printed, by number of threads that offer at the
//! same time; in processor time of the offering threads, where the system tells it.

use std::sync::Barrier;
use std::time::Duration;

use lineage_otlp::raw::{Origin, Pipeline, Settings};
use lineage_otlp::{Protocol, Signal};

const OFFERS: u32 = 100_000;
const ROWS: usize = 21;

#[cfg(unix)]
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(not(unix))]
fn now() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGUN.elapsed()
}

fn pipeline() -> Pipeline {
    let mut settings = Settings::default();
    settings
        .endpoint("http://127.0.0.1:1")
        .protocol(Protocol::Grpc)
        .queue_bytes(64 << 20)
        .on_problem(|_| ());
    Pipeline::start(&settings, &Origin::default()).expect("a thread")
}

/// What one of these threads takes for its share, the slowest of them.
fn row(threads: u32) -> Duration {
    let pipeline = pipeline();
    let begin = Barrier::new(threads as usize);
    let offer = || {
        let span = [0x5a; 350];
        begin.wait();
        let before = now();
        for _ in 0..OFFERS / threads {
            assert!(pipeline.offer(Signal::Traces, std::hint::black_box(&span)));
        }
        now() - before
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(offer)).collect();
        let took = all
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        took.max().unwrap_or_default()
    })
}

fn main() {
    for threads in [1, 2, 4] {
        let mut rows: Vec<Duration> = (0..ROWS).map(|_| row(threads)).collect();
        rows.sort_unstable();
        let per_offer = |row: Duration| row.as_nanos() as f64 / f64::from(OFFERS / threads);
        let (least, middle) = (per_offer(rows[0]), per_offer(rows[ROWS / 2]));
        println!(
            "{threads} threads: {least:.0} ns an offer at least, {middle:.0} ns in the middle"
        );
    }
}
