//! What is due is done: the model's effects, one after the other.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

use lineage_sim_model::{Absence, Effect, Facts, GraphNode};

use crate::clock::now_ns;
use crate::config::is_virtual;
use crate::cupti::records;
use crate::graph::launch;
use crate::sync::lock;
use crate::{memory, objects, threads};

use super::{COMPLETED, DONE, Device, Goal, HostFunction, Item, device};

/// Lets happen what is due with the virtual clock, on the calling thread. With the real one the device's thread does that.
pub(crate) fn catch_up() {
    if is_virtual() {
        let until_ns = now_ns();
        let _one_at_a_time = performer();
        while step(until_ns) {}
    }
}

/// Lets things happen up to a time, until one of the goals is reached: whose, and when.
pub(crate) fn until_a_goal(until_ns: u64, goals: &[(usize, Goal)]) -> Option<(usize, u64)> {
    let _one_at_a_time = performer();
    let mut at_ns = device().model.now_ns();
    loop {
        // Everything of one moment happens before anybody goes on.
        while step(at_ns) {}
        let device = device();
        let reached = goals.iter().find(|(_, goal)| goal.is_reached(&device));
        if let Some((whose, _)) = reached {
            return Some((*whose, at_ns));
        }
        let next_ns = device.model.next_ns().filter(|next| *next <= until_ns)?;
        if device.model.is_stuck() {
            return None;
        }
        at_ns = at_ns.max(next_ns);
    }
}

/// Held by the one thread that performs effects while the clock is virtual.
fn performer() -> MutexGuard<'static, ()> {
    static PERFORMER: Mutex<()> = Mutex::new(());
    lock(&PERFORMER)
}

/// One effect, if one is due.
fn step(until_ns: u64) -> bool {
    let mut device = device();
    let effect = device.model.poll(until_ns);
    let absences = device.model.take_absences();
    drop(device);
    absences.iter().for_each(write_absence);
    let Some(effect) = effect else {
        return false;
    };
    let answer = threads::as_device(|| perform(effect));
    give(&mut super::device(), answer);
    true
}

/// With the real clock: everything up to now, on the device's thread.
pub(super) fn all_until_now(
    mut device: MutexGuard<'static, Device>,
) -> MutexGuard<'static, Device> {
    let mut effects = Vec::with_capacity(AT_ONCE);
    let mut answers = Vec::with_capacity(AT_ONCE);
    loop {
        let now_ns = now_ns();
        while effects.len() < AT_ONCE
            && let Some(effect) = device.model.poll(now_ns)
        {
            effects.push(effect);
        }
        let absences = device.model.take_absences();
        if effects.is_empty() && absences.is_empty() {
            return device;
        }
        drop(device);
        absences.iter().for_each(write_absence);
        answers.extend(effects.drain(..).map(perform));
        device = super::device();
        for answer in answers.drain(..) {
            give(&mut device, answer);
        }
        device.notify();
    }
}

/// Writes down that a neighbour had a device, if this process has a context there.
fn write_absence(absence: &Absence) {
    if let Some(context_id) = objects::first_context_of(absence.device) {
        records::write_absence(absence, context_id);
    }
}

/// How many effects are performed between two locks of the model. The model stops by itself at a beginning.
const AT_ONCE: usize = 8;

/// What the model is told when an effect was performed.
enum Answer {
    Begun(lineage_sim_model::OperationKey, Item, u64, u64),
    BegunWithNodes(
        lineage_sim_model::OperationKey,
        Item,
        u64,
        Vec<GraphNode<Item>>,
    ),
    Ended(lineage_sim_model::OperationKey),
}

fn give(device: &mut Device, answer: Answer) {
    match answer {
        Answer::Begun(key, item, start_ns, duration_ns) => {
            device.model.begun(key, item, start_ns, duration_ns);
        }
        Answer::BegunWithNodes(key, item, start_ns, nodes) => {
            device.model.begun_with_nodes(key, item, start_ns, nodes);
        }
        Answer::Ended(key) => device.model.ended(key),
    }
}

impl Device {
    /// Wakes the host threads if one of them has what it waits for.
    fn notify(&self) {
        let mut waiting = self.waiting.iter();
        if waiting.any(|(_, goal)| goal.is_reached(self)) {
            DONE.notify_all();
        }
    }
}

fn perform(effect: Effect<Item>) -> Answer {
    match effect {
        Effect::Begin {
            key,
            payload: Item::Conditional(mut running),
            facts,
        } => {
            let nodes = running.next();
            Answer::BegunWithNodes(key, Item::Conditional(running), facts.start_ns, nodes)
        }
        Effect::Begin {
            key,
            mut payload,
            facts,
        } => {
            let (start_ns, duration_ns) = begin(&mut payload, &facts);
            Answer::Begun(key, payload, start_ns, duration_ns)
        }
        Effect::End {
            key,
            payload,
            facts,
        } => {
            end(payload, &facts);
            Answer::Ended(key)
        }
        // The enumeration may grow; whatever it is, it is not of this device's making.
        _ => unreachable!("the model has beginnings and ends only"),
    }
}

/// Begins what takes time: when it really began, and how long it lasts.
fn begin(item: &mut Item, facts: &Facts) -> (u64, u64) {
    let due_ns = facts.start_ns;
    match item {
        Item::Operation(operation) => operation.begin(facts),
        Item::HostFunction(host) => {
            let start_ns = if is_virtual() {
                due_ns
            } else {
                now_ns().max(due_ns)
            };
            // SAFETY: the program gave the function with this pointer to be called here.
            unsafe { (host.function)(host.user) };
            let end_ns = if is_virtual() {
                due_ns
            } else {
                now_ns().max(start_ns)
            };
            (start_ns, end_ns - start_ns)
        }
        Item::Defaults(values) => {
            launch::assign_defaults(values);
            (due_ns, 0)
        }
        _ => (due_ns, 0),
    }
}

fn end(item: Item, facts: &Facts) {
    match item {
        Item::Operation(operation) => {
            operation.finish(facts);
            COMPLETED.fetch_add(1, Ordering::AcqRel);
        }
        Item::Record(event, generation, record) => {
            if let Some(record) = record {
                record.reached(facts.device, facts.end_ns);
            }
            event.reached_ns.store(facts.end_ns, Ordering::Release);
            event.reached.fetch_max(generation, Ordering::AcqRel);
        }
        // Freed twice in stream order is the program's error; CUDA reports none either.
        Item::Free(address) => drop(memory::free(address)),
        Item::PooledFree(free) => free.reached(),
        Item::FreeAllOf(context) => memory::free_all_of(context),
        Item::HostFunction(HostFunction { record, .. }) => {
            if let Some(record) = record {
                record.finish(facts);
            }
        }
        Item::Graph(launch) => {
            if let Some(record) = launch.record {
                record.finish(facts);
            }
        }
        Item::Wait
        | Item::Value
        | Item::Conditional(_)
        | Item::Defaults(_)
        | Item::FreedOfGraph(_) => {}
    }
}
