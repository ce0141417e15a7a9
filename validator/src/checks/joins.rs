//! Calls and operations: `L01`, `L02`, `L03`, `W01` to `W05`.

use lineage_core::fault::FaultCode;
use lineage_core::id::{Attribution, LaunchEpoch, PackedEpoch};
use lineage_core::observation::{ActivityKind, OperationsDue};

use crate::derive::{CallBinding, Childless, Derived, LogicalCall, OperationJoin, Orphan, Process};
use crate::describe::{about_call, about_operation, attribution, duration};
use crate::finding::{About, EvidenceLine, Finding, Findings};
use crate::options::Options;
use crate::validation::{Counts, unattributed_name};

/// An epoch that was opened on a thread this long before a call without one was likely meant for it.
const SHORTLY_NS: i128 = 1_000_000_000;

/// Of each call, what its rows count for already: a row is lost once, and wrong once.
#[derive(Debug, Default)]
pub(super) struct Judged {
    pub(super) lost: Vec<bool>,
    pub(super) wrong: Vec<bool>,
}

pub(super) fn check(
    process: &Process<'_>,
    options: &Options,
    counts: &mut Counts,
    findings: &mut Findings,
) -> Judged {
    let mut check = Check {
        process,
        options,
        counts,
        findings,
    };
    let judged = check.calls();
    check.operations();
    check.reused_ids();
    judged
}

struct Check<'c, 'a> {
    process: &'c Process<'a>,
    options: &'c Options,
    counts: &'c mut Counts,
    findings: &'c mut Findings,
}

impl<'c, 'a> Check<'c, 'a> {
    fn calls(&mut self) -> Judged {
        let process = self.process;
        self.counts.duplicate_records += process.calls.duplicates + process.operations.duplicates;
        self.counts.external_of_other_tools += process.externals.foreign_kind;
        self.counts.external_without_call += process.externals.unplaced.len() as u64;
        self.counts.api_calls += process.gathered.apis.len() as u64;
        let mut judged = Judged::default();
        for (number, call, binding) in process.calls() {
            self.counts.calls += 1;
            let lost = self.binding(number, call, binding);
            let wrong = self.wrong_binding(number, call, binding);
            self.childless(number, call, lost, wrong);
            judged.lost.push(lost);
            judged.wrong.push(wrong);
        }
        judged
    }

    /// Counts a call's binding. Whether its epoch is lost.
    fn binding(
        &mut self,
        number: usize,
        call: &LogicalCall<'_>,
        binding: &CallBinding<'_>,
    ) -> bool {
        // A row is an operation, or a call that has none and asked for work.
        let operations = self.process.operations_of[number].len() as u64;
        let asked = call.due() != OperationsDue::None;
        let rows = if asked { operations.max(1) } else { operations };
        let counts = &mut *self.counts;
        match binding.derived {
            Derived::Bound(_) => {
                counts.bound += rows;
                *match binding.sources.reachable {
                    Some(true) => &mut counts.reachable,
                    Some(false) => &mut counts.unreachable,
                    None => &mut counts.reach_unknown,
                } += rows;
                *match binding.sources.spoke() {
                    (true, true) => &mut counts.bound_by_two_sources,
                    (true, false) => &mut counts.bound_by_external_only,
                    (false, true) => &mut counts.bound_by_callback_only,
                    (false, false) => &mut counts.bound_by_containment,
                } += rows;
                self.disagreeing_scope(binding, rows);
            }
            Derived::Disputed(..) => {}
            Derived::Unattributed(why) => {
                *counts
                    .unattributed
                    .entry(unattributed_name(why))
                    .or_default() += rows;
            }
            Derived::Lost | Derived::Unsettled => {}
        }
        let lost = binding.is_launch_without_epoch(call);
        if lost {
            self.counts.lost += rows;
            let process = self.process;
            let finding = || {
                let boundary = call.in_boundary() == Some(true);
                let place = if boundary {
                    "inside a launch boundary"
                } else {
                    "on a thread that uses lineage"
                };
                let detail = format!("a launch {place} belongs to no epoch");
                let mut finding = about(process, number, FaultCode::L01, detail);
                finding
                    .evidence
                    .splice(0..0, let_go(process, call, binding));
                finding
            };
            self.findings.raise(FaultCode::L01, finding);
        }
        lost
    }

