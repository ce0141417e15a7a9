//! What the driver and CUPTI mean for device evidence.

use lineage_cupti::probe::{Driver, DriverVersion, cupti_toolkit};
use lineage_validator::printable;

use super::check::{Check, State};
use super::machine::{Machine, cupti_elsewhere};
use super::trial::{CuptiAnswer, DriverAnswer, Outcome};
use crate::text::{printable_text, printable_whole};

const WITHOUT: &str = "what the device did: no calls, no operations, no joins";

/// The driver's library, its kernel module, and whether it starts.
pub(crate) fn driver(machine: &Machine, outcome: &Outcome<DriverAnswer>) -> Check {
    let name = "driver";
    let module = machine.kernel_module();
    let answer = match outcome {
        Outcome::Answered(answer) => answer,
        Outcome::Died(how) => {
            let check = Check::new(
                name,
                State::Missing,
                format!("loading and initialising it was tried in a process of its own: {how}"),
            );
            return check
                .unknown(WITHOUT)
                .next("run `nvidia-smi`, and see `dmesg | grep NVRM`");
        }
    };
    if !answer.found {
        let (found, next) = match (&module, machine.container()) {
            (Some(version), container) => (
                format!("the kernel module {version} is loaded, and its library libcuda.so.1 is not found"),
                if container.is_some() {
                    "start the container with `--gpus all` and NVIDIA_DRIVER_CAPABILITIES=compute,utility".to_owned()
                } else {
                    format!("install the library of the same version, {version}: libcuda1 on Debian, libnvidia-compute on Ubuntu")
                },
            ),
            (None, _) => (
                "libcuda.so.1 is not found, and no kernel module of NVIDIA's is loaded".to_owned(),
                "run on a machine with an NVIDIA GPU, or install NVIDIA's driver; everything else works without: \
                 try `cargo run --example inference_server`, which has a simulated GPU"
                    .to_owned(),
            ),
        };
        return Check::new(name, State::Missing, found)
            .unknown(WITHOUT)
            .next(next);
    }
    let path = answer.path.as_deref().map(printable_whole);
    let path = path.unwrap_or_else(|| "libcuda.so".to_owned());
    let module = match module {
        Some(version) => format!(", kernel module {version}"),
        None => String::new(),
    };
    let version = DriverVersion(answer.version);
    if answer.init != 0 {
        let found = format!(
            "{path} for CUDA {version}{module} does not start: cuInit answers {} ({})",
            answer.init,
            Driver::failure_meaning(answer.init)
        );
        let next = match answer.init {
            34 => "remove the stub library from the loader's path (LD_LIBRARY_PATH)",
            100 => {
                "run `nvidia-smi -L`: where it lists a device, see CUDA_VISIBLE_DEVICES, and the container's `--gpus`"
            }
            803 => "reboot, or reload the kernel module, so that both are of one version",
            _ => "run `nvidia-smi`, and see `dmesg | grep NVRM`",
        };
        return Check::new(name, State::Missing, found)
            .unknown(WITHOUT)
            .next(next);
    }
    Check::new(
        name,
        State::Ok,
        format!("{path} for CUDA {version}{module}"),
    )
}

/// The devices that a program may use.
pub(crate) fn devices(machine: &Machine, outcome: &Outcome<DriverAnswer>) -> Option<Check> {
    let Outcome::Answered(answer) = outcome else {
        return None;
    };
    if !answer.found || answer.init != 0 {
        return None;
    }
    let name = "devices";
    if answer.devices.is_empty() {
        let check = Check::new(name, State::Missing, "the driver works and gives no device")
            .unknown(WITHOUT);
        return Some(match machine.variable("CUDA_VISIBLE_DEVICES") {
            Some(value) => check.next(format!(
                "CUDA_VISIBLE_DEVICES is {}: unset it",
                printable(&value.to_string_lossy())
            )),
            None => check.next("run `nvidia-smi -L`"),
        });
    }
    let mut names: Vec<String> = answer
        .devices
        .iter()
        .take(8)
        .map(|name| printable(name))
        .collect();
    names.dedup();
    let more = if names.len() == 1 { "" } else { ": " };
    let found = match (answer.devices.len(), names.as_slice()) {
        (1, [one]) => one.clone(),
        (count, [one]) => format!("{count} of {one}{more}"),
        (count, several) => format!("{count}{more}{}", several.join(", ")),
    };
    Some(Check::new(name, State::Ok, found))
}

