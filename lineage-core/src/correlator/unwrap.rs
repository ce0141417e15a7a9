//! Correlation ids without the wrap.
//!
//! CUPTI's correlation ids are 32 bits wide and wrap; a record may come hours after others with
//! greater ids. What tells the wraps apart is the record's own start time. A checkpoint (time,
//! unwrapped id) is kept for about every 2^20 ids, from callbacks and API records; a record belongs
//! to the id nearest to the last checkpoint before it. That is right as long as fewer than 2^31 ids
//! lie between a record and that checkpoint: a process that makes 2^31 calls between two calls that
//! are recorded cannot be told apart from one that makes none.

//! What is called a *key* here is an unwrapped id that starts one wrap up: the first record to be
//! seen need not be the first in time, and those before it may lie before the wrap.

use std::collections::VecDeque;

use crate::id::{CorrelationId, UnwrappedCorrelationId};

/// Ids between two checkpoints.
const STEP: u64 = 1 << 20;

/// Checkpoints kept: together they reach back over a whole wrap, twice as far as a candidate is
/// retained. 16 bytes each.
const KEPT: usize = 1 << 12;

/// A candidate that lies this many ids or more behind the newest is retired.
pub(super) const RETIRE_AFTER: u64 = 1 << 31;

/// Where keys start.
const FIRST_WRAP: u64 = 1 << 32;

/// The id of a key, for a row.
pub(super) fn id_of(key: u64) -> UnwrappedCorrelationId {
    UnwrappedCorrelationId(key.checked_sub(FIRST_WRAP).unwrap_or(key))
}

/// Places the 32-bit ids of one CUPTI session.
#[derive(Debug, Default)]
pub(super) struct Unwrapper {
    /// By time, and by id.
    checkpoints: VecDeque<(u64, u64)>,
    newest: u64,
}

impl Unwrapper {
    /// The key of a record that began at this time, in nanoseconds.
    pub(super) fn place(&mut self, wire: CorrelationId, at: u64) -> u64 {
        match self.before(at) {
            Some((_, id)) => nearest(wire, id),
            None => {
                // All others are placed by this one, whatever kind of record it is.
                let first = FIRST_WRAP + u64::from(wire.0);
                self.note(first, at);
                first
            }
        }
    }

    /// The key of a record without a time: the one nearest to the newest.
    pub(super) fn place_by_newest(&self, wire: CorrelationId) -> u64 {
        if self.checkpoints.is_empty() {
            return FIRST_WRAP + u64::from(wire.0);
        }
        nearest(wire, self.newest)
    }

    /// Remembers that this key was given to a record without a time. Before any time is known it is the
    /// newest there is.
    pub(super) fn note_timeless(&mut self, id: u64) {
        if self.checkpoints.is_empty() {
            self.newest = self.newest.max(id);
        }
    }

    /// Remembers that this key was given at this time.
    pub(super) fn note(&mut self, id: u64, at: u64) {
        self.newest = self.newest.max(id);
        match self.checkpoints.back() {
            Some(&(last, last_id)) if at >= last => {
                if id >= last_id + STEP {
                    self.checkpoints.push_back((at, id));
                    if self.checkpoints.len() > KEPT {
                        self.checkpoints.pop_front();
                    }
                }
            }
            None => self.checkpoints.push_back((at, id)),
            Some(_) => self.note_late(id, at),
        }
    }

    /// The greatest key given so far.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// A record from before the last checkpoint: it is one too where the checkpoints leave a hole.
    fn note_late(&mut self, id: u64, at: u64) {
        let index = self.checkpoints.partition_point(|&(time, _)| time <= at);
        let after_before = index
            .checked_sub(1)
            .and_then(|before| self.checkpoints.get(before))
            .is_none_or(|&(_, before)| id >= before + STEP);
        let before_after = self
            .checkpoints
            .get(index)
            .is_some_and(|&(_, after)| id + STEP <= after);
        if after_before && before_after && self.checkpoints.len() < KEPT {
            self.checkpoints.insert(index, (at, id));
        }
    }

