//! Totals: what a recording came to, counted as the correlator gives its rows.
//!
//! Every count says what it counts: a *call* is one CUDA API call that asks for GPU work (a runtime
//! call and the driver call nested in it are one), an *operation* is one executed activity, a *row*
//! is an operation, or a call that has none. A row that is superseded is taken back from every
//! count it was in, so the totals always describe the rows that stand.

mod graphs;

use std::fmt;
use std::ops::Index;

use crate::fault::FaultCode;
use crate::observation::{ActivityKind, DropSite};
use crate::row::Unattributed;

pub use self::graphs::GraphCounts;
pub(crate) use self::graphs::TemplateKind;

/// What a recording came to so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct Totals {
    /// Observations that the correlator was given.
    pub observations: u64,
    /// Records that were given twice and counted once.
    pub duplicates: u64,
    /// Calls that ask for GPU work.
    pub calls: u64,
    /// Calls that were recorded though they ask for no GPU work: no row is given for them.
    pub calls_without_work: u64,
    /// Operations, by kind.
    pub operations: OperationCounts,
    /// Rows that stand: those given, less those superseded.
    pub rows: u64,
    /// Rows that were taken back, because what they missed came later after all.
    pub superseded: u64,
    /// Rows bound to one epoch.
    pub bound: u64,
    /// The bound rows, by the sources that named the epoch.
    pub bound_by: BoundBy,
    /// Rows for which two observed sources name different epochs: both are kept, none is chosen.
    pub disputed: u64,
    /// Rows that belong to no epoch without that being a fault, by reason.
    pub unattributed: UnattributedCounts,
    /// Lost joins: rows with L01, L02, L03 or L06, each once, and handoffs with L05.
    pub lost: u64,
    /// Wrong joins: rows with any `W` code, each once, and calls that were found to be wrong after
    /// their rows had been given. Misuse of the interface is no join and not in here.
    pub wrong: u64,
    /// Calls and operations whose row is not given yet, because evidence is still due.
    pub pending: u64,
    /// Bound rows whose scope was found too: containment could check them.
    pub contained: u64,
    /// Contained rows whose scope names another epoch than the row: the scope is inferred evidence,
    /// so this is no fault by itself.
    pub containment_differs: u64,
    /// Bound rows whose epoch no recorded edge brought to the calling thread or task.
    pub unreachable: u64,
    /// Rows whose epoch had been retired when the call was made: information, not a fault.
    pub after_retirement: u64,
    /// Rows of calls without an operation that were made after the last call that has one: the edge
    /// of the recording, no fault. Their binding counts as that of any row.
    pub after_recording: u64,
    /// Rows of calls inside a launch boundary that have no external correlation record, although
    /// their session has such records.
    pub external_missing: u64,
    /// External correlation records that no call was found for.
    pub external_unplaced: u64,
    /// External correlation records of other tools' kinds.
    pub external_of_others: u64,
    /// Calls whose scope was still open when their row was given, and then too many others
    /// followed: containment and W02 were not checked for them.
    pub scope_unchecked: u64,
    /// Faults by code: rows by one each, faults of no row by what they stand for.
    pub faults: FaultCounts,
    /// Graphs, their launches, and what is known of the nodes that ran.
    pub graphs: GraphCounts,
    /// Epochs.
    pub epochs: EpochCounts,
    /// Handoffs.
    pub handoffs: HandoffCounts,
    /// Records that were lost, by place.
    pub dropped: DropCounts,
    /// Records that were lost because a thread's ring was full.
    pub dropped_in_rings: u64,
    /// What the correlator had to forget to stay within its limits; also in `dropped`.
    pub evicted: u64,
}

impl Totals {
    /// Whether nothing was lost and nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.wrong == 0
    }
}

