//! `lineage doctor`: what works here, what will be unknown, and how to get it.
//!
//! It says what is true of a program started from here: NVIDIA's libraries are tried in processes of
//! their own, one session is started and ended as a program would, and the rest is read from files.

mod check;
mod evidence;
mod machine;
mod render;
mod trial;

#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::arguments::Doctor;
use crate::terminal::Terminal;
use crate::{FAULTS, FINE};

use check::{Check, State};
use machine::Machine;
use trial::{CuptiAnswer, DriverAnswer, Outcome, Trial, try_apart};

/// Schema of the object.
const SCHEMA: u32 = 1;

/// What the doctor found.
#[derive(Debug, Serialize)]
struct Diagnosis {
    schema: u32,
    lineage: &'static str,
    system: String,
    /// Whether a session here has device evidence.
    device_evidence: bool,
    checks: Vec<Check>,
}

/// Exits with 0 where device evidence can be recorded, with 1 where not.
pub(crate) fn run(arguments: &Doctor, terminal: &mut Terminal) -> u8 {
    if let Some(trial) = Trial::asked_for() {
        terminal.print(&trial::line(trial));
        return FINE;
    }
    let driver: Outcome<DriverAnswer> = try_apart(Trial::Driver);
    let cupti: Outcome<CuptiAnswer> = try_apart(Trial::Cupti);
    let diagnosis = diagnose(&Machine::this(), &driver, &cupti);
    let text = if arguments.json {
        crate::text::json_line(&diagnosis)
    } else {
        render::text(&diagnosis, terminal.width())
    };
    terminal.print(&text);
    if diagnosis.device_evidence {
        FINE
    } else {
        FAULTS
    }
}

fn diagnose(
    machine: &Machine,
    driver: &Outcome<DriverAnswer>,
    cupti: &Outcome<CuptiAnswer>,
) -> Diagnosis {
    let session = evidence::session(cupti);
    let device_evidence = session.state == State::Ok;
    let mut checks = vec![Check::new(
        "lineage",
        State::Ok,
        "epochs, handoffs and scopes are recorded on any machine",
    )];
    checks.push(evidence::driver(machine, driver));
    checks.extend(evidence::devices(machine, driver));
    checks.push(evidence::cupti(machine, cupti));
    checks.push(session);
    checks.extend(machine::container(machine));
    checks.push(machine::other_tools(machine));
    // Without a driver there is nobody to permit anything.
    if matches!(driver, Outcome::Answered(answer) if answer.found)
        || machine.has("/proc/driver/nvidia")
    {
        checks.push(machine::permissions(machine));
    }
    checks.extend(evidence::records(cupti));
    checks.push(machine::clock(machine));
    checks.push(machine::scheduler(machine));
    let kernel = machine
        .text("/proc/sys/kernel/osrelease")
        .unwrap_or_default();
    let system = format!(
        "{} {} {}",
        std::env::consts::OS,
        kernel.trim(),
        std::env::consts::ARCH
    );
    Diagnosis {
        schema: SCHEMA,
        lineage: env!("CARGO_PKG_VERSION"),
        system: lineage_validator::printable(&system.replace("  ", " ")),
        device_evidence,
        checks,
    }
}
