//! What observing costs the threads that are observed, on this machine:
//!
//! ```text
//! cargo run --release -p lineage-sched --example cost
//! ```
//!
//! A thread's first record, which is when it opens its ring; and a switch, by two threads that wake
//! each other up through a pair of channels. Each is measured without a session's scheduler source
//! and with it, in turns.

use std::hint::black_box;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use lineage_core::{Epoch, Lineage};
use lineage_sched::Scheduler;

const TURNS: usize = 9;
const THREADS: usize = 200;
const EXCHANGES: u32 = 20_000;

fn session(observed: bool) -> Lineage {
    let builder = Lineage::builder().service("cost");
    let builder = match observed {
        true => builder.scheduler(Scheduler::new()),
        false => builder,
    };
    builder.start().expect("no other session runs")
}

/// The median time of a thread's first record.
fn first_record() -> Duration {
    let mut times: Vec<Duration> = (0..THREADS)
        .map(|_| {
            let first = std::thread::spawn(|| {
                let began = Instant::now();
                drop(black_box(Epoch::declare("request")));
                began.elapsed()
            });
            first.join().expect("no panic")
        })
        .collect();
    times.sort_unstable();
    times[THREADS / 2]
}

/// The time of an exchange between two threads: four switches or more.
fn exchange() -> Duration {
    let (there, from_here) = mpsc::sync_channel::<()>(0);
    let (back, from_there) = mpsc::sync_channel::<()>(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            drop(Epoch::declare("echo"));
            while from_here.recv().is_ok() {
                if back.send(()).is_err() {
                    return;
                }
            }
        });
        let ours = scope.spawn(move || {
            drop(Epoch::declare("call"));
            let began = Instant::now();
            for _ in 0..EXCHANGES {
                there.send(()).expect("the echo listens");
                from_there.recv().expect("the echo answers");
            }
            began.elapsed() / EXCHANGES
        });
        ours.join().expect("no panic")
    })
}

fn main() {
    let (mut first, mut switch) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for turn in 0..TURNS * 2 {
        let observed = turn % 2 == 1;
        let lineage = session(observed);
        first[usize::from(observed)].push(first_record());
        switch[usize::from(observed)].push(exchange());
        let report = lineage.shutdown(Duration::from_secs(10));
        if observed && turn < 2 {
            println!("{}", report.scheduler);
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let show = |what: &str, [without, with]: &mut [Vec<Duration>; 2]| {
        let (without, with) = (median(without), median(with));
        println!("{what}: {without:?} without, {with:?} observed");
    };
    show("a thread's first record", &mut first);
    show("an exchange of two threads", &mut switch);
}
