//! How long to wait before the next attempt.

use std::time::Duration;

/// Exponential growth between two bounds, with jitter so that many exporters do not come back at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) most: Duration,
    /// What the jitter is derived from: the same seed, the same waits.
    pub(crate) seed: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(200),
            most: Duration::from_secs(10),
            seed: 0,
        }
    }
}

impl Backoff {
    /// The wait after this many failed attempts, from 1: between half and all of `first · 2^(attempts - 1)`, at most `most`.
    pub(crate) fn wait(&self, attempts: u32) -> Duration {
        let factor = 1_u32
            .checked_shl(attempts.saturating_sub(1))
            .unwrap_or(u32::MAX);
        let whole = self.first.saturating_mul(factor.max(1)).min(self.most);
        let random = mixed(self.seed.wrapping_add(u64::from(attempts)));
        let share = (random >> 11) as f64 / (1_u64 << 53) as f64;
        whole.mul_f64(0.5 + share / 2.0)
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
pub(crate) fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most_and_vary_by_half() {
        let backoff = Backoff {
            seed: 11,
            ..Backoff::default()
        };
        let mut distinct = std::collections::BTreeSet::new();
        for attempts in 1..80 {
            let whole = 200_u64
                .saturating_mul(1 << (attempts - 1).min(20))
                .min(10_000);
            let wait = backoff.wait(attempts);
            let least = Duration::from_millis(whole / 2);
            assert!(
                wait >= least && wait <= Duration::from_millis(whole),
                "{attempts}: {wait:?}"
            );
            distinct.insert(wait);
        }
        assert!(distinct.len() > 70);
        assert_eq!(backoff.wait(3), backoff.wait(3));
        assert_ne!(
            backoff.wait(3),
            Backoff {
                seed: 12,
                ..backoff
            }
            .wait(3)
        );
    }
}
