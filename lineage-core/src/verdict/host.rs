//! The time before work was given to the device: what its thread did.

use super::history::Histories;
use super::life::{Doubt, Expected, Lateness, Segment, Stage, Verdict};
use super::scene::Scene;
use super::threads::{Ran, SCHEDULER, Stretch, Thread, cut};
use crate::evidence::TimeSource;
use crate::id::{Attribution, HostNanos, LaunchEpoch};
use crate::readiness::{Partials, Role};
use crate::row::{Binding, Row};

/// Overheads of a thread, up to a call's end, among which those inside of it are looked for.
const OVERHEADS: usize = 256;

/// A stretch of host time in one stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostPiece {
    pub(super) from: HostNanos,
    pub(super) to: HostNanos,
    pub(super) stage: Stage,
    pub(super) next: Stage,
    pub(super) source: TimeSource,
}

/// What tells causes on the host apart.
pub(super) struct Host<'h, 'a> {
    pub(super) scene: &'h Scene<'a>,
    pub(super) histories: &'h mut Histories,
}

impl Host<'_, '_> {
    /// Splits a stretch by what it went into; `perhaps_covered` says that earlier work of the stream
    /// may have been at the device meanwhile. With a partial set of dependencies only what needs no
    /// explanation is told: something that is not recorded may have held the work back meanwhile.
    pub(super) fn verdicts(
        &mut self,
        row: &Row,
        piece: HostPiece,
        partial: Partials,
        perhaps_covered: bool,
    ) -> Vec<Segment> {
        let mut out = Vec::new();
        let mut push = |from, to, verdict, source| {
            out.push(Segment {
                from,
                to,
                stage: piece.stage,
                source,
                verdict,
            });
        };
        if piece.stage == Stage::Api
            && let Some(typical_ns) = self.usual_call(row)
        {
            let verdict = Verdict::Expected(Expected::UsualCall { typical_ns });
            push(piece.from, piece.to, verdict, Some(piece.source));
            return out;
        }
        if !partial.is_empty() {
            let verdict = Verdict::Unresolved(Doubt::Critical(partial));
            push(piece.from, piece.to, verdict, None);
            return out;
        }
        if perhaps_covered {
            let verdict = Verdict::Unresolved(Doubt::PerhapsCovered);
            push(piece.from, piece.to, verdict, None);
            return out;
        }
        for part in self.claims(row, piece) {
            let (verdict, source) = part.of;
            push(part.from, part.to, verdict, source);
        }
        out
    }

    /// The median of a call's kind, if it was no longer than usual.
    fn usual_call(&mut self, row: &Row) -> Option<u64> {
        let (usual, took) = self.call_history(row)?;
        (took <= usual.limit_ns).then_some(usual.median_ns)
    }

    fn call_history(&mut self, row: &Row) -> Option<(super::history::Usual, u64)> {
        let call = row.call.as_ref()?;
        let enter = row.stages.api_enter.at()?;
        let exit = row.stages.api_exit.at()?;
        let usual = self.histories.usual_call(call.api.name.as_deref()?)?;
        Some((usual, exit.0.checked_sub(enter.0)?))
    }

    fn claims(&mut self, row: &Row, piece: HostPiece) -> Vec<Claim> {
        let marks = self.scene.marks_of(row);
        let ready = marks.ready.is_some();
        let (from, to) = (piece.from, piece.to);
        let one = |verdict, source| vec![claim(from, to, verdict, source)];
        match piece.stage {
            Stage::Declared => {
                if marks.ready == Some(to) {
                    return one(Verdict::ApplicationLate, Some(TimeSource::Application));
                }
                if marks.batch_formed == Some(to) {
                    return one(Verdict::BatchWait, Some(TimeSource::Application));
                }
                one(Verdict::Unresolved(Doubt::NotMarkedReady), None)
            }
            Stage::Ready | Stage::BatchFormed | Stage::HandedOver => {
                if piece.stage == Stage::Ready && marks.batch_formed == Some(to) {
                    return one(Verdict::BatchWait, Some(TimeSource::Application));
                }
                if !ready && piece.stage != Stage::BatchFormed {
                    return one(Verdict::Unresolved(Doubt::NotMarkedReady), None);
                }
                match (piece.stage, piece.next) {
                    // The thread that launches did not have it yet.
                    (Stage::Ready | Stage::BatchFormed, Stage::HandedOver) => {
                        one(Verdict::Unresolved(Doubt::NotHandedOver), None)
                    }
                    // It had it all along.
                    (Stage::Ready | Stage::BatchFormed, _) => self.in_scope(row, piece),
                    _ => self.taken_late(row, piece),
                }
            }
            Stage::Scope => self.in_scope(row, piece),
            Stage::Api => self.in_call(row, piece),
            _ => one(Verdict::SubmitWait, Some(piece.source)),
        }
    }

