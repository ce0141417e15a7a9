//! The device's clock and the kernel's id of the calling thread.

use std::cell::Cell;

use crate::config::is_virtual;
use crate::hosts;

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is valid to be written.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The clock of the device model and of the truth: `CLOCK_MONOTONIC`, or the virtual time of the calling thread.
pub(crate) fn now_ns() -> u64 {
    if is_virtual() {
        hosts::now_ns()
    } else {
        clock_ns(libc::CLOCK_MONOTONIC)
    }
}

/// `CLOCK_REALTIME`: what CUPTI stamps with on Linux unless a callback is registered. With the virtual clock that is the only one.
pub(crate) fn realtime_ns() -> u64 {
    if is_virtual() {
        hosts::now_ns()
    } else {
        clock_ns(libc::CLOCK_REALTIME)
    }
}

thread_local! {
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// `gettid`, asked once per thread.
pub(crate) fn thread_id() -> u32 {
    THREAD.with(|cell| {
        if cell.get() == 0 {
            // SAFETY: takes nothing.
            cell.set(unsafe { libc::gettid() } as u32);
        }
        cell.get()
    })
}

/// `pthread_self` cut to 32 bits, as CUPTI's default thread id is.
pub(crate) fn pthread_id() -> u32 {
    // SAFETY: takes nothing.
    (unsafe { libc::pthread_self() }) as u32
}

/// Burns time on the calling thread, or lets its virtual time advance.
pub(crate) fn spin_ns(duration_ns: u64) {
    if is_virtual() {
        hosts::spend_ns(duration_ns);
        return;
    }
    let end = now_ns() + duration_ns;
    while now_ns() < end {
        std::hint::spin_loop();
    }
}
