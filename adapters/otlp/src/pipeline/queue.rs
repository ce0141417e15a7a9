//! Where items wait: one lane per signal, each a batch that is being built and batches that are sealed.
//!
//! # Protocol
//!
//! Any thread may offer; senders, of which a lane may have several, all live on the exporter's own thread. One lock guards all
//! lanes. It is held to append an item or to move a batch, never while anything is encoded, compressed, sent or said, so nobody
//! who offers waits for the network.
//!
//! A lane's `held_bytes` are the tags, lengths and contents of all its items, from the moment that they are offered until they
//! are settled: waiting in the open batch, in a sealed one, or on their way. They never exceed the lane's share.
//!
//! Senders are woken through the lane's `arrival`, which is one atomic operation as long as they are busy: when a batch begins,
//! so that one of them waits for it to be old enough, and when one is sealed. A sender that takes a batch and leaves another
//! behind wakes the next.
//!
//! A fork copies the lock as it is and none of the threads. So nobody in the child waits for it: see [`Queue::lock`].

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::batch::Sealed;
use super::counts::{ExportCounters, LossReason};
use super::envelope::{field_length, put_item};
use super::problem::Pending;
use super::{ProblemKind, Signal};

/// Buffers of sent batches that are kept for later ones.
const MOST_SPARE_BUFFERS: usize = 4;

/// What a lane may hold, and when a batch of it is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneLimits {
    /// Of all its items that are not settled.
    pub(crate) queue_bytes: usize,
    /// The same by number.
    pub(crate) queue_items: u64,
    /// A batch is sealed before an item that would make it larger than this.
    pub(crate) batch_bytes: usize,
    /// What a request may hold at most: an item larger than `batch_bytes` travels alone, one larger than this not at all.
    pub(crate) largest_item: usize,
    /// A batch is sealed when it has so many items.
    pub(crate) batch_items: u64,
    /// A batch is sealed when its first item is so old.
    pub(crate) batch_age: Duration,
}

#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// Something was settled.
    settled: Condvar,
    arrivals: [Notify; 3],
    limits: [LaneLimits; 3],
    pub(crate) counters: ExportCounters,
    /// What went wrong where nothing may be said, for the exporter's thread to say.
    pub(crate) pending: Pending,
    /// The process that the exporter's thread lives in: in a forked child it does not.
    process: u32,
}