/// CUPTI's library and its version.
pub(crate) fn cupti(machine: &Machine, outcome: &Outcome<CuptiAnswer>) -> Check {
    let name = "CUPTI";
    let answer = match outcome {
        Outcome::Answered(answer) => answer,
        Outcome::Died(how) => {
            let found = format!(
                "loading it and starting a session was tried in a process of its own: {how}"
            );
            return Check::new(name, State::Missing, found)
                .unknown(WITHOUT)
                .next("use another CUPTI: name its libcupti.so in LINEAGE_CUPTI_LIBRARY");
        }
    };
    let Some(version) = answer.version else {
        return not_loaded(machine, answer).unknown(WITHOUT);
    };
    let path = answer
        .path
        .as_deref()
        .map(printable_whole)
        .unwrap_or_default();
    let named = match machine.variable("LINEAGE_CUPTI_LIBRARY") {
        Some(_) => ", named by LINEAGE_CUPTI_LIBRARY",
        None => "",
    };
    let found = format!(
        "{path}{named}, version {version} (CUDA {})",
        cupti_toolkit(version)
    );
    Check::new(name, State::Ok, found)
}

fn not_loaded(machine: &Machine, answer: &CuptiAnswer) -> Check {
    let name = "CUPTI";
    let why = printable_text(answer.not_loaded.as_deref().unwrap_or_default());
    let named = machine.variable("LINEAGE_CUPTI_LIBRARY").is_some();
    // A library was there, and would not do: its own words say what to do.
    if named || answer.path.is_some() {
        let (found, next) = why.rsplit_once("; ").unwrap_or((&why, ""));
        let check = Check::new(name, State::Missing, found);
        return match next {
            "" => check.next(
                "see the driver, above: without one that works, CUPTI of CUDA 13 answers nothing",
            ),
            next => check.next(next),
        };
    }
    let tried: Vec<String> = answer
        .tried
        .iter()
        .map(|tried| printable_whole(tried))
        .collect();
    let found = format!("no libcupti.so is found; looked for {}", tried.join(", "));
    let check = Check::new(name, State::Missing, found);
    match cupti_elsewhere(machine).first() {
        Some(path) => check.next(format!(
            "there is one elsewhere: export LINEAGE_CUPTI_LIBRARY={}",
            printable_whole(&path.display().to_string())
        )),
        None => check.next(
            "install a CUDA toolkit, or only its CUPTI: `pip install nvidia-cuda-cupti-cu12` (`nvidia-cuda-cupti` for \
             CUDA 13), and name its libcupti.so in LINEAGE_CUPTI_LIBRARY",
        ),
    }
}

/// Whether a session of lineage's starts.
pub(crate) fn session(outcome: &Outcome<CuptiAnswer>) -> Check {
    let name = "session";
    match outcome {
        Outcome::Answered(CuptiAnswer {
            version: Some(_),
            no_session: None,
            ..
        }) => Check::new(
            name,
            State::Ok,
            "one started and ended: CUPTI is free, and records can be asked for",
        ),
        Outcome::Answered(CuptiAnswer {
            version: Some(_),
            no_session: Some(why),
            ..
        }) => {
            let shown = printable_text(why);
            // "cuptiSubscribe failed with code 15 (not initialized): what to do"
            let (found, next) = match shown.split_once("): ") {
                Some((found, next)) => (format!("{found})"), next),
                None => (shown.clone(), ""),
            };
            let check = Check::new(name, State::Missing, found).unknown(WITHOUT);
            match next {
                "" => check,
                next => check.next(next),
            }
        }
        _ => {
            Check::new(name, State::Missing, "not tried, since there is no CUPTI").unknown(WITHOUT)
        }
    }
}

/// What CUPTI of this version leaves out or gets wrong.
pub(crate) fn records(outcome: &Outcome<CuptiAnswer>) -> Vec<Check> {
    // From the release notes: with a timestamp callback these give times of 0; mended in 13.1.
    const ZERO_TIMES: std::ops::Range<u32> = 25..130_100;
    let Outcome::Answered(CuptiAnswer {
        version: Some(version),
        lacks,
        ..
    }) = outcome
    else {
        return Vec::new();
    };
    let mut checks = Vec::new();
    let chosen = !lacks
        .iter()
        .any(|symbol| symbol == "cuptiActivityEnableDriverApi");
    let check = Check::new(
        "external ids",
        State::Unknown,
        if chosen {
            "calls that ask for GPU work can be recorded alone"
        } else {
            "this CUPTI, older than CUDA 12.5, records all calls or none: all are, which slows programs that ask much"
        },
    );
    checks.push(
        check
            .unknown(
                "whether CUPTI writes the epochs that are pushed for calls: NVIDIA does not say, and it shows at the first launches",
            )
            .next("the session's report then says `external correlation present` or `absent`; if absent, our own callback is the one source"),
    );
    if ZERO_TIMES.contains(version) {
        checks.push(
            Check::new(
                "device times",
                State::Unknown,
                "CUPTI from 12.6 Update 2 to 13.0 may give times of 0 where it is given a clock, as lineage does",
            )
            .unknown("when such operations ran (L08); they are joined all the same")
            .next("if L08 is raised, use CUPTI of CUDA 13.1 or later, with a driver for it"),
        );
    } else {
        checks.push(Check::new(
            "device times",
            State::Ok,
            "CUPTI takes the session's clock, so that host and device have one time",
        ));
    }
    checks
}
