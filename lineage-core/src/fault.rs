//! Faults: lost joins, wrong joins, impossible times. The codes are stable.

use std::fmt;

macro_rules! faults {
    ($($code:ident $name:literal $summary:literal),+ $(,)?) => {
        /// A kind of fault, by its stable code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[non_exhaustive]
        pub enum FaultCode {
            $(#[doc = concat!($name, ": ", $summary)] $code),+
        }

        impl FaultCode {
            /// Every code, in order.
            pub const ALL: &'static [Self] = &[$(Self::$code),+];

            /// The stable code, for example `L01`.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$code => stringify!($code)),+ }
            }

            /// The name, for example `launch-without-epoch`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$code => $name),+ }
            }

            /// When the fault is raised, in one sentence.
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$code => $summary),+ }
            }
        }
    };
}

faults! {
    L01 "launch-without-epoch" "a call had no epoch on a thread that has lineage events, or inside a launch boundary",
    L02 "operation-without-call" "an executed operation has no call, after its thread's fence and inside the recorded range",
    L03 "call-without-operation" "a call that asked for work has no operation, after its thread's fence and inside the recorded range",
    L04 "epoch-never-launched" "an epoch was retired without a launch and was not cancelled",
    L05 "handoff-not-received" "a carrier was sent and never opened, and its work was not dropped with it",
    L06 "node-without-template" "a graph node's template is not known: the graph is older than the session, or a clone record was lost",
    L07 "records-dropped" "records were lost and counted",
    L08 "timestamps-missing" "an operation's start or end was not collected",
    W01 "bound-outside-lifetime" "work was bound to an epoch before its declaration",
    W02 "bound-across-tasks" "the task at scope entry is not the task at the call",
    W03 "sources-disagree" "two observed sources name different epochs for one call",
    W04 "correlation-reused" "a correlation id is ambiguous or impossible after unwrapping",
    W05 "foreign-external-id" "an external id is not ours, or its epoch is not live",
    W06 "replay-mismatch" "an operation was bound to the capture's or another replay's launch",
    W07 "scope-unbalanced" "a scope was leaked, stale or held across an await",
    W08 "graph-id-reused" "an operation was bound through an executable graph of another generation",
    T01 "operation-before-call" "an operation began before its call, beyond the clock's error",
    T02 "negative-interval" "an interval ends before it begins",
    T03 "clock-jump" "a clock stepped, or a blocking pinned copy ended after its call returned",
    T04 "stage-order" "stages are in another impossible order",
}

/// What a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaultFamily {
    /// `L…`: something that should have been joined was not.
    Lost,
    /// `W…`: something was joined to the wrong thing.
    Wrong,
    /// `T…`: a time that cannot be.
    Time,
}

impl FaultCode {
    /// Lost, wrong or time.
    pub fn family(self) -> FaultFamily {
        match self.code().as_bytes()[0] {
            b'L' => FaultFamily::Lost,
            b'W' => FaultFamily::Wrong,
            _ => FaultFamily::Time,
        }
    }

    /// The code of this text, in either case.
    pub fn from_code(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|fault| fault.code().eq_ignore_ascii_case(text))
    }
}

/// Written with its name, for example `L01 launch-without-epoch`.
impl fmt::Display for FaultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code(), self.name())
    }
}
