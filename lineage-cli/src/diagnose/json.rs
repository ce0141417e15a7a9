//! The JSON object. Its fields are stable: `schema` rises when one changes its meaning or goes.

use std::collections::BTreeMap;

use lineage_core::verdict::LongBecause;
use serde::Serialize;

use super::gather::{Diagnosis, Sum};
use super::told::{Told, ToldSegment};
use crate::part::Looked;
use crate::text::json_line;

/// Schema of the object.
pub(super) const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    file: String,
    format: &'static str,
    recorder: &'a str,
    notes: &'a [String],
    part: Option<Looked>,
    rows: u64,
    rows_with_path: u64,
    rows_not_exact: u64,
    rows_without_times: u64,
    calls_without_operation: u64,
    time_faults: BTreeMap<&'static str, u64>,
    useful_readiness: u64,
    complete_readiness: u64,
    partial_because: BTreeMap<&'static str, u64>,
    dispatch_floor: Option<FloorObject>,
    dependency_and_device_merged: bool,
    whole_ns: u64,
    covered_ns: u64,
    verdicts: BTreeMap<&'static str, SumObject>,
    would_settle: BTreeMap<&'static str, SumObject>,
    slowest: Vec<LifeObject<'a>>,
    not_shown: u64,
}

#[derive(Serialize)]
struct FloorObject {
    typical_ns: u64,
    limit_ns: u64,
    samples: u64,
}

#[derive(Serialize)]
struct SumObject {
    ns: u64,
    segments: u64,
    rows: u64,
}

#[derive(Serialize)]
struct LifeObject<'a> {
    process: u32,
    epoch: Option<&'a str>,
    operation: &'a str,
    call: Option<&'a str>,
    whole_ns: u64,
    not_before_ns: Option<u64>,
    dependencies_complete: bool,
    dependencies_partial_because: &'a [&'static str],
    usual_ns: Option<u64>,
    long_because: Option<LongBecause>,
    segments: Vec<SegmentObject<'a>>,
    covered: Vec<CoveredObject<'a>>,
}

#[derive(Serialize)]
struct SegmentObject<'a> {
    from_ns: u64,
    to_ns: u64,
    stage: &'static str,
    verdict: &'static str,
    claimed: bool,
    words: &'a str,
    evidence: Option<&'a str>,
    falsified_by: &'static str,
    would_settle: &'a [&'static str],
}

#[derive(Serialize)]
struct CoveredObject<'a> {
    from_ns: u64,
    to_ns: u64,
    words: &'a str,
}

impl From<&Sum> for SumObject {
    fn from(of: &Sum) -> Self {
        Self {
            ns: of.ns,
            segments: of.segments,
            rows: of.rows,
        }
    }
}

/// A file's diagnosis, on a line.
pub(super) fn object(diagnosis: &Diagnosis) -> String {
    let counts = &diagnosis.counts;
    let faults = counts.time_faults.iter();
    let partial = counts.by_partial.iter();
    let verdicts = counts.by_verdict.iter();
    let settle = counts.by_settle.iter();
    json_line(&Object {
        schema: SCHEMA,
        file: diagnosis.file.display().to_string(),
        format: diagnosis.format.name(),
        recorder: &diagnosis.about.recorder,
        notes: &diagnosis.about.notes,
        part: diagnosis.about.part,
        rows: counts.rows,
        rows_with_path: counts.with_path,
        rows_not_exact: counts.inexact,
        rows_without_times: counts.without_times,
        calls_without_operation: counts.calls_alone,
        time_faults: faults.map(|(code, count)| (code.code(), *count)).collect(),
        useful_readiness: counts.useful_readiness,
        complete_readiness: counts.complete_readiness,
        partial_because: partial.map(|(of, rows)| (of.because(), *rows)).collect(),
        dispatch_floor: diagnosis.floor.map(|floor| FloorObject {
            typical_ns: floor.typical_ns,
            limit_ns: floor.limit_ns,
            samples: floor.samples as u64,
        }),
        dependency_and_device_merged: counts.merges_dependency_and_device(diagnosis.floor),
        whole_ns: counts.whole_ns,
        covered_ns: counts.covered_ns,
        verdicts: verdicts.map(|(of, sum)| (of.name(), sum.into())).collect(),
        would_settle: settle.map(|(of, sum)| (*of, sum.into())).collect(),
        slowest: diagnosis.slowest.iter().map(life).collect(),
        not_shown: diagnosis.not_shown,
    })
}

fn life(told: &Told) -> LifeObject<'_> {
    LifeObject {
        process: told.process,
        epoch: told.epoch.as_deref(),
        operation: &told.operation,
        call: told.call.as_deref(),
        whole_ns: told.whole_ns,
        not_before_ns: told.not_before_ns,
        dependencies_complete: told.complete,
        dependencies_partial_because: &told.partial,
        usual_ns: told.usual.map(|(median, _)| median),
        long_because: told.long_because,
        segments: told.segments.iter().map(segment).collect(),
        covered: told
            .covered
            .iter()
            .map(|of| CoveredObject {
                from_ns: of.from_ns,
                to_ns: of.to_ns,
                words: &of.words,
            })
            .collect(),
    }
}

fn segment(of: &ToldSegment) -> SegmentObject<'_> {
    SegmentObject {
        from_ns: of.from_ns,
        to_ns: of.to_ns,
        stage: of.stage,
        verdict: of.kind.name(),
        claimed: of.kind.is_claim(),
        words: &of.words,
        evidence: of.evidence.as_deref(),
        falsified_by: of.kind.falsified_by(),
        would_settle: &of.settle,
    }
}
