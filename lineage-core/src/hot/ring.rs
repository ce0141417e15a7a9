//! One bounded ring per thread: a single producer, a single consumer, slots of atomics.
//!
//! # Protocol
//!
//! * `head` counts the records ever written and is stored only by the producer; `tail` counts the
//!   records ever read and is stored only by the consumer. `head - tail` records are in the ring.
//! * The producer writes the words of slot `head % capacity` with relaxed stores and then
//!   publishes them with a release store of `head + 1`. The consumer reads `head` with acquire, so
//!   it sees the words of every slot below it.
//! * The consumer reads words with relaxed loads and then frees the slots with a release store of
//!   `tail`. The producer reads `tail` with acquire before it writes a slot again, so a slot is
//!   never overwritten while it is read.
//! * A full ring drops the **newest** record and raises `dropped`. Every record carries its
//!   sequence number, which dropped records use up too: the consumer sees a hole in the numbers
//!   exactly where records are missing, and after the last record it compares `dropped` with the
//!   holes it saw.
//! * `closed_at` is stored with release by the producer when its thread ends, after its last
//!   record; a consumer that reads it with acquire and then drains has seen everything.
//!
//! Slots are atomics, so a fault in this protocol could give a wrong record but never undefined
//! behaviour, and the whole is checked by a loom model (`RUSTFLAGS="--cfg loom"`).

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

use std::cell::Cell;

#[cfg(loom)]
use loom::sync::Arc;
#[cfg(not(loom))]
use std::sync::Arc;

/// Words of a record, the first of which holds kind, flags and sequence number.
pub(crate) const WORDS: usize = 8;

/// A record as it lies in the ring.
pub(crate) type Words = [u64; WORDS];

/// Bits of the first word that the sequence number takes.
const SEQUENCE_BITS: u32 = 48;
const SEQUENCE_MASK: u64 = (1 << SEQUENCE_BITS) - 1;

/// A record's place: one cache line, so that a record crosses to the drain thread's core as one.
#[repr(align(64))]
struct Slot([AtomicU64; WORDS]);

/// Values of `closed_at` that are no times.
const OPEN: u64 = 0;
const CLOSED_WITHOUT_A_TIME: u64 = u64::MAX;

/// A counter with two cache lines for itself, so that a side's stores do not slow the other's loads:
/// processors fetch lines in pairs.
#[repr(align(128))]
struct Counter(AtomicU64);

/// The part that both sides share.
struct Ring {
    slots: Box<[Slot]>,
    head: Counter,
    tail: Counter,
    dropped: AtomicU64,
    closed_at: AtomicU64,
}

/// A ring of at least this many records, rounded up to a power of two.
pub(crate) fn ring(capacity: usize) -> (Producer, Consumer) {
    let capacity = capacity.max(2).next_power_of_two();
    let slot = |_| Slot(std::array::from_fn(|_| AtomicU64::new(0)));
    let ring = Arc::new(Ring {
        slots: (0..capacity).map(slot).collect(),
        head: Counter(AtomicU64::new(0)),
        tail: Counter(AtomicU64::new(0)),
        dropped: AtomicU64::new(0),
        closed_at: AtomicU64::new(OPEN),
    });
    let producer = Producer {
        ring: Arc::clone(&ring),
        head: Cell::new(0),
        known_tail: Cell::new(0),
        dropped: Cell::new(0),
    };
    let consumer = Consumer {
        ring,
        tail: 0,
        expected: 0,
        gaps: 0,
    };
    (producer, consumer)
}

impl Ring {
    fn slot(&self, position: u64) -> &[AtomicU64; WORDS] {
        &self.slots[position as usize & (self.slots.len() - 1)].0
    }
}

/// The writing side, on the ring's own thread.
pub(crate) struct Producer {
    ring: Arc<Ring>,
    head: Cell<u64>,
    known_tail: Cell<u64>,
    /// Records dropped so far: they have numbers too.
    dropped: Cell<u64>,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is in the ring.
    Kept,
    /// It is in the ring, which is half full by now: the consumer should be woken.
    KeptAndHalfFull,
    /// The ring was full: the record is lost and counted.
    Dropped,
}