/// A few lines for a person: what was joined, what is faulty, what was lost on the way.
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EpochCounts { declared, live, .. } = self.epochs;
        let (without_work, undecided_epochs) =
            (self.epochs.ended_without_gpu_work, self.epochs.undecided);
        let HandoffCounts {
            sent,
            received,
            abandoned,
            under_way,
            undecided,
        } = self.handoffs;
        let (calls, operations) = (self.calls, self.operations.total());
        write!(f, "epochs      {declared} declared, {live} live")?;
        let rarely = |f: &mut fmt::Formatter<'_>, count: u64, what: &str| match count {
            0 => Ok(()),
            _ => write!(f, ", {count} {what}"),
        };
        rarely(f, without_work, "ended without GPU work")?;
        rarely(f, undecided_epochs, "undecided")?;
        write!(
            f,
            "\nhandoffs    {sent} sent, {received} received, {abandoned} dropped with their work"
        )?;
        rarely(f, under_way, "under way")?;
        rarely(f, undecided, "undecided")?;
        writeln!(f)?;
        writeln!(
            f,
            "calls       {calls} asked for GPU work, which became {operations} operations"
        )?;
        if !self.graphs.is_empty() {
            let (launches, rows) = (self.graphs.launches, self.graphs.rows());
            let known = self.graphs.known + self.graphs.inferred;
            write!(
                f,
                "graphs      {launches} launches, {rows} rows, {known} of known templates"
            )?;
            for (reason, count) in self.graphs.unknown_by_reason() {
                write!(f, ", {count} unknown ({reason})")?;
            }
            writeln!(f)?;
        }
        let (bound, lost, wrong) = (self.bound, self.lost, self.wrong);
        let (unattributed, pending) = (self.unattributed.total(), self.pending);
        write!(f, "joins       {bound} bound, {lost} lost, {wrong} wrong, ")?;
        write!(f, "{unattributed} unattributed, {pending} pending")?;
        for (code, count) in self.faults.iter() {
            write!(f, "\nfault       {count} of {code}: {}", code.summary())?;
        }
        for (site, count) in self.dropped.iter() {
            write!(f, "\ndropped     {count} at {site:?}")?;
        }
        Ok(())
    }
}

/// Executed activities by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OperationCounts {
    /// Kernels.
    pub kernels: u64,
    /// Memory copies, by record: one record may stand for several copies.
    pub copies: u64,
    /// Memory sets.
    pub sets: u64,
    /// Launches of whole graphs whose nodes were not looked at.
    #[cfg_attr(feature = "serde", serde(default))]
    pub graphs: u64,
}

impl OperationCounts {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.kernels + self.copies + self.sets + self.graphs
    }

    pub(crate) fn add(&mut self, kind: ActivityKind) {
        match kind {
            ActivityKind::Kernel => self.kernels += 1,
            ActivityKind::Copy => self.copies += 1,
            ActivityKind::Set => self.sets += 1,
            ActivityKind::Graph => self.graphs += 1,
        }
    }
}

/// Bound rows by the sources that named their epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct BoundBy {
    /// CUPTI's external correlation and our own callback agree: both observed sources.
    pub external_and_callback: u64,
    /// Our own callback only: launches outside a boundary.
    pub callback_only: u64,
    /// External correlation only.
    pub external_only: u64,
    /// No observed source: the call lies in one scope of its thread.
    pub containment_only: u64,
}

/// Rows that belong to no epoch, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct UnattributedCounts {
    /// Made inside `detached`.
    pub detached: u64,
    /// Made before the first declaration.
    pub before_first_declaration: u64,
    /// Made on a thread that never saw lineage.
    pub foreign_thread: u64,
    /// Launched by the driver or the device for itself.
    pub internal_launch: u64,
    /// Its call lies before or after what was recorded.
    pub outside_recording: u64,
    /// The recording has no evidence of any epoch.
    pub no_epoch_evidence: u64,
}

impl UnattributedCounts {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.detached
            + self.before_first_declaration
            + self.foreign_thread
            + self.internal_launch
            + self.outside_recording
            + self.no_epoch_evidence
    }

    pub(crate) fn of(&mut self, why: Unattributed) -> &mut u64 {
        match why {
            Unattributed::Detached => &mut self.detached,
            Unattributed::BeforeFirstDeclaration => &mut self.before_first_declaration,
            Unattributed::ForeignThread => &mut self.foreign_thread,
            Unattributed::InternalLaunch => &mut self.internal_launch,
            Unattributed::OutsideRecording => &mut self.outside_recording,
            Unattributed::NoEpochEvidence => &mut self.no_epoch_evidence,
        }
    }
}

/// Epochs by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EpochCounts {
    /// Declared, batches and forks among them.
    pub declared: u64,
    /// Retired: their owner and carriers are gone.
    pub retired: u64,
    /// Declared and not retired.
    pub live: u64,
    /// Ended without a launch, and nobody else was to work on them: an early return, a bad request.
    /// No fault.
    #[cfg_attr(feature = "serde", serde(default))]
    pub ended_without_gpu_work: u64,
    /// Ended without a launch that was seen, while records were lost or what came of them still
    /// lives: nothing is said of them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub undecided: u64,
}

/// Handoffs by what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HandoffCounts {
    /// Carriers made.
    pub sent: u64,
    /// Carriers opened.
    pub received: u64,
    /// Carriers dropped together with their work.
    pub abandoned: u64,
    /// Carriers whose epoch still lived at the end, where they were neither opened nor dropped.
    #[cfg_attr(feature = "serde", serde(default))]
    pub under_way: u64,
    /// Carriers of which no end was seen, while records were lost: nothing is said of them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub undecided: u64,
}

