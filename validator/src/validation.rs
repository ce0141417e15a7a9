//! What a validation found.

use std::collections::BTreeMap;
use std::fmt;

use lineage_core::evidence::Why;
use lineage_core::fault::FaultCode;
use lineage_core::row::{LooseFault, Row, Unattributed};

use crate::finding::Finding;
use crate::truth::{BoundOperation, BoundReplay};

/// What a session concluded, to be held against its observations.
#[derive(Debug, Clone, Copy)]
pub struct Conclusions<'a> {
    /// Its rows.
    pub rows: &'a [Row],
    /// Its faults that belong to no row.
    pub faults: &'a [LooseFault],
}

/// Counts of everything that was examined. "Rows" are operations, and calls that asked for work
/// and have none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Records of API calls that the recorder gave: a runtime call and the driver call inside of it
    /// are two where it recorded both.
    pub api_calls: u64,
    /// Calls. A runtime call and the driver call inside of it are one.
    pub calls: u64,
    /// Kernels executed.
    pub kernels: u64,
    /// Copy records.
    pub memcpys: u64,
    /// Set records.
    pub memsets: u64,
    /// Launches of whole graphs, where the recorder did not look at their nodes.
    pub graphs: u64,
    /// Kernels whose call is known.
    pub joined_kernels: u64,
    /// Copies whose call is known.
    pub joined_memcpys: u64,
    /// Sets whose call is known.
    pub joined_memsets: u64,
    /// Launches of whole graphs whose call is known.
    pub joined_graphs: u64,
    /// Operations without a call, for whatever reason.
    pub activity_without_launch: u64,
    /// Calls that ask for work without an operation, for whatever reason.
    pub launch_without_activity: u64,
    /// Of the operations without a call: no call asked for them. The driver or the device launched
    /// them for itself, as it moves pages of managed memory.
    pub asked_for_by_no_call: u64,
    /// Of the operations without a call: asked for before the recording began.
    pub before_recording: u64,
    /// Of the operations without a call: asked for when the recording of calls was over.
    pub operations_after_recording: u64,
    /// Of the operations without a call: the recording has no calls of their process at all.
    pub calls_not_collected: u64,
    /// Of the calls without an operation: made when the recording of operations was over.
    pub after_recording: u64,
    /// Of the calls without an operation: they failed.
    pub failed_calls: u64,
    /// Of the calls without an operation: there may be none, as of zero bytes.
    pub maybe_without_operation: u64,
    /// Of the calls without an operation: they may have been captured into a graph that was open.
    pub maybe_captured: u64,
    /// Of the calls without an operation: the recording has no operations at all.
    pub operations_not_collected: u64,
    /// Of the calls without an operation: lost.
    pub calls_without_operation: u64,
    /// Calls of which no operation is due: captured ones among them.
    pub without_operation_due: u64,
    /// Rows that belong to an epoch.
    pub bound: u64,
    /// Of these: the external record and our own callback name the same.
    pub bound_by_two_sources: u64,
    /// Of these: only the external record names it.
    pub bound_by_external_only: u64,
    /// Of these: only our own callback names it.
    pub bound_by_callback_only: u64,
    /// Of these: only inferred, from the scope around the call.
    pub bound_by_containment: u64,
    /// Of the bound: recorded handoffs bring the epoch to the thread or task.
    pub reachable: u64,
    /// Of the bound: none does.
    pub unreachable: u64,
    /// Of the bound: that cannot be said.
    pub reach_unknown: u64,
    /// Of the bound: the scope around the call names another epoch than what was observed.
    pub scope_disagrees: u64,
    /// Rows that belong to no epoch, which is no fault, by reason.
    pub unattributed: BTreeMap<&'static str, u64>,
    /// Operations and calls whose other half may still come.
    pub pending: u64,
    /// Rows whose epoch, call or operation is lost.
    pub lost: u64,
    /// Rows with a fault of the family `W`.
    pub wrong: u64,
    /// Calls made after their epoch had been retired: information, not a fault.
    pub after_retirement: u64,
    /// Epochs declared.
    pub epochs: u64,
    /// Epochs that ended without a launch and were never handed on: an early return, a bad request.
    pub ended_without_gpu_work: u64,
    /// Calls that name an epoch of which nothing is known, where records are known to be missing.
    pub epochs_unknown: u64,
    /// Handoffs sent.
    pub handoffs: u64,
    /// Handoffs neither received nor dropped so far, whose epoch is alive.
    pub handoffs_under_way: u64,
    /// Handoffs received of which no sending was recorded.
    pub handoffs_without_sender: u64,
    /// Epochs and handoffs of which nothing can be said, since records are missing.
    pub not_decidable: u64,
    /// Launches of graphs that the session told of.
    pub graph_launches: u64,
    /// Operations of graphs whose node's builder is known.
    pub templates_known: u64,
    /// Operations of graphs of whose node that is not known, by reason.
    pub templates_unknown: BTreeMap<&'static str, u64>,
    /// Operations without a start or an end.
    pub operations_without_times: u64,
    /// Records known to be lost.
    pub records_dropped: u64,
    /// Records that were there twice.
    pub duplicate_records: u64,
    /// External records of another tool's kind.
    pub external_of_other_tools: u64,
    /// External records of ours whose call has no record, or several.
    pub external_without_call: u64,
    /// Observations of a kind that this build does not know.
    pub not_examined: u64,
    /// How the session's own rows compare, if there were any.
    pub rows: Option<RowCounts>,
}

