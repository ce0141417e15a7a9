//! The critical path of one operation.

use super::Settings;
use super::cover::{Busy, overlap, split, stretch};
use super::history::{DispatchFloor, Histories};
use super::host::{Host, HostPiece};
use super::life::{Covered, Doubt, Expected, Life, Segment, Stage, Unsegmented, Verdict};
use super::scene::{Scene, is_broken};
use super::threads::Stretch;
use crate::evidence::{Evidence, TimeSource};
use crate::fault::FaultFamily;
use crate::id::HostNanos;
use crate::observation::Operation;
use crate::readiness::{Dependency, Partial, Readiness, Role};
use crate::row::{Binding, Row};

/// How many operations before one are looked at.
pub(super) const LOOKED_BACK: usize = 64;

/// How many calls before one are looked at, to find the one that its life follows.
const CALLS_BACK: usize = 4_096;

/// A moment at which a stage began.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: HostNanos,
    stage: Stage,
    source: TimeSource,
}

/// A stretch between two moments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) from: HostNanos,
    pub(super) to: HostNanos,
    pub(super) stage: Stage,
    /// What comes next.
    pub(super) next: Stage,
    pub(super) source: TimeSource,
}

impl Piece {
    const fn within(self, from: HostNanos, to: HostNanos) -> Self {
        Self { from, to, ..self }
    }
}

/// What the judging of one process's rows rests on.
pub(super) struct Bench<'a> {
    pub(super) scene: &'a Scene<'a>,
    pub(super) histories: &'a mut Histories,
    pub(super) floor: Option<DispatchFloor>,
    pub(super) settings: Settings,
    /// What was before is not at hand, though it was recorded.
    pub(super) since: Option<HostNanos>,
}

/// What is known of an operation before it began.
pub(super) struct Known {
    pub(super) readiness: Readiness,
    pub(super) dependency: Option<(HostNanos, Dependency)>,
    /// Whether the dependency held it back last.
    pub(super) binding: bool,
    pub(super) enter: Option<HostNanos>,
    pub(super) exit: Option<HostNanos>,
    pub(super) submitted: Option<HostNanos>,
}

