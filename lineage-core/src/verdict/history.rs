//! How long things of one kind take: medians that a few odd ones do not move.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Samples below which nothing is said of a kind.
pub const ENOUGH_SAMPLES: usize = 20;
/// The last samples of each kind that are kept.
const KEPT: usize = 512;
/// Kinds that are kept; of further ones nothing is said.
const KINDS: usize = 8_192;
/// How many deviations (median absolute, times 1.4826 for a standard deviation's place) beyond the
/// median are still usual.
const DEVIATIONS: u64 = 8;

/// A kernel's kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct KernelKind {
    pub(super) name: Arc<str>,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
}

/// What is usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usual {
    pub(super) median_ns: u64,
    /// Beyond this it is not usual.
    pub(super) limit_ns: u64,
    pub(super) samples: usize,
}

#[derive(Debug, Default)]
struct Samples {
    last: Vec<u64>,
    next: usize,
    usual: Option<Usual>,
}

impl Samples {
    fn add(&mut self, ns: u64) {
        if self.last.len() < KEPT {
            self.last.push(ns);
        } else {
            self.last[self.next] = ns;
            self.next = (self.next + 1) % KEPT;
        }
        self.usual = None;
    }

    fn usual(&mut self) -> Option<Usual> {
        if self.last.len() < ENOUGH_SAMPLES {
            return None;
        }
        if self.usual.is_none() {
            self.usual = Some(usual_of(&self.last));
        }
        self.usual
    }
}

fn usual_of(samples: &[u64]) -> Usual {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let median_ns = sorted[sorted.len() / 2];
    let mut away: Vec<u64> = sorted.iter().map(|of| of.abs_diff(median_ns)).collect();
    away.sort_unstable();
    let deviation = away[away.len() / 2].saturating_mul(14_826) / 10_000;
    // At least half as long again: a kind that is very regular has unusual ones, too, that nobody
    // would call long.
    let margin = deviation.saturating_mul(DEVIATIONS).max(median_ns / 2);
    Usual {
        median_ns,
        limit_ns: median_ns.saturating_add(margin),
        samples: samples.len(),
    }
}

/// Histories of kernels and of calls.
#[derive(Debug, Default)]
pub(super) struct Histories {
    kernels: FxHashMap<KernelKind, Samples>,
    calls: FxHashMap<Arc<str>, Samples>,
}

impl Histories {
    pub(super) fn kernel(&mut self, kind: KernelKind, ns: u64) {
        if self.kernels.len() < KINDS || self.kernels.contains_key(&kind) {
            self.kernels.entry(kind).or_default().add(ns);
        }
    }

    pub(super) fn call(&mut self, name: &Arc<str>, ns: u64) {
        if self.calls.len() < KINDS || self.calls.contains_key(name) {
            self.calls.entry(name.clone()).or_default().add(ns);
        }
    }

    pub(super) fn usual_kernel(&mut self, kind: &KernelKind) -> Option<Usual> {
        self.kernels.get_mut(kind)?.usual()
    }

    pub(super) fn usual_call(&mut self, name: &str) -> Option<Usual> {
        self.calls.get_mut(name)?.usual()
    }
}

/// The device's own latency: from the moment at which everything is ready until the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispatchFloor {
    /// What is typical, in nanoseconds: the lower quartile of what was measured.
    pub typical_ns: u64,
    /// Up to this it is dispatch and nothing else, in nanoseconds: twice the typical.
    pub limit_ns: u64,
    /// How many starts it was measured from.
    pub samples: usize,
}

impl DispatchFloor {
    /// A latency above this is none of a device's own.
    const HIGHEST_NS: u64 = 20_000;

    /// From the gaps between operations and what they waited for, where the host was well ahead.
    pub(super) fn of(mut gaps: Vec<u64>) -> Option<Self> {
        if gaps.len() < ENOUGH_SAMPLES {
            return None;
        }
        gaps.sort_unstable();
        let typical_ns = gaps[gaps.len() / 4];
        (typical_ns <= Self::HIGHEST_NS).then_some(Self {
            typical_ns,
            limit_ns: 2 * typical_ns,
            samples: gaps.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_usual_before_twenty_samples() {
        let mut histories = Histories::default();
        let name: Arc<str> = Arc::from("cuLaunchKernel");
        for _ in 0..19 {
            histories.call(&name, 4_000);
        }
        assert_eq!(histories.usual_call(&name), None);
        histories.call(&name, 4_000);
        let usual = histories.usual_call(&name).expect("twenty");
        // Without deviation the limit is half as long again.
        assert_eq!((usual.median_ns, usual.limit_ns), (4_000, 6_000));
    }

    #[test]
    fn a_few_odd_ones_move_neither_the_median_nor_the_limit_much() {
        // 90, 95, 100, 105, 110 in turn, and one in ten a hundred times as long.
        let samples: Vec<u64> = (0..200)
            .map(|at| {
                if at % 10 == 9 {
                    10_000
                } else {
                    90 + 5 * (at % 5)
                }
            })
            .collect();
        let usual = usual_of(&samples);
        assert_eq!(usual.median_ns, 100);
        // The median deviation is 5 or 10: 8 · 1.4826 · 10 = 118.6 at most, at least half of 100.
        assert!((150..=218).contains(&usual.limit_ns), "{usual:?}");
    }

    #[test]
    fn what_is_always_late_is_no_dispatch() {
        assert_eq!(DispatchFloor::of(vec![500_000; 100]), None);
        assert_eq!(DispatchFloor::of(vec![1_000; 19]), None);
        let floor = DispatchFloor::of((0..100).map(|at| 1_000 + at * 10).collect());
        // The 26th of 100.
        assert_eq!(
            floor,
            Some(DispatchFloor {
                typical_ns: 1_250,
                limit_ns: 2_500,
                samples: 100
            })
        );
    }
}
