//! The critical path of one operation.

use std::sync::Arc;

use super::Settings;
use super::history::{DispatchFloor, Histories, KernelKind, Usual};
use super::host::{Host, HostPiece};
use super::life::{Covered, Doubt, Expected, Life, Segment, Stage, Unsegmented, Verdict};
use super::scene::{Scene, is_broken, union};
use super::threads::Stretch;
use crate::evidence::{Evidence, TimeSource};
use crate::fault::FaultFamily;
use crate::id::HostNanos;
use crate::observation::{ActivityKind, Operation};
use crate::readiness::{Dependency, Readiness, Role};
use crate::row::{Binding, Row};

/// How many operations before one are looked at, to find what covered its host's time.
const LOOKED_BACK: usize = 64;

/// A moment at which a stage began.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: HostNanos,
    stage: Stage,
    source: TimeSource,
}

/// A stretch between two moments.
#[derive(Debug, Clone, Copy)]
struct Piece {
    from: HostNanos,
    to: HostNanos,
    stage: Stage,
    /// What comes next.
    next: Stage,
    source: TimeSource,
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
}

/// When what an operation had to wait for was at the device.
#[derive(Debug, Default)]
struct Busy {
    /// It ran, or had been submitted.
    ran: Vec<Stretch<()>>,
    /// It had been called, and when it was submitted is not known.
    perhaps: Vec<Stretch<()>>,
}

