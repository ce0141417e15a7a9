//! The time before work was given to the device: what its thread did.

use super::history::Histories;
use super::life::{Doubt, Expected, Lateness, Segment, Stage, Verdict};
use super::scene::Scene;
use super::threads::{Doing, Ran, SCHEDULER, Stretch, Thread, cut};
use crate::evidence::TimeSource;
use crate::id::{Attribution, HostNanos, LaunchEpoch};
use crate::observation::OverheadKind;
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
    /// Splits a stretch by what it went into; `perhaps_covered` says why earlier work of the
    /// stream may have been at the device meanwhile. With a partial set of dependencies only what needs no
    /// explanation is told: something that is not recorded may have held the work back meanwhile.
    pub(super) fn verdicts(
        &mut self,
        row: &Row,
        mut piece: HostPiece,
        partial: Partials,
        perhaps_covered: Option<Doubt>,
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
        if is_before_scope(piece.stage)
            && let Some(due) = self.scene.marks_of(row).expected
            && due > piece.from
        {
            let to = due.min(piece.to);
            let verdict = Verdict::Expected(Expected::NotDueYet);
            push(piece.from, to, verdict, Some(TimeSource::Application));
            piece.from = to;
            if to == piece.to {
                return out;
            }
        }
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
        if let Some(doubt) = perhaps_covered {
            let verdict = Verdict::Unresolved(doubt);
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
        // The application itself expected it to start, and had not handed it over.
        let due = marks.expected.is_some_and(|due| due <= from);
        let overdue = due && piece.next == Stage::HandedOver;
        match piece.stage {
            // What comes next is what the whole stage lasts until, however much of it is asked for.
            Stage::Declared | Stage::Ready if piece.next == Stage::BatchFormed => {
                one(Verdict::BatchWait, Some(TimeSource::Application))
            }
            Stage::Declared if overdue || piece.next == Stage::Ready => {
                one(Verdict::ApplicationLate, Some(TimeSource::Application))
            }
            Stage::Declared => one(Verdict::Unresolved(Doubt::NotMarkedReady), None),
            Stage::Ready | Stage::BatchFormed | Stage::HandedOver => {
                if !ready && piece.stage != Stage::BatchFormed {
                    return one(Verdict::Unresolved(Doubt::NotMarkedReady), None);
                }
                match (piece.stage, piece.next) {
                    (Stage::Ready | Stage::BatchFormed, Stage::HandedOver) if overdue => {
                        one(Verdict::ApplicationLate, Some(TimeSource::Application))
                    }
                    // The thread that launches did not have it yet.
                    (Stage::Ready | Stage::BatchFormed, Stage::HandedOver) => {
                        one(Verdict::Unresolved(Doubt::NotHandedOver), None)
                    }
                    // How it came to its thread, and when, is not recorded.
                    (Stage::Ready | Stage::BatchFormed, _) if !self.had_it(row) => {
                        one(Verdict::Unresolved(Doubt::NotHandedOver), None)
                    }
                    (Stage::Ready | Stage::BatchFormed, _) => self.had_all_along(row, piece),
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

    /// Whether the thread that launches had the work all along: it declared it or marked it itself.
    fn had_it(&self, row: &Row) -> bool {
        match (row.binding, row.call.as_ref()) {
            (Binding::Bound(epoch), Some(call)) => self.scene.was_at(epoch, call.tid),
            _ => false,
        }
    }

    /// Ready work that its thread had, and entered a scope for later: in another's scope it was late
    /// with it, else at work of its own.
    fn had_all_along(&self, row: &Row, piece: HostPiece) -> Vec<Claim> {
        let Some(thread) = self.thread(row) else {
            return self.taken_late(row, piece);
        };
        let mut out = Vec::new();
        for part in busy_with(thread, own_epoch(row), piece.from, piece.to) {
            let piece = HostPiece {
                from: part.from,
                to: part.to,
                ..piece
            };
            out.extend(match part.of {
                Some(_) => self.taken_late(row, piece),
                None => self.in_scope(row, piece),
            });
        }
        out
    }

    /// Ready work that its thread took later: what the thread did instead.
    fn taken_late(&self, row: &Row, piece: HostPiece) -> Vec<Claim> {
        let Some(thread) = self.thread(row) else {
            let verdict = Verdict::Unresolved(Doubt::ThreadUnknown);
            return vec![claim(piece.from, piece.to, verdict, None)];
        };
        let own = own_epoch(row);
        let mut out = Vec::new();
        let late =
            |from, to, lateness, source| claim(from, to, Verdict::SubmitterLate(lateness), source);
        for part in thread.doing(piece.from, piece.to) {
            let off = off(thread, part.of);
            if part.of.ran != Ran::Unknown
                && let Some(lateness) = off
            {
                out.push(late(part.from, part.to, lateness, Some(SCHEDULER)));
                continue;
            }
            for scope in busy_with(thread, own, part.from, part.to) {
                if let Some(other) = scope.of {
                    let source = Some(TimeSource::RuntimeHook);
                    let busy = Lateness::BusyWith(other);
                    out.push(late(scope.from, scope.to, busy, source));
                    continue;
                }
                if let Some(asleep) = &off {
                    let asleep = asleep.clone();
                    out.push(late(scope.from, scope.to, asleep, Some(SCHEDULER)));
                    continue;
                }
                let doing = Stretch {
                    of: part.of,
                    from: scope.from,
                    to: scope.to,
                };
                let rest = after_queued(thread, doing, &mut out);
                out.push(late(rest, scope.to, Lateness::Unknown, Some(piece.source)));
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
                    self.outside_of_calls(thread, part.from, part.to, &mut out);
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

    /// Where no call is recorded: an overhead names what the thread was at in one that is not, as the
    /// compiler when a module was loaded.
    fn outside_of_calls(
        &self,
        thread: &Thread,
        from: HostNanos,
        to: HostNanos,
        out: &mut Vec<Claim>,
    ) {
        for part in cut(&overheads(thread, from, to), from, to, None) {
            if part.of.is_some() {
                let verdict = Verdict::ApiSlow {
                    cause: part.of,
                    typical_ns: None,
                };
                let source = Some(TimeSource::CuptiOverhead);
                out.push(claim(part.from, part.to, verdict, source));
                continue;
            }
            for doing in thread.doing(part.from, part.to) {
                let rest = after_queued(thread, doing, out);
                let (verdict, source) = match (doing.of.ran, off(thread, doing.of)) {
                    (_, Some(lateness)) => (Verdict::SubmitterLate(lateness), Some(SCHEDULER)),
                    (Ran::Running, None) => (Verdict::HostWork, Some(SCHEDULER)),
                    (_, None) => (Verdict::Unresolved(Doubt::ThreadUnknown), None),
                };
                out.push(claim(rest, doing.to, verdict, source));
            }
        }
    }

    /// Inside the call, which took longer than such calls do, or of which there are too few.
    fn in_call(&mut self, row: &Row, piece: HostPiece) -> Vec<Claim> {
        let history = self.call_history(row);
        let typical_ns = history.map(|(usual, _)| usual.median_ns);
        let Some(thread) = self.thread(row) else {
            let verdict = Verdict::Unresolved(Doubt::ThreadUnknown);
            return vec![claim(piece.from, piece.to, verdict, None)];
        };
        let named = overheads(thread, piece.from, piece.to);
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
            for doing in thread.doing(part.from, part.to) {
                let slow = Verdict::ApiSlow {
                    cause: None,
                    typical_ns,
                };
                // A call may rightly sleep: for a lock of the driver's, or room in a queue.
                let at_it = matches!(doing.of.ran, Ran::Blocked | Ran::Running)
                    || thread.waits_in(doing.of).is_some();
                let rest = after_queued(thread, doing, &mut out);
                let (verdict, source) = match typical_ns {
                    _ if doing.of.ran == Ran::Preempted => {
                        (Verdict::SubmitterLate(Lateness::Preempted), Some(SCHEDULER))
                    }
                    Some(_) if at_it && named.is_empty() => (slow, Some(SCHEDULER)),
                    // The overhead explains the call, and the rest of it is usual.
                    Some(typical_ns) if at_it => (
                        Verdict::Expected(Expected::UsualCall { typical_ns }),
                        Some(piece.source),
                    ),
                    Some(typical_ns) => (Verdict::Unresolved(Doubt::LongCall { typical_ns }), None),
                    None => (Verdict::Unresolved(Doubt::NoHistory), None),
                };
                out.push(claim(rest, doing.to, verdict, source));
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
/// known: it is told where the slow time ends. Time of which nothing is known may have been part of
/// it; time without a processor was not.
fn leave_usual(claims: &mut Vec<Claim>, typical_ns: Option<u64>, source: TimeSource) {
    let Some(typical_ns) = typical_ns else { return };
    let length = |of: &Claim| of.to.0.saturating_sub(of.from.0);
    let is_slow = |of: &Claim| matches!(of.of.0, Verdict::ApiSlow { cause: None, .. });
    let unknown = claims
        .iter()
        .filter(|of| matches!(of.of.0, Verdict::Unresolved(_)));
    let unknown_ns: u64 = unknown.map(length).sum();
    let mut usual_ns = typical_ns.saturating_sub(unknown_ns);
    let mut told = Vec::with_capacity(claims.len() + 1);
    for mut of in claims.drain(..).rev() {
        let usual = usual_ns.min(length(&of));
        if is_slow(&of) && usual > 0 {
            usual_ns -= usual;
            let from = HostNanos(of.to.0 - usual);
            let verdict = Verdict::Expected(Expected::UsualCall { typical_ns });
            told.push(claim(from, of.to, verdict, Some(source)));
            of.to = from;
        }
        told.push(of);
    }
    told.reverse();
    *claims = told;
}

/// A thread's overheads that reach into a stretch, in order.
fn overheads(
    thread: &Thread,
    from: HostNanos,
    to: HostNanos,
) -> Vec<Stretch<Option<OverheadKind>>> {
    let begun = thread.overheads.partition_point(|of| of.from < to);
    let mut named: Vec<Stretch<Option<OverheadKind>>> = thread.overheads[..begun]
        .iter()
        .rev()
        .take(OVERHEADS)
        .filter(|of| of.to > from)
        .map(|of| Stretch {
            from: of.from,
            to: of.to,
            of: Some(of.of),
        })
        .collect();
    named.reverse();
    named
}

/// How a thread that did not run is late; `None` if it ran or that is not known.
fn off(thread: &Thread, doing: Doing) -> Option<Lateness> {
    if let Some(function) = thread.waits_in(doing) {
        return Some(Lateness::Asleep {
            function: function.clone(),
        });
    }
    match doing.ran {
        Ran::Preempted => Some(Lateness::Preempted),
        Ran::Blocked => Some(Lateness::Blocked),
        Ran::Off => Some(Lateness::OffProcessor),
        Ran::Running | Ran::Unknown => None,
    }
}

/// Tells first what of a stretch the thread had no processor for, as far as only that is known: when in
/// the stretch it was is not. Answers where in the stretch the telling goes on.
fn after_queued(thread: &Thread, doing: Stretch<Doing>, out: &mut Vec<Claim>) -> HostNanos {
    let Stretch { from, to, of } = doing;
    if of.ran != Ran::Unknown || thread.waits_in(of).is_some() {
        return from;
    }
    let least_ns = thread.queued_ns(from, to);
    let rest = HostNanos(from.0 + least_ns);
    if least_ns > 0 {
        let verdict = Verdict::SubmitterLate(Lateness::WithoutProcessor {
            not_before: from,
            not_after: to,
        });
        out.push(claim(from, rest, verdict, Some(SCHEDULER)));
    }
    rest
}

/// Whether a stage is before the thread that launches is at the work.
const fn is_before_scope(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Declared | Stage::Ready | Stage::BatchFormed | Stage::HandedOver
    )
}

fn own_epoch(row: &Row) -> Option<LaunchEpoch> {
    match row.binding {
        Binding::Bound(epoch) => Some(epoch),
        _ => None,
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
