//! Clocks of the host, and the distribution of what they measured.

use serde_json::{Value, json};

/// CUPTI is given this as its timestamp callback.
pub unsafe extern "C" fn monotonic_for_cupti() -> u64 {
    monotonic_ns()
}

/// `CLOCK_MONOTONIC`.
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// `CLOCK_REALTIME`: CUPTI's own choice where it is given no clock.
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of all threads of this process.
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid place; these four clocks exist on every Linux, so the call does not fail.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Smallest, largest and quantiles of numbers; null without any.
pub fn distribution(numbers: impl IntoIterator<Item = i64>) -> Value {
    let mut sorted: Vec<i64> = numbers.into_iter().collect();
    sorted.sort_unstable();
    let Some(last) = sorted.len().checked_sub(1) else {
        return Value::Null;
    };
    let at = |share: f64| sorted[(share * last as f64).round() as usize];
    json!({
        "count": sorted.len(),
        "min": at(0.0), "p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0),
    })
}

/// The difference of two times, which may be negative.
pub fn difference(later: u64, earlier: u64) -> i64 {
    later.wrapping_sub(earlier) as i64
}
