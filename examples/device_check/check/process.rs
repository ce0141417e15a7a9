//! A child process that ends in time.

use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a child that was killed may take to be gone. One that is stuck inside the driver may stay.
const PATIENCE_AFTER_KILL: Duration = Duration::from_secs(2);

/// How a child ended.
#[derive(Debug, Clone, Copy)]
pub enum Ended {
    /// By itself.
    Itself(ExitStatus),
    /// It was killed when its time was over, with all that it had started.
    InTime,
}

impl Ended {
    /// In words, unless all went well.
    pub fn problem(self, limit: Duration) -> Option<String> {
        match self {
            Self::Itself(status) if status.success() => None,
            Self::Itself(status) => Some(match (status.code(), status.signal()) {
                (Some(code), _) => format!("the process ended with status {code}"),
                (None, Some(signal)) => format!("the process was ended by signal {signal}"),
                (None, None) => "the process ended in an unknown way".to_owned(),
            }),
            Self::InTime => Some(format!("no answer within {} s", limit.as_secs())),
        }
    }
}

/// Runs a command for at most so long. It has a process group of its own and reads nothing.
pub fn run(command: &mut Command, limit: Duration) -> std::io::Result<Ended> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).process_group(0).spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::Itself(status));
        }
        if start.elapsed() >= limit {
            kill(&mut child);
            return Ok(Ended::InTime);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn kill(child: &mut Child) {
    if let Ok(group) = libc::pid_t::try_from(child.id()) {
        // SAFETY: takes two numbers. The child is not reaped, so the group is still its own.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    let start = Instant::now();
    while start.elapsed() < PATIENCE_AFTER_KILL {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends this process when its parent ends.
pub fn end_with_parent() {
    // SAFETY: takes numbers, and changes nothing but which signal the end of the parent sends.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}