impl Producer {
    /// Writes a record. The low 48 bits of its first word are overwritten by its number.
    #[inline]
    pub(crate) fn push(&self, words: &Words) -> Pushed {
        let (head, capacity) = (self.head.get(), self.ring.slots.len() as u64);
        if head - self.known_tail.get() >= capacity && !self.has_room(head, capacity) {
            return Pushed::Dropped;
        }
        let sequence = (head + self.dropped.get()) & SEQUENCE_MASK;
        let slot = self.ring.slot(head);
        slot[0].store((words[0] & !SEQUENCE_MASK) | sequence, Ordering::Relaxed);
        for (word, value) in slot[1..].iter().zip(&words[1..]) {
            word.store(*value, Ordering::Relaxed);
        }
        self.ring.head.0.store(head + 1, Ordering::Release);
        self.head.set(head + 1);
        // Once per half ring is enough, so only the record that crosses a half asks for it.
        if (head + 1) & (capacity / 2 - 1) == 0 {
            Pushed::KeptAndHalfFull
        } else {
            Pushed::Kept
        }
    }

    /// Looks how far the consumer is by now. Counts a drop if that is not far enough.
    #[cold]
    fn has_room(&self, head: u64, capacity: u64) -> bool {
        self.known_tail
            .set(self.ring.tail.0.load(Ordering::Acquire));
        let room = head - self.known_tail.get() < capacity;
        if !room {
            self.dropped.set(self.dropped.get() + 1);
            self.ring.dropped.fetch_add(1, Ordering::Relaxed);
        }
        room
    }
}

impl Producer {
    /// Closes the ring because its thread ends now.
    pub(crate) fn close(self, at: u64) {
        self.ring.closed_at.store(
            at.clamp(OPEN + 1, CLOSED_WITHOUT_A_TIME - 1),
            Ordering::Release,
        );
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if self.ring.closed_at.load(Ordering::Relaxed) == OPEN {
            self.ring
                .closed_at
                .store(CLOSED_WITHOUT_A_TIME, Ordering::Release);
        }
    }
}

/// The reading side, on the drain thread.
pub(crate) struct Consumer {
    ring: Arc<Ring>,
    tail: u64,
    expected: u64,
    gaps: u64,
}

/// What a consumer finds next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Popped {
    /// A record.
    Record(Words),
    /// This many records are missing before the next one.
    Gap(u64),
}