impl Bench<'_> {
    /// The life of a row's operation.
    pub(super) fn life(&mut self, number: usize) -> Life {
        let scene = self.scene;
        let row = &scene.rows[number];
        let Some(operation) = &row.operation else {
            return Life::without(number, Unsegmented::NoOperation);
        };
        if is_broken(row) {
            let codes = row.faults.iter().copied();
            let code = codes
                .clone()
                .find(|code| code.family() == FaultFamily::Time);
            let code = code.unwrap_or(crate::fault::FaultCode::T02);
            return Life::without(number, Unsegmented::TimeFault(code));
        }
        let (Some(start), Some(end)) = (operation.start, operation.end) else {
            return Life::without(number, Unsegmented::NoTimes);
        };
        let points = self.points(row, operation, start);
        let known = self.known(number, row, operation, start, &points);
        let usual = self.usual(operation);
        let mut life = Life {
            row: number,
            segments: Vec::new(),
            unsegmented: None,
            readiness: Some(known.readiness),
            covered: Vec::new(),
            usual: usual.map(|of| (of.median_ns, of.samples)),
            long_because: None,
        };
        self.before_start(number, row, start, &points, &known, &mut life);
        let source = source_of(row.stages.start).unwrap_or(TimeSource::CuptiKernel);
        let (verdict, long_because) =
            self.execution(number, operation, start, end, usual, &known.readiness);
        life.long_because = long_because;
        life.segments.push(Segment {
            from: start,
            to: end,
            stage: Stage::Executing,
            source: Some(source),
            verdict,
        });
        if let Some(since) = self.since {
            doubt_what_began_before(since, &mut life.segments);
        }
        tidy(&mut life.segments);
        life
    }

    /// The moments of its life up to its start, in order.
    fn points(&self, row: &Row, operation: &Operation, start: HostNanos) -> Vec<Point> {
        let mut all: Vec<Point> = Vec::new();
        let mut add = |at: Option<HostNanos>, stage, source| {
            all.extend(at.map(|at| Point { at, stage, source }));
        };
        let of = |evidence: Evidence| (evidence.at(), source_of(evidence));
        let stages = &row.stages;
        let api = source_of(stages.api_enter).unwrap_or(TimeSource::CuptiApi);
        let enter = stages.api_enter.at();
        let earlier = row
            .call
            .as_ref()
            .and_then(|call| self.earlier_call(call.tid, enter?));
        if let Some(earlier) = earlier {
            add(Some(earlier), Stage::Scope, api);
        } else if let Binding::Bound(epoch) = row.binding {
            let marks = self.scene.marks_of(row);
            let declared = if epoch.version.get() > 1 {
                marks.stepped.or(stages.declared.at())
            } else {
                stages.declared.at()
            };
            add(declared, Stage::Declared, TimeSource::RuntimeHook);
            add(marks.ready, Stage::Ready, TimeSource::Application);
            add(
                marks.batch_formed,
                Stage::BatchFormed,
                TimeSource::Application,
            );
            let entered = stages.scope_enter.at().or(enter);
            if let (Some(call), Some(before)) = (&row.call, entered)
                && let Some((sent, received)) = self.scene.handoff(epoch.id, call.tid, before)
            {
                add(Some(sent), Stage::HandedOver, TimeSource::RuntimeHook);
                add(Some(received), Stage::Scope, TimeSource::RuntimeHook);
            }
            let (scope, source) = of(stages.scope_enter);
            add(
                scope,
                Stage::Scope,
                source.unwrap_or(TimeSource::RuntimeHook),
            );
        }
        add(enter, Stage::Api, api);
        let latency = source_of(stages.submitted).unwrap_or(TimeSource::CuptiLatency);
        if let Some(first) = operation.queued.or(operation.submitted) {
            // What lies between the return and that was not in the call.
            let exit = stages.api_exit.at().filter(|exit| *exit < first);
            add(exit, Stage::Returned, api);
            add(operation.queued, Stage::Queued, latency);
            add(operation.submitted, Stage::Submitted, latency);
        } else {
            add(stages.api_exit.at(), Stage::Returned, api);
        }
        in_order(all, start)
    }

    /// When the call before this one in its scope returned: a later call's life begins there.
    fn earlier_call(&self, tid: u64, enter: HostNanos) -> Option<HostNanos> {
        let thread = self.scene.threads.get(tid)?;
        let scope = thread.scope_at(enter)?;
        let calls = &self.scene.calls;
        let begun = thread.calls.partition_point(|&at| calls[at].enter < enter);
        let before = thread.calls[..begun].iter().rev();
        before
            .map(|&at| &calls[at])
            .take(CALLS_BACK)
            .take_while(|call| call.enter >= scope.from)
            .find(|call| {
                let asks = matches!(call.role, Role::Work | Role::LaunchEx | Role::GraphLaunch);
                asks && call.exit <= enter
            })
            .map(|call| call.exit)
            // Whether there was one before a part is not known: no more is told of than is at hand.
            .or_else(|| {
                self.since
                    .filter(|since| scope.from < *since && *since <= enter)
            })
    }

    fn known(
        &self,
        number: usize,
        row: &Row,
        operation: &Operation,
        start: HostNanos,
        points: &[Point],
    ) -> Known {
        let mut readiness = self.scene.readiness(number).unwrap_or(Readiness {
            not_before: None,
            not_after: Some(start),
            partial: crate::readiness::Partials::of(Partial::CallUnknown),
            complete_since: None,
        });
        let epsilon_ns = self.settings.epsilon_ns;
        let kept = |stage: Stage| points.iter().find(|of| of.stage == stage).map(|of| of.at);
        let submitted = kept(Stage::Submitted);
        let enter = kept(Stage::Api);
        let exit = row.stages.api_exit.at();
        let dependency = readiness.not_before.filter(|(at, _)| *at <= start);
        let after = |at: HostNanos, of: HostNanos| at.0 > of.0.saturating_add(epsilon_ns);
        let floor = self.floor;
        let right_behind = |at: HostNanos| {
            let since_ns = start.0.saturating_sub(at.0);
            floor.is_some_and(|floor| since_ns <= floor.limit_ns)
        };
        // What began right behind a known time waited for no event after that.
        let by = [dependency.map(|(at, _)| at), submitted.or(exit)];
        if self.scene.is_untimed(number) && !by.into_iter().flatten().any(right_behind) {
            readiness.partial.add(Partial::EventUntimed);
            readiness.complete_since = None;
        }
        // Right behind it, or with nothing else that can have held it back since.
        let last = dependency.is_some_and(|(at, _)| {
            right_behind(at) || (readiness.is_complete() && operation.submitted.is_some())
        });
        // Without its submission it is known to be there when its call has returned.
        let there = dependency.is_some_and(|(at, _)| match (submitted, exit) {
            (Some(submitted), _) => after(at, submitted),
            (None, Some(exit)) => operation.submitted.is_none() && after(at, exit),
            (None, None) => false,
        });
        let binding = last && there;
        Known {
            readiness,
            dependency,
            binding,
            enter,
            exit,
            submitted,
        }
    }

    /// The segments up to the start.
    fn before_start(
        &mut self,
        number: usize,
        row: &Row,
        start: HostNanos,
        points: &[Point],
        known: &Known,
        life: &mut Life,
    ) {
        let Some(first) = points.first() else {
            return;
        };
        let mut pieces: Vec<Piece> = Vec::new();
        for (at, point) in points.iter().enumerate() {
            let to = points.get(at + 1).map_or(start, |next| next.at);
            pieces.push(Piece {
                from: point.at,
                to,
                stage: point.stage,
                next: points
                    .get(at + 1)
                    .map_or(Stage::Executing, |next| next.stage),
                source: point.source,
            });
        }
        let busy = self.busy(number, known, first.at);
        let zone = self.zone(known, &busy.ran, first.at, start);
        for piece in pieces {
            for part in split(stretch(piece.from, piece.to), zone) {
                if zone.is_some_and(|zone| part.from >= zone.from && part.to <= zone.to) {
                    let source = source_of(row.stages.start);
                    self.in_zone(part, piece.stage, source, known, &busy.ran, life);
                } else {
                    self.outside_zone(number, row, part, piece, start, known, &busy, life);
                }
            }
        }
    }

    /// A part of a binding dependency's time.
    fn in_zone(
        &self,
        part: Stretch<()>,
        stage: Stage,
        source: Option<TimeSource>,
        known: &Known,
        busy: &[Stretch<()>],
        life: &mut Life,
    ) {
        let Some((_, dependency)) = known.dependency else {
            return;
        };
        if is_host(stage) {
            for covered in overlap(busy, part) {
                life.covered.push(Covered {
                    from: covered.from,
                    to: covered.to,
                    stage,
                    by: dependency,
                });
            }
        }
        life.segments.push(Segment {
            from: part.from,
            to: part.to,
            stage: Stage::Dependency,
            source,
            verdict: Verdict::DependencyWait(dependency),
        });
    }

    #[expect(clippy::too_many_arguments, reason = "one step of one fold")]
    fn outside_zone(
        &mut self,
        number: usize,
        row: &Row,
        part: Stretch<()>,
        piece: Piece,
        start: HostNanos,
        known: &Known,
        busy: &Busy,
        life: &mut Life,
    ) {
        let host = is_host(piece.stage);
        let mut at = part.from;
        let mut rest: Vec<(Stretch<()>, bool)> = Vec::new();
        for covered in overlap(&busy.ran, part) {
            rest.push((stretch(at, covered.from), false));
            rest.push((covered, true));
            at = covered.to;
        }
        rest.push((stretch(at, part.to), false));
        for (part, is_covered) in rest {
            if part.from >= part.to {
                continue;
            }
            match known.dependency {
                Some((_, by)) if is_covered => {
                    if host {
                        life.covered.push(Covered {
                            from: part.from,
                            to: part.to,
                            stage: piece.stage,
                            by,
                        });
                    }
                    life.segments.push(Segment {
                        from: part.from,
                        to: part.to,
                        stage: piece.stage,
                        source: source_of(row.stages.start),
                        verdict: Verdict::Expected(Expected::Covered(by)),
                    });
                }
                _ if host => {
                    let mut at = part.from;
                    for perhaps in overlap(&busy.perhaps, part) {
                        self.host(row, piece.within(at, perhaps.from), known, None, life);
                        let inside = piece.within(perhaps.from, perhaps.to);
                        self.host(row, inside, known, Some(busy.doubt()), life);
                        at = perhaps.to;
                    }
                    self.host(row, piece.within(at, part.to), known, None, life);
                }
                _ => self.on_device(number, part, piece, start, known, life),
            }
        }
    }

    /// Time before the work was given away, that nothing covers.
    fn host(
        &mut self,
        row: &Row,
        piece: Piece,
        known: &Known,
        perhaps_covered: Option<Doubt>,
        life: &mut Life,
    ) {
        if piece.from >= piece.to {
            return;
        }
        let mut host = Host {
            scene: self.scene,
            histories: self.histories,
        };
        let asked = HostPiece {
            from: piece.from,
            to: piece.to,
            stage: piece.stage,
            next: piece.next,
            source: piece.source,
        };
        life.segments
            .extend(host.verdicts(row, asked, known.readiness.partial, perhaps_covered));
    }
}