    /// A scope that names another epoch than what was observed: inferred, so it is only counted.
    fn disagreeing_scope(&mut self, binding: &CallBinding<'_>, rows: u64) {
        let scope = binding.sources.containment.map(|scope| scope.attribution);
        if let (Some(scope), Derived::Bound(epoch)) = (scope, binding.derived)
            && scope != Attribution::Epoch(epoch)
        {
            self.counts.scope_disagrees += rows;
        }
    }

    /// `W01`, `W02`, `W03`, `W05`. Whether one of them was raised.
    fn wrong_binding(
        &mut self,
        number: usize,
        call: &LogicalCall<'_>,
        binding: &CallBinding<'_>,
    ) -> bool {
        if call.is_internal() {
            return false; // It is nobody's, whatever was current around it.
        }
        let process = self.process;
        let before = self.findings.raised();
        if let Derived::Disputed(one, other) = binding.derived {
            let (one, other) = (attribution(one), attribution(other));
            let detail = || format!("one observed source names {one}, another names {other}");
            let finding = || about(process, number, FaultCode::W03, detail());
            self.findings.raise(FaultCode::W03, finding);
        }
        let scope = binding.sources.containment;
        if let (Some(scope), false) = (scope, call.callbacks.is_empty())
            // One that was entered in no task may have been entered before tasks could be told apart.
            && scope.task.is_some()
            && scope.task != call.task()
            && scope.attribution.epoch().is_some()
        {
            let task = |task: Option<lineage_core::id::TaskId>| {
                task.map_or_else(|| "no task".to_owned(), |task| format!("task {}", task.0))
            };
            let detail = || {
                let (entered, called) = (task(scope.task), task(call.task()));
                format!("its scope was entered by {entered}, and the call was made by {called}")
            };
            let finding = || about(process, number, FaultCode::W02, detail());
            self.findings.raise(FaultCode::W02, finding);
        }
        self.foreign_ids(number, call);
        for epoch in named_epochs(binding) {
            self.lifetime(number, call, binding, epoch);
        }
        let wrong = self.findings.raised() > before;
        if wrong {
            self.counts.wrong += (self.process.operations_of[number].len() as u64).max(1);
        }
        wrong
    }

    fn foreign_ids(&mut self, number: usize, call: &LogicalCall<'_>) {
        let foreign = call.externals.iter().map(|external| external.external_id);
        let mut foreign = foreign
            .filter(|&id| matches!(PackedEpoch::from_bits(id).unpack(), Attribution::Foreign(_)));
        let process = self.process;
        if let Some(id) = foreign.next() {
            let detail =
                || format!("CUPTI recorded {id:#x} under our kind, which is no epoch of ours");
            let finding = || about(process, number, FaultCode::W05, detail());
            self.findings.raise(FaultCode::W05, finding);
        }
    }

    /// Whether the epoch was there when the call was made.
    fn lifetime(
        &mut self,
        number: usize,
        call: &LogicalCall<'_>,
        binding: &CallBinding<'_>,
        epoch: LaunchEpoch,
    ) {
        let process = self.process;
        let Some((entered, _)) = call.interval() else {
            return;
        };
        let Some(born) = process.epochs.born(epoch) else {
            let undecidable = process.host_records_missing(self.options);
            if undecidable || !binding.settled || !process.has_host_records() {
                self.counts.epochs_unknown += 1;
                return;
            }
            let finding = || {
                let known = process.epochs.declaration(epoch.id).is_some();
                let never = if known {
                    "no step or retry made that version"
                } else {
                    "it was never declared"
                };
                about(
                    process,
                    number,
                    FaultCode::W05,
                    format!("the call names epoch {epoch}, but {never}"),
                )
            };
            self.findings.raise(FaultCode::W05, finding);
            return;
        };
        if entered < born {
            let finding = || {
                let early = duration(born.since(entered));
                let detail = format!("the call was made {early} before epoch {epoch} existed");
                about(process, number, FaultCode::W01, detail)
            };
            self.findings.raise(FaultCode::W01, finding);
        }
        let retired = process.epochs.retirement(epoch.id);
        if retired.is_some_and(|retired| retired.what.at < entered) {
            self.counts.after_retirement += 1;
        }
    }

