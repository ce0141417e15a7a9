//! The hot path by number of instructions, which does not depend on what else the machine does.
//!
//! Runs itself under `valgrind --tool=callgrind`, once per step, and counts only what lies inside
//! the measured function of the calling thread. Prints a table, or says that valgrind is missing.

use std::hint::black_box;
use std::process::{Command, ExitCode};

use launch_lineage::carrier::Carrier;
use launch_lineage::observation::CarrierKind;
use launch_lineage::prelude::*;
use launch_lineage::raw;

const ROUNDS: u64 = 20_000;
const STEPS: [&str; 8] = [
    "read_current",
    "enter_exit",
    "enter_exit_launching",
    "boundary_without_cupti",
    "clone_drop",
    "declare_retire",
    "send_open",
    "run_closure",
];

/// The function whose instructions are counted.
#[inline(never)]
fn measured(rounds: u64, step: &mut dyn FnMut()) {
    for _ in 0..rounds {
        step();
    }
}

fn measure(step: &str) {
    // The drain thread sleeps meanwhile, and the ring holds what one run writes.
    let builder = Lineage::builder()
        .ring_capacity(1 << 17)
        .drain_every(std::time::Duration::from_secs(60));
    let lineage = builder.start().expect("no other session runs");
    let epoch = Epoch::declare("request");
    if step.ends_with("launching") || step.starts_with("boundary") {
        epoch.launch(|| ());
    }
    let mut work: Box<dyn FnMut()> = match step {
        "nothing" => Box::new(|| ()),
        "read_current" => Box::new(|| {
            black_box(raw::current());
        }),
        "enter_exit" | "enter_exit_launching" => Box::new(|| {
            let entered = raw::enter(&epoch);
            raw::exit(black_box(entered));
        }),
        "boundary_without_cupti" => Box::new(|| epoch.launch(|| black_box(()))),
        "clone_drop" => Box::new(|| drop(black_box(epoch.clone()))),
        "declare_retire" => Box::new(|| drop(black_box(Epoch::declare("declared")))),
        "send_open" => Box::new(|| {
            drop(black_box(
                Carrier::new(&epoch, CarrierKind::Envelope).open(),
            ))
        }),
        "run_closure" => Box::new(|| epoch.run(|| black_box(()))),
        other => panic!("no step {other}"),
    };
    work();
    measured(ROUNDS, &mut work);
    drop(work);
    drop(epoch);
    drop(lineage);
}

/// Instructions of one round of a step; `None` if valgrind cannot be run.
fn count(step: &str) -> Option<u64> {
    let own = std::env::current_exe().expect("the path of this program");
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            "--toggle-collect=*measured*",
        ])
        .arg(own)
        .env("LINEAGE_BENCH_STEP", step)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text
        .lines()
        .find_map(|line| line.split_once("Collected :"))?;
    let total: u64 = collected.1.trim().parse().ok()?;
    Some(total)
}

fn main() -> ExitCode {
    if let Ok(step) = std::env::var("LINEAGE_BENCH_STEP") {
        measure(&step);
        return ExitCode::SUCCESS;
    }
    let Some(nothing) = count("nothing") else {
        eprintln!("instructions: valgrind could not be run; install it, or use the bench hot_path");
        return ExitCode::from(2);
    };
    println!("{:>24} {:>12}", "step", "instructions");
    for step in STEPS {
        let Some(total) = count(step) else { continue };
        println!(
            "{step:>24} {:>12.1}",
            total.saturating_sub(nothing) as f64 / ROUNDS as f64
        );
    }
    ExitCode::SUCCESS
}
