//! How many observations the correlator takes in a second on one core, and whether a row costs the
//! same after ten million as after ten thousand.
//!
//! Counts the thread's own CPU time, so that a busy machine disturbs less. Prints a table. Budget: at least 2 M observations a second; cost per row flat.
//! With `--rows N` it runs once, over that many: for a tool that counts instructions.

use launch_lineage::core::correlator::{Correlator, Limits};
use launch_lineage::id::{
    Attribution, CorrelationId, EpochId, HostNanos, LaunchEpoch, ScopeToken, ThreadKey,
};
use launch_lineage::observation::{
    ActivityKind, ApiDomain, ApiId, ApiRecord, Call, Declared, Event, ExternalRecord, Flushed,
    Observation, Operation, OperationsDue, Retired, RetiredAs, Scope,
};

/// Launches per epoch, and epochs per flush.
const LAUNCHES: u64 = 8;
const EPOCHS_PER_FLUSH: u64 = 512;

/// Feeds `rows` launches of one thread; gives the number of observations and the seconds that the
/// correlator took. Making the observations is not counted.
fn run(rows: u64) -> (u64, f64) {
    let mut correlator = Correlator::new(Limits::default());
    let (mut finished, mut faults) = (Vec::new(), Vec::new());
    let thread = ThreadKey {
        tid: 4711,
        generation: 1,
    };
    let api = ApiId {
        domain: ApiDomain::Driver,
        cbid: 307,
        name: None,
    };
    let name: std::sync::Arc<str> = "kernel".into();
    let (mut observations, mut seconds, mut bound) = (0_u64, 0.0, 0_u64);
    let (mut batch, mut correlation, mut now) = (Vec::new(), 0_u32, 1_000_u64);
    for epoch_number in 1..=rows / LAUNCHES {
        let epoch = LaunchEpoch::first(EpochId::new(epoch_number).expect("in range"));
        let attribution = Attribution::Epoch(epoch);
        let mut see = |event: Event| batch.push(Observation::live(event));
        let at = HostNanos(now);
        see(Declared {
            epoch,
            thread,
            task: None,
            at,
            name: name.clone(),
            site: None,
        }
        .into());
        let entered = HostNanos(now + 100);
        now += 200;
        for _ in 0..LAUNCHES {
            correlation = correlation.wrapping_add(1);
            let (session, correlation) = (1, CorrelationId(correlation));
            let (start, end) = (HostNanos(now), HostNanos(now + 4_000));
            see(Call {
                thread,
                api: api.clone(),
                correlation,
                entered: start,
                exited: Some(end),
                result: 0,
                attribution,
                in_boundary: true,
                task: None,
                due: OperationsDue::One,
            }
            .into());
            see(ExternalRecord {
                session,
                kind: 5,
                own_kind: true,
                external_id: epoch.pack().bits(),
                correlation,
                beside: Some(start),
            }
            .into());
            see(ApiRecord {
                session,
                api: api.clone(),
                correlation,
                tid: thread.tid,
                start: Some(start),
                end: Some(end),
                result: 0,
                due: OperationsDue::One,
            }
            .into());
            see(Operation {
                session,
                kind: ActivityKind::Kernel,
                correlation,
                device: 0,
                context: 1,
                stream: 7,
                queued: None,
                submitted: None,
                start: Some(HostNanos(now + 5_000)),
                end: Some(HostNanos(now + 9_000)),
                name: Some(name.clone()),
                graph_node: None,
                graph: None,
                bytes: 0,
                copies: 1,
                grid: [1; 3],
                block: [1; 3],
                footprint: None,
            }
            .into());
            now += 4_500;
        }
        let exited = HostNanos(now);
        let token = ScopeToken(epoch_number);
        see(Scope {
            thread,
            attribution,
            token,
            entered,
            exited,
            task: None,
            boundary: true,
            pushed: true,
        }
        .into());
        see(Retired {
            epoch,
            how: RetiredAs::Done,
            at: exited,
        }
        .into());
        now += 1_000;
        if epoch_number % EPOCHS_PER_FLUSH == 0 || epoch_number == rows / LAUNCHES {
            see(Flushed {
                session: 1,
                asked: HostNanos(now),
                returned: HostNanos(now + 50),
                last: false,
            }
            .into());
            now += 1_000;
            observations += batch.len() as u64;
            let begun = cpu_seconds();
            for observation in &batch {
                correlator.observe(observation);
            }
            correlator.drain(&mut finished, &mut faults);
            seconds += cpu_seconds() - begun;
            bound += finished.len() as u64;
            batch.clear();
            finished.clear();
        }
    }
    correlator.end();
    correlator.drain(&mut finished, &mut faults);
    bound += finished.len() as u64;
    let expected = rows / LAUNCHES * LAUNCHES;
    assert_eq!(
        (bound, correlator.totals().bound),
        (expected, expected),
        "every row is bound once"
    );
    assert!(faults.is_empty(), "{:?}", faults.first());
    (observations, seconds)
}

/// CPU time of this thread.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    let rows_asked = std::env::args().skip_while(|argument| argument != "--rows");
    if let Some(rows) = rows_asked.skip(1).find_map(|rows| rows.parse().ok()) {
        let (observations, seconds) = run(rows);
        println!("{observations} observations in {seconds:.3} s");
        return;
    }
    let largest = if std::env::args().any(|argument| argument == "--long") {
        10_000_000
    } else {
        1_000_000
    };
    println!(
        "{:>12} {:>16} {:>14} {:>12}",
        "rows", "observations/s", "ns/observation", "ns/row"
    );
    let mut rows = 10_000;
    while rows <= largest {
        // The best of three: others may be using the machine.
        let runs = (0..3).map(|_| run(rows));
        let (observations, seconds) = runs.min_by(|a, b| a.1.total_cmp(&b.1)).expect("three runs");
        let per_second = observations as f64 / seconds;
        println!(
            "{rows:>12} {per_second:>16.0} {:>14.1} {:>12.1}",
            1e9 / per_second,
            seconds * 1e9 / rows as f64
        );
        rows *= 10;
    }
}
