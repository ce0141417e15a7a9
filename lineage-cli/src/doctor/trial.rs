//! NVIDIA's libraries, tried in a process of their own: whatever they do there, the doctor lives to
//! tell.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::text::json_line;

/// A library may take this long. A driver that has to wake its devices takes seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// Of what a trial prints, this much is read.
const MOST_BYTES: u64 = 1 << 20;
/// What the line with the answer begins with. The libraries print lines of their own.
const ANSWER: &str = "lineage-trial: ";

/// Environment variable by which the doctor asks itself, in another process, to make a trial.
const ASKED: &str = "LINEAGE_DOCTOR_TRIAL";

/// What is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trial {
    /// Load the driver, and initialise it.
    Driver,
    /// Load CUPTI, and start and end a session.
    Cupti,
}

impl Trial {
    const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Cupti => "cupti",
        }
    }

    /// The trial that this process was started for.
    pub(crate) fn asked_for() -> Option<Self> {
        let asked = std::env::var(ASKED).ok()?;
        [Self::Driver, Self::Cupti]
            .into_iter()
            .find(|trial| trial.name() == asked)
    }
}

/// What the driver answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DriverAnswer {
    /// The library, if there is one.
    pub(crate) path: Option<String>,
    pub(crate) found: bool,
    /// As `cuDriverGetVersion` gives it; 0 where it does not.
    pub(crate) version: u32,
    /// What `cuInit` answered.
    pub(crate) init: u32,
    pub(crate) devices: Vec<String>,
}

/// What CUPTI answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(crate) struct CuptiAnswer {
    /// The library, if one was loaded.
    pub(crate) path: Option<String>,
    /// As `cuptiGetVersion` gives it.
    pub(crate) version: Option<u32>,
    /// Why none could be loaded.
    pub(crate) not_loaded: Option<String>,
    /// What was tried.
    pub(crate) tried: Vec<String>,
    /// Functions that this library lacks and lineage can do without.
    pub(crate) lacks: Vec<String>,
    /// Why no session could start; `None` if one did.
    pub(crate) no_session: Option<String>,
}

/// How a trial went.
#[derive(Debug)]
pub(crate) enum Outcome<T> {
    Answered(T),
    /// It ended without an answer: how, for a person.
    Died(String),
}

/// Makes a trial in a process of its own.
pub(crate) fn try_apart<T: DeserializeOwned>(trial: Trial) -> Outcome<T> {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return Outcome::Died(format!("this program's file is not known: {error}")),
    };
    let child = Command::new(program)
        .arg("doctor")
        .env(ASKED, trial.name())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    match child {
        Ok(child) => wait(child),
        Err(error) => Outcome::Died(format!("it could not be started: {error}")),
    }
}

fn wait<T: DeserializeOwned>(mut child: Child) -> Outcome<T> {
    let stdout = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(stdout) = stdout {
            let _ = stdout.take(MOST_BYTES).read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Outcome::Died(format!("it did not answer within {} s", PATIENCE.as_secs()));
            }
            Err(error) => return Outcome::Died(format!("it cannot be waited for: {error}")),
        }
    };
    let text = reader.join().unwrap_or_default();
    let answer = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix(ANSWER));
    // A library may crash at the process's exit, when all is said.
    match answer.map(serde_json::from_str) {
        Some(Ok(answer)) => Outcome::Answered(answer),
        Some(Err(error)) => Outcome::Died(format!("its answer cannot be read: {error}")),
        None => Outcome::Died(ending(status)),
    }
}

#[cfg(unix)]
fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => format!("it crashed with signal {signal}"),
        None => format!("it ended without an answer ({status})"),
    }
}

#[cfg(not(unix))]
fn ending(status: ExitStatus) -> String {
    format!("it ended without an answer ({status})")
}

/// The trial's side: does it, and gives the answer as a line.
pub(crate) fn line(trial: Trial) -> String {
    let answer = match trial {
        Trial::Driver => json_line(&driver()),
        Trial::Cupti => json_line(&cupti()),
    };
    format!("{ANSWER}{answer}")
}

fn driver() -> DriverAnswer {
    use lineage_cupti::probe::Driver;
    let driver = Driver::ask();
    let (found, version, init, devices) = match driver {
        Driver::Works { version, devices } => (true, version.0, 0, devices),
        Driver::Failed { code, version } => (true, version.0, code, Vec::new()),
        _ => (false, 0, 0, Vec::new()),
    };
    DriverAnswer {
        path: mapped("libcuda.so"),
        found,
        version,
        init,
        devices,
    }
}

#[cfg(not(target_os = "linux"))]
fn cupti() -> CuptiAnswer {
    CuptiAnswer {
        not_loaded: Some("CUPTI is used on Linux only".to_owned()),
        ..CuptiAnswer::default()
    }
}

#[cfg(target_os = "linux")]
fn cupti() -> CuptiAnswer {
    use lineage_core::source::{EvidenceSource, SourceContext, Tier};
    use lineage_cupti::Cupti;
    use lineage_cupti::sys::{Library, LoadError};

    let library = match Library::load() {
        Ok(library) => library,
        Err(error) => {
            let tried = match &error {
                LoadError::NotFound { tried } => tried.clone(),
                LoadError::NamedNotLoaded { path, .. }
                | LoadError::SymbolMissing { path, .. }
                | LoadError::TooOld { path, .. }
                | LoadError::VersionUnknown { path, .. } => vec![path.clone()],
                _ => Vec::new(),
            };
            return CuptiAnswer {
                path: mapped("libcupti.so"),
                not_loaded: Some(error.to_string()),
                tried,
                ..CuptiAnswer::default()
            };
        }
    };
    let mut session = Cupti::new();
    let started = session.start(SourceContext::new(now_ns, Tier::Correlate));
    if started.is_ok() {
        session.stop(Duration::from_millis(500), &mut |_| {});
    }
    let functions = library.functions();
    let mut lacks = Vec::new();
    if functions.activity_enable_driver_api.is_none() {
        lacks.push("cuptiActivityEnableDriverApi".to_owned());
    }
    CuptiAnswer {
        path: mapped("libcupti.so").or_else(|| Some(library.path().to_owned())),
        version: Some(library.version()),
        not_loaded: None,
        tried: Vec::new(),
        lacks,
        // The library is named beside it.
        no_session: started.err().map(|none| {
            let named = format!(
                " of {} (CUPTI version {})",
                library.path(),
                library.version()
            );
            none.why.replace(&named, "")
        }),
    }
}

#[cfg(target_os = "linux")]
fn now_ns() -> u64 {
    static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    // From 1 on: 0 means unknown.
    1 + BEGUN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The file of a library that this process has loaded, by the beginning of its name.
fn mapped(beginning: &str) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let files = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]));
    let of_name = |file: &&str| {
        let name = file.rsplit('/').next();
        name.is_some_and(|name| name.starts_with(beginning))
    };
    files.into_iter().find(of_name).map(str::to_owned)
}