    fn thread(&self, row: &Row) -> Option<&Thread> {
        self.scene.threads.get(row.call.as_ref()?.tid)
    }

    /// Ready work that its thread took later: what the thread did instead.
    fn taken_late(&self, row: &Row, piece: HostPiece) -> Vec<Claim> {
        let Some(thread) = self.thread(row) else {
            let verdict = Verdict::Unresolved(Doubt::ThreadUnknown);
            return vec![claim(piece.from, piece.to, verdict, None)];
        };
        let own = match row.binding {
            Binding::Bound(epoch) => Some(epoch),
            _ => None,
        };
        let mut out = Vec::new();
        for part in thread.ran(piece.from, piece.to) {
            if let Some(lateness) = off(part.of) {
                let verdict = Verdict::SubmitterLate(lateness);
                out.push(claim(part.from, part.to, verdict, Some(SCHEDULER)));
                continue;
            }
            for scope in busy_with(thread, own, part.from, part.to) {
                let (verdict, source) = match scope.of {
                    Some(other) => (
                        Verdict::SubmitterLate(Lateness::BusyWith(other)),
                        Some(TimeSource::RuntimeHook),
                    ),
                    None => (
                        Verdict::SubmitterLate(Lateness::Unknown),
                        Some(piece.source),
                    ),
                };
                out.push(claim(scope.from, scope.to, verdict, source));
            }
        }
        out
    }

    /// On the thread, outside of the call that launches.
    fn in_scope(&self, row: &Row, piece: HostPiece) -> Vec<Claim> {
        let Some(thread) = self.thread(row) else {
            let verdict = Verdict::Unresolved(Doubt::ThreadUnknown);
            return vec![claim(piece.from, piece.to, verdict, None)];
        };
        let calls = self.calls(thread, piece);
        let mut out = Vec::new();
        for part in cut(&calls, piece.from, piece.to, None) {
            let role = part.of.map(|at| self.scene.calls[at].role);
            let function = part.of.and_then(|at| self.scene.name_of_call(at).cloned());
            let verdict = match role {
                Some(role) if role.blocks_thread() => Verdict::HostSyncWait { function },
                Some(Role::Allocation) => Verdict::Allocation { function },
                _ => {
                    for ran in thread.ran(part.from, part.to) {
                        let (verdict, source) = match ran.of {
                            Ran::Running => (Verdict::HostWork, Some(SCHEDULER)),
                            Ran::Unknown => (Verdict::Unresolved(Doubt::ThreadUnknown), None),
                            of => {
                                let lateness = off(of).unwrap_or(Lateness::OffProcessor);
                                (Verdict::SubmitterLate(lateness), Some(SCHEDULER))
                            }
                        };
                        out.push(claim(ran.from, ran.to, verdict, source));
                    }
                    continue;
                }
            };
            out.push(claim(
                part.from,
                part.to,
                verdict,
                Some(TimeSource::CuptiApi),
            ));
        }
        out
    }

