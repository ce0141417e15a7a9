//! The JSON object. Its fields are stable: `schema` rises when one changes its meaning or goes.

use std::collections::BTreeMap;

use lineage_core::fault::FaultCode;
use lineage_validator::{About, Counts, Finding, Validation};
use serde::Serialize;

use crate::joins::nothing_joined;
use crate::load::Ledger;

/// Schema of the object.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    file: String,
    ledger: LedgerObject<'a>,
    sound: bool,
    operations_with_epoch: u64,
    nothing_joined_because: Option<String>,
    summary: Summary<'a>,
    faults: BTreeMap<&'static str, u64>,
    faults_by_session: BTreeMap<&'static str, u64>,
    findings: Vec<FindingObject<'a>>,
    findings_not_listed: u64,
    meaning: &'static str,
}

#[derive(Serialize)]
struct LedgerObject<'a> {
    schema: u32,
    process: String,
    service: &'a str,
    writer: &'a str,
    complete: bool,
    last_line_truncated: bool,
    observations: u64,
    rows: u64,
    faults: u64,
    not_written: u64,
    skipped: &'a BTreeMap<String, u64>,
}

/// Every count, under the name it has in the validator.
#[derive(Serialize)]
struct Summary<'a> {
    api_calls: u64,
    kernels: u64,
    memcpys: u64,
    memsets: u64,
    joined_kernels: u64,
    joined_memcpys: u64,
    joined_memsets: u64,
    activity_without_launch: u64,
    launch_without_activity: u64,
    before_recording: u64,
    operations_after_recording: u64,
    after_recording: u64,
    failed_calls: u64,
    maybe_without_operation: u64,
    calls_without_operation: u64,
    without_operation_due: u64,
    bound: u64,
    bound_by_two_sources: u64,
    bound_by_external_only: u64,
    bound_by_callback_only: u64,
    bound_by_containment: u64,
    reachable: u64,
    unreachable: u64,
    reach_unknown: u64,
    scope_disagrees: u64,
    unattributed: u64,
    unattributed_by_reason: &'a BTreeMap<&'static str, u64>,
    pending: u64,
    lost: u64,
    wrong: u64,
    after_retirement: u64,
    epochs: u64,
    epochs_unknown: u64,
    ended_without_gpu_work: u64,
    handoffs: u64,
    handoffs_under_way: u64,
    handoffs_without_sender: u64,
    not_decidable: u64,
    operations_without_times: u64,
    records_dropped: u64,
    duplicate_records: u64,
    external_of_other_tools: u64,
    external_without_call: u64,
    not_examined: u64,
    rows: Option<Rows>,
}

#[derive(Serialize)]
struct Rows {
    given: u64,
    agreeing: u64,
    differing: u64,
    extra: u64,
    missing: u64,
    superseded: u64,
    other_reason: u64,
}

#[derive(Serialize)]
struct FindingObject<'a> {
    code: &'static str,
    name: &'static str,
    process: u32,
    count: u64,
    at_ns: Option<u64>,
    about: AboutObject<'a>,
    detail: &'a str,
    evidence: Vec<LineObject<'a>>,
    next: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum AboutObject<'a> {
    Call {
        session: u32,
        correlation: u32,
        api: &'a str,
        tid: u64,
    },
    Operation {
        session: u32,
        correlation: u32,
        name: &'a str,
    },
    Epoch {
        id: u64,
        version: u32,
    },
    Handoff {
        id: u64,
    },
    Thread {
        tid: u64,
        generation: u32,
    },
    Recording,
    Other {
        text: String,
    },
}

#[derive(Serialize)]
struct LineObject<'a> {
    label: &'static str,
    text: &'a str,
}

/// One line with the object.
pub(crate) fn json(ledger: &Ledger, validation: &Validation) -> String {
    let codes = |counts: &BTreeMap<FaultCode, u64>| {
        counts
            .iter()
            .map(|(code, count)| (code.code(), *count))
            .collect()
    };
    let object = Object {
        schema: SCHEMA,
        file: ledger.file.display().to_string(),
        ledger: LedgerObject {
            schema: ledger.header.schema,
            process: ledger.header.process.to_string(),
            service: &ledger.header.service,
            writer: &ledger.header.writer,
            complete: ledger.summary.is_complete(),
            last_line_truncated: ledger.summary.last_line_truncated,
            observations: ledger.summary.read.observations,
            rows: ledger.summary.read.rows,
            faults: ledger.summary.read.faults,
            not_written: ledger.summary.not_written,
            skipped: &ledger.summary.unknown_kinds,
        },
        sound: validation.is_sound(),
        operations_with_epoch: validation.operations_with_epoch(),
        nothing_joined_because: nothing_joined(ledger, validation),
        summary: summary(&validation.counts),
        faults: codes(&validation.fault_counts),
        faults_by_session: codes(&validation.session_faults),
        findings: validation.faults.iter().map(finding).collect(),
        findings_not_listed: validation.not_listed,
        meaning: "sound means that the records agree with one another; only truth can tell whether they are right",
    };
    // Nothing in the object can fail to be written: its keys are text, and its numbers whole.
    let mut line = serde_json::to_string(&object).unwrap_or_default();
    line.push('\n');
    line
}

