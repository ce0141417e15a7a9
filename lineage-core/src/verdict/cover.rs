//! What covers host time: work that an operation had to wait for, while it was at the device.

use rustc_hash::FxHashSet;

use super::life::Doubt;
use super::path::{Bench, Known, LOOKED_BACK};
use super::threads::Stretch;
use crate::id::HostNanos;
use crate::interval::{Interval, union};

/// When what an operation had to wait for was at the device.
#[derive(Debug, Default)]
pub(super) struct Busy {
    /// It ran, or had been submitted.
    pub(super) ran: Vec<Stretch<()>>,
    /// It had been called, and when it was submitted is not known.
    pub(super) perhaps: Vec<Stretch<()>>,
    /// Whether there was more than is looked at.
    pub(super) is_cut: bool,
}

/// Operations before one that are looked at, where all its dependencies are known: then what its host
/// did is told, once it is known what covered it. Else a few will do.
const LOOKED_BACK_IF_COMPLETE: usize = 4_096;

impl Busy {
    /// What is not known of host time that was perhaps covered.
    pub(super) const fn doubt(&self) -> Doubt {
        if self.is_cut {
            Doubt::TooFarBack
        } else {
            Doubt::PerhapsCovered
        }
    }
}

impl Bench<'_> {
    /// When what it had to wait for ran, or was submitted and waited itself, within its life: from
    /// then on the host's time costs nothing. The last run of it ends with its dependency. Before
    /// its submission that work may itself have waited for the host.
    pub(super) fn busy(&self, number: usize, known: &Known, since: HostNanos) -> Busy {
        let Some((until, dependency)) = known.dependency else {
            return Busy::default();
        };
        let (mut ran, mut perhaps) = (Vec::new(), Vec::new());
        let add = |to: &mut Vec<Interval>, begin: HostNanos, end: HostNanos| {
            let (begin, end) = (begin.max(since), end.min(until));
            if begin < end {
                to.push((begin, end));
            }
        };
        if dependency.row.is_none() || self.scene.behind_more(number) {
            // An event, and what was before it is not known; or more than is kept.
            add(&mut perhaps, since, until);
        }
        let (mut seen, mut is_cut) = (FxHashSet::default(), false);
        let most = match known.readiness.is_complete() {
            true => LOOKED_BACK_IF_COMPLETE,
            false => LOOKED_BACK,
        };
        let mut open: Vec<usize> = self.scene.behind(number).collect();
        while let Some(row) = open.pop() {
            if seen.contains(&row) {
                continue;
            }
            if seen.len() == most {
                // More is before it than is looked at.
                add(&mut perhaps, since, until);
                is_cut = true;
                break;
            }
            seen.insert(row);
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
            if !complete || self.scene.behind_more(row) {
                add(&mut perhaps, since, arrived);
            }
            open.extend(self.scene.behind(row));
        }
        Busy {
            ran: united(ran, self.floor.map_or(0, |floor| floor.limit_ns)),
            perhaps: united(perhaps, 0),
            is_cut,
        }
    }

    /// The time that a binding dependency explains: from when it ran or the work was there.
    pub(super) fn zone(
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
}

fn united(of: Vec<Interval>, gap_ns: u64) -> Vec<Stretch<()>> {
    let united = union(of, gap_ns).into_iter();
    united.map(|(from, to)| stretch(from, to)).collect()
}

pub(super) const fn stretch(from: HostNanos, to: HostNanos) -> Stretch<()> {
    Stretch { from, to, of: () }
}

/// Cuts a stretch at a zone's borders.
pub(super) fn split(part: Stretch<()>, zone: Option<Stretch<()>>) -> Vec<Stretch<()>> {
    let mut borders = vec![part.from];
    let inside = |at: &HostNanos| *at > part.from && *at < part.to;
    let of_zone = zone.map(|zone| [zone.from, zone.to]);
    borders.extend(of_zone.into_iter().flatten().filter(inside));
    borders.push(part.to);
    let all = borders.windows(2).map(|two| stretch(two[0], two[1]));
    all.collect()
}

/// What of sorted stretches lies in another.
pub(super) fn overlap(of: &[Stretch<()>], part: Stretch<()>) -> Vec<Stretch<()>> {
    of.iter()
        .map(|of| stretch(of.from.max(part.from), of.to.min(part.to)))
        .filter(|of| of.from < of.to)
        .collect()
}