    /// Inside the call, which took longer than such calls do, or of which there are too few.
    fn in_call(&mut self, row: &Row, piece: HostPiece) -> Vec<Claim> {
        let history = self.call_history(row);
        let typical_ns = history.map(|(usual, _)| usual.median_ns);
        let Some(thread) = self.thread(row) else {
            let verdict = Verdict::Unresolved(Doubt::ThreadUnknown);
            return vec![claim(piece.from, piece.to, verdict, None)];
        };
        let begun = thread.overheads.partition_point(|of| of.from < piece.to);
        let mut named: Vec<Stretch<Option<_>>> = thread.overheads[..begun]
            .iter()
            .rev()
            .take(OVERHEADS)
            .filter(|of| of.to > piece.from)
            .map(|of| Stretch {
                from: of.from,
                to: of.to,
                of: Some(of.of),
            })
            .collect();
        named.reverse();
        let mut out = Vec::new();
        for part in cut(&named, piece.from, piece.to, None) {
            if part.of.is_some() {
                let verdict = Verdict::ApiSlow {
                    cause: part.of,
                    typical_ns,
                };
                let source = Some(TimeSource::CuptiOverhead);
                out.push(claim(part.from, part.to, verdict, source));
                continue;
            }
            for ran in thread.ran(part.from, part.to) {
                let slow = Verdict::ApiSlow {
                    cause: None,
                    typical_ns,
                };
                let (verdict, source) = match (ran.of, typical_ns) {
                    (Ran::Preempted, _) => {
                        (Verdict::SubmitterLate(Lateness::Preempted), Some(SCHEDULER))
                    }
                    // A call may rightly sleep: for a lock of the driver's, or room in a queue.
                    (Ran::Blocked | Ran::Running, Some(_)) if named.is_empty() => {
                        (slow, Some(SCHEDULER))
                    }
                    // The overhead explains the call, and the rest of it is usual.
                    (Ran::Blocked | Ran::Running, Some(typical_ns)) => (
                        Verdict::Expected(Expected::UsualCall { typical_ns }),
                        Some(piece.source),
                    ),
                    (_, Some(typical_ns)) => {
                        (Verdict::Unresolved(Doubt::LongCall { typical_ns }), None)
                    }
                    (_, None) => (Verdict::Unresolved(Doubt::NoHistory), None),
                };
                out.push(claim(ran.from, ran.to, verdict, source));
            }
        }
        leave_usual(&mut out, typical_ns, piece.source);
        out
    }

    /// The thread's calls within a stretch, by number.
    fn calls(&self, thread: &Thread, piece: HostPiece) -> Vec<Stretch<Option<usize>>> {
        let all = &self.scene.calls;
        let calls = &thread.calls;
        let first = calls.partition_point(|&at| all[at].exit <= piece.from);
        calls[first..]
            .iter()
            .take_while(|&&at| all[at].enter < piece.to)
            .map(|&at| Stretch {
                from: all[at].enter,
                to: all[at].exit,
                of: Some(at),
            })
            .collect()
    }
}

type Claim = Stretch<(Verdict, Option<TimeSource>)>;

fn claim(from: HostNanos, to: HostNanos, verdict: Verdict, source: Option<TimeSource>) -> Claim {
    Stretch {
        from,
        to,
        of: (verdict, source),
    }
}

/// Of a slow call, what such calls take anyway is as expected. Where in the call that was is not
/// known: it is told at its end.
fn leave_usual(claims: &mut Vec<Claim>, typical_ns: Option<u64>, source: TimeSource) {
    let Some(typical_ns) = typical_ns else { return };
    let Some(last) = claims.last_mut() else {
        return;
    };
    if !matches!(last.of.0, Verdict::ApiSlow { cause: None, .. }) {
        return;
    }
    let length = last.to.0.saturating_sub(last.from.0);
    let (from, to) = (HostNanos(last.to.0 - typical_ns.min(length)), last.to);
    last.to = from;
    let usual = Verdict::Expected(Expected::UsualCall { typical_ns });
    claims.push(claim(from, to, usual, Some(source)));
}

/// How a thread that is off its processor is late; `None` if it ran or that is not known.
const fn off(ran: Ran) -> Option<Lateness> {
    match ran {
        Ran::Preempted => Some(Lateness::Preempted),
        Ran::Blocked => Some(Lateness::Blocked),
        Ran::Off => Some(Lateness::OffProcessor),
        Ran::Running | Ran::Unknown => None,
    }
}

/// Cuts a stretch by the epochs in whose scopes the thread was, others than its own.
fn busy_with(
    thread: &Thread,
    own: Option<LaunchEpoch>,
    from: HostNanos,
    to: HostNanos,
) -> Vec<Stretch<Option<LaunchEpoch>>> {
    let mut found: Vec<Stretch<Option<LaunchEpoch>>> = Vec::new();
    let begun = thread.scopes.partition_point(|scope| scope.from < to);
    for scope in thread.scopes[..begun].iter().rev().take(256) {
        if let Attribution::Epoch(epoch) = scope.of
            && scope.to > from
            && own.is_none_or(|own| own.id != epoch.id)
        {
            found.push(Stretch {
                from: scope.from,
                to: scope.to,
                of: Some(epoch),
            });
        }
    }
    found.sort_by_key(|of| (of.from, of.to));
    // Of nested ones the outer speaks.
    let mut at = from;
    found.retain_mut(|of| {
        of.from = of.from.max(at);
        at = at.max(of.to);
        of.from < of.to
    });
    cut(&found, from, to, None)
}
