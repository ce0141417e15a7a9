//! Events.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::call::{Asks, Call};
use crate::cupti::records::{self, EventRecord, EventRecorded, Synchronization};
use crate::device::{self, Entry, Item};
use crate::driver::context::{synchronization_start, write_synchronization};
use crate::driver::{Out, driver_functions};
use crate::graph::capture;
use crate::graph::content::Content;
use crate::handles::{Handle, handle, number};
use crate::objects::{CONTEXTS, EVENTS, Event, current_context, next_generation, stream};
use crate::result;
use crate::sync::lock;

/// `CU_EVENT_BLOCKING_SYNC`, `DISABLE_TIMING` and `INTERPROCESS`.
const FLAGS: u32 = 7;
/// `CU_EVENT_RECORD_EXTERNAL`: captured as a node that records the event at every launch.
const EXTERNAL: u32 = 1;

pub(crate) fn record(call: &Call<'_>, event: Handle, of: Handle) -> Result<(), u32> {
    let event = EVENTS.get(event).ok_or(result::INVALID_HANDLE)?;
    let stream = stream(of)?;
    if stream.context != event.context {
        return Err(result::INVALID_HANDLE);
    }
    if let Some(captured) = capture::record_event(&stream) {
        let captured = captured?;
        lock(&event.newest).capture = Some(captured);
        return Ok(());
    }
    // Held while it is put into the stream, so that the newest generation is the newest capture.
    let mut newest = lock(&event.newest);
    newest.generation = next_generation();
    newest.capture = None;
    let recorded = EventRecorded {
        device: stream.device,
        correlation_id: call.correlation_id,
        context_id: stream.context_id,
        stream_id: stream.id,
        event_id: event.id,
        sync_id: newest.generation,
    };
    let written = EventRecord::open(call.thread, &recorded);
    let record = Entry::marker(Item::Record(event.clone(), newest.generation, written));
    newest.captured = Some(device::enqueue(Some(call), &stream, record));
    Ok(())
}

/// The number of the event's newest record call. `CAPTURED_EVENT` when that was captured.
fn recorded(event: &Event) -> Result<u64, u32> {
    let newest = event.recorded();
    match newest.capture {
        Some(_) => Err(result::CAPTURED_EVENT),
        None => Ok(newest.generation),
    }
}

/// The event's newest record, reached: when.
fn reached_ns(event: &Event) -> Result<u64, u32> {
    device::look();
    let generation = recorded(event)?;
    if !event.timed || generation == 0 {
        return Err(result::INVALID_HANDLE);
    }
    if !event.has_reached(generation) {
        return Err(result::NOT_READY);
    }
    Ok(event.reached_ns.load(Ordering::Acquire))
}

fn elapsed(milliseconds: Out<f32>, start: Handle, end: Handle) -> Result<(), u32> {
    let start = EVENTS.get(start).ok_or(result::INVALID_HANDLE)?;
    let end = EVENTS.get(end).ok_or(result::INVALID_HANDLE)?;
    let (start_ns, end_ns) = (reached_ns(&start)?, reached_ns(&end)?);
    let nanoseconds = end_ns.wrapping_sub(start_ns) as i64;
    milliseconds.put((nanoseconds as f64 / 1e6) as f32)
}

driver_functions! {
    fn cuEventCreate [118, Asks::Nothing] (_, event: Out<Handle>, flags: u32) {
        event.check()?;
        if flags & !FLAGS != 0 || flags & 6 == 4 {
            return Err(result::INVALID_VALUE);
        }
        let context = current_context()?;
        event.put(handle(Event::create(context.number, flags)))
    }

    fn cuEventDestroy_v2 [325, Asks::Nothing] (_, event: Handle) {
        EVENTS.remove(event).map(|_| ()).ok_or(result::INVALID_HANDLE)
    }

    fn cuEventRecord [119 also cuEventRecord_ptsz 441, Asks::Nothing] (call, event: Handle, of: Handle) {
        record(call, event, of)
    }

    fn cuEventRecordWithFlags [587 also cuEventRecordWithFlags_ptsz 588, Asks::Nothing] (call, event: Handle, of: Handle, flags: u32) {
        match flags {
            0 => record(call, event, of),
            EXTERNAL => {
                let stream = stream(of)?;
                let number = number(event);
                EVENTS.get(event).ok_or(result::INVALID_HANDLE)?;
                // Outside of a capture the flag has no effect.
                match capture::add(call, &stream, |_, _| Ok(Content::RecordEvent(number))) {
                    Some(added) => added.map(|_| ()),
                    None => record(call, event, of),
                }
            }
            _ => Err(result::INVALID_VALUE),
        }
    }

    fn cuEventQuery [120, Asks::Nothing] (call, event: Handle) {
        let event = EVENTS.get(event).ok_or(result::INVALID_HANDLE)?;
        let generation = recorded(&event)?;
        capture::check_unsafe(call)?;
        device::look();
        if event.has_reached(generation) { Ok(()) } else { Err(result::NOT_READY) }
    }

    fn cuEventSynchronize [121, Asks::Nothing] (call, event: Handle) {
        let event: Arc<Event> = EVENTS.get(event).ok_or(result::INVALID_HANDLE)?;
        let context = CONTEXTS.get_number(event.context).ok_or(result::CONTEXT_IS_DESTROYED)?;
        let start = synchronization_start();
        let generation = recorded(&event)?;
        let outcome = device::wait_for_event(&event, generation).and_then(|()| context.check());
        let about = Some((event.id, generation));
        write_synchronization(
            call, Synchronization::Event, start, context.id, records::INVALID_ID, about, outcome,
        );
        outcome
    }

    fn cuEventElapsedTime [123, Asks::Nothing] (_, milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(milliseconds, start, end)
    }

    fn cuEventElapsedTime_v2 [780, Asks::Nothing] (_, milliseconds: Out<f32>, start: Handle, end: Handle) {
        elapsed(milliseconds, start, end)
    }
}
