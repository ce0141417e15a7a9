//! The JSON object. Its fields are stable: `schema` rises when one changes its meaning or goes.

use std::collections::BTreeMap;

use lineage_core::fault::FaultCode;
use lineage_validator::{About, Counts, Finding};
use serde::Serialize;

use super::examine::{Examined, Origin, Process};
use super::import::Replays;
use super::{advice, joins};
use crate::input::Read;
use crate::text::json_line;

/// Schema of the object.
pub(super) const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Object<'a> {
    schema: u32,
    file: String,
    format: &'static str,
    ledger: Option<LedgerObject<'a>>,
    import: Option<ImportObject<'a>>,
    sound: bool,
    operations_with_epoch: u64,
    nothing_joined_because: Option<String>,
    no_device_activity: bool,
    summary: Summary<'a>,
    processes: Vec<ProcessObject<'a>>,
    graph_replays: Option<Replays>,
    faults: BTreeMap<&'static str, u64>,
    faults_by_session: BTreeMap<&'static str, u64>,
    findings: Vec<FindingObject<'a>>,
    findings_not_listed: u64,
    meaning: &'static str,
}

#[derive(Serialize)]
struct ImportObject<'a> {
    recorder: String,
    version: Option<&'a str>,
    candidate_epochs: bool,
    skipped: BTreeMap<&'static str, u64>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct ProcessObject<'a> {
    process: u32,
    pid: Option<u64>,
    rank: Option<u32>,
    name: Option<&'a str>,
    summary: Summary<'a>,
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
    calls: u64,
    kernels: u64,
    memcpys: u64,
    memsets: u64,
    graphs: u64,
    joined_kernels: u64,
    joined_memcpys: u64,
    joined_memsets: u64,
    joined_graphs: u64,
    activity_without_launch: u64,
    launch_without_activity: u64,
    asked_for_by_no_call: u64,
    before_recording: u64,
    operations_after_recording: u64,
    calls_not_collected: u64,
    after_recording: u64,
    failed_calls: u64,
    maybe_without_operation: u64,
    maybe_captured: u64,
    operations_not_collected: u64,
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
    graph_launches: u64,
    templates_known: u64,
    templates_unknown_by_reason: &'a BTreeMap<&'static str, u64>,
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

/// One line with the object of a validated file.
pub(super) fn object(examined: &Examined) -> String {
    let validation = &examined.whole;
    let codes = |counts: &BTreeMap<FaultCode, u64>| {
        counts
            .iter()
            .map(|(code, count)| (code.code(), *count))
            .collect()
    };
    let (ledger, import) = match &examined.origin {
        Origin::Ledger { read, .. } => (Some(ledger_object(read)), None),
        Origin::Import { holdings, epochs } => {
            let skipped = holdings.skipped.iter();
            let import = ImportObject {
                recorder: holdings.recorder.to_string(),
                version: holdings.version.as_deref(),
                candidate_epochs: *epochs,
                skipped: skipped.map(|(why, count)| (why.name(), *count)).collect(),
                notes: &holdings.notes,
            };
            (None, Some(import))
        }
    };
    let findings = validation
        .faults
        .iter()
        .map(|of| finding(of, advice::next(examined, of)));
    json_line(&Object {
        schema: SCHEMA,
        file: examined.file.display().to_string(),
        format: examined.format.name(),
        ledger,
        import,
        sound: validation.is_sound(),
        operations_with_epoch: validation.operations_with_epoch(),
        nothing_joined_because: joins::none(examined),
        no_device_activity: joins::no_device_activity(examined).is_some(),
        summary: summary(&validation.counts),
        processes: examined.processes.iter().map(process).collect(),
        graph_replays: examined.replays,
        faults: codes(&validation.fault_counts),
        faults_by_session: codes(&validation.session_faults),
        findings: findings.collect(),
        findings_not_listed: validation.not_listed,
        meaning: "sound means that the records agree with one another; only truth can tell whether they are right",
    })
}

fn ledger_object(read: &Read) -> LedgerObject<'_> {
    let (header, summary) = (&read.header, &read.summary);
    LedgerObject {
        schema: header.schema,
        process: header.process.to_string(),
        service: &header.service,
        writer: &header.writer,
        complete: read.complete,
        last_line_truncated: summary.last_line_truncated,
        observations: summary.read.observations,
        rows: summary.read.rows,
        faults: summary.read.faults,
        not_written: summary.not_written,
        skipped: &summary.unknown_kinds,
    }
}

fn process(process: &Process) -> ProcessObject<'_> {
    ProcessObject {
        process: process.ordinal.0,
        pid: process.pid,
        rank: process.rank,
        name: process.name.as_deref(),
        summary: summary(&process.counts),
    }
}

fn summary(counts: &Counts) -> Summary<'_> {
    Summary {
        api_calls: counts.api_calls,
        calls: counts.calls,
        kernels: counts.kernels,
        memcpys: counts.memcpys,
        memsets: counts.memsets,
        graphs: counts.graphs,
        joined_kernels: counts.joined_kernels,
        joined_memcpys: counts.joined_memcpys,
        joined_memsets: counts.joined_memsets,
        joined_graphs: counts.joined_graphs,
        activity_without_launch: counts.activity_without_launch,
        launch_without_activity: counts.launch_without_activity,
        asked_for_by_no_call: counts.asked_for_by_no_call,
        before_recording: counts.before_recording,
        operations_after_recording: counts.operations_after_recording,
        calls_not_collected: counts.calls_not_collected,
        after_recording: counts.after_recording,
        failed_calls: counts.failed_calls,
        maybe_without_operation: counts.maybe_without_operation,
        maybe_captured: counts.maybe_captured,
        operations_not_collected: counts.operations_not_collected,
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
        graph_launches: counts.graph_launches,
        templates_known: counts.templates_known,
        templates_unknown_by_reason: &counts.templates_unknown,
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

fn finding<'f>(finding: &'f Finding, next: &'f str) -> FindingObject<'f> {
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
        next,
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
