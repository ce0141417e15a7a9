//! The verdicts, by their stable names, with what each claims and what would falsify it.

use std::fmt;

macro_rules! verdicts {
    ($($(#[$doc:meta])* $variant:ident $name:literal claimed $claimed:literal falsified $falsified:literal;)+) => {
        /// What a stretch of an operation's life went into.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[non_exhaustive]
        pub enum VerdictKind { $($(#[$doc])* $variant),+ }

        impl VerdictKind {
            /// Every verdict, in the order of an operation's life.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable name, for example `submitter_late`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// On which evidence it is claimed, in one sentence.
            pub const fn claimed_when(self) -> &'static str {
                match self { $(Self::$variant => $claimed),+ }
            }

            /// What would falsify it.
            pub const fn falsified_by(self) -> &'static str {
                match self { $(Self::$variant => $falsified),+ }
            }
        }
    };
}

verdicts! {
    /// The application had the work ready late, or handed it over later than it expected it to start.
    ApplicationLate "application_late"
        claimed "the application's own marks say that the work was not ready before, or that it was due and had not been handed over"
        falsified "a mark that was set later than the moment it is about";
    /// The work was ready and handed over, and its thread took it late.
    SubmitterLate "submitter_late"
        claimed "the work was ready, its thread took it later, and what the thread did is observed"
        falsified "the thread running for this work in that window";
    /// It waited for a batch to form.
    BatchWait "batch_wait"
        claimed "marks or the batch's members say when it was formed"
        falsified "the batch having had all its members before";
    /// The thread's own work on a processor.
    HostWork "host_work"
        claimed "the thread ran in its scope, outside of the calls that were recorded, and nothing else held the work back"
        falsified "the thread being off its processor, or a dependency that was not recorded";
    /// The thread waited for the device.
    HostSyncWait "host_sync_wait"
        claimed "the thread was inside a call that waits for the device"
        falsified "a dependency that held the work back for as long";
    /// The thread allocated or freed memory.
    Allocation "allocation"
        claimed "the thread was inside a call that allocates or frees memory at once"
        falsified "a dependency that held the work back for as long";
    /// The call took longer than its kind.
    ApiSlow "api_slow"
        claimed "an overhead record names the cause, or the thread ran in the call for longer than at least 20 earlier calls say"
        falsified "the thread being off its processor in the call";
    /// The work was queued and not given to the device.
    SubmitWait "submit_wait"
        claimed "both its queueing and its submission were observed"
        falsified "a dependency that held the work back for as long";
    /// It waited for other work, as it had to.
    DependencyWait "dependency_wait"
        claimed "the work was there before the dependency ended, and began right behind it"
        falsified "the operation beginning before the dependency's end in another run";
    /// Work of another stream was before it in its hardware channel, and nothing else orders the two.
    FalseDependency "false_dependency"
        claimed "both are on one channel, its dependencies are all known, and it began when the other had begun"
        falsified "the same wait with the streams on channels of their own";
    /// The device was busy with work that excludes this: for a copy another of its direction, for a
    /// kernel one that left no room for a block of it.
    DeviceWait "device_wait"
        claimed "all its dependencies are known, nobody else can have the device, and work that excludes it ran"
        falsified "the two running at once in another run";
    /// The operation ran, as long as its kind does, or as far as that can be said.
    Executing "executing"
        claimed "its start and its end were observed"
        falsified "a clock that stepped in between";
    /// The kernel ran longer than its kind.
    LongerThanItsKind "longer_than_its_kind"
        claimed "it ran alone, and longer than at least 20 runs of the same name, grid and block say"
        falsified "another process having had the device meanwhile";
    /// Time that needs no explanation: a usual call, the device's own latency, or time that the
    /// stream's earlier work covered.
    Expected "expected"
        claimed "it is no longer than such stretches are, or earlier work of the stream covered it"
        falsified "a history of calls or dispatches that was slow throughout";
    /// The rest.
    Unresolved "unresolved"
        claimed "the evidence does not tell causes apart"
        falsified "the evidence that it names";
}

impl VerdictKind {
    /// The verdict of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.replace('-', "_");
        Self::ALL
            .iter()
            .copied()
            .find(|kind| kind.name().eq_ignore_ascii_case(&name))
    }

    /// Whether it says that something took longer than it had to. What is expected, the kernel
    /// running, and what is unresolved do not.
    pub const fn is_claim(self) -> bool {
        !matches!(self, Self::Executing | Self::Expected | Self::Unresolved)
    }
}

impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
