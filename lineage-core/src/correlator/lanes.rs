//! Fences: when nothing more of a thread's past can come.
//!
//! CUPTI hands over whole buffers, in any order, and holds one for as long as it has an incomplete
//! record; `FlushAll(0)` asks for all that are complete. A missing record of a thread is missed
//! only when all of this has happened:
//!
//! 1. a flush was asked for after the call had ended,
//! 2. an API record of the same thread has come that began after that flush had returned: so the
//!    thread went on, and the buffer it went on in was handed over,
//! 3. and one further flush has returned: so what was handed over out of order is here too.
//!
//! Even that is no proof: a buffer with a kernel that runs for minutes can still be held while the
//! thread's next one is given. So a row that says "no operation" is superseded if the operation
//! comes after all, and calls above the greatest id of any operation seen are not judged before the
//! end of their session: the device may simply not be that far.
//!
//! An operation has no thread. For one without a call the fence is that of *any* thread.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

use crate::observation::Flushed;

/// Flushes remembered. A record that began before all of them proves nothing new.
const FLUSHES: usize = 64;

/// What a session knows about one thread: its calls by time, and its fence.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Slots by start and key.
    pub(super) timeline: BTreeMap<(u64, u64), u32>,
    /// A flush was asked for then, and a later record has come: only a further flush is missing.
    proven: Option<u64>,
    /// Everything of this thread that ended by then is here.
    pub(super) fenced: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: FxHashMap<u64, Lane>,
    /// Threads with a proven flush.
    proven: Vec<u64>,
    /// When each was asked for, when it returned, and its number.
    log: VecDeque<(u64, u64, u64)>,
    flushes: u64,
    /// The greatest number of a flush after which a record of any thread has come.
    proven_by_any: u64,
}

impl Lanes {
    /// Flushes so far.
    pub(super) fn flushes(&self) -> u64 {
        self.flushes
    }

    pub(super) fn get(&self, tid: u64) -> Option<&Lane> {
        self.lanes.get(&tid)
    }

    pub(super) fn get_mut(&mut self, tid: u64) -> Option<&mut Lane> {
        self.lanes.get_mut(&tid)
    }

    /// The lane of a thread. Empty lanes give way if there are too many.
    pub(super) fn lane(&mut self, tid: u64, bound: usize) -> &mut Lane {
        if self.lanes.len() >= bound && !self.lanes.contains_key(&tid) {
            self.lanes.retain(|_, lane| !lane.timeline.is_empty());
        }
        self.lanes.entry(tid).or_default()
    }

    /// An API record of this thread has come that began at this time.
    pub(super) fn api(&mut self, tid: u64, start: u64, bound: usize) {
        let Some(&(asked, _, number)) = self
            .log
            .iter()
            .rev()
            .find(|&&(_, returned, _)| returned <= start)
        else {
            return;
        };
        self.proven_by_any = self.proven_by_any.max(number);
        let lane = self.lane(tid, bound);
        let is_later = |known: Option<u64>| known.is_none_or(|known| known < asked);
        if is_later(lane.proven) && is_later(lane.fenced) && lane.proven.replace(asked).is_none() {
            self.proven.push(tid);
        }
    }

    /// A flush returned. Answers with the threads whose fence moved, and the number of the last
    /// flush that now is a fence for operations without a call.
    pub(super) fn flushed(&mut self, flushed: &Flushed) -> (Vec<u64>, u64) {
        let mut moved = std::mem::take(&mut self.proven);
        moved.retain(|tid| match self.lanes.get_mut(tid) {
            Some(lane) => {
                lane.fenced = lane.proven.take().max(lane.fenced);
                true
            }
            None => false,
        });
        moved.sort_unstable();
        self.flushes += 1;
        self.log
            .push_back((flushed.asked.0, flushed.returned.0, self.flushes));
        if self.log.len() > FLUSHES {
            self.log.pop_front();
        }
        (moved, self.proven_by_any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::HostNanos;

    fn flush(asked: u64) -> Flushed {
        Flushed {
            session: 1,
            asked: HostNanos(asked),
            returned: HostNanos(asked + 10),
            last: false,
        }
    }

    #[test]
    fn a_fence_needs_a_flush_a_later_record_of_the_thread_and_a_further_flush() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.flushed(&flush(100)), (vec![], 0));
        assert_eq!(
            lanes.flushed(&flush(200)),
            (vec![], 0),
            "no record has come"
        );
        lanes.api(7, 109, 10);
        assert_eq!(
            lanes.flushed(&flush(300)),
            (vec![], 0),
            "it began before a flush returned"
        );
        lanes.api(7, 215, 10);
        assert_eq!(
            lanes.get_mut(7).and_then(|lane| lane.fenced),
            None,
            "a flush is missing"
        );
        assert_eq!(lanes.flushed(&flush(400)), (vec![7], 2));
        assert_eq!(lanes.get_mut(7).and_then(|lane| lane.fenced), Some(200));
        assert!(lanes.get_mut(8).is_none());
        assert_eq!(
            lanes.flushed(&flush(500)),
            (vec![], 2),
            "nothing new was proven"
        );
    }

    #[test]
    fn a_fence_never_moves_back() {
        let mut lanes = Lanes::default();
        lanes.flushed(&flush(100));
        lanes.flushed(&flush(200));
        lanes.api(7, 500, 10);
        lanes.flushed(&flush(600));
        lanes.api(7, 150, 10);
        lanes.flushed(&flush(700));
        assert_eq!(lanes.get_mut(7).and_then(|lane| lane.fenced), Some(200));
    }
}