    /// The last checkpoint not after this time, or else the first of all.
    fn before(&self, at: u64) -> Option<(u64, u64)> {
        match self.checkpoints.back() {
            Some(&last) if last.0 <= at => Some(last),
            _ => {
                let index = self.checkpoints.partition_point(|&(time, _)| time <= at);
                self.checkpoints.get(index.saturating_sub(1)).copied()
            }
        }
    }
}

/// The key with these low 32 bits that is nearest to another.
pub(super) fn nearest(wire: CorrelationId, to: u64) -> u64 {
    let distance = wire.0.wrapping_sub(to as u32).cast_signed();
    to.checked_add_signed(i64::from(distance))
        .unwrap_or(u64::from(wire.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(wire: u64) -> CorrelationId {
        CorrelationId(wire as u32)
    }

    fn placed(ids: &mut Unwrapper, wire: u64, at: u64) -> u64 {
        id_of(ids.place(id(wire), at)).0
    }

    fn note(ids: &mut Unwrapper, id: u64, at: u64) {
        ids.note(FIRST_WRAP + id, at);
    }

    #[test]
    fn the_first_id_is_taken_as_it_is() {
        assert_eq!(
            placed(&mut Unwrapper::default(), 0xffff_fff0, 10),
            0xffff_fff0
        );
        assert_eq!(id_of(Unwrapper::default().place_by_newest(id(7))).0, 7);
    }

    #[test]
    fn ids_rise_over_the_wrap_and_late_records_fall_back_below_it() {
        let mut ids = Unwrapper::default();
        note(&mut ids, 0xffff_fff0, 1_000);
        assert_eq!(placed(&mut ids, 0x10, 2_000), 0x1_0000_0010);
        note(&mut ids, 0x1_0000_0010, 2_000);
        // Later by arrival, earlier by its own time.
        assert_eq!(placed(&mut ids, 0xffff_fff8, 1_500), 0xffff_fff8);
        assert_eq!(id_of(ids.place_by_newest(id(0x20))).0, 0x1_0000_0020);
        assert_eq!(id_of(ids.newest()).0, 0x1_0000_0010);
    }

    #[test]
    fn the_same_wire_id_is_told_apart_by_its_time() {
        let mut ids = Unwrapper::default();
        // One checkpoint each 2^24 ids and each second, over three wraps.
        for step in 0..768u64 {
            assert_eq!(placed(&mut ids, step << 24, step * 1_000), step << 24);
            note(&mut ids, step << 24, step * 1_000);
        }
        for wrap in 0..3u64 {
            // 0x0580_0000 lies half way between the checkpoints 5 and 6 of its wrap.
            let at = (wrap * 256 + 5) * 1_000 + 500;
            assert_eq!(
                placed(&mut ids, 0x0580_0000, at),
                (wrap << 32) | 0x0580_0000
            );
        }
    }

    #[test]
    fn a_late_record_fills_a_hole_between_checkpoints() {
        let mut ids = Unwrapper::default();
        ids.note(1 << 20, 1_000);
        ids.note(1 << 30, 9_000);
        ids.note(1 << 25, 3_000);
        assert_eq!(
            ids.checkpoints,
            [(1_000, 1 << 20), (3_000, 1 << 25), (9_000, 1 << 30)]
        );
        // None where it would be out of order.
        ids.note(1 << 26, 2_000);
        assert_eq!(ids.checkpoints.len(), 3);
    }

    #[test]
    fn the_first_record_seen_may_lie_after_the_wrap_and_the_next_before_it() {
        let mut ids = Unwrapper::default();
        let (after, before) = (ids.place(id(5), 1_000), ids.place(id(0xffff_fff0), 500));
        assert_eq!(after - before, 0x15, "neighbours");
        assert_eq!(id_of(after).0, 5);
    }

    #[test]
    fn memory_is_bounded() {
        let mut ids = Unwrapper::default();
        for step in 0..10_000u64 {
            ids.note(step << 21, step);
        }
        assert_eq!(ids.checkpoints.len(), KEPT);
    }
}