/// How a session's rows compare with what was derived anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RowCounts {
    /// Rows given.
    pub given: u64,
    /// Rows that say the same.
    pub agreeing: u64,
    /// Rows that say something else: each is a fault.
    pub differing: u64,
    /// Rows of something that is not in the observations.
    pub extra: u64,
    /// Operations and calls that have no row, though all has come.
    pub missing: u64,
    /// Rows that a later one took the place of.
    pub superseded: u64,
    /// Rows that name another reason than the one derived for belonging to no epoch.
    pub other_reason: u64,
}

impl RowCounts {
    fn add(&mut self, next: &Self) {
        let Self {
            given,
            agreeing,
            differing,
            extra,
            missing,
            superseded,
            other_reason,
        } = next;
        self.given += given;
        self.agreeing += agreeing;
        self.differing += differing;
        self.extra += extra;
        self.missing += missing;
        self.superseded += superseded;
        self.other_reason += other_reason;
    }
}

impl Counts {
    /// Operations executed.
    pub const fn operations(&self) -> u64 {
        self.kernels + self.memcpys + self.memsets + self.graphs
    }

    /// Operations whose call is known.
    pub const fn joined_operations(&self) -> u64 {
        self.joined_kernels + self.joined_memcpys + self.joined_memsets + self.joined_graphs
    }

    /// Rows that belong to no epoch, which is no fault.
    pub fn unattributed_rows(&self) -> u64 {
        self.unattributed.values().sum()
    }