fn summary(counts: &Counts) -> Summary<'_> {
    Summary {
        api_calls: counts.api_calls,
        kernels: counts.kernels,
        memcpys: counts.memcpys,
        memsets: counts.memsets,
        joined_kernels: counts.joined_kernels,
        joined_memcpys: counts.joined_memcpys,
        joined_memsets: counts.joined_memsets,
        activity_without_launch: counts.activity_without_launch,
        launch_without_activity: counts.launch_without_activity,
        before_recording: counts.before_recording,
        operations_after_recording: counts.operations_after_recording,
        after_recording: counts.after_recording,
        failed_calls: counts.failed_calls,
        maybe_without_operation: counts.maybe_without_operation,
        calls_without_operation: counts.calls_without_operation,
        without_operation_due: counts.without_operation_due,
        bound: counts.bound,
        bound_by_two_sources: counts.bound_by_two_sources,
        bound_by_external_only: counts.bound_by_external_only,
        bound_by_callback_only: counts.bound_by_callback_only,
        bound_by_containment: counts.bound_by_containment,
        reachable: counts.reachable,
        unreachable: counts.unreachable,
        reach_unknown: counts.reach_unknown,
        scope_disagrees: counts.scope_disagrees,
        unattributed: counts.unattributed_rows(),
        unattributed_by_reason: &counts.unattributed,
        pending: counts.pending,
        lost: counts.lost,
        wrong: counts.wrong,
        after_retirement: counts.after_retirement,
        epochs: counts.epochs,
        epochs_unknown: counts.epochs_unknown,
        ended_without_gpu_work: counts.ended_without_gpu_work,
        handoffs: counts.handoffs,
        handoffs_under_way: counts.handoffs_under_way,
        handoffs_without_sender: counts.handoffs_without_sender,
        not_decidable: counts.not_decidable,
        operations_without_times: counts.operations_without_times,
        records_dropped: counts.records_dropped,
        duplicate_records: counts.duplicate_records,
        external_of_other_tools: counts.external_of_other_tools,
        external_without_call: counts.external_without_call,
        not_examined: counts.not_examined,
        rows: counts.rows.map(|rows| Rows {
            given: rows.given,
            agreeing: rows.agreeing,
            differing: rows.differing,
            extra: rows.extra,
            missing: rows.missing,
            superseded: rows.superseded,
            other_reason: rows.other_reason,
        }),
    }
}

fn finding(finding: &Finding) -> FindingObject<'_> {
    let lines = finding.evidence.iter().map(|line| LineObject {
        label: line.label,
        text: &line.text,
    });
    FindingObject {
        code: finding.code.code(),
        name: finding.code.name(),
        process: finding.process.0,
        count: finding.count,
        at_ns: finding.at.map(|at| at.0),
        about: about(&finding.about),
        detail: &finding.detail,
        evidence: lines.collect(),
        next: finding.next,
    }
}

fn about(about: &About) -> AboutObject<'_> {
    match about {
        About::Call {
            session,
            correlation,
            api,
            tid,
        } => AboutObject::Call {
            session: *session,
            correlation: correlation.0,
            api,
            tid: *tid,
        },
        About::Operation {
            session,
            correlation,
            name,
        } => AboutObject::Operation {
            session: *session,
            correlation: correlation.0,
            name,
        },
        About::Epoch(epoch) => AboutObject::Epoch {
            id: epoch.id.get(),
            version: epoch.version.get(),
        },
        About::Handoff(handoff) => AboutObject::Handoff { id: handoff.0 },
        About::Thread(thread) => AboutObject::Thread {
            tid: thread.tid,
            generation: thread.generation,
        },
        About::Recording => AboutObject::Recording,
        other => AboutObject::Other {
            text: other.to_string(),
        },
    }
}
