//! The compute engine of a device: kernels on multiprocessors, and the slices that a neighbour takes away.
//!
//! Kernels wait in the order of priority, then of arrival. Blocks of the first are placed as they fit; none of the next
//! before the first has placed all of its own. Blocks placed together are a *cohort*, which ends together.
//!
//! While another process has the device nothing here goes on: the engine has a time of its own, which stands
//! still meanwhile, so that nothing under way needs to be shifted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::facts::Limit;
use crate::settings::Settings;
use crate::work::{Footprint, Work};

use super::Model;
use super::dependency::Moment;
use super::events::Slice;
use super::multiprocessor::{Multiprocessors, Places};
use super::operations::OperationKey;

/// Blocks of one kernel that were placed together.
pub(super) struct Cohort {
    key: OperationKey,
    footprint: Footprint,
    /// On the engine's time.
    placed_ns: u64,
    /// When it ends, once that is known; on the engine's time.
    ends_ns: Option<u64>,
    places: Places,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A cohort ends; where it is kept.
    Cohort(u32),
    /// All blocks of a kernel have triggered.
    Trigger(OperationKey),
}

pub(super) struct Compute {
    multiprocessors: Multiprocessors,
    /// Sorted: priority, arrival, submission.
    waiting: Vec<(i32, u64, u64, OperationKey)>,
    /// On the engine's time.
    timers: BinaryHeap<Reverse<(u64, u64, Timer)>>,
    sequence: u64,
    cohorts: Vec<Option<Cohort>>,
    free: Vec<u32>,
    /// Something has come or gone since blocks were placed last.
    changed: bool,
    ended_number: u64,
    slice: Option<(u64, Slice)>,
    /// The neighbour has it since then.
    away_since_ns: Option<u64>,
    away_ns: u64,
    /// Nothing is placed since then: the neighbour has it, or is about to.
    blocked_since_ns: Option<u64>,
    blocked_ns: u64,
    /// Absences that are over, for who watches them.
    absences: Vec<Absence>,
}

/// A neighbour had a device's compute engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Absence {
    /// The device.
    pub device: u32,
    /// When the switch to the neighbour began, and when it had ended.
    pub leaves_ns: [u64; 2],
    /// When the switch back began, and when it had ended.
    pub returns_ns: [u64; 2],
}

impl Compute {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            multiprocessors: Multiprocessors::new(settings),
            waiting: Vec::new(),
            timers: BinaryHeap::new(),
            sequence: 0,
            cohorts: Vec::new(),
            free: Vec::new(),
            changed: false,
            ended_number: 0,
            slice: None,
            away_since_ns: None,
            away_ns: 0,
            blocked_since_ns: None,
            blocked_ns: 0,
            absences: Vec::new(),
        }
    }

    /// When something happens here next.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let timer = self.next_timer_ns();
        let slice = self.slice.map(|(at_ns, _)| at_ns);
        match (timer, slice) {
            (Some(timer), Some(slice)) => Some(timer.min(slice)),
            (timer, slice) => timer.or(slice),
        }
    }

    fn next_timer_ns(&self) -> Option<u64> {
        if self.away_since_ns.is_some() {
            return None;
        }
        let timer = self.timers.peek();
        timer.map(|Reverse((at_ns, ..))| at_ns.saturating_add(self.away_ns))
    }

    /// Whether a kernel runs or waits here, other than for something that will not come by itself.
    pub(super) fn has_work(&self) -> bool {
        !self.timers.is_empty()
            || self.can_place()
            || !self.waiting.is_empty() && self.blocked_since_ns.is_some()
    }

    pub(super) fn can_place(&self) -> bool {
        self.changed && !self.waiting.is_empty() && self.blocked_since_ns.is_none()
    }

    /// The engine's own time.
    fn engine_ns(&self, now_ns: u64) -> u64 {
        self.away_since_ns.unwrap_or(now_ns) - self.away_ns
    }

    /// How long nothing was placed so far.
    fn blocked_ns(&self, now_ns: u64) -> u64 {
        self.blocked_ns + self.blocked_since_ns.map_or(0, |since| now_ns - since)
    }

    fn timer(&mut self, at_ns: u64, timer: Timer) {
        self.sequence += 1;
        self.timers.push(Reverse((at_ns, self.sequence, timer)));
    }

    /// Keeps a cohort until its end.
    fn ends_at(&mut self, mut cohort: Cohort, ends_ns: u64) {
        cohort.ends_ns = Some(ends_ns);
        let at = self.free.pop().unwrap_or_else(|| {
            self.cohorts.push(None);
            self.cohorts.len() as u32 - 1
        });
        self.cohorts[at as usize] = Some(cohort);
        self.timer(ends_ns, Timer::Cohort(at));
    }
}