    /// Adds what was counted in another part of the same recording.
    fn add(&mut self, next: &Self) {
        // Taken apart, so that no count can be forgotten.
        let Self {
            api_calls,
            calls,
            kernels,
            memcpys,
            memsets,
            graphs,
            joined_kernels,
            joined_memcpys,
            joined_memsets,
            joined_graphs,
            activity_without_launch,
            launch_without_activity,
            asked_for_by_no_call,
            before_recording,
            operations_after_recording,
            calls_not_collected,
            after_recording,
            failed_calls,
            maybe_without_operation,
            maybe_captured,
            operations_not_collected,
            calls_without_operation,
            without_operation_due,
            bound,
            bound_by_two_sources,
            bound_by_external_only,
            bound_by_callback_only,
            bound_by_containment,
            reachable,
            unreachable,
            reach_unknown,
            scope_disagrees,
            pending,
            lost,
            wrong,
            after_retirement,
            epochs,
            ended_without_gpu_work,
            epochs_unknown,
            handoffs,
            handoffs_under_way,
            handoffs_without_sender,
            not_decidable,
            graph_launches,
            templates_known,
            templates_unknown,
            operations_without_times,
            records_dropped,
            duplicate_records,
            external_of_other_tools,
            external_without_call,
            not_examined,
            unattributed,
            rows,
        } = next;
        self.api_calls += api_calls;
        self.calls += calls;
        self.kernels += kernels;
        self.memcpys += memcpys;
        self.memsets += memsets;
        self.graphs += graphs;
        self.joined_kernels += joined_kernels;
        self.joined_memcpys += joined_memcpys;
        self.joined_memsets += joined_memsets;
        self.joined_graphs += joined_graphs;
        self.activity_without_launch += activity_without_launch;
        self.launch_without_activity += launch_without_activity;
        self.asked_for_by_no_call += asked_for_by_no_call;
        self.before_recording += before_recording;
        self.operations_after_recording += operations_after_recording;
        self.calls_not_collected += calls_not_collected;
        self.after_recording += after_recording;
        self.failed_calls += failed_calls;
        self.maybe_without_operation += maybe_without_operation;
        self.maybe_captured += maybe_captured;
        self.operations_not_collected += operations_not_collected;
        self.calls_without_operation += calls_without_operation;
        self.without_operation_due += without_operation_due;
        self.bound += bound;
        self.bound_by_two_sources += bound_by_two_sources;
        self.bound_by_external_only += bound_by_external_only;
        self.bound_by_callback_only += bound_by_callback_only;
        self.bound_by_containment += bound_by_containment;
        self.reachable += reachable;
        self.unreachable += unreachable;
        self.reach_unknown += reach_unknown;
        self.scope_disagrees += scope_disagrees;
        self.pending += pending;
        self.lost += lost;
        self.wrong += wrong;
        self.after_retirement += after_retirement;
        self.epochs += epochs;
        self.ended_without_gpu_work += ended_without_gpu_work;
        self.epochs_unknown += epochs_unknown;
        self.handoffs += handoffs;
        self.handoffs_under_way += handoffs_under_way;
        self.handoffs_without_sender += handoffs_without_sender;
        self.not_decidable += not_decidable;
        self.graph_launches += graph_launches;
        self.templates_known += templates_known;
        self.operations_without_times += operations_without_times;
        self.records_dropped += records_dropped;
        self.duplicate_records += duplicate_records;
        self.external_of_other_tools += external_of_other_tools;
        self.external_without_call += external_without_call;
        self.not_examined += not_examined;
        for (why, count) in templates_unknown {
            *self.templates_unknown.entry(why).or_default() += count;
        }
        for (why, count) in unattributed {
            *self.unattributed.entry(why).or_default() += count;
        }
        match (&mut self.rows, rows) {
            (Some(known), Some(next)) => known.add(next),
            (known @ None, Some(next)) => *known = Some(*next),
            (_, None) => {}
        }
    }
}

/// The stable name of a reason why nobody is known to have built a node.
pub(crate) const fn template_name(why: Why) -> &'static str {
    match why {
        Why::BeforeSession => "before_session",
        Why::ExecUpdated => "exec_updated",
        Why::NotVisible => "not_visible",
        Why::NotCollected => "not_collected",
        _ => "dropped",
    }
}

/// The stable name of a reason for belonging to no epoch.
pub(crate) const fn unattributed_name(why: Unattributed) -> &'static str {
    match why {
        Unattributed::Detached => "detached",
        Unattributed::BeforeFirstDeclaration => "before_first_declaration",
        Unattributed::ForeignThread => "foreign_thread",
        Unattributed::InternalLaunch => "internal_launch",
        Unattributed::NoEpochEvidence => "no_epoch_evidence",
        Unattributed::OutsideRecording => "outside_recording",
        _ => "other",
    }
}

/// What a validation found.
///
/// That nothing is wrong means that the records agree with one another. Whether they are right
/// only truth can tell: see [`against_truth`](Self::against_truth).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Validation {
    /// What was examined.
    pub counts: Counts,
    /// The faults, at most so many of each code as the options say.
    pub faults: Vec<Finding>,
    /// How many faults there are of each code, listed or not.
    pub fault_counts: BTreeMap<FaultCode, u64>,
    /// Findings that are not listed.
    pub not_listed: u64,
    /// What the session itself says, by its rows and loose faults; empty where none were given.
    pub session_faults: BTreeMap<FaultCode, u64>,
    pub(crate) operations: Vec<BoundOperation>,
    pub(crate) replays: Vec<BoundReplay>,
    pub(crate) with_epoch: u64,
}

impl Validation {
    /// Whether neither the validator nor the session found a fault.
    pub fn is_sound(&self) -> bool {
        self.fault_counts.is_empty() && self.session_faults.is_empty()
    }

