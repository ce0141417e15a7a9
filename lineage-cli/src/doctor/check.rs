//! One thing that was looked at.

use serde::Serialize;

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It is here and works.
    Ok,
    /// It cannot be said from here, or it is here in part.
    Unknown,
    /// It is not here, or does not work.
    Missing,
}

impl State {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Missing => "missing",
        }
    }
}

/// One thing that was looked at: what was found, what stays unknown for it, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// What was looked at; stable.
    pub(crate) name: &'static str,
    pub(crate) state: State,
    /// What was found.
    pub(crate) found: String,
    /// What a recording will not say for it.
    pub(crate) unknown: Option<String>,
    /// What to do about it.
    pub(crate) next: Option<String>,
}

impl Check {
    pub(crate) fn new(name: &'static str, state: State, found: impl Into<String>) -> Self {
        Self {
            name,
            state,
            found: found.into(),
            unknown: None,
            next: None,
        }
    }

    pub(crate) fn unknown(mut self, unknown: impl Into<String>) -> Self {
        self.unknown = Some(unknown.into());
        self
    }

    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}
