//! What observing costs the threads that are observed, on this machine:
//!
//! ```text
//! cargo run --release -p lineage-sched --example cost
//! ```
//!
//! A thread's first record, which is when it opens its ring; and a switch, by two threads on one
//! processor that wake each other up through pipes. Each is measured without a session's scheduler
//! source and with it, in turns; of the turns the best and the median are shown. The processor time
//! is that of the whole process, the drain thread's among it.

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("the scheduler is observed on Linux only");
}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::hint::black_box;
    use std::time::{Duration, Instant};

    use lineage_core::{Epoch, Lineage};
    use lineage_sched::Scheduler;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use rustix::time::{ClockId, clock_gettime};

    const TURNS: usize = 15;
    const THREADS: usize = 200;
    const EXCHANGES: u32 = 10_000;

    /// With rings of this size, or without.
    fn session(ring_bytes: Option<usize>) -> Lineage {
        let mut builder = Lineage::builder().service("cost");
        if let Some(bytes) = ring_bytes {
            builder = builder.scheduler(Scheduler::new().ring_bytes(bytes));
        }
        builder.start().expect("no other session runs")
    }

    fn end(lineage: Lineage) {
        let report = lineage.shutdown(Duration::from_secs(10));
        let lost = report.totals.dropped.total();
        if lost > 0 {
            println!("{lost} records were lost, which cost less than the others");
        }
    }

    /// The least time of a thread's first record.
    fn first_record() -> Duration {
        let time = || {
            let began = Instant::now();
            drop(black_box(Epoch::declare("request")));
            began.elapsed()
        };
        let times = (0..THREADS).map(|_| std::thread::spawn(time).join().expect("no panic"));
        times.min().expect("some")
    }

    fn pin() {
        let mut first = CpuSet::new();
        let allowed = sched_getaffinity(None).expect("asked");
        let cpu = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu));
        first.set(cpu.expect("one at least"));
        sched_setaffinity(None, &first).expect("pinned");
    }

    fn processor_time() -> Duration {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }

    /// The processor time of an exchange between two threads, in which each is switched off once.
    fn exchange() -> Duration {
        let (their_end, there) = rustix::pipe::pipe().expect("a pipe");
        let (our_end, back) = rustix::pipe::pipe().expect("a pipe");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                pin();
                drop(Epoch::declare("echo"));
                let mut byte = [0];
                while rustix::io::read(&their_end, &mut byte) == Ok(1) {
                    rustix::io::write(&back, &byte).expect("written");
                }
            });
            let ours = scope.spawn(move || {
                pin();
                drop(Epoch::declare("call"));
                let mut byte = [0];
                let began = processor_time();
                for _ in 0..EXCHANGES {
                    rustix::io::write(&there, &byte).expect("written");
                    rustix::io::read(&our_end, &mut byte).expect("read");
                }
                (processor_time() - began) / EXCHANGES
            });
            ours.join().expect("no panic")
        })
    }

    pub(super) fn main() {
        let (mut first, mut exchanged) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for turn in 0..TURNS * 2 {
            let observed = turn % 2;
            let lineage = session((observed == 1).then_some(32 << 10));
            first[observed].push(first_record());
            end(lineage);
            // Room for what two threads do that only switch.
            let lineage = session((observed == 1).then_some(1 << 20));
            exchanged[observed].push(exchange());
            end(lineage);
        }
        show("a thread's first record", &mut first);
        show("an exchange, of two switches", &mut exchanged);
    }

    fn show(what: &str, [without, with]: &mut [Vec<Duration>; 2]) {
        without.sort_unstable();
        with.sort_unstable();
        let (best, median) = (0, TURNS / 2);
        println!(
            "{what}: {:?} without, {:?} observed (medians {:?} and {:?})",
            without[best], with[best], without[median], with[median]
        );
    }
}
