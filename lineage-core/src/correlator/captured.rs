//! Calls that were captured, known longer than their entries.
//!
//! Nothing of a captured call runs, so its entry is done as soon as it is there, and gives way when
//! others need its room. CUPTI's own record of the call may come much later, out of a buffer that was
//! held; by its function alone an operation would be due. Two sources say that a call was captured: our
//! own callback, and the node that was made inside the call. Either is enough, and either may be lost.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

/// Keys of calls that were captured. The oldest are forgotten, without a fault, where there are too
/// many: by then their records have long come, or never will.
#[derive(Debug, Default)]
pub(super) struct CapturedCalls {
    keys: FxHashSet<u64>,
    order: VecDeque<u64>,
}

impl CapturedCalls {
    pub(super) fn insert(&mut self, key: u64, bound: usize) {
        if !self.keys.insert(key) {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > bound.max(1)
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, key: u64) -> bool {
        self.keys.contains(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_the_oldest_is_forgotten() {
        let mut calls = CapturedCalls::default();
        for key in [1, 2, 1, 3, 4] {
            calls.insert(key, 3);
        }
        let known = [1, 2, 3, 4].map(|key| calls.contains(key));
        assert_eq!(known, [false, true, true, true]);
        assert_eq!(calls.order.len(), 3);
    }
}