/// Counts of faults by code.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultCounts([u64; FaultCode::ALL.len()]);

/// Only the codes that occurred, for example `{L01: 2, W07: 1}`.
impl fmt::Debug for FaultCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl FaultCounts {
    /// The codes that occurred, with how often, in the order of the codes.
    pub fn iter(&self) -> impl Iterator<Item = (FaultCode, u64)> + '_ {
        let counts = self.0.iter().copied();
        FaultCode::ALL
            .iter()
            .copied()
            .zip(counts)
            .filter(|&(_, count)| count > 0)
    }

    pub(crate) fn of(&mut self, code: FaultCode) -> &mut u64 {
        &mut self.0[code as usize]
    }
}

impl Index<FaultCode> for FaultCounts {
    type Output = u64;

    fn index(&self, code: FaultCode) -> &u64 {
        &self.0[code as usize]
    }
}

const DROP_SITES: [DropSite; 11] = [
    DropSite::CuptiBuffer,
    DropSite::BufferTail,
    DropSite::BufferQueue,
    DropSite::Undecodable,
    DropSite::CallbackPanic,
    DropSite::Correlator,
    DropSite::AfterShutdown,
    DropSite::Declare,
    DropSite::Sink,
    DropSite::SchedulerRing,
    DropSite::GraphQueue,
];

/// Counts of lost records by the place where they were lost.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct DropCounts([u64; DROP_SITES.len()]);

/// Only the places where something was lost, for example `{CuptiBuffer: 12}`.
impl fmt::Debug for DropCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl DropCounts {
    /// The places where records were lost, with how many.
    pub fn iter(&self) -> impl Iterator<Item = (DropSite, u64)> + '_ {
        let counts = self.0.iter().copied();
        DROP_SITES
            .into_iter()
            .zip(counts)
            .filter(|&(_, count)| count > 0)
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn of(&mut self, site: DropSite) -> &mut u64 {
        &mut self.0[site as usize]
    }
}

impl Index<DropSite> for DropCounts {
    type Output = u64;

    fn index(&self, site: DropSite) -> &u64 {
        &self.0[site as usize]
    }
}

/// Counts as a map from code or site to number, without those that are 0, so that a file stays
/// readable to people and to readers that know more or fewer codes.
#[cfg(feature = "serde")]
mod as_map {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
    use serde::ser::{Serialize, Serializer};

    use super::{DropCounts, FaultCounts};
    use crate::fault::FaultCode;
    use crate::observation::DropSite;

    impl Serialize for FaultCounts {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.iter())
        }
    }

    impl Serialize for DropCounts {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.iter())
        }
    }

    struct Pairs<K, C>(fn(&mut C, K) -> &mut u64, PhantomData<K>);

    impl<'de, K: Deserialize<'de>, C: Default> Visitor<'de> for Pairs<K, C> {
        type Value = C;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map from code to count")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<C, A::Error> {
            let mut counts = C::default();
            while let Some((key, count)) = map.next_entry::<K, u64>()? {
                *(self.0)(&mut counts, key) = count;
            }
            Ok(counts)
        }
    }

    impl<'de> Deserialize<'de> for FaultCounts {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Pairs::<FaultCode, Self>(Self::of, PhantomData))
        }
    }

    impl<'de> Deserialize<'de> for DropCounts {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Pairs::<DropSite, Self>(Self::of, PhantomData))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_and_every_site_has_a_count_of_its_own() {
        let mut totals = Totals::default();
        for (number, &code) in FaultCode::ALL.iter().enumerate() {
            *totals.faults.of(code) += number as u64 + 1;
        }
        for (number, &code) in FaultCode::ALL.iter().enumerate() {
            assert_eq!(totals.faults[code], number as u64 + 1);
        }
        for (number, site) in DROP_SITES.into_iter().enumerate() {
            *totals.dropped.of(site) += number as u64 + 1;
        }
        for (number, site) in DROP_SITES.into_iter().enumerate() {
            assert_eq!(totals.dropped[site], number as u64 + 1);
        }
        assert_eq!(totals.dropped.total(), 66);
    }

    #[cfg(feature = "jsonl")]
    #[test]
    fn counts_are_written_by_name_and_read_back() {
        let mut totals = Totals::default();
        *totals.faults.of(FaultCode::L05) = 3;
        *totals.dropped.of(DropSite::CuptiBuffer) = 7;
        totals.rows = 11;
        let text = serde_json::to_string(&totals).expect("written");
        assert!(text.contains(r#""faults":{"L05":3}"#), "{text}");
        assert!(text.contains(r#""dropped":{"cupti_buffer":7}"#), "{text}");
        let read: Totals = serde_json::from_str(&text).expect("read");
        assert_eq!(read, totals);
    }
}
