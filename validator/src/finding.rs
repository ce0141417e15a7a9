//! Findings: one fault each, with what it is about, its evidence, and what to do next.

use std::collections::BTreeMap;
use std::fmt;

use lineage_core::fault::FaultCode;
use lineage_core::id::{
    CorrelationId, HandoffId, HostNanos, LaunchEpoch, ProcessOrdinal, ThreadKey,
};

use crate::advice::advice;

/// What a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum About {
    /// A call.
    Call {
        /// The device session.
        session: u32,
        /// The call's id on the wire.
        correlation: CorrelationId,
        /// The function, for a person.
        api: String,
        /// The calling thread's system id.
        tid: u64,
    },
    /// An executed operation.
    Operation {
        /// The device session.
        session: u32,
        /// The id of its call on the wire.
        correlation: CorrelationId,
        /// Its kind and name, for a person.
        name: String,
    },
    /// An epoch.
    Epoch(LaunchEpoch),
    /// A handoff.
    Handoff(HandoffId),
    /// A thread.
    Thread(ThreadKey),
    /// The recording itself.
    Recording,
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call {
                correlation: CorrelationId(id),
                api,
                tid,
                ..
            } => write!(f, "call {id} ({api}) on thread {tid}"),
            Self::Operation {
                correlation: CorrelationId(id),
                name,
                ..
            } => write!(f, "{name} of call {id}"),
            Self::Epoch(epoch) => write!(f, "epoch {epoch}"),
            Self::Handoff(handoff) => write!(f, "handoff {}", handoff.0),
            Self::Thread(thread) => write!(f, "thread {}", thread.tid),
            Self::Recording => f.write_str("the recording"),
        }
    }
}

/// One line of a finding's evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EvidenceLine {
    /// What the line is about, in a word or two: `scope`, `external`, `sent`.
    pub label: &'static str,
    /// What was seen, for a person. Times are since the first of the recording.
    pub text: String,
}

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Its code.
    pub code: FaultCode,
    /// The process it is in.
    pub process: ProcessOrdinal,
    /// What it is about.
    pub about: About,
    /// When, if it has a time.
    pub at: Option<HostNanos>,
    /// How many it stands for: 1, or the number of lost records.
    pub count: u64,
    /// What is wrong, in one sentence.
    pub detail: String,
    /// What it rests on.
    pub evidence: Vec<EvidenceLine>,
    /// What to do next.
    pub next: &'static str,
}

impl Finding {
    pub(crate) fn new(
        code: FaultCode,
        process: ProcessOrdinal,
        about: About,
        detail: String,
    ) -> Self {
        Self {
            code,
            process,
            about,
            at: None,
            count: 1,
            detail,
            evidence: Vec::new(),
            next: advice(code),
        }
    }

    pub(crate) const fn at(mut self, at: Option<HostNanos>) -> Self {
        self.at = at;
        self
    }

    /// With this evidence; what it says twice is kept once.
    pub(crate) fn evidence(mut self, evidence: Vec<EvidenceLine>) -> Self {
        for line in evidence {
            if !self.evidence.contains(&line) {
                self.evidence.push(line);
            }
        }
        self
    }
}

/// A finding as a few lines of text.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.code, self.about)?;
        writeln!(f, "  {}", self.detail)?;
        for line in &self.evidence {
            writeln!(f, "  {:<11} {}", line.label, line.text)?;
        }
        write!(f, "  {:<11} {}", "do next", self.next)
    }
}

/// Counts every fault, and keeps so many findings of each code.
#[derive(Debug)]
pub(crate) struct Findings {
    limit: usize,
    counts: BTreeMap<FaultCode, u64>,
    listed: BTreeMap<FaultCode, Vec<Finding>>,
    not_listed: u64,
}

impl Findings {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            limit,
            counts: BTreeMap::new(),
            listed: BTreeMap::new(),
            not_listed: 0,
        }
    }

    /// Counts a fault. Its finding is only made if there is room to list it.
    pub(crate) fn raise(&mut self, code: FaultCode, finding: impl FnOnce() -> Finding) {
        self.raise_many(code, 1, finding);
    }

    /// Counts this many faults in one finding.
    pub(crate) fn raise_many(
        &mut self,
        code: FaultCode,
        count: u64,
        finding: impl FnOnce() -> Finding,
    ) {
        let counted = self.counts.entry(code).or_default();
        *counted = counted.saturating_add(count);
        let listed = self.listed.entry(code).or_default();
        if listed.len() < self.limit {
            let finding = finding();
            debug_assert_eq!(finding.code, code);
            listed.push(Finding { count, ..finding });
        } else {
            self.not_listed += 1;
        }
    }

    /// How many faults were raised so far.
    pub(crate) fn raised(&self) -> u64 {
        self.counts
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// All findings by code, the counts, and how many findings were not listed.
    pub(crate) fn finish(self) -> (Vec<Finding>, BTreeMap<FaultCode, u64>, u64) {
        let mut findings: Vec<Finding> = self.listed.into_values().flatten().collect();
        findings.sort_by_key(|finding| (finding.code, finding.process, finding.at));
        (findings, self.counts, self.not_listed)
    }
}
