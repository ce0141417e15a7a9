//! Which epochs were ever declared, though their state may be dropped by now.
//!
//! Ids are counted up, so the declared ones are few ranges without holes, whatever their number.

use std::collections::BTreeMap;

/// Ranges kept: beyond them the two lowest become one, and the hole between them is forgotten.
const RANGES: usize = 4_096;

/// A set of numbers that mostly follow one another.
#[derive(Debug, Default)]
pub(super) struct DeclaredIds {
    /// First and last of each range.
    ranges: BTreeMap<u64, u64>,
}

impl DeclaredIds {
    pub(super) fn contains(&self, id: u64) -> bool {
        let below = self.ranges.range(..=id).next_back();
        below.is_some_and(|(_, &last)| id <= last)
    }

    pub(super) fn insert(&mut self, id: u64) {
        if self.contains(id) {
            return;
        }
        let below = id.checked_sub(1).and_then(|before| {
            let (&first, &last) = self.ranges.range(..=before).next_back()?;
            (last == before).then_some(first)
        });
        let above = id
            .checked_add(1)
            .and_then(|after| self.ranges.remove(&after));
        self.ranges.insert(below.unwrap_or(id), above.unwrap_or(id));
        if self.ranges.len() > RANGES
            && let (Some((first, _)), Some((_, last))) =
                (self.ranges.pop_first(), self.ranges.pop_first())
        {
            self.ranges.insert(first, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_one_another_is_one_range_in_any_order() {
        let mut ids = DeclaredIds::default();
        for id in [5, 7, 6, 1, 5, u64::MAX] {
            ids.insert(id);
        }
        let ranges: Vec<_> = ids.ranges.iter().map(|(&a, &b)| (a, b)).collect();
        assert_eq!(ranges, [(1, 1), (5, 7), (u64::MAX, u64::MAX)]);
        let among = [0, 1, 2, 4, 5, 6, 7, 8, u64::MAX].map(|id| ids.contains(id));
        assert_eq!(
            among,
            [false, true, false, false, true, true, true, false, true]
        );
    }

    #[test]
    fn of_too_many_ranges_the_lowest_become_one() {
        let mut ids = DeclaredIds::default();
        (0..=RANGES as u64).for_each(|number| ids.insert(10 * number));
        assert_eq!(ids.ranges.len(), RANGES);
        assert!(ids.contains(5), "forgotten, so nothing is claimed of it");
        assert!(!ids.contains(15));
    }
}