    fn childless(&mut self, number: usize, call: &LogicalCall<'_>, epoch_lost: bool, wrong: bool) {
        let process = self.process;
        let Some(why) = process.childless(number) else {
            return;
        };
        let counts = &mut *self.counts;
        let slot = match why {
            Childless::NoneDue => {
                counts.without_operation_due += 1;
                return;
            }
            Childless::MaybeNone => &mut counts.maybe_without_operation,
            Childless::Failed => &mut counts.failed_calls,
            Childless::MaybeCaptured => &mut counts.maybe_captured,
            Childless::NotCollected => &mut counts.operations_not_collected,
            Childless::AfterRecording => &mut counts.after_recording,
            Childless::Pending => &mut counts.pending,
            Childless::Lost => &mut counts.calls_without_operation,
        };
        *slot += 1;
        counts.launch_without_activity += 1;
        if why == Childless::Lost {
            // A row is lost once, however much of it is.
            if !epoch_lost && !wrong {
                counts.lost += 1;
            }
            let finding = || {
                let detail = format!(
                    "{} asked for work, and no operation of it was recorded",
                    crate::describe::api(call.api())
                );
                about(process, number, FaultCode::L03, detail)
            };
            self.findings.raise(FaultCode::L03, finding);
        }
    }

    fn operations(&mut self) {
        let process = self.process;
        for operation in &process.operations.operations {
            let what = operation.seen.what;
            let counts = &mut *self.counts;
            let (all, joined) = match what.kind {
                ActivityKind::Copy => (&mut counts.memcpys, &mut counts.joined_memcpys),
                ActivityKind::Set => (&mut counts.memsets, &mut counts.joined_memsets),
                ActivityKind::Graph => (&mut counts.graphs, &mut counts.joined_graphs),
                _ => (&mut counts.kernels, &mut counts.joined_kernels),
            };
            *all += 1;
            match &operation.join {
                OperationJoin::Call(_) | OperationJoin::TooEarly(_) => *joined += 1,
                OperationJoin::Uncorrelated => {
                    counts.activity_without_launch += 1;
                    counts.asked_for_by_no_call += 1;
                    let internal = lineage_core::row::Unattributed::InternalLaunch;
                    *counts
                        .unattributed
                        .entry(unattributed_name(internal))
                        .or_default() += 1;
                }
                &OperationJoin::Ambiguous { like, calls } => {
                    counts.activity_without_launch += 1;
                    counts.wrong += 1;
                    let finding = || {
                        let detail = format!(
                            "{calls} calls have its id, and its time does not tell which asked for it"
                        );
                        let mut evidence = vec![line("operation", process.operation(what))];
                        evidence.extend(process.call_evidence(like));
                        Finding::new(
                            FaultCode::W04,
                            process.ordinal,
                            about_operation(what),
                            detail,
                        )
                        .at(what.start)
                        .evidence(evidence)
                    };
                    self.findings.raise(FaultCode::W04, finding);
                }
                OperationJoin::NoCall => {
                    counts.activity_without_launch += 1;
                    match process.orphan(operation) {
                        Some(Orphan::BeforeRecording) => counts.before_recording += 1,
                        Some(Orphan::NotCollected) => counts.calls_not_collected += 1,
                        Some(Orphan::AfterRecording) => counts.operations_after_recording += 1,
                        Some(Orphan::Lost) => {
                            counts.lost += 1;
                            let finding = || orphan(process, what);
                            self.findings.raise(FaultCode::L02, finding);
                        }
                        Some(Orphan::Pending) | None => counts.pending += 1,
                    }
                }
            }
        }
    }

