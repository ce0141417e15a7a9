//! Times that cannot be: `L08`, `T01` to `T04`.

use std::collections::BTreeMap;

use lineage_core::fault::FaultCode;
use lineage_core::id::HostNanos;
use lineage_core::observation::{ActivityKind, DeviceSession, Operation};

use crate::derive::{JoinedOperation, LogicalCall, OperationJoin, Process};
use crate::describe::{about_call, about_operation, duration};
use crate::finding::{About, EvidenceLine, Finding, Findings};
use crate::options::Options;
use crate::validation::Counts;

pub(super) fn check(
    process: &Process<'_>,
    options: &Options,
    counts: &mut Counts,
    findings: &mut Findings,
) {
    let check = Check {
        process,
        tolerance: i128::from(options.clock_error_ns),
        ends: process
            .gathered
            .device_sessions
            .iter()
            .filter_map(|seen| match seen.what {
                DeviceSession::Ended { session, at } => Some((*session, *at)),
                _ => None,
            })
            .collect(),
    };
    for operation in &process.operations.operations {
        check.operation(operation, counts, findings);
    }
    check.calls(findings);
    check.host(findings);
}

struct Check<'c, 'a> {
    process: &'c Process<'a>,
    tolerance: i128,
    ends: BTreeMap<u32, HostNanos>,
}

impl Check<'_, '_> {
    fn operation(
        &self,
        joined: &JoinedOperation<'_>,
        counts: &mut Counts,
        findings: &mut Findings,
    ) {
        let operation = joined.seen.what;
        let call = joined
            .join
            .call()
            .map(|call| &self.process.calls.calls[call]);
        let (Some(start), Some(end)) = (operation.start, operation.end) else {
            counts.operations_without_times += 1;
            let missing = match (operation.start, operation.end) {
                (None, None) => "neither its start nor its end was collected",
                (None, _) => "its start was not collected",
                _ => "its end was not collected",
            };
            return self.raise(findings, FaultCode::L08, joined, missing.to_owned());
        };
        if end < start {
            let detail = format!("it ended {} before it began", duration(start.since(end)));
            return self.raise(findings, FaultCode::T02, joined, detail);
        }
        if let (OperationJoin::TooEarly(_), Some(called)) =
            (&joined.join, call.and_then(|call| call.start))
        {
            let detail = format!(
                "it began {} before its call was made",
                duration(called.since(start))
            );
            return self.raise(findings, FaultCode::T01, joined, detail);
        }
        if let Some(detail) = self.jump(operation, call, end) {
            return self.raise(findings, FaultCode::T03, joined, detail);
        }
        if let Some(detail) = self.disorder(operation, call, start) {
            self.raise(findings, FaultCode::T04, joined, detail);
        }
    }

    /// Signs that a clock stepped.
    fn jump(
        &self,
        operation: &Operation,
        call: Option<&LogicalCall<'_>>,
        end: HostNanos,
    ) -> Option<String> {
        if let Some(over) = self.ends.get(&operation.session) {
            let late = end.since(*over);
            if late > self.tolerance {
                return Some(format!(
                    "it ended {} after its session was over",
                    duration(late)
                ));
            }
        }
        let call = call?;
        let returned = call.end?;
        let late = end.since(returned);
        (late > self.tolerance && is_blocking_copy(operation, call)).then(|| {
            format!(
                "the copy ended {} after its blocking call had returned",
                duration(late)
            )
        })
    }

    /// Stages in an order that cannot be.
    fn disorder(
        &self,
        operation: &Operation,
        call: Option<&LogicalCall<'_>>,
        start: HostNanos,
    ) -> Option<String> {
        let stages = [
            ("called", call.and_then(|call| call.start)),
            ("queued", operation.queued),
            ("submitted", operation.submitted),
            ("started", Some(start)),
        ];
        let known: Vec<(&str, HostNanos)> = stages
            .into_iter()
            .filter_map(|(stage, at)| Some((stage, at?)))
            .collect();
        known.windows(2).find_map(|pair| {
            let [(earlier, first), (later, then)] = pair else {
                return None;
            };
            let ahead = first.since(*then);
            (ahead > self.tolerance)
                .then(|| format!("it was {later} {} before it was {earlier}", duration(ahead)))
        })
    }

    fn raise(
        &self,
        findings: &mut Findings,
        code: FaultCode,
        joined: &JoinedOperation<'_>,
        detail: String,
    ) {
        let process = self.process;
        let operation = joined.seen.what;
        findings.raise(code, || {
            let mut evidence = vec![line("operation", process.operation(operation))];
            if let (Some(queued), submitted) = (operation.queued, operation.submitted) {
                let submitted = submitted.map_or_else(|| "?".to_owned(), |at| process.time(at));
                evidence.push(line(
                    "queued",
                    format!("{}, submitted {submitted}", process.time(queued)),
                ));
            }
            if let Some(call) = joined.join.call() {
                evidence.extend(process.call_evidence(call));
            }
            Finding::new(code, process.ordinal, about_operation(operation), detail)
                .at(operation.start)
                .evidence(evidence)
        });
    }

