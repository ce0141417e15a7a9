//! Times between which something may be missing.

use crate::id::HostNanos;

/// Windows that are told apart. Beyond them the last one grows.
const APART: usize = 64;

/// Until when a window reaches whose end is not known.
const OPEN: HostNanos = HostNanos(u64::MAX);

/// From when to when.
#[derive(Debug, Default)]
pub(super) struct Windows(Vec<(HostNanos, HostNanos)>);

impl Windows {
    /// From then until then, or until something says where it ends.
    pub(super) fn add(&mut self, from: HostNanos, to: Option<HostNanos>) {
        let to = to.unwrap_or(OPEN);
        let is_full = self.0.len() >= APART;
        match self.0.last_mut() {
            Some(last) if is_full => *last = (last.0.min(from), last.1.max(to)),
            _ => self.0.push((from, to)),
        }
    }

    /// What is missing was before this.
    pub(super) fn close(&mut self, at: HostNanos) {
        if let Some(last) = self.0.last_mut().filter(|last| last.1 == OPEN) {
            last.1 = at.max(last.0);
        }
    }

    /// Whether something between these two times may be missing.
    pub(super) fn meet(&self, from: HostNanos, to: HostNanos) -> bool {
        let mut windows = self.0.iter();
        windows.any(|&(since, until)| since <= to && from <= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meets(windows: &Windows, from: u64, to: u64) -> bool {
        windows.meet(HostNanos(from), HostNanos(to))
    }

    #[test]
    fn an_open_window_ends_where_it_is_closed() {
        let mut windows = Windows::default();
        windows.close(HostNanos(5));
        windows.add(HostNanos(10), None);
        assert!(meets(&windows, 90, 95) && !meets(&windows, 5, 9));
        windows.close(HostNanos(20));
        windows.close(HostNanos(99));
        assert!(meets(&windows, 20, 25) && !meets(&windows, 21, 25));
    }

    #[test]
    fn of_too_many_the_last_one_grows() {
        let mut windows = Windows::default();
        let last = APART as u64 + 1;
        for number in 0..=last {
            let at = HostNanos(100 * number);
            windows.add(at, Some(at));
        }
        assert_eq!(windows.0.len(), APART);
        assert!(meets(&windows, 0, 0) && !meets(&windows, 1, 99));
        assert!(meets(&windows, 100 * last - 50, 100 * last - 40));
    }
}