#[derive(Debug, Default)]
struct State {
    lanes: [Lane; 3],
    held_bytes: usize,
    next_sequence: u64,
    closed: bool,
    spare: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Lane {
    open: Option<Open>,
    sealed: VecDeque<Sealed>,
    /// The sequence numbers of batches that a sender has.
    in_flight: Vec<u64>,
    held_bytes: usize,
    held_items: u64,
}

#[derive(Debug)]
struct Open {
    items: Vec<u8>,
    count: u64,
    since: Instant,
}

/// What a sender has to do.
#[derive(Debug)]
pub(crate) enum Next {
    Send(Sealed),
    /// Wait for an arrival, or for the open batch to be old enough.
    Wait(Option<Instant>),
    /// Nothing is left, and nothing will come.
    Done,
}

impl Queue {
    pub(crate) fn new(limits: [LaneLimits; 3], counters: ExportCounters) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            settled: Condvar::new(),
            arrivals: Default::default(),
            limits,
            counters,
            pending: Pending::default(),
            process: std::process::id(),
        })
    }

    /// Takes one encoded item, or counts it as lost.
    pub(crate) fn offer(&self, signal: Signal, item: &[u8]) -> bool {
        let limits = &self.limits[signal.index()];
        let counters = self.counters.of(signal);
        counters.offered.add(1);
        let length = field_length(item.len());
        if length > limits.largest_item {
            return self.lost(signal, LossReason::TooLarge);
        }
        let Some(mut state) = self.lock() else {
            return self.lost(signal, LossReason::Shutdown);
        };
        if state.closed {
            return self.lost(signal, LossReason::Shutdown);
        }
        let lane = &state.lanes[signal.index()];
        if lane.held_bytes + length > limits.queue_bytes || lane.held_items >= limits.queue_items {
            drop(state);
            return self.lost(signal, LossReason::QueueFull);
        }
        let mut wake = false;
        if let Some(open) = &lane.open
            && open.items.len() + length > limits.batch_bytes
        {
            state.seal(signal);
            wake = true;
        }
        if state.lanes[signal.index()].open.is_none() {
            if self.is_forked() {
                state.closed = true;
                return self.lost(signal, LossReason::Shutdown);
            }
            state.begin(signal, limits.batch_bytes);
            wake = true;
        }
        state.held_bytes += length;
        self.counters.queue_holds(state.held_bytes as u64);
        let lane = &mut state.lanes[signal.index()];
        lane.held_bytes += length;
        lane.held_items += 1;
        if let Some(open) = &mut lane.open {
            put_item(&mut open.items, item);
            open.count += 1;
            if open.count >= limits.batch_items || open.items.len() >= limits.batch_bytes {
                state.seal(signal);
                wake = true;
            }
        }
        drop(state);
        if wake {
            self.arrivals[signal.index()].notify_one();
        }
        true
    }

    fn lost(&self, signal: Signal, reason: LossReason) -> bool {
        self.counters.of(signal).lost(reason, 1);
        match reason {
            LossReason::QueueFull => self.pending.note(ProblemKind::QueueFull, signal),
            LossReason::TooLarge => self.pending.note(ProblemKind::TooLarge, signal),
            _ => {}
        }
        false
    }

    pub(crate) async fn arrival(&self, signal: Signal) {
        self.arrivals[signal.index()].notified().await;
    }

    /// The next batch of this lane. Whoever takes one must give it back to [`finished`](Self::finished).
    pub(crate) fn next(&self, signal: Signal) -> Next {
        let Some(mut state) = self.lock() else {
            return Next::Done;
        };
        let age = self.limits[signal.index()].batch_age;
        let lane = &state.lanes[signal.index()];
        let due = lane.open.as_ref().map(|open| open.since + age);
        if lane.sealed.is_empty() {
            match due {
                None if state.closed => return Next::Done,
                None => return Next::Wait(None),
                Some(due) if !state.closed && Instant::now() < due => return Next::Wait(Some(due)),
                Some(_) => state.seal(signal),
            }
        }
        let lane = &mut state.lanes[signal.index()];
        let Some(batch) = lane.sealed.pop_front() else {
            return Next::Wait(None);
        };
        lane.in_flight.push(batch.sequence);
        let more = !lane.sealed.is_empty() || lane.open.is_some();
        drop(state);
        if more {
            self.arrivals[signal.index()].notify_one();
        }
        Next::Send(batch)
    }

    /// Gives back a buffer whose items were copied.
    pub(crate) fn recycle(&self, mut buffer: Vec<u8>) {
        let Some(mut state) = self.lock() else { return };
        if state.spare.len() < MOST_SPARE_BUFFERS {
            buffer.clear();
            state.spare.push(buffer);
        }
    }

    /// Items of a batch that a sender has were answered for, or lost.
    pub(crate) fn release(&self, signal: Signal, bytes: usize, items: u64) {
        let Some(mut state) = self.lock() else { return };
        state.release(signal, bytes, items);
        self.counters.queue_holds(state.held_bytes as u64);
    }

    /// All items of this batch were released.
    pub(crate) fn finished(&self, signal: Signal, sequence: u64) {
        let Some(mut state) = self.lock() else { return };
        let in_flight = &mut state.lanes[signal.index()].in_flight;
        in_flight.retain(|of_batch| *of_batch != sequence);
        drop(state);
        self.settled.notify_all();
    }

    /// Seals what was offered before, and waits until it is settled: `false` if that takes longer, or in a forked child.
    pub(crate) fn flush(&self, until: Instant) -> bool {
        let Some(mut state) = self.lock() else {
            return false;
        };
        if self.is_forked() {
            return false;
        }
        for signal in Signal::ALL {
            // Who flushes often while no collector answers would else keep a large buffer per few items.
            if let Some(open) = &mut state.lanes[signal.index()].open {
                open.items.shrink_to_fit();
            }
            state.seal(signal);
        }
        for arrival in &self.arrivals {
            arrival.notify_one();
        }
        let before = state.next_sequence;
        while state.waits_for_one_before(before) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.settled.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// What is offered from now on is lost, and senders end when they have sent the rest.
    pub(crate) fn close(&self) {
        let Some(mut state) = self.lock() else { return };
        state.closed = true;
        drop(state);
        for arrival in &self.arrivals {
            arrival.notify_waiters();
            arrival.notify_one();
        }
    }

    /// Loses all that no sender has.
    pub(crate) fn lose_rest(&self, reason: LossReason) {
        let Some(mut state) = self.lock() else { return };
        for signal in Signal::ALL {
            state.seal(signal);
            while let Some(batch) = state.lanes[signal.index()].sealed.pop_front() {
                state.release(signal, batch.items.len(), batch.count);
                self.counters.of(signal).lost(reason, batch.count);
            }
        }
        self.counters.queue_holds(state.held_bytes as u64);
        drop(state);
        self.settled.notify_all();
    }

    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }

    /// `None` in a forked child whose copy of the lock was held by a thread that was not copied.
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if self.is_forked() => None,
            Err(TryLockError::WouldBlock) => {
                Some(self.state.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}

impl State {
    fn begin(&mut self, signal: Signal, batch_bytes: usize) {
        let spare = self.spare.pop();
        self.lanes[signal.index()].open = Some(Open {
            items: spare.unwrap_or_else(|| Vec::with_capacity(batch_bytes)),
            count: 0,
            since: Instant::now(),
        });
    }

    fn seal(&mut self, signal: Signal) {
        let lane = &mut self.lanes[signal.index()];
        if let Some(Open { items, count, .. }) = lane.open.take() {
            lane.sealed.push_back(Sealed {
                sequence: self.next_sequence,
                items,
                count,
            });
            self.next_sequence += 1;
        }
    }

    fn release(&mut self, signal: Signal, bytes: usize, items: u64) {
        self.held_bytes -= bytes;
        let lane = &mut self.lanes[signal.index()];
        lane.held_bytes -= bytes;
        lane.held_items -= items;
    }

    fn waits_for_one_before(&self, sequence: u64) -> bool {
        self.lanes.iter().any(|lane| {
            let sealed = lane.sealed.iter().map(|batch| batch.sequence);
            let mut all = sealed.chain(lane.in_flight.iter().copied());
            all.any(|of_batch| of_batch < sequence)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LaneLimits = LaneLimits {
        queue_bytes: 1000,
        queue_items: 50,
        batch_bytes: 100,
        largest_item: 500,
        batch_items: 10,
        batch_age: Duration::from_secs(3600),
    };

    fn queue() -> Arc<Queue> {
        Queue::new([LIMITS; 3], ExportCounters::default())
    }

    /// The batches that a sender can take at once, as bytes and numbers of items.
    fn taken(queue: &Queue, signal: Signal) -> Vec<(usize, u64)> {
        let mut taken = Vec::new();
        while let Next::Send(batch) = queue.next(signal) {
            taken.push((batch.items.len(), batch.count));
        }
        taken
    }

    #[test]
    fn batches_are_sealed_by_bytes_and_by_number() {
        let queue = queue();
        // With tag and length 42 bytes each: a third would make a batch larger than 100.
        (0..5).for_each(|_| assert!(queue.offer(Signal::Traces, &[0; 40])));
        assert_eq!(taken(&queue, Signal::Traces), [(84, 2), (84, 2)]);
        // 3 bytes each: ten are a batch.
        (0..25).for_each(|_| assert!(queue.offer(Signal::Logs, &[0])));
        assert_eq!(taken(&queue, Signal::Logs), [(30, 10), (30, 10)]);
        // One that is larger than a batch travels alone.
        for length in [1, 300, 1] {
            assert!(queue.offer(Signal::Metrics, &vec![0; length]));
        }
        assert_eq!(taken(&queue, Signal::Metrics), [(3, 1), (303, 1)]);
        assert!(matches!(queue.next(Signal::Metrics), Next::Wait(Some(_))));
        queue.close();
        assert_eq!(taken(&queue, Signal::Metrics), [(3, 1)]);
        assert!(matches!(queue.next(Signal::Metrics), Next::Done));
    }

    #[test]
    fn what_a_sender_has_counts_until_it_is_released() {
        let queue = queue();
        let offered = (0..100)
            .filter(|_| queue.offer(Signal::Traces, &[0; 18]))
            .count();
        assert_eq!(offered, 50, "50 of 20 bytes each fill 1000 bytes");
        assert!(
            queue.offer(Signal::Logs, &[0; 18]),
            "the lanes do not share"
        );
        let counts = queue.counters.snapshot();
        assert_eq!(
            (counts.spans.lost.queue_full, counts.queue_bytes),
            (50, 1020)
        );
        let Next::Send(batch) = queue.next(Signal::Traces) else {
            panic!("a batch is full");
        };
        assert!(!queue.offer(Signal::Traces, &[0; 18]));
        queue.release(Signal::Traces, batch.items.len(), batch.count);
        queue.finished(Signal::Traces, batch.sequence);
        let room = (0..100)
            .filter(|_| queue.offer(Signal::Traces, &[0; 18]))
            .count();
        assert_eq!(room as u64, batch.count);
        queue.lose_rest(LossReason::Shutdown);
        let counts = queue.counters.snapshot();
        assert_eq!(counts.queue_bytes, 0);
        assert_eq!(counts.queue_bytes_most, 1020);
    }

    #[test]
    fn a_flush_waits_for_what_came_before_it_and_not_for_what_came_later() {
        let queue = queue();
        assert!(queue.flush(Instant::now()), "nothing was offered");
        queue.offer(Signal::Traces, &[0]);
        assert!(!queue.flush(Instant::now()));
        let Next::Send(batch) = queue.next(Signal::Traces) else {
            panic!("the flush sealed it");
        };
        assert!(!queue.flush(Instant::now()), "a sender has it");
        let another = Arc::clone(&queue);
        let (far, soon) = (Duration::from_secs(60), Duration::from_millis(20));
        let flush = std::thread::spawn(move || another.flush(Instant::now() + far));
        std::thread::sleep(soon);
        queue.offer(Signal::Traces, &[0]);
        queue.release(Signal::Traces, batch.items.len(), batch.count);
        queue.finished(Signal::Traces, batch.sequence);
        assert!(flush.join().expect("no panic"));
        assert_eq!(queue.counters.snapshot().spans.pending(), 2);
    }

    #[test]
    fn a_forked_child_queues_nothing_and_waits_for_nobody() {
        let forked = Queue {
            process: std::process::id() + 1,
            ..Arc::into_inner(queue()).expect("the only one")
        };
        assert!(!forked.offer(Signal::Traces, &[0]));
        assert_eq!(forked.counters.snapshot().spans.lost.shutdown, 1);
        assert!(!forked.flush(Instant::now() + Duration::from_secs(60)));
        // As if another thread had held the lock when the process was forked.
        let held = forked.state.lock();
        assert!(!forked.offer(Signal::Traces, &[0]));
        assert!(!forked.flush(Instant::now() + Duration::from_secs(60)));
        forked.close();
        drop(held);
        assert_eq!(forked.counters.snapshot().queue_bytes, 0);
    }
}
