//! Tries the real GPU in a child process: a driver that hangs or crashes, or a library that is
//! missing, must not take the server along. The child is this same program with a hidden option.

use std::ffi::CStr;
use std::io::Read as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, DriverError};
use launch_lineage::{Cupti, DeviceEvidence, Epoch, Lineage};
use serde::{Deserialize, Serialize};

use crate::device::Device;
use crate::model::reference;
use crate::model::weights::Weights;

/// How long the child may take. A driver's first start on a large machine takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the child says of the real GPU, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probed {
    /// It answers rightly, and lineage joins its work.
    Works {
        /// What it is.
        description: String,
    },
    /// It does not.
    Not {
        /// What happened.
        what: String,
        /// What lineage says of its device evidence, if it came that far.
        evidence: Option<String>,
        /// What to do.
        next: String,
    },
}

impl Probed {
    fn not(what: impl Into<String>, evidence: Option<String>, next: &str) -> Self {
        Self::Not {
            what: what.into(),
            evidence,
            next: next.to_owned(),
        }
    }
}

/// Has a child try, and waits for what it says.
pub fn ask_child() -> Probed {
    run_child().unwrap_or_else(|what| {
        Probed::not(
            what,
            None,
            "see whether other CUDA programs run on this machine",
        )
    })
}

fn run_child() -> Result<Probed, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("this program's own path is unknown: {error}"))?;
    let mut child = Command::new(program)
        .arg("--probe-real-gpu")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("the probe could not be started: {error}"))?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                // If it has ended just now there is nothing to kill; it is reaped either way.
                let _ = child.kill();
                let _ = child.wait();
                let seconds = PATIENCE.as_secs();
                return Err(format!("the driver did not answer within {seconds} s"));
            }
        }
    };
    let mut said = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout
            .read_to_string(&mut said)
            .map_err(|error| format!("the probe cannot be read: {error}"))?;
    }
    // A driver may print lines of its own; ours is the last.
    said.lines()
        .rev()
        .find_map(|line| serde_json::from_str(line).ok())
        .ok_or_else(|| format!("the driver took the probe down ({status})"))
}

/// The child's part.
pub fn main() -> ExitCode {
    // The line below says it all; a panic's own message would be a second one.
    std::panic::set_hook(Box::new(|_| {}));
    let probed = catch_unwind(try_real).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a message");
        let line = message.lines().next().unwrap_or_default();
        Probed::not(
            format!("the CUDA driver cannot be used: {line}"),
            None,
            "install a driver for CUDA 12 or later",
        )
    });
    match serde_json::to_string(&probed) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// Everything that the server will need of the GPU, once.
fn try_real() -> Probed {
    // Lineage first: CUPTI wants its clock before the first context is made.
    let lineage = match Lineage::builder().device(Cupti::new()).start() {
        Ok(lineage) => lineage,
        Err(error) => return Probed::not(error.to_string(), None, "run it again"),
    };
    // SAFETY: opens the library that any CUDA program opens, and closes it again.
    let outcome = if unsafe { cudarc::driver::sys::is_culib_present() } {
        catch_unwind(AssertUnwindSafe(answer_once))
    } else {
        Ok(Err(Failure {
            what: "no CUDA driver (libcuda) is installed here".to_owned(),
            next: "install the NVIDIA driver",
        }))
    };
    let report = lineage.shutdown(Duration::from_secs(10));
    let evidence = report.device.to_string();
    let name = match outcome {
        Ok(Ok(name)) => name,
        Ok(Err(failure)) => return Probed::not(failure.what, Some(evidence), failure.next),
        Err(panic) => resume_unwind(panic),
    };
    match report.device {
        DeviceEvidence::Present { .. } if report.totals.bound > 0 => Probed::Works {
            description: format!("{name}, a real one"),
        },
        _ => Probed::not(
            format!("{name} works, but nothing shows what it does"),
            Some(evidence),
            "install the CUPTI of the driver's CUDA version",
        ),
    }
}

/// Why the GPU gave no right answer.
struct Failure {
    what: String,
    next: &'static str,
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        let text = |found: Result<&CStr, DriverError>| {
            found.map_or_else(|_| "?".into(), |text| text.to_string_lossy().into_owned())
        };
        Self {
            what: format!(
                "the CUDA driver answers {} ({})",
                text(error.error_name()),
                text(error.error_string())
            ),
            next: "see whether nvidia-smi lists a device",
        }
    }
}

/// One short answer, compared with the reference.
fn answer_once() -> Result<String, Failure> {
    const PROMPT: &[u8] = b"a kernel ";
    let weights = Weights::new();
    let name = CudaContext::new(0)?.name()?;
    let mut device = Device::open(&weights, false)?;
    let found = Epoch::declare("probe").launch(|| {
        device.prefill(1, 0, PROMPT)?;
        device.form_batch(1, &[0])?;
        let tokens = (0..4).map(|_| {
            device.decode(1)?;
            Ok(device.answer(1)?.tokens[0].byte)
        });
        tokens.collect::<Result<Vec<u8>, DriverError>>()
    })?;
    let expected = reference::answer(&weights, PROMPT, 4);
    if expected.iter().map(|token| &token.byte).eq(&found) {
        Ok(name)
    } else {
        Err(Failure {
            what: format!("{name} gives another answer than the reference"),
            next: "report this with the driver's version",
        })
    }
}
