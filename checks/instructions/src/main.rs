//! The hot path by number of instructions, which does not depend on what else the machine does.
//!
//! Runs itself under `valgrind --tool=callgrind`, once per step, and counts only what lies inside the measured function of the
//! calling thread. What the kernel's own code does is not counted, so a read of the clock is a few instructions here and tens of
//! nanoseconds in truth.

mod baseline;
mod steps;

use std::process::{Command, ExitCode};

/// The function whose instructions are counted.
#[inline(never)]
fn measured(rounds: u64, step: &mut dyn FnMut()) {
    for _ in 0..rounds {
        step();
    }
}

/// Instructions of one run of a step, all its rounds together.
fn collected(step: &str) -> Result<u64, String> {
    let own =
        std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            "--toggle-collect=*measured*",
        ])
        .arg(own)
        .env("LINEAGE_STEP", step)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{step} failed under valgrind:\n{text}"));
    }
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    let count = collected.and_then(|(_, count)| count.trim().parse().ok());
    count.ok_or_else(|| format!("valgrind said nothing of {step}:\n{text}"))
}

/// Instructions of one round of each of these steps.
fn counts(wanted: &[&'static str]) -> Result<Vec<(&'static str, u64)>, String> {
    let nothing = collected(steps::NOTHING)?;
    let per_round = |step: &&'static str| {
        let own = collected(step)?.saturating_sub(nothing);
        Ok((*step, (own + steps::ROUNDS / 2) / steps::ROUNDS))
    };
    wanted.iter().map(per_round).collect()
}

fn run() -> Result<bool, String> {
    let (mut rustc, mut write, mut wanted) = (String::new(), false, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rustc" => rustc = arguments.next().unwrap_or_default(),
            "--write" => write = true,
            name => {
                let step = steps::ALL.iter().find(|step| **step == name);
                wanted.push(*step.ok_or_else(|| format!("no step {name}: {:?}", steps::ALL))?);
            }
        }
    }
    if !wanted.is_empty() {
        counts(&wanted)?
            .iter()
            .for_each(|(step, count)| println!("{step:>28} {count:>6}"));
        return Ok(true);
    }
    let counts = counts(steps::ALL)?;
    if write {
        return baseline::write(&rustc, &counts).map(|()| true);
    }
    baseline::compare(&rustc, &counts)
}

fn main() -> ExitCode {
    if let Ok(step) = std::env::var("LINEAGE_STEP") {
        steps::run(&step, measured);
        return ExitCode::SUCCESS;
    }
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("instructions: {why}");
            ExitCode::from(2)
        }
    }
}
