//! What a validation may assume, and how much it lists.

/// How a validation is made.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Error of the device's clock against the host's, in nanoseconds: a time of one that comes
    /// this much too early against a time of the other is no fault.
    pub clock_error_ns: u64,
    /// Findings listed per code; more are counted.
    pub listed_per_code: usize,
    /// Observations of the session's beginning that were not kept. If there are any, nothing is
    /// concluded from the absence of an early one.
    pub evicted_observations: u64,
    /// Whether to keep what each operation is bound to, for
    /// [`against_truth`](crate::Validation::against_truth). Without it a validation of a part of a
    /// large recording takes no memory for each operation.
    pub keep_bindings: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            clock_error_ns: 5_000,
            listed_per_code: 20,
            evicted_observations: 0,
            keep_bindings: true,
        }
    }
}

impl Options {
    /// With this error of the device's clock, in nanoseconds.
    #[must_use]
    pub const fn clock_error_ns(mut self, clock_error_ns: u64) -> Self {
        self.clock_error_ns = clock_error_ns;
        self
    }

    /// With this many findings listed per code.
    #[must_use]
    pub const fn listed_per_code(mut self, listed: usize) -> Self {
        self.listed_per_code = listed;
        self
    }

    /// Keeping, or not, what each operation is bound to.
    #[must_use]
    pub const fn keep_bindings(mut self, keep_bindings: bool) -> Self {
        self.keep_bindings = keep_bindings;
        self
    }

    /// With this many observations of the beginning known to be missing.
    #[must_use]
    pub const fn evicted_observations(mut self, evicted: u64) -> Self {
        self.evicted_observations = evicted;
        self
    }
}