impl Consumer {
    /// Hands over everything that is in the ring, gaps in their places, and frees it.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(Popped)) {
        let head = self.ring.head.0.load(Ordering::Acquire);
        while self.tail != head {
            let slot = self.ring.slot(self.tail);
            let words: Words = std::array::from_fn(|at| slot[at].load(Ordering::Relaxed));
            let missing = (words[0] & SEQUENCE_MASK).wrapping_sub(self.expected) & SEQUENCE_MASK;
            if missing > 0 {
                self.gaps += missing;
                each(Popped::Gap(missing));
            }
            self.expected = ((words[0] & SEQUENCE_MASK) + 1) & SEQUENCE_MASK;
            each(Popped::Record(words));
            self.tail += 1;
            self.ring.tail.0.store(self.tail, Ordering::Release);
        }
    }

    /// Whether the producer is gone. If so, a `drain` that follows sees all it ever wrote.
    pub(crate) fn is_closed(&self) -> bool {
        self.ring.closed_at.load(Ordering::Acquire) != OPEN
    }

    /// When the producer's thread ended, if it did.
    pub(crate) fn closed_at(&self) -> Option<u64> {
        let at = self.ring.closed_at.load(Ordering::Acquire);
        (at != OPEN && at != CLOSED_WITHOUT_A_TIME).then_some(at)
    }

    /// Records dropped after the last one that was kept. Right once the producer is gone or quiet.
    pub(crate) fn trailing_gap(&mut self) -> u64 {
        let missing = self
            .ring
            .dropped
            .load(Ordering::Relaxed)
            .saturating_sub(self.gaps);
        self.gaps += missing;
        self.expected = (self.expected + missing) & SEQUENCE_MASK;
        missing
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn record(number: u64) -> Words {
        [7 << 56, number, 0, 0, 0, 0, 0, !number]
    }

    fn numbers(consumer: &mut Consumer) -> Vec<Result<u64, u64>> {
        let mut found = Vec::new();
        consumer.drain(|popped| match popped {
            Popped::Record(words) => {
                assert_eq!(words[0] >> 56, 7);
                assert_eq!(words[7], !words[1]);
                found.push(Ok(words[1]));
            }
            Popped::Gap(count) => found.push(Err(count)),
        });
        found
    }

    #[test]
    fn a_full_ring_drops_the_newest_and_marks_the_gap_where_it_is() {
        let (producer, mut consumer) = ring(4);
        for number in 0..6 {
            producer.push(&record(number));
        }
        assert_eq!(numbers(&mut consumer), [Ok(0), Ok(1), Ok(2), Ok(3)]);
        producer.push(&record(6));
        assert_eq!(numbers(&mut consumer), [Err(2), Ok(6)]);
        assert_eq!(consumer.trailing_gap(), 0);
    }

    #[test]
    fn records_dropped_at_the_end_are_found_without_a_later_record() {
        let (producer, mut consumer) = ring(2);
        for number in 0..5 {
            producer.push(&record(number));
        }
        drop(producer);
        assert!(consumer.is_closed());
        assert_eq!(numbers(&mut consumer), [Ok(0), Ok(1)]);
        assert_eq!(consumer.trailing_gap(), 3);
        assert_eq!(consumer.trailing_gap(), 0);
    }

    #[test]
    fn the_consumer_is_called_once_per_half_ring() {
        let (producer, mut consumer) = ring(8);
        let calls = (0..8).filter(|&n| producer.push(&record(n)) == Pushed::KeptAndHalfFull);
        assert_eq!(calls.count(), 2);
        assert_eq!(numbers(&mut consumer).len(), 8);
    }

    #[test]
    fn two_threads_lose_nothing_but_what_is_counted() {
        const RECORDS: u64 = 200_000;
        let (producer, mut consumer) = ring(64);
        let (mut seen, mut missing, mut next) = (0, 0, 0);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                (0..RECORDS).for_each(|number| {
                    producer.push(&record(number));
                })
            });
            loop {
                let closed = consumer.is_closed();
                for found in numbers(&mut consumer) {
                    match found {
                        Ok(number) => {
                            assert_eq!(number, next, "a record is where its number says");
                            (seen, next) = (seen + 1, number + 1);
                        }
                        Err(count) => (missing, next) = (missing + count, next + count),
                    }
                }
                if closed {
                    break;
                }
            }
            missing += consumer.trailing_gap();
        });
        assert_eq!(seen + missing, RECORDS);
    }
}

#[cfg(all(test, loom))]
mod loom_model {
    use super::*;

    /// What a consumer has seen: a prefix without holes but the marked ones, no record torn.
    #[derive(Default)]
    struct Seen {
        records: u64,
        missing: u64,
    }

    impl Seen {
        fn next(&self) -> u64 {
            self.records + self.missing
        }

        fn take(&mut self, consumer: &mut Consumer) {
            consumer.drain(|popped| match popped {
                Popped::Record(words) => {
                    let next = self.next();
                    assert_eq!((words[1], words[2], words[7]), (next, next, !next));
                    self.records += 1;
                }
                Popped::Gap(count) => self.missing += count,
            });
        }
    }

    /// Push, drain and thread exit in every interleaving: nothing is lost without being counted.
    ///
    /// Fails if a release or acquire of `head` or `closed_at` is weakened. Not so for `tail`: a
    /// load that sees a later store is something that loom does not try.
    #[test]
    fn push_drain_and_exit_lose_nothing_but_what_is_counted() {
        const RECORDS: u64 = 4;
        loom::model(|| {
            let (producer, mut consumer) = ring(2);
            let writer = loom::thread::spawn(move || {
                for number in 0..RECORDS {
                    producer.push(&[1 << 56, number, number, 0, 0, 0, 0, !number]);
                }
                producer.close(7);
            });
            let mut seen = Seen::default();
            seen.take(&mut consumer);
            if consumer.is_closed() {
                // Closed and drained after that: all is known although nothing was joined.
                seen.take(&mut consumer);
                seen.missing += consumer.trailing_gap();
                assert_eq!(seen.next(), RECORDS);
            }
            writer.join().expect("the writer does not panic");
            assert_eq!(consumer.closed_at(), Some(7));
            seen.take(&mut consumer);
            seen.missing += consumer.trailing_gap();
            assert_eq!(seen.next(), RECORDS);
        });
    }
}