impl<P> Model<P> {
    pub(super) fn engines_can_be_filled(&self) -> bool {
        self.compute.iter().any(Compute::can_place)
            || self.copy_engines.iter().any(super::CopyEngines::can_start)
    }

    /// Lets engines take work. False when there was none to take.
    pub(super) fn fill_engines(&mut self) -> bool {
        let mut did = false;
        for device in 0..self.compute.len() {
            if self.compute[device].can_place() {
                self.place_blocks(device);
                did = true;
            }
            if self.copy_engines[device].can_start() {
                self.start_copies(device);
                did = true;
            }
        }
        did
    }

    pub(super) fn kernel_arrives(&mut self, device: usize, key: OperationKey) {
        let now_ns = self.now_ns;
        let compute = &mut self.compute[device];
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        operation.blocked_before_ns = compute.blocked_ns(now_ns);
        let entry = (operation.priority, now_ns, operation.sequence, key);
        let at = compute.waiting.partition_point(|other| *other < entry);
        compute.waiting.insert(at, entry);
        compute.changed = true;
    }

    /// Places blocks of waiting kernels, in their order, until some do not fit.
    fn place_blocks(&mut self, device: usize) {
        let now_ns = self.now_ns;
        self.compute[device].changed = false;
        let mut placed_all = 0;
        while let Some((.., key)) = self.compute[device].waiting.get(placed_all).copied() {
            let compute = &mut self.compute[device];
            let Some(operation) = self.operations.get_mut(key) else {
                placed_all += 1;
                continue;
            };
            let Work::Kernel { footprint, .. } = operation.work else {
                placed_all += 1;
                continue;
            };
            let has_started = operation.cohorts > 0 || operation.state == super::State::Running;
            let (blocks, places, limit) = compute
                .multiprocessors
                .place(&footprint, operation.blocks_left);
            if blocks == 0 {
                if !has_started {
                    operation.facts.limit = limit;
                }
                break;
            }
            operation.blocks_left -= blocks;
            operation.cohorts += 1;
            let all = operation.blocks_left == 0;
            let cohort = Cohort {
                key,
                footprint,
                placed_ns: compute.engine_ns(now_ns),
                ends_ns: None,
                places,
            };
            if !has_started {
                operation.neighbour_ns = compute.blocked_ns(now_ns) - operation.blocked_before_ns;
                if operation.dispatched_ns + operation.neighbour_ns < now_ns {
                    operation.facts.resource_number = compute.ended_number;
                }
                operation.held.push(cohort);
                self.begin(key);
            } else if operation.payload.is_some() {
                self.cohort_runs(device, key, cohort);
                if all {
                    self.all_blocks_begun(device, key);
                }
            } else {
                operation.held.push(cohort);
            }
            if !all {
                break;
            }
            placed_all += 1;
        }
        let compute = &mut self.compute[device];
        compute.waiting.drain(..placed_all);
        // Those behind one whose blocks do not fit wait for their turn.
        for (.., key) in compute.waiting.iter().skip(1) {
            if let Some(operation) = self.operations.get_mut(*key)
                && operation.cohorts == 0
            {
                operation.facts.limit = Limit::Order;
            }
        }
    }