/// What is known of an operation before it began.
struct Known {
    readiness: Readiness,
    dependency: Option<(HostNanos, Dependency)>,
    /// Whether the dependency held it back last.
    binding: bool,
    enter: Option<HostNanos>,
    exit: Option<HostNanos>,
    submitted: Option<HostNanos>,
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
        };
        self.before_start(number, row, start, &points, &known, &mut life);
        let source = source_of(row.stages.start).unwrap_or(TimeSource::CuptiKernel);
        life.segments.push(Segment {
            from: start,
            to: end,
            stage: Stage::Executing,
            source: Some(source),
            verdict: self.execution(number, operation, start, end, usual, &known.readiness),
        });
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
        if operation.queued.is_some() || operation.submitted.is_some() {
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
            .take_while(|call| call.enter >= scope.from)
            .find(|call| {
                let asks = matches!(call.role, Role::Work | Role::LaunchEx | Role::GraphLaunch);
                asks && call.exit <= enter
            })
            .map(|call| call.exit)
    }

    fn known(
        &self,
        number: usize,
        row: &Row,
        operation: &Operation,
        start: HostNanos,
        points: &[Point],
    ) -> Known {
        let readiness = self.scene.readiness(number).unwrap_or(Readiness {
            not_before: None,
            not_after: Some(start),
            partial: crate::readiness::Partials::of(crate::readiness::Partial::CallUnknown),
            complete_since: None,
        });
        let epsilon_ns = self.settings.epsilon_ns;
        let kept = |stage: Stage| points.iter().find(|of| of.stage == stage).map(|of| of.at);
        let submitted = kept(Stage::Submitted);
        let enter = kept(Stage::Api);
        let dependency = readiness.not_before.filter(|(at, _)| *at <= start);
        let after = |at: HostNanos, of: HostNanos| at.0 > of.0.saturating_add(epsilon_ns);
        // Right behind it, or with nothing else that can have held it back since.
        let floor = self.floor;
        let last = dependency.is_some_and(|(at, _)| {
            let behind = floor.is_some_and(|floor| start.0 - at.0 <= floor.limit_ns);
            behind || (readiness.is_complete() && operation.submitted.is_some())
        });
        let there = dependency.is_some_and(|(at, _)| match (submitted, enter) {
            (Some(submitted), _) => after(at, submitted),
            (None, Some(enter)) => operation.submitted.is_none() && after(at, enter),
            (None, None) => false,
        });
        let binding = last && there;
        Known {
            readiness,
            dependency,
            binding,
            enter,
            exit: row.stages.api_exit.at(),
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
                    self.in_zone(part, piece, known, &busy.ran, life);
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
        piece: Piece,
        known: &Known,
        busy: &[Stretch<()>],
        life: &mut Life,
    ) {
        let Some((_, dependency)) = known.dependency else {
            return;
        };
        if is_host(piece.stage) {
            for covered in overlap(busy, part) {
                life.covered.push(Covered {
                    from: covered.from,
                    to: covered.to,
                    stage: piece.stage,
                    by: dependency,
                });
            }
        }
        life.segments.push(Segment {
            from: part.from,
            to: part.to,
            stage: Stage::Dependency,
            source: Some(piece.source),
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
                        source: Some(piece.source),
                        verdict: Verdict::Expected(Expected::Covered(by)),
                    });
                }
                _ if host => {
                    let mut at = part.from;
                    for perhaps in overlap(&busy.perhaps, part) {
                        self.host(row, piece.within(at, perhaps.from), known, false, life);
                        let inside = piece.within(perhaps.from, perhaps.to);
                        self.host(row, inside, known, true, life);
                        at = perhaps.to;
                    }
                    self.host(row, piece.within(at, part.to), known, false, life);
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
        perhaps_covered: bool,
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

    /// Time between the call's return or the submission and the start.
    fn on_device(
        &self,
        number: usize,
        part: Stretch<()>,
        piece: Piece,
        start: HostNanos,
        known: &Known,
        life: &mut Life,
    ) {
        let mut push = |from, to, verdict, source| {
            if from < to {
                life.segments.push(Segment {
                    from,
                    to,
                    stage: piece.stage,
                    source,
                    verdict,
                });
            }
        };
        let source = Some(piece.source);
        let limit_ns = self.floor.map_or(0, |floor| floor.limit_ns);
        let is_last = part.to == start;
        let dispatch = Verdict::Expected(Expected::Dispatch);
        if is_last && self.floor.is_some() && part.to.0 - part.from.0 <= limit_ns {
            push(part.from, part.to, dispatch, source);
            return;
        }
        let partial = known.readiness.partial;
        if !partial.is_empty() {
            let doubt = if known.binding {
                Doubt::Critical(partial)
            } else {
                Doubt::DependencyOrSubmission(partial)
            };
            push(part.from, part.to, Verdict::Unresolved(doubt), None);
            return;
        }
        let submitted = known.submitted.is_some_and(|at| at <= part.from);
        if !submitted && !known.binding {
            let doubt = Verdict::Unresolved(Doubt::SubmissionOrDevice);
            push(part.from, part.to, doubt, None);
            return;
        }
        let scene = self.scene;
        let Some(operation) = scene.rows[number].operation.as_ref() else {
            return;
        };
        let exclusive = scene.is_exclusive(operation.device);
        let unknown = Verdict::Unresolved(Doubt::Device { exclusive });
        if is_last
            && let Some((ahead, channel, at)) =
                self.ahead_in_channel(number, operation, part, known)
        {
            let verdict = Verdict::FalseDependency {
                row: ahead,
                channel,
            };
            push(part.from, at, verdict, source);
            push(at, start, dispatch, source);
            return;
        }
        let excluding = if exclusive {
            self.excluding(number, operation, part)
        } else {
            Vec::new()
        };
        let mut at = part.from;
        for busy in excluding {
            push(at, busy.from.max(at), unknown.clone(), None);
            let verdict = Verdict::DeviceWait { row: busy.of };
            push(busy.from.max(at), busy.to, verdict, source);
            at = at.max(busy.to);
        }
        if is_last && self.floor.is_some() && start.0.saturating_sub(at.0) <= limit_ns {
            push(at, start, dispatch, source);
        } else {
            push(at, part.to, unknown, None);
        }
    }

    /// The last operation of another stream that was put into the same channel before this one and
    /// began while it waited, if this one began right behind it.
    fn ahead_in_channel(
        &self,
        number: usize,
        operation: &Operation,
        part: Stretch<()>,
        known: &Known,
    ) -> Option<(usize, u32, HostNanos)> {
        let floor = self.floor?;
        let channel = self.scene.channel(number)?;
        let list = self.scene.by_channel.get(&(operation.device, channel))?;
        let rows = self.scene.rows;
        let start_of = |row: usize| rows[row].operation.as_ref().and_then(|of| of.start);
        let behind = list.partition_point(|&row| start_of(row) <= Some(part.to));
        let enter = known.enter?;
        list[..behind]
            .iter()
            .rev()
            .take(LOOKED_BACK)
            .copied()
            .filter(|&row| row != number)
            .find_map(|row| {
                let of = rows[row].operation.as_ref()?;
                let at = of.start?;
                let same_stream = (of.context, of.stream) == (operation.context, operation.stream);
                let earlier = rows[row].stages.api_exit.at()? <= enter;
                let waited = at > part.from && part.to.0 - at.0 <= floor.limit_ns;
                (!same_stream && earlier && waited).then_some((row, channel, at))
            })
    }

    /// When work ran that excludes this: for copies, another copy of the same direction.
    fn excluding(
        &self,
        number: usize,
        operation: &Operation,
        part: Stretch<()>,
    ) -> Vec<Stretch<usize>> {
        let Some(direction) = direction(operation) else {
            return Vec::new();
        };
        if !self.scene.copies_exclude(operation.device) {
            return Vec::new();
        }
        let Some(list) = self.scene.by_device.get(&operation.device) else {
            return Vec::new();
        };
        let before = list.partition_point(|of| of.start < part.to);
        let mut found: Vec<Stretch<usize>> = list[..before]
            .iter()
            .rev()
            .take(LOOKED_BACK)
            .filter(|of| of.row != number && of.end > part.from && of.end <= part.to)
            .filter(|of| {
                let other = self.scene.rows[of.row].operation.as_ref();
                other.and_then(self::direction) == Some(direction)
            })
            .map(|of| Stretch {
                from: of.start.max(part.from),
                to: of.end,
                of: of.row,
            })
            .collect();
        found.sort_by_key(|of| (of.from, of.to));
        let mut at = part.from;
        found.retain_mut(|of| {
            of.from = of.from.max(at);
            at = at.max(of.to);
            of.from < of.to
        });
        found
    }

    /// When what it had to wait for ran, or was submitted and waited itself, within its life: from
    /// then on the host's time costs nothing. The last run of it ends with its dependency. Before
    /// its submission that work may itself have waited for the host.
    fn busy(&self, number: usize, known: &Known, since: HostNanos) -> Busy {
        let Some((until, _)) = known.dependency else {
            return Busy::default();
        };
        let (mut ran, mut perhaps) = (Vec::new(), Vec::new());
        let add = |to: &mut Vec<Stretch<()>>, begin: HostNanos, end: HostNanos| {
            let (begin, end) = (begin.max(since), end.min(until));
            if begin < end {
                to.push(stretch(begin, end));
            }
        };
        let mut seen: Vec<usize> = Vec::new();
        let mut open: Vec<usize> = self.scene.behind(number).collect();
        while let Some(row) = open.pop() {
            if seen.contains(&row) {
                continue;
            }
            if seen.len() == LOOKED_BACK {
                // More is before it than is looked at.
                add(&mut perhaps, since, until);
                break;
            }
            seen.push(row);
            let Some(operation) = self.scene.rows[row].operation.as_ref() else {
                continue;
            };
            let (Some(start), Some(end)) = (operation.start, operation.end) else {
                continue;
            };
            let submitted = operation.submitted.filter(|at| *at <= start);
            let arrived = submitted.unwrap_or(start);
            add(&mut ran, arrived, end);
            if submitted.is_none() {
                let called = self.scene.rows[row].stages.api_enter.at();
                add(&mut perhaps, called.unwrap_or_default(), start);
            }
            if arrived <= since {
                continue;
            }
            // What that waited for, this did, too; and if not all of it is known, neither is what
            // covered the time before.
            let complete = self.scene.readiness(row).is_some_and(|of| of.is_complete());
            if !complete {
                add(&mut perhaps, since, arrived);
            }
            open.extend(self.scene.behind(row));
        }
        Busy {
            ran: union(ran, self.floor.map_or(0, |floor| floor.limit_ns)),
            perhaps: union(perhaps, 0),
        }
    }

    /// The time that a binding dependency explains: from when it ran or the work was there.
    fn zone(
        &self,
        known: &Known,
        busy: &[Stretch<()>],
        since: HostNanos,
        start: HostNanos,
    ) -> Option<Stretch<()>> {
        let (until, _) = known.dependency.filter(|_| known.binding)?;
        let arrived = known.submitted.or(known.exit).or(known.enter);
        let arrived = arrived.filter(|at| *at <= until).unwrap_or(until);
        let ran = busy.last().filter(|of| of.to == until).map(|of| of.from);
        let from = ran.map_or(arrived, |ran| ran.min(arrived)).max(since);
        let to = until.min(start);
        (from < to).then(|| stretch(from, to))
    }

    fn usual(&mut self, operation: &Operation) -> Option<Usual> {
        kind_of(operation).and_then(|kind| self.histories.usual_kernel(&kind))
    }

    fn execution(
        &self,
        number: usize,
        operation: &Operation,
        start: HostNanos,
        end: HostNanos,
        usual: Option<Usual>,
        readiness: &Readiness,
    ) -> Verdict {
        let Some(usual) = usual else {
            return Verdict::Executing;
        };
        let scene = self.scene;
        let loose = scene.is_loose(operation)
            || readiness
                .partial
                .has(crate::readiness::Partial::Programmatic)
            || readiness
                .partial
                .has(crate::readiness::Partial::AttributesUnknown);
        let long = end.0 - start.0 > usual.limit_ns;
        let alone = !scene.overlaps(operation.device, number, start, end);
        let name = operation.name.as_deref().unwrap_or_default();
        let fair = scene.is_exclusive(operation.device) && !loose && !is_collective(name);
        if long && alone && fair {
            Verdict::LongerThanItsKind {
                typical_ns: usual.median_ns,
                samples: usual.samples,
            }
        } else {
            Verdict::Executing
        }
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

/// A kernel's kind; `None` for what is none or has no name.
pub(super) fn kind_of(operation: &Operation) -> Option<KernelKind> {
    let name: Arc<str> = operation.name.clone()?;
    (operation.kind == ActivityKind::Kernel).then_some(KernelKind {
        name,
        grid: operation.grid,
        block: operation.block,
    })
}

/// Whether a kernel waits inside for others, as its name tells.
fn is_collective(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    const SIGNS: [&str; 9] = [
        "nccl",
        "rccl",
        "nvshmem",
        "allreduce",
        "all_reduce",
        "allgather",
        "all_gather",
        "reducescatter",
        "barrier",
    ];
    SIGNS.iter().any(|sign| lower.contains(sign))
}

/// The direction of a copy, as its name tells.
fn direction(operation: &Operation) -> Option<&'static str> {
    let name = operation.name.as_deref()?;
    let known = ["HtoD", "DtoH", "DtoD"];
    let found = known.into_iter().find(|of| name.contains(of));
    found.filter(|_| operation.kind == ActivityKind::Copy)
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

const fn stretch(from: HostNanos, to: HostNanos) -> Stretch<()> {
    Stretch { from, to, of: () }
}

/// Cuts a stretch at a zone's borders.
fn split(part: Stretch<()>, zone: Option<Stretch<()>>) -> Vec<Stretch<()>> {
    let mut borders = vec![part.from];
    let inside = |at: &HostNanos| *at > part.from && *at < part.to;
    let of_zone = zone.map(|zone| [zone.from, zone.to]);
    borders.extend(of_zone.into_iter().flatten().filter(inside));
    borders.push(part.to);
    let all = borders.windows(2).map(|two| stretch(two[0], two[1]));
    all.collect()
}

/// What of sorted stretches lies in another.
fn overlap(of: &[Stretch<()>], part: Stretch<()>) -> Vec<Stretch<()>> {
    of.iter()
        .map(|of| stretch(of.from.max(part.from), of.to.min(part.to)))
        .filter(|of| of.from < of.to)
        .collect()
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
