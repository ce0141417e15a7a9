use std::fmt;

/// What is exported, each with endpoint, queue and connections of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// Spans.
    Traces,
    /// Metrics, each with its data points.
    Metrics,
    /// Log records.
    Logs,
}

impl Signal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Traces, Self::Metrics, Self::Logs];

    /// Its place in an array over all signals.
    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// What one item of it is called, in the plural.
    pub(crate) const fn items(self) -> &'static str {
        match self {
            Self::Traces => "spans",
            Self::Metrics => "metrics",
            Self::Logs => "log records",
        }
    }

    /// Its word in the names of standard variables.
    pub(crate) const fn variable(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
            Self::Logs => "LOGS",
        }
    }
}

/// As the paths of OTLP call it.
impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        })
    }
}