/// The moments that do not contradict each other. The call's entry stands, which is what joins the
/// operation to its host; before it later stages are believed, and after it earlier ones.
fn in_order(all: Vec<Point>, start: HostNanos) -> Vec<Point> {
    let all: Vec<Point> = all.into_iter().filter(|of| of.at <= start).collect();
    let anchor = all.iter().position(|of| of.stage == Stage::Api);
    let (before, after) = all.split_at(anchor.unwrap_or(all.len()));
    let mut points: Vec<Point> = Vec::new();
    let mut latest = after.first().map_or(start, |of| of.at);
    for point in before.iter().rev() {
        if point.at <= latest {
            latest = point.at;
            points.push(*point);
        }
    }
    points.reverse();
    for point in after {
        if points.last().is_none_or(|last| last.at <= point.at) {
            points.push(*point);
        }
    }
    points
}

/// Takes back what is claimed of stages that began before what is at hand: what else was then is not known.
fn doubt_what_began_before(since: HostNanos, segments: &mut [Segment]) {
    let begun = segments.iter().filter(|of| of.from < since);
    let begun: Vec<Stage> = begun.map(|of| of.stage).collect();
    for segment in segments.iter_mut().filter(|of| begun.contains(&of.stage)) {
        if segment.stage == Stage::Executing {
            segment.verdict = Verdict::Executing;
        } else if segment.verdict.kind().is_claim() {
            segment.verdict = Verdict::Unresolved(Doubt::BeforePart);
            segment.source = None;
        }
    }
}