    /// The driver has said how long a kernel's blocks last.
    pub(super) fn kernel_begun(&mut self, key: OperationKey) {
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        let device = operation.facts.device as usize;
        // With the real clock it may have begun later than it was placed.
        let late_ns = operation.start_ns - operation.facts.resources_ns;
        for cohort in &mut operation.held {
            cohort.placed_ns += late_ns;
        }
        let compute = &self.compute[device];
        operation.engine_start_ns = compute.engine_ns(operation.facts.resources_ns) + late_ns;
        let all = operation.blocks_left == 0;
        self.join_collective(key);
        self.release_held(key);
        if all {
            self.all_blocks_begun(device, key);
        }
    }

    /// Cohorts whose end could not be known end at a known time, once nothing more is waited for inside.
    pub(super) fn release_held(&mut self, key: OperationKey) {
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        if operation.primary_runs || operation.collective_waits || operation.payload.is_none() {
            return;
        }
        let device = operation.facts.device as usize;
        for cohort in std::mem::take(&mut operation.held) {
            self.cohort_runs(device, key, cohort);
        }
    }

    /// The primary of a programmatic launch has ended.
    pub(super) fn primary_ended(&mut self, key: OperationKey) {
        if let Some(operation) = self.operations.get_mut(key) {
            operation.primary_runs = false;
        }
        self.release_held(key);
    }

    /// A cohort runs to its end, or is held while something is waited for inside.
    fn cohort_runs(&mut self, device: usize, key: OperationKey, cohort: Cohort) {
        let compute = &mut self.compute[device];
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        if operation.primary_runs || operation.collective_waits {
            operation.held.push(cohort);
            return;
        }
        let waits_after_ns = match operation.work {
            Work::Kernel {
                programmatic,
                collective: None,
                ..
            } if programmatic.may_overlap => programmatic.waits_after_ns.min(operation.duration_ns),
            _ => 0,
        };
        let reaches_wait_ns = cohort.placed_ns + waits_after_ns;
        let goes_on_ns = reaches_wait_ns.max(compute.engine_ns(self.now_ns));
        let waited_ns = goes_on_ns - reaches_wait_ns;
        operation.facts.waited_inside_ns = operation.facts.waited_inside_ns.max(waited_ns);
        let ends_ns = goes_on_ns.saturating_add(operation.duration_ns - waits_after_ns);
        compute.ends_at(cohort, ends_ns);
    }

    /// From here on its dependents can be let go.
    fn all_blocks_begun(&mut self, device: usize, key: OperationKey) {
        let compute = &mut self.compute[device];
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        if let Work::Kernel { programmatic, .. } = operation.work
            && let Some(after_ns) = programmatic.triggers_after_ns
        {
            let late_ns = operation.start_ns.saturating_sub(self.now_ns);
            let at_ns = compute.engine_ns(self.now_ns) + late_ns + after_ns;
            compute.timer(at_ns, Timer::Trigger(key));
        }
        self.satisfy(key, Moment::Start);
    }

    /// The next thing that happens to a compute engine.
    pub(super) fn compute_event(&mut self, device: usize) {
        let now_ns = self.now_ns;
        let compute = &mut self.compute[device];
        if compute.next_timer_ns().is_some_and(|next| next <= now_ns) {
            let Some(Reverse((_, _, timer))) = compute.timers.pop() else {
                return;
            };
            match timer {
                Timer::Cohort(at) => {
                    if let Some(cohort) = compute.cohorts[at as usize].take() {
                        compute.free.push(at);
                        self.cohort_ended(device, &cohort);
                    }
                }
                Timer::Trigger(key) => self.satisfy(key, Moment::Trigger),
            }
        } else if let Some((_, slice)) = compute.slice.take() {
            self.slice_event(device, slice);
        }
    }