    /// How many faults the validator found.
    pub fn fault_count(&self) -> u64 {
        let counts = self.fault_counts.values();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Operations that are bound to an epoch: by the session's rows if they were given, else by what
    /// was derived. Where there is none, that nothing is wrong says nothing.
    pub fn operations_with_epoch(&self) -> u64 {
        self.with_epoch
    }

    /// Takes in the validation of the next part of the same recording.
    ///
    /// At most `listed_per_code` findings of each code stay listed; more are counted. An epoch that
    /// both parts know of is counted twice: whoever cut the recording knows how many there are.
    pub fn merge(&mut self, next: Self, listed_per_code: usize) {
        self.counts.add(&next.counts);
        for (into, from) in [
            (&mut self.fault_counts, &next.fault_counts),
            (&mut self.session_faults, &next.session_faults),
        ] {
            for (code, count) in from {
                let known = into.entry(*code).or_default();
                *known = known.saturating_add(*count);
            }
        }
        for finding in next.faults {
            let listed = self.faults.iter().filter(|of| of.code == finding.code);
            if listed.count() < listed_per_code {
                self.faults.push(finding);
            } else {
                self.not_listed = self.not_listed.saturating_add(1);
            }
        }
        self.faults.sort_by_key(|finding| finding.code);
        self.not_listed = self.not_listed.saturating_add(next.not_listed);
        self.operations.extend(next.operations);
        self.operations.sort_by_key(BoundOperation::key);
        self.replays.extend(next.replays);
        self.replays.sort_by_key(BoundReplay::key);
        self.with_epoch += next.with_epoch;
    }

    /// Codes that the session raised and the validator did not: one of the two is wrong.
    pub fn raised_by_session_only(&self) -> impl Iterator<Item = (FaultCode, u64)> + '_ {
        let only = |(code, _): &(&FaultCode, &u64)| !self.fault_counts.contains_key(code);
        self.session_faults
            .iter()
            .filter(only)
            .map(|(code, count)| (*code, *count))
    }

    /// A few lines that say what was examined and what came out.
    pub fn summary(&self) -> String {
        let counts = &self.counts;
        let mut text = format!(
            "{}, {} ({}, {}, {}), {}, {}\n",
            counted(counts.calls, "call", "calls"),
            counted(counts.operations(), "operation", "operations"),
            counted(counts.kernels, "kernel", "kernels"),
            counted(counts.memcpys, "copy", "copies"),
            counted(counts.memsets, "set", "sets"),
            counted(counts.epochs, "epoch", "epochs"),
            counted(counts.handoffs, "handoff", "handoffs")
        );
        text += &format!(
            "bound {}, lost {}, wrong {}, unattributed {}, pending {}",
            counts.bound,
            counts.lost,
            counts.wrong,
            counts.unattributed_rows(),
            counts.pending
        );
        for (why, count) in &counts.unattributed {
            text += &format!("\nunattributed: {count} {}", why.replace('_', " "));
        }
        text
    }
}

/// The summary, the listed faults, and the counts of the rest.
impl fmt::Display for Validation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.summary())?;
        write_findings(f, self, usize::MAX)?;
        f.write_str(SELF_CONSISTENT)
    }
}

/// What a validation without truth is worth.
pub(crate) const SELF_CONSISTENT: &str = "\"0 wrong\" means that the records agree with one another; only truth can tell whether they are right";

/// A number with its noun.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// At most so many findings of each code, and the counts of the rest.
pub(crate) fn write_findings(
    f: &mut fmt::Formatter<'_>,
    validation: &Validation,
    most: usize,
) -> fmt::Result {
    for (code, count) in &validation.fault_counts {
        let of_code = validation.faults.iter().filter(|of| of.code == *code);
        let mut shown = 0_u64;
        for finding in of_code.take(most) {
            shown = shown.saturating_add(finding.count);
            writeln!(f, "\n{finding}")?;
        }
        let more = count.saturating_sub(shown);
        if more > 0 {
            writeln!(f, "\nand {more} more {}", code.code())?;
        }
    }
    if !validation.fault_counts.is_empty() {
        writeln!(f)?;
    }
    for (code, count) in &validation.fault_counts {
        writeln!(f, "{count:>7}  {code}: {}", code.summary())?;
    }
    for (code, count) in validation.raised_by_session_only() {
        writeln!(
            f,
            "{count:>7}  {code}, raised by the session and not by the validator: one of the two is wrong"
        )?;
    }
    Ok(())
}
