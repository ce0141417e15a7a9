//! Streams.

use std::ffi::c_int;
use std::sync::atomic::Ordering;

use crate::call::{Asks, Call};
use crate::cupti::activity::{self, kind};
use crate::cupti::records::{self, Synchronization};
use crate::device::{self, Entry, Item};
use crate::driver::context::{
    GREATEST_PRIORITY, LEAST_PRIORITY, synchronization_start, write_synchronization,
};
use crate::driver::{Out, driver_functions};
use crate::graph::capture;
use crate::graph::content::Content;
use crate::handles::{Handle, handle, number};
use crate::objects::{EVENTS, STREAMS, current_context, stream};
use crate::result;

/// `CU_EVENT_WAIT_EXTERNAL`: captured as a node that waits at every launch.
const EXTERNAL: u32 = 1;

fn create(call: &Call<'_>, place: Out<Handle>, flags: u32, priority: i32) -> Result<(), u32> {
    place.check()?;
    if flags > 1 {
        return Err(result::INVALID_VALUE);
    }
    let context = current_context()?;
    // Priorities outside the range are taken to its nearer end.
    let priority = priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY);
    let stream = context.create_stream(flags, priority);
    if activity::is_enabled(kind::STREAM) {
        let id = call.device_correlation_id();
        records::write_stream(call.thread, context.id, stream.id, priority, flags, id);
    }
    let number = STREAMS.reserve();
    STREAMS.insert(number, stream);
    place.put(handle(number))
}

driver_functions! {
    fn cuStreamCreate [124, Asks::Nothing] (call, place: Out<Handle>, flags: u32) {
        create(call, place, flags, 0)
    }

    fn cuStreamCreateWithPriority [367, Asks::Nothing] (call, place: Out<Handle>, flags: u32, priority: c_int) {
        create(call, place, flags, priority)
    }

    fn cuStreamDestroy_v2 [326, Asks::Nothing] (_, of: Handle) {
        // What the stream still holds is done all the same.
        let stream = STREAMS.remove(of).ok_or(result::INVALID_HANDLE)?;
        capture::stream_is_destroyed(&stream);
        Ok(())
    }

    fn cuStreamSynchronize [126 also cuStreamSynchronize_ptsz 440, Asks::Nothing] (call, of: Handle) {
        let stream = stream(of)?;
        capture::refuse(&stream, result::STREAM_CAPTURE_UNSUPPORTED)?;
        let start = synchronization_start();
        let outcome = device::wait_for_stream(&stream).and_then(|()| {
            match stream.error.load(Ordering::Acquire) {
                0 => Ok(()),
                error => Err(error),
            }
        });
        write_synchronization(
            call, Synchronization::Stream, start, stream.context_id, stream.id, None, outcome,
        );
        outcome
    }

    fn cuStreamQuery [125 also cuStreamQuery_ptsz 439, Asks::Nothing] (_, of: Handle) {
        let stream = stream(of)?;
        capture::refuse(&stream, result::STREAM_CAPTURE_UNSUPPORTED)?;
        if device::stream_is_idle(&stream) { Ok(()) } else { Err(result::NOT_READY) }
    }

    fn cuStreamWaitEvent [295 also cuStreamWaitEvent_ptsz 436, Asks::Nothing] (call, of: Handle, event: Handle, flags: u32) {
        if flags > 1 {
            return Err(result::INVALID_VALUE);
        }
        let stream = stream(of)?;
        let event_handle = event;
        let event = EVENTS.get(event).ok_or(result::INVALID_HANDLE)?;
        let start = synchronization_start();
        // What the event captured at this call; an event that was never recorded holds nobody.
        let newest = event.recorded();
        let is_external = flags == EXTERNAL;
        if is_external {
            let number = number(event_handle);
            if let Some(added) = capture::add(call, &stream, |_, _| Ok(Content::WaitEvent(number))) {
                return added.map(|_| ());
            }
        }
        if let Some(captured) = &newest.capture {
            return capture::wait_for_event(&stream, captured);
        }
        if newest.generation > 0 {
            capture::refuse(&stream, result::STREAM_CAPTURE_ISOLATION)?;
        }
        let generation = newest.generation;
        if !event.has_reached(generation) {
            let mut wait = Entry::marker(Item::Wait);
            wait.waits_for = newest.captured;
            device::enqueue(Some(call), &stream, wait);
        }
        write_synchronization(
            call,
            Synchronization::StreamWaitEvent,
            start,
            stream.context_id,
            stream.id,
            Some((event.id, generation)),
            Ok(()),
        );
        Ok(())
    }

    fn cuStreamGetPriority [368 also cuStreamGetPriority_ptsz 434, Asks::Nothing] (_, of: Handle, priority: Out<c_int>) {
        priority.put(stream(of)?.priority.load(Ordering::Relaxed))
    }

    fn cuStreamGetFlags [369 also cuStreamGetFlags_ptsz 435, Asks::Nothing] (_, of: Handle, flags: Out<u32>) {
        flags.put(stream(of)?.flags)
    }

    fn cuStreamGetId [693 also cuStreamGetId_ptsz 694, Asks::Nothing] (_, of: Handle, id: Out<u64>) {
        id.put(stream(of)?.id.into())
    }

    fn cuStreamGetCtx [483 also cuStreamGetCtx_ptsz 484, Asks::Nothing] (_, of: Handle, context: Out<Handle>) {
        context.put(handle(stream(of)?.context))
    }

    fn cuStreamGetDevice [774 also cuStreamGetDevice_ptsz 775, Asks::Nothing] (_, of: Handle, device: Out<c_int>) {
        device.put(stream(of)?.device as c_int)
    }

}