const fn is_host(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Declared
            | Stage::Ready
            | Stage::BatchFormed
            | Stage::HandedOver
            | Stage::Scope
            | Stage::Api
            | Stage::Queued
    )
}

fn source_of(evidence: Evidence) -> Option<TimeSource> {
    match evidence {
        Evidence::Observed { source, .. } => Some(source),
        _ => None,
    }
}

/// Leaves out what has no length, and joins neighbours that say the same.
fn tidy(segments: &mut Vec<Segment>) {
    segments.retain(|of| of.from < of.to);
    segments.dedup_by(|next, last| {
        let same = last.stage == next.stage && last.verdict == next.verdict && last.to == next.from;
        if same {
            last.to = next.to;
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the stage that was under way when what is held begins, nothing is claimed, in none of its stretches;
    /// what was usual stays so.
    #[test]
    fn what_began_before_what_is_held_is_not_claimed() {
        let segment = |from: u64, to: u64, stage, verdict| Segment {
            from: HostNanos(from),
            to: HostNanos(to),
            stage,
            source: Some(TimeSource::RuntimeHook),
            verdict,
        };
        let usual = Verdict::Expected(Expected::UsualCall { typical_ns: 5 });
        let long = Verdict::LongerThanItsKind {
            typical_ns: 5,
            samples: 20,
        };
        let mut segments = [
            segment(10, 20, Stage::Ready, Verdict::BatchWait),
            segment(20, 90, Stage::Scope, Verdict::HostWork),
            segment(90, 110, Stage::Dependency, usual.clone()),
            segment(110, 120, Stage::Scope, Verdict::HostWork),
            segment(120, 130, Stage::Api, Verdict::SubmitWait),
            segment(130, 200, Stage::Executing, long.clone()),
        ];
        let mut later = segments.clone();
        doubt_what_began_before(HostNanos(100), &mut segments);
        let verdicts: Vec<Verdict> = segments.iter().map(|of| of.verdict.clone()).collect();
        let doubt = Verdict::Unresolved(Doubt::BeforePart);
        let expected = [
            doubt.clone(),
            doubt.clone(),
            usual,
            doubt.clone(),
            Verdict::SubmitWait,
            long,
        ];
        assert_eq!(verdicts, expected);
        assert_eq!(segments[0].source, None);
        // A kernel that began before is not known to have been alone.
        doubt_what_began_before(HostNanos(131), &mut later);
        assert_eq!(later[5].verdict, Verdict::Executing);
    }
}
