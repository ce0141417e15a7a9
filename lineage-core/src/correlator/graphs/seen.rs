//! How often an id was given, at a bit for each id that was given once.

use rustc_hash::FxHashMap;

/// Ids of one page.
const PAGE: u32 = 4_096;

/// Pages, at 512 bytes each: 2^28 ids if they are given one after the other. Beyond them an id that is
/// given again is taken for one that is not.
const PAGES: usize = 1 << 16;

/// Ids that were given, and how often.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pages: FxHashMap<u32, Box<[u64; PAGE as usize / 64]>>,
    /// Those that were given more than once.
    again: FxHashMap<u32, u32>,
}

impl Seen {
    /// How often this id was given.
    pub(super) fn count(&self, id: u32) -> u32 {
        let (word, bit) = place(id);
        let page = self.pages.get(&(id / PAGE));
        if page.is_none_or(|page| page[word] & bit == 0) {
            return 0;
        }
        self.again.get(&id).copied().unwrap_or(1)
    }

    /// The id is given once more. Answers with how often by now.
    pub(super) fn note(&mut self, id: u32) -> u32 {
        let (word, bit) = place(id);
        if self.pages.len() >= PAGES && !self.pages.contains_key(&(id / PAGE)) {
            return 1;
        }
        let page = self.pages.entry(id / PAGE);
        let page = page.or_insert_with(|| Box::new([0; PAGE as usize / 64]));
        if page[word] & bit == 0 {
            page[word] |= bit;
            return 1;
        }
        let count = self.again.entry(id).or_insert(1);
        *count = count.saturating_add(1);
        *count
    }
}

fn place(id: u32) -> (usize, u64) {
    let within = id % PAGE;
    (within as usize / 64, 1 << (within % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_id_has_a_count_of_its_own() {
        let mut seen = Seen::default();
        assert_eq!(seen.count(0), 0);
        for id in [0, 63, 64, 4_095, 4_096, u32::MAX] {
            assert_eq!(seen.note(id), 1);
        }
        assert_eq!(seen.note(64), 2);
        assert_eq!(seen.note(64), 3);
        let counts = [0, 1, 63, 64, 65, 4_095, 4_096, u32::MAX].map(|id| seen.count(id));
        assert_eq!(counts, [1, 0, 1, 3, 0, 1, 1, 1]);
    }
}