    /// `W04`: ids that more than one call has, or a call of one operation that has several.
    fn reused_ids(&mut self) {
        let process = self.process;
        let mut before: Option<(u32, Option<u64>)> = None;
        for (number, call, _) in process.calls() {
            let id = (call.session, call.ids.first().copied());
            if call.reused && before != Some(id) {
                self.counts.wrong += 1;
                let detail =
                    || "other calls have the same correlation id without a wrap between".to_owned();
                let finding = || about(process, number, FaultCode::W04, detail());
                self.findings.raise(FaultCode::W04, finding);
            }
            before = Some(id);
            let kernels = process.operations_of[number].iter().filter(|&&operation| {
                let what = process.operations.operations[operation].seen.what;
                what.kind == ActivityKind::Kernel && what.graph_node.is_none()
            });
            let kernels = kernels.count();
            if call.due() == OperationsDue::One && kernels > call.parts() {
                self.counts.wrong += 1;
                let detail = || {
                    let due = call.parts();
                    format!(
                        "the call has at most {due} operations, and {kernels} kernels bear its id"
                    )
                };
                let finding = || about(process, number, FaultCode::W04, detail());
                self.findings.raise(FaultCode::W04, finding);
            }
        }
        for record in &process.calls.unplaced {
            self.counts.wrong += 1;
            let finding = || {
                let about = About::Call {
                    session: record.session,
                    correlation: record.correlation,
                    api: crate::describe::api(Some(&record.api)),
                    tid: record.tid,
                };
                let detail = "several calls have its id, and its record has no time".to_owned();
                Finding::new(FaultCode::W04, process.ordinal, about, detail)
            };
            self.findings.raise(FaultCode::W04, finding);
        }
    }
}

/// The epochs that a call's sources name, each once.
fn named_epochs(binding: &CallBinding<'_>) -> Vec<LaunchEpoch> {
    let sources = &binding.sources;
    let observed = sources.external.iter().chain(&sources.callback);
    let mut named: Vec<LaunchEpoch> = observed.filter_map(|of| of.epoch()).collect();
    if let (Derived::Bound(epoch), true) = (binding.derived, named.is_empty()) {
        named.push(epoch);
    }
    named.sort_unstable();
    named.dedup();
    named
}

fn line(label: &'static str, text: String) -> EvidenceLine {
    EvidenceLine { label, text }
}

fn orphan(process: &Process<'_>, operation: &lineage_core::observation::Operation) -> Finding {
    let detail = "it was executed, and no call that asked for it was recorded".to_owned();
    let mut evidence = vec![line("operation", process.operation(operation))];
    let of_call = |external: &&&lineage_core::observation::ExternalRecord| {
        (external.session, external.correlation) == (operation.session, operation.correlation)
    };
    if let Some(external) = process.externals.unplaced.iter().find(of_call) {
        let named = attribution(PackedEpoch::from_bits(external.external_id).unpack());
        evidence.push(line(
            "external",
            format!("{named}, by a record of the lost call"),
        ));
    }
    Finding::new(
        FaultCode::L02,
        process.ordinal,
        about_operation(operation),
        detail,
    )
    .at(operation.start)
    .evidence(evidence)
}

/// The epoch that was last opened on a call's thread shortly before it.
fn let_go(
    process: &Process<'_>,
    call: &LogicalCall<'_>,
    binding: &CallBinding<'_>,
) -> Option<EvidenceLine> {
    let (thread, called) = binding.thread.zip(call.start)?;
    let received = process.gathered.received.iter().map(|seen| seen.what);
    let here = received.filter(|received| {
        let before = called.since(received.at);
        received.thread == thread && (0..=SHORTLY_NS).contains(&before)
    });
    let epoch = here.max_by_key(|received| received.at)?.handoff.epoch;
    let text = format!(
        "epoch {epoch} was opened on this thread and let go before this call: keep it and launch inside \
         `epoch.launch(..)`"
    );
    Some(line("opened", text))
}

/// A finding about a call, with all that is known of the call and of its epochs.
fn about(process: &Process<'_>, number: usize, code: FaultCode, detail: String) -> Finding {
    let (call, binding) = (&process.calls.calls[number], &process.bindings[number]);
    let mut evidence = process.call_evidence(number);
    for epoch in named_epochs(binding) {
        evidence.extend(process.epoch_evidence(epoch));
    }
    Finding::new(code, process.ordinal, about_call(call), detail)
        .at(call.start)
        .evidence(evidence)
}
