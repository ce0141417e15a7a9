//! The helper for tests: a session's report, checked.

use std::fmt;

use lineage_core::{DeviceEvidence, Report};

use crate::options::Options;
use crate::validate::validate;
use crate::validation::{Conclusions, SELF_CONSISTENT, Validation, counted, write_findings};

/// Findings of each code that a failed assertion shows.
const SHOWN: usize = 3;

/// What a test accepts beyond a session without faults.
///
/// By default a report that could not show a fault is itself one: a test that asserts nothing
/// passes for ever.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Accept {
    no_device_evidence: bool,
    evicted_observations: bool,
    nothing_joined: bool,
    options: Options,
}

impl Accept {
    /// Nothing beyond a session without faults.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// A session that did not observe the device.
    #[must_use]
    pub const fn no_device_evidence(mut self) -> Self {
        self.no_device_evidence = true;
        self
    }

    /// A report that does not hold all observations.
    #[must_use]
    pub const fn evicted_observations(mut self) -> Self {
        self.evicted_observations = true;
        self
    }

    /// A session in which no operation was bound to an epoch.
    #[must_use]
    pub const fn nothing_joined(mut self) -> Self {
        self.nothing_joined = true;
        self
    }

    /// Validate with these options.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }
}

/// Why a session's joins do not stand.
#[derive(Debug)]
#[non_exhaustive]
pub struct JoinFaults {
    /// What kept the check from asserting anything, each with what to do.
    pub obstacles: Vec<String>,
    /// What was found.
    pub validation: Box<Validation>,
    /// Whether the report does not hold all observations, and that was not accepted.
    is_cut: bool,
}

impl std::error::Error for JoinFaults {}

/// The obstacles, the first faults of each code with their evidence, and the counts; of a report
/// that does not hold all observations only that, since what is missing would show as faults.
impl fmt::Display for JoinFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let validation = &*self.validation;
        if self.is_cut {
            return f.write_str(&self.obstacles.join("\n"));
        }
        for obstacle in &self.obstacles {
            writeln!(f, "{obstacle}")?;
        }
        let faults = validation.fault_count();
        if faults > 0 {
            let faults = counted(faults, "fault", "faults");
            writeln!(f, "{faults} in the session's launch joins")?;
        }
        writeln!(f, "{}", validation.summary())?;
        write_findings(f, validation, SHOWN)?;
        f.write_str(SELF_CONSISTENT)
    }
}

/// Derives a session's joins anew and holds its rows against them.
///
/// # Errors
/// [`JoinFaults`] if there is a fault, or if the report could not have shown one: it does not hold
/// all observations, the device was not observed, or nothing was joined.
pub fn check_joins(report: &Report) -> Result<Validation, JoinFaults> {
    check_joins_with(report, &Accept::nothing())
}

/// Like [`check_joins`], accepting more.
///
/// # Errors
/// As for [`check_joins`], but for what is accepted.
pub fn check_joins_with(report: &Report, accept: &Accept) -> Result<Validation, JoinFaults> {
    let evicted = report.not_kept.max(accept.options.evicted_observations);
    let options = accept.options.clone().evicted_observations(evicted);
    let conclusions = Conclusions {
        rows: &report.rows,
        faults: &report.faults,
    };
    let validation = validate(&report.observations, Some(conclusions), &options);
    let is_cut = report.not_kept > 0 && !accept.evicted_observations;
    let obstacles = if is_cut {
        vec![cut(report)]
    } else {
        obstacles(report, &validation, accept)
    };
    if obstacles.is_empty() && validation.is_sound() {
        return Ok(validation);
    }
    Err(JoinFaults {
        obstacles,
        validation: Box::new(validation),
        is_cut,
    })
}

fn cut(report: &Report) -> String {
    format!(
        "the report does not hold {} of its observations, rows and faults: give the session more room with \
         `keep_in_memory`, or accept it with `Accept::evicted_observations`",
        report.not_kept
    )
}

fn obstacles(report: &Report, validation: &Validation, accept: &Accept) -> Vec<String> {
    let mut obstacles = Vec::new();
    let no_device = match &report.device {
        DeviceEvidence::Present { .. } => None,
        absent => Some(absent.to_string()),
    };
    if let (Some(why), false) = (&no_device, accept.no_device_evidence) {
        obstacles.push(format!(
            "{why}: without it no launch can be checked; run against the simulator or a GPU, or accept it with \
             `Accept::no_device_evidence`"
        ));
    } else if report.observations.is_empty() && report.not_kept == 0 && no_device.is_none() {
        obstacles.push(
            "the report holds no observations: the session is over or was never enabled, or memory is switched off \
             (`keep_in_memory`)"
                .to_owned(),
        );
    } else if validation.counts.epochs == 0
        && report.not_kept == 0
        && no_device.is_none()
        && !accept.nothing_joined
    {
        obstacles.push(
            "no epoch was ever declared: is `lineage.layer()` installed, or are the spans filtered out? If it must be so, \
             accept it with `Accept::nothing_joined`"
                .to_owned(),
        );
    } else if validation.counts.bound == 0 && no_device.is_none() && !accept.nothing_joined {
        obstacles.push(
            "no operation was joined to an epoch, so nothing is asserted: launch inside `epoch.launch(…)`, flush before \
             the report, or accept it with `Accept::nothing_joined`"
                .to_owned(),
        );
    }
    obstacles
}

/// Fails the test unless every launch of a session is joined soundly.
///
/// ```no_run
/// # fn run_the_server() {}
/// let lineage = lineage_core::Lineage::builder().start()?;
/// run_the_server();
/// let report = lineage.shutdown(std::time::Duration::from_secs(5));
/// lineage_validator::assert_joins(&report);
/// # Ok::<(), lineage_core::StartError>(())
/// ```
///
/// # Panics
/// With a text that shows the faulty calls, their evidence and what to do, if [`check_joins`] finds
/// a fault.
#[track_caller]
pub fn assert_joins(report: &Report) {
    assert_joins_with(report, &Accept::nothing());
}

/// Like [`assert_joins`], accepting more.
///
/// # Panics
/// As [`assert_joins`] does, but for what is accepted.
#[track_caller]
pub fn assert_joins_with(report: &Report, accept: &Accept) {
    if let Err(faults) = check_joins_with(report, accept) {
        panic!("{faults}");
    }
}
