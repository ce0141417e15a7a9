//! Why nothing could be run: exit status 2.

use std::fmt;

/// What a person needs to know of it.
#[derive(Debug)]
pub struct CannotRun {
    what: String,
    besides: Option<String>,
    next: String,
}

impl CannotRun {
    /// What happened to what, and what to do next.
    pub fn new(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            besides: None,
            next: next.into(),
        }
    }

    /// With something else that was seen.
    pub fn besides(mut self, seen: Option<String>) -> Self {
        self.besides = seen;
        self
    }

    /// Something that should not happen on any machine.
    pub fn unexpected(error: &dyn std::error::Error) -> Self {
        Self::new(
            error.to_string(),
            "run it again; if it stays so, report it with this line",
        )
    }
}

impl fmt::Display for CannotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "inference_server cannot run: {}", self.what)?;
        if let Some(besides) = &self.besides {
            writeln!(f, "  seen: {besides}")?;
        }
        write!(f, "  next: {}", self.next)
    }
}
