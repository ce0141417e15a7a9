//! The clock itself: which segment holds, and who makes the next one.
//!
//! # Protocol
//!
//! `current` numbers the segments; number n lies in place n % [`PLACES`]. Whoever holds `keeper`
//! writes the next place and then stores its number with release; nobody else writes. A reader loads
//! the number with acquire, reads the place, and then loads the number again: the place can only
//! have been written anew if [`PLACES`] − 1 segments were made meanwhile, and then it tries again. So
//! a reader never waits for a writer, also where the writer's thread is stopped midway.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering, fence};
use std::sync::{Mutex, OnceLock};

use crate::segment::{Reading, Segment};

const PLACES: usize = 4;

/// How long the first segment lasts, and every one from some point on.
const FIRST_NS: u64 = 1_000_000;
const LONGEST_NS: u64 = 1_000_000_000;

#[derive(Default)]
struct Place {
    from_count: AtomicU64,
    from_ns: AtomicU64,
    rate: AtomicU64,
    until_count: AtomicU64,
}

/// How well the clock agreed with `CLOCK_MONOTONIC` whenever the two were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accuracy {
    /// Comparisons so far.
    pub comparisons: u64,
    /// By how many nanoseconds it was ahead at the last one; below 0: behind.
    pub last_ahead_ns: i64,
    /// The most it was off at any, in nanoseconds, with half the time that the comparison took.
    pub worst_ns: u64,
}

struct Clock {
    counter: quanta::Clock,
    current: AtomicU64,
    places: [Place; PLACES],
    keeper: Mutex<Keeper>,
    last_ahead_ns: AtomicI64,
    worst_ns: AtomicU64,
}

struct Keeper {
    before: Reading,
    length_ns: u64,
}

static CLOCK: OnceLock<Clock> = OnceLock::new();

/// Now, in nanoseconds of `CLOCK_MONOTONIC`: for
/// [`LineageBuilder::clock`](https://docs.rs/lineage-core/latest/lineage_core/struct.LineageBuilder.html#method.clock).
///
/// The first call takes about a millisecond.
#[inline]
pub fn now() -> u64 {
    CLOCK.get_or_init(Clock::start).now()
}

/// How well it agreed with `CLOCK_MONOTONIC` so far.
pub fn accuracy() -> Accuracy {
    let clock = CLOCK.get_or_init(Clock::start);
    Accuracy {
        comparisons: clock.current.load(Ordering::Relaxed),
        last_ahead_ns: clock.last_ahead_ns.load(Ordering::Relaxed),
        worst_ns: clock.worst_ns.load(Ordering::Relaxed),
    }
}

impl Clock {
    fn start() -> Self {
        let counter = quanta::Clock::new();
        let before = compare(&counter);
        let clock = Self {
            current: AtomicU64::new(0),
            places: Default::default(),
            keeper: Mutex::new(Keeper {
                before,
                length_ns: FIRST_NS,
            }),
            last_ahead_ns: AtomicI64::new(0),
            worst_ns: AtomicU64::new(before.width_ns.div_ceil(2)),
            // What it takes the counter's rate to be is good enough for a millisecond.
            counter,
        };
        let rate = clock.counter.delta_as_nanos(0, 1 << 32);
        let segment = Segment {
            from_count: before.count,
            from_ns: before.at_ns,
            rate,
        };
        clock.put(0, segment, FIRST_NS);
        clock
    }

    #[inline]
    fn now(&self) -> u64 {
        let count = self.counter.raw();
        loop {
            let number = self.current.load(Ordering::Acquire);
            let place = &self.places[number as usize % PLACES];
            let segment = Segment {
                from_count: place.from_count.load(Ordering::Relaxed),
                from_ns: place.from_ns.load(Ordering::Relaxed),
                rate: place.rate.load(Ordering::Relaxed),
            };
            let until = place.until_count.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if self.current.load(Ordering::Relaxed) - number < PLACES as u64 - 1 {
                if count < until {
                    return segment.at(count);
                }
                return self.renew(number, segment, count);
            }
        }
    }

    /// The segment is over: makes the next one, unless somebody else is about to.
    #[cold]
    fn renew(&self, number: u64, segment: Segment, count: u64) -> u64 {
        let Ok(mut keeper) = self.keeper.try_lock() else {
            return segment.at(count);
        };
        if self.current.load(Ordering::Relaxed) != number {
            drop(keeper);
            return self.now();
        }
        let reading = compare(&self.counter);
        let length_ns = (keeper.length_ns * 2).min(LONGEST_NS);
        let (next, ahead_ns) = segment.next(keeper.before, reading, length_ns);
        *keeper = Keeper {
            before: reading,
            length_ns,
        };
        self.last_ahead_ns.store(ahead_ns, Ordering::Relaxed);
        let off = ahead_ns.unsigned_abs() + reading.width_ns.div_ceil(2);
        self.worst_ns.fetch_max(off, Ordering::Relaxed);
        self.put(number + 1, next, length_ns);
        next.at(reading.count)
    }

    fn put(&self, number: u64, segment: Segment, length_ns: u64) {
        let place = &self.places[number as usize % PLACES];
        let until = segment.from_count + segment.counts_in(length_ns);
        place
            .from_count
            .store(segment.from_count, Ordering::Relaxed);
        place.from_ns.store(segment.from_ns, Ordering::Relaxed);
        place.rate.store(segment.rate, Ordering::Relaxed);
        place.until_count.store(until, Ordering::Relaxed);
        self.current.store(number, Ordering::Release);
    }
}

/// Reads both clocks, the system's before and after the counter, a few times: the closest pair.
fn compare(counter: &quanta::Clock) -> Reading {
    let read = || {
        let (before, count, after) = (monotonic_ns(), counter.raw(), monotonic_ns());
        let width_ns = after - before;
        Reading {
            count,
            at_ns: before + width_ns / 2,
            width_ns,
        }
    };
    let readings: [Reading; 8] = std::array::from_fn(|_| read());
    let closest = readings.iter().min_by_key(|reading| reading.width_ns);
    *closest.unwrap_or(&readings[0])
}

#[cfg(unix)]
fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Nanoseconds since the first use, where there is no `CLOCK_MONOTONIC`; never 0, which CUPTI takes
/// for "unknown".
#[cfg(not(unix))]
fn monotonic_ns() -> u64 {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    let elapsed = ORIGIN.get_or_init(std::time::Instant::now).elapsed();
    elapsed.as_nanos() as u64 + 1
}