    fn cohort_ended(&mut self, device: usize, cohort: &Cohort) {
        let now_ns = self.now_ns;
        let compute = &mut self.compute[device];
        compute
            .multiprocessors
            .release(&cohort.footprint, &cohort.places);
        compute.changed = true;
        let Some(operation) = self.operations.get_mut(cohort.key) else {
            return;
        };
        compute.ended_number = operation.facts.number;
        operation.cohorts -= 1;
        if operation.cohorts > 0 || operation.blocks_left > 0 {
            return;
        }
        let on_engine_ns = compute.engine_ns(now_ns) - operation.engine_start_ns;
        operation.facts.preempted_ns = (now_ns - operation.start_ns).saturating_sub(on_engine_ns);
        self.end(cohort.key, now_ns);
    }

    /// From now on absences are kept until they are taken.
    pub fn watch_absences(&mut self) {
        self.watches_absences = true;
    }

    /// The neighbour's slices that have ended since this was asked last, if they are watched.
    pub fn take_absences(&mut self) -> Vec<Absence> {
        let all = self.compute.iter_mut();
        all.flat_map(|compute| std::mem::take(&mut compute.absences))
            .collect()
    }

    /// The first slice of this process.
    pub(super) fn start_slices(&mut self, device: usize) {
        if self.settings.time_slice_ns > 0 && self.settings.neighbour_slice_ns > 0 {
            let over_ns = self.now_ns + self.settings.time_slice_ns;
            self.compute[device].slice = Some((over_ns, Slice::Over));
        }
    }

    fn slice_event(&mut self, device: usize, slice: Slice) {
        let now_ns = self.now_ns;
        let settings = self.settings;
        let compute = &mut self.compute[device];
        match slice {
            Slice::Over => {
                compute.blocked_since_ns = Some(now_ns);
                let engine_ns = compute.engine_ns(now_ns);
                let points = compute.cohorts.iter().flatten().map(|cohort| {
                    preemption_point(settings.preemption_granularity_ns, cohort, engine_ns)
                });
                let last_ns = points.max().unwrap_or(engine_ns).max(engine_ns);
                compute.slice = Some((now_ns + (last_ns - engine_ns), Slice::Preempt));
            }
            Slice::Preempt => {
                compute.away_since_ns = Some(now_ns);
                let gone_ns = settings.neighbour_slice_ns + 2 * settings.context_switch_ns;
                compute.slice = Some((now_ns + gone_ns, Slice::Again));
            }
            Slice::Again => {
                let since_ns = compute.away_since_ns.take().unwrap_or(now_ns);
                compute.away_ns += now_ns - since_ns;
                if self.watches_absences {
                    let switch_ns = settings.context_switch_ns;
                    compute.absences.push(Absence {
                        device: device as u32,
                        leaves_ns: [since_ns, since_ns + switch_ns],
                        returns_ns: [now_ns - switch_ns, now_ns],
                    });
                }
                compute.blocked_ns += now_ns - compute.blocked_since_ns.take().unwrap_or(now_ns);
                compute.changed = true;
                compute.slice = Some((now_ns + settings.time_slice_ns, Slice::Over));
            }
        }
    }
}

/// When a cohort can be preempted next, on the engine's time. The engine is given away when the last of its cohorts has
/// come to such a point; the others run until then.
fn preemption_point(granularity_ns: u64, cohort: &Cohort, engine_ns: u64) -> u64 {
    let end_ns = cohort.ends_ns.unwrap_or(engine_ns);
    if granularity_ns == 0 {
        return engine_ns;
    }
    let runs_ns = engine_ns.saturating_sub(cohort.placed_ns);
    let point_ns = runs_ns
        .div_ceil(granularity_ns)
        .saturating_mul(granularity_ns);
    cohort.placed_ns.saturating_add(point_ns).min(end_ns)
}
