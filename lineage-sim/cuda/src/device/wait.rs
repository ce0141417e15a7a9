//! What host threads wait for, and how.

use std::sync::Arc;

use lineage_sim_model::{OperationKey, StreamKey};

use crate::clock::spin_ns;
use crate::config::{is_virtual, model};
use crate::hosts;
use crate::objects::{CONTEXTS, Event, Stream};
use crate::result;

use super::{DONE, Device, device};

/// `CU_CTX_SCHED_BLOCKING_SYNC`: a thread that waits sleeps.
const BLOCKING: u32 = 4;

/// What a host thread waits for.
#[derive(Clone)]
pub(crate) enum Goal {
    /// All of these are done.
    Done(Vec<OperationKey>),
    /// The event has reached this generation.
    Event(Arc<Event>, u64),
    /// The stream's channel has room for so many bytes of parameters.
    Room(StreamKey, u32),
}

impl Goal {
    pub(super) fn is_reached(&self, device: &Device) -> bool {
        match self {
            Self::Done(keys) => keys.iter().all(|key| device.model.is_done(*key)),
            Self::Event(event, generation) => event.has_reached(*generation),
            Self::Room(key, bytes) => {
                // With the real clock room for several at once, so that a full channel does not wake its caller for each.
                let depth = model().ring_entries.max(1) as usize;
                let in_use = device.model.queued_in_channel_of(*key);
                let enough = is_virtual() || in_use <= depth - depth.div_ceil(8);
                enough && device.model.has_room(*key, *bytes)
            }
        }
    }
}

/// Waits until what was put in under this key is done.
pub(crate) fn wait(stream: &Stream, key: OperationKey) -> Result<(), u32> {
    fence(stream.context, Goal::Done(vec![key]), false)
}

/// Waits for everything that the stream holds now.
pub(crate) fn wait_for_stream(stream: &Stream) -> Result<(), u32> {
    let keys = device().model.last_of(stream.key).into_iter().collect();
    fence(stream.context, Goal::Done(keys), false)
}

/// Waits for everything that the streams of a context hold now.
pub(crate) fn wait_for_context(context: u64, context_id: u32) -> Result<(), u32> {
    let keys = device().model.last_of_context(context_id);
    fence(context, Goal::Done(keys), false)
}

/// Waits until the event has reached a generation.
pub(crate) fn wait_for_event(event: &Arc<Event>, generation: u64) -> Result<(), u32> {
    let goal = Goal::Event(event.clone(), generation);
    fence(event.context, goal, event.blocks)
}

/// Waits, and pays for waking up: less for a thread that spins than for one that sleeps.
fn fence(context: u64, goal: Goal, blocks: bool) -> Result<(), u32> {
    device().ring();
    until(goal)?;
    let (spin, sleep) = (model().spin_fence_ns, model().sleep_fence_ns);
    if spin > 0 || sleep > 0 {
        let context = CONTEXTS.get_number(context);
        let flags = context.map_or(0, |context| {
            context.flags.load(std::sync::atomic::Ordering::Relaxed)
        });
        let sleeps = blocks || flags & BLOCKING != 0;
        spin_ns(if sleeps { sleep } else { spin });
    }
    Ok(())
}

/// Waits. With the virtual clock a wait that nothing can end answers `CUDA_ERROR_LAUNCH_TIMEOUT`; with the real one it lasts.
pub(super) fn until(goal: Goal) -> Result<(), u32> {
    if is_virtual() {
        return hosts::wait(goal).ok_or(result::LAUNCH_TIMEOUT);
    }
    let mut device = device();
    if goal.is_reached(&device) {
        return Ok(());
    }
    let waiter = device.next_waiter;
    device.next_waiter += 1;
    device.waiting.push((waiter, goal.clone()));
    while !goal.is_reached(&device) {
        device = DONE
            .wait(device)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
    }
    device.waiting.retain(|(other, _)| *other != waiter);
    Ok(())
}
