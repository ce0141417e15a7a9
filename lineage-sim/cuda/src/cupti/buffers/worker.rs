//! CUPTI's own thread, which hands full buffers back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::{Buffer, DELIVERY, SINKS, deliver};
use crate::cupti::client::Client;
use crate::sync::lock;

struct Queue {
    full: Vec<Buffer>,
    /// 0: hand back at once; else only every so often.
    period_ms: u32,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue {
    full: Vec::new(),
    period_ms: 0,
});
static WAKE: Condvar = Condvar::new();
static STARTED: AtomicBool = AtomicBool::new(false);

pub(crate) fn start() {
    if STARTED.swap(true, Ordering::AcqRel) {
        return;
    }
    let thread = std::thread::Builder::new()
        .name("lineage-sim-cupti".to_owned())
        .spawn(run);
    if thread.is_err() {
        // Without it, full buffers are handed back by the next flush.
        STARTED.store(false, Ordering::Release);
    }
}

pub(crate) fn set_period(period_ms: u32) {
    lock(&QUEUE).period_ms = period_ms;
    WAKE.notify_one();
}

/// Takes full buffers without open records.
pub(super) fn hand_over(buffers: Vec<Buffer>) {
    if buffers.is_empty() {
        return;
    }
    let mut queue = lock(&QUEUE);
    queue.full.extend(buffers);
    if queue.period_ms == 0 {
        WAKE.notify_one();
    }
}

pub(super) fn forget_those_of(client: &Client) {
    lock(&QUEUE)
        .full
        .retain(|buffer| buffer.client.index != client.index);
}

pub(super) fn take() -> Vec<Buffer> {
    std::mem::take(&mut lock(&QUEUE).full)
}

fn run() {
    loop {
        wait();
        // Taken under the lock of the delivery, so that a flush that comes later waits for it.
        let delivery = lock(&DELIVERY);
        let mut ready = take();
        let sinks: Vec<Arc<_>> = lock(&SINKS).clone();
        for sink in sinks {
            ready.extend(lock(&sink.buffers).take_full(false));
        }
        deliver(ready);
        drop(delivery);
    }
}

fn wait() {
    let mut queue = lock(&QUEUE);
    loop {
        let period_ms = queue.period_ms;
        if period_ms > 0 {
            let period = Duration::from_millis(period_ms.into());
            let waited = WAKE.wait_timeout(queue, period);
            let (after, timeout) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
            queue = after;
            if timeout.timed_out() {
                return;
            }
        } else if queue.full.is_empty() {
            queue = WAKE
                .wait(queue)
                .unwrap_or_else(|poisoned| poisoned.into_inner());
        } else {
            return;
        }
    }
}