    fn calls(&self, findings: &mut Findings) {
        let process = self.process;
        // Ids rise in order of entry, so on one thread times rise with them.
        let mut before: BTreeMap<(u32, u64), HostNanos> = BTreeMap::new();
        for (number, call, _) in process.calls() {
            let raise = |findings: &mut Findings, code, detail: String| {
                findings.raise(code, || {
                    Finding::new(code, process.ordinal, about_call(call), detail)
                        .at(call.start)
                        .evidence(process.call_evidence(number))
                });
            };
            let records = call
                .apis
                .iter()
                .map(|seen| (seen.what.start, seen.what.end));
            let callbacks = call.callbacks.iter();
            let callbacks = callbacks.map(|seen| (Some(seen.what.entered), seen.what.exited));
            let early = records.chain(callbacks).find_map(|(start, end)| {
                let early = start?.since(end?);
                (early > 0).then_some(early)
            });
            if let Some(early) = early {
                raise(
                    findings,
                    FaultCode::T02,
                    format!("it returned {} before it was made", duration(early)),
                );
                continue;
            }
            // Id 0 is none, and says nothing of order.
            let has_an_id = call.ids.first().is_some_and(|&id| id as u32 != 0);
            let Some(start) = call.start.filter(|_| !call.reused && has_an_id) else {
                continue;
            };
            let earlier = before.insert((call.session, call.tid), start);
            let back = earlier.map_or(0, |earlier| earlier.since(start));
            if back > 0 {
                let detail = format!(
                    "it was made {} before the thread's call of a smaller id: its clock went back",
                    duration(back)
                );
                raise(findings, FaultCode::T03, detail);
            }
        }
    }

    /// Lineage's own records.
    fn host(&self, findings: &mut Findings) {
        let process = self.process;
        let raise = |findings: &mut Findings, code, about: About, at, detail: String| {
            findings.raise(code, || {
                Finding::new(code, process.ordinal, about, detail).at(Some(at))
            });
        };
        for seen in &process.gathered.scopes {
            let scope = seen.what;
            let early = scope.entered.since(scope.exited);
            if early > 0 {
                let detail = format!(
                    "its scope {} ended {} before it was entered",
                    scope.token.0,
                    duration(early)
                );
                raise(
                    findings,
                    FaultCode::T02,
                    About::Thread(scope.thread),
                    scope.entered,
                    detail,
                );
            }
        }
        for seen in &process.gathered.flushes {
            let flush = seen.what;
            let early = flush.asked.since(flush.returned);
            if early > 0 {
                let detail = format!(
                    "a flush returned {} before it was asked for",
                    duration(early)
                );
                raise(
                    findings,
                    FaultCode::T02,
                    About::Recording,
                    flush.asked,
                    detail,
                );
            }
        }
        let ends = process
            .gathered
            .retired
            .iter()
            .map(|seen| (seen.what.epoch, seen.what.at, "ended"));
        let steps = process
            .gathered
            .stepped
            .iter()
            .map(|seen| (seen.what.epoch, seen.what.at, "stepped"));
        for (epoch, at, what) in ends.chain(steps) {
            let declared = process
                .epochs
                .declaration(epoch.id)
                .map(|declared| declared.at);
            let early = declared.map_or(0, |declared| declared.since(at));
            if early > 0 {
                let detail = format!("it {what} {} before it was declared", duration(early));
                raise(findings, FaultCode::T04, About::Epoch(epoch), at, detail);
            }
        }
    }
}

fn line(label: &'static str, text: String) -> EvidenceLine {
    EvidenceLine { label, text }
}

/// Whether an operation is a copy whose call returns only when it has ended: a synchronous copy
/// to the host, or from pinned host memory. A copy from pageable memory may end after its call:
/// the driver has staged it.
fn is_blocking_copy(operation: &Operation, call: &LogicalCall<'_>) -> bool {
    let api = call
        .api()
        .and_then(|api| api.name.as_deref())
        .unwrap_or_default();
    let synchronous = api.contains("Memcpy") && !api.contains("Async") && !api.contains("Peer");
    if operation.kind != ActivityKind::Copy || !synchronous {
        return false;
    }
    let kind = operation
        .name
        .as_deref()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let pinned = kind.contains("pinned");
    let to_host = kind.contains("dtoh")
        || kind.contains("device -> pinned")
        || kind.contains("device -> pageable");
    to_host || (pinned && kind.contains("htod"))
}
