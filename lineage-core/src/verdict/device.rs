//! The device: what held an operation up that had been given to it, and how long it ran.

use std::sync::Arc;

use super::history::{DispatchFloor, KernelKind, Usual};
use super::life::{Doubt, Expected, Life, LongBecause, Segment, Verdict};
use super::path::{Bench, Known, LOOKED_BACK, Piece};
use super::threads::Stretch;
use crate::id::HostNanos;
use crate::observation::{ActivityKind, Operation};
use crate::readiness::{Partial, Readiness};

impl Bench<'_> {
    /// Time between the call's return or the submission and the start.
    pub(super) fn on_device(
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
        let scene = self.scene;
        let Some(operation) = scene.rows[number].operation.as_ref() else {
            return;
        };
        let exclusive = scene.is_exclusive(operation.device);
        let mut excluding = if exclusive {
            self.excluding(number, operation, part)
        } else {
            Vec::new()
        };
        let submitted = known.submitted.is_some_and(|at| at <= part.from);
        let there = submitted || known.binding;
        if !there {
            // Copies have no time of submission. One that began right behind what excluded it was there.
            let behind = self.floor.filter(|_| is_last);
            excluding = behind.map_or(Vec::new(), |floor| right_before(excluding, start, floor));
        } else if is_last && exclusive {
            excluding.extend(self.no_room(number, operation, part, known));
        }
        let unknown = Verdict::Unresolved(if there {
            Doubt::Device { exclusive }
        } else {
            Doubt::SubmissionOrDevice
        });
        if is_last
            && there
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
        let mut at = part.from;
        for busy in excluding {
            push(at, busy.from.max(at), unknown.clone(), None);
            let verdict = Verdict::DeviceWait { row: busy.of };
            push(busy.from.max(at), busy.to, verdict, source);
            at = at.max(busy.to);
        }
        let right_behind = start.0.saturating_sub(at.0) <= limit_ns;
        if is_last && self.floor.is_some() && right_behind && at > part.from {
            push(at, start, dispatch, source);
        } else {
            push(at, part.to, unknown, None);
        }
    }

    /// The last operation of another stream that was put into the same channel before this one and
    /// left it while it waited, if this one began right behind it. That it left then, and did not wait
    /// for the device as well, is known of one that began right behind what it depended on: until that
    /// had ended, it was in the channel.
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
                let (held_until, _) = self.scene.readiness(row)?.not_before?;
                let left = at.0.saturating_sub(held_until.0) <= floor.limit_ns;
                (!same_stream && earlier && waited && left).then_some((row, channel, at))
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

    pub(super) fn usual(&mut self, operation: &Operation) -> Option<Usual> {
        kind_of(operation).and_then(|kind| self.histories.usual_kernel(&kind))
    }

    /// What the time from start to end went into, and what may have made it long where the kernel
    /// itself is not known to have.
    pub(super) fn execution(
        &self,
        number: usize,
        operation: &Operation,
        start: HostNanos,
        end: HostNanos,
        usual: Option<Usual>,
        readiness: &Readiness,
    ) -> (Verdict, Option<LongBecause>) {
        let usual = usual.filter(|usual| end.0 - start.0 > usual.limit_ns);
        let Some(usual) = usual else {
            return (Verdict::Executing, None);
        };
        let scene = self.scene;
        let loose = scene.is_loose(operation)
            || readiness.partial.has(Partial::Programmatic)
            || readiness.partial.has(Partial::AttributesUnknown);
        let name = operation.name.as_deref().unwrap_or_default();
        let because = if is_collective(name) {
            LongBecause::Collective
        } else if loose {
            LongBecause::Programmatic
        } else if scene.overlaps(operation.device, number, start, end) {
            LongBecause::Overlapped
        } else if !scene.is_exclusive(operation.device) {
            LongBecause::Tenancy
        } else {
            let verdict = Verdict::LongerThanItsKind {
                typical_ns: usual.median_ns,
                samples: usual.samples,
            };
            return (verdict, None);
        };
        (Verdict::Executing, Some(because))
    }
}

/// Of stretches in order those without a gap up to the start, but for the device's own latency.
fn right_before(
    mut stretches: Vec<Stretch<usize>>,
    start: HostNanos,
    floor: DispatchFloor,
) -> Vec<Stretch<usize>> {
    let mut next = start;
    let gap = stretches.iter().rposition(|of| {
        let gap_ns = next.0.saturating_sub(of.to.0);
        next = of.from;
        gap_ns > floor.limit_ns
    });
    stretches.drain(..gap.map_or(0, |at| at + 1));
    stretches
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
