//! Durations, and their percentiles.

/// Durations of one kind, kept so that percentiles are exact.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    kept_ns: Vec<u64>,
    limit: usize,
    not_kept: u64,
    max_ns: u64,
    sum_ns: u128,
}

/// Percentiles of durations, in nanoseconds.
///
/// By nearest rank: the `p`th percentile of `n` values in order is the one in place `ceil(p * n)`,
/// a value that was measured. A percentile is `None` where fewer than `1 / (1 - p)` values are
/// there: it would be the maximum by another name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Summary {
    /// How many durations there were.
    pub count: u64,
    /// The median; from 2 values on.
    pub p50_ns: Option<u64>,
    /// From 10 values on.
    pub p90_ns: Option<u64>,
    /// From 100 values on.
    pub p99_ns: Option<u64>,
    /// The largest.
    pub max_ns: Option<u64>,
    /// The mean, rounded down.
    pub mean_ns: Option<u64>,
    /// Of `count`, how many were not kept, so that percentiles are of the others only.
    pub not_kept: u64,
}

impl Summary {
    /// Fewer values than a 99th percentile asks for: treat its figures with care.
    pub const fn is_small(&self) -> bool {
        self.count < 100
    }
}

impl Samples {
    /// Keeps at most so many; 8 bytes each.
    pub const fn new(limit: usize) -> Self {
        Self {
            kept_ns: Vec::new(),
            limit,
            not_kept: 0,
            max_ns: 0,
            sum_ns: 0,
        }
    }

    /// Adds one.
    pub fn add(&mut self, ns: u64) {
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns);
        if self.kept_ns.len() < self.limit {
            self.kept_ns.push(ns);
        } else {
            self.not_kept += 1;
        }
    }

    /// How many were added.
    pub const fn count(&self) -> u64 {
        self.kept_ns.len() as u64 + self.not_kept
    }

    /// How many of those that were kept are longer than this.
    pub fn beyond(&self, ns: u64) -> u64 {
        self.kept_ns.iter().filter(|&&kept| kept > ns).count() as u64
    }

    /// Their percentiles.
    pub fn summary(&self) -> Summary {
        let mut ordered = self.kept_ns.clone();
        ordered.sort_unstable();
        // Of so many in a hundred, and from how many values on.
        let percentile = |hundredths: usize, from: usize| {
            if ordered.len() < from {
                return None;
            }
            let place = (ordered.len() * hundredths).div_ceil(100);
            ordered.get(place.checked_sub(1)?).copied()
        };
        let count = self.count();
        Summary {
            count,
            p50_ns: percentile(50, 2),
            p90_ns: percentile(90, 10),
            p99_ns: percentile(99, 100),
            max_ns: (count > 0).then_some(self.max_ns),
            mean_ns: (count > 0)
                .then(|| u64::try_from(self.sum_ns / u128::from(count)).unwrap_or(u64::MAX)),
            not_kept: self.not_kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Summary {
        let mut samples = Samples::new(1_000);
        values.into_iter().for_each(|value| samples.add(value));
        samples.summary()
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        // Nearest rank by hand: of 1..=100 the 50th, 90th and 99th value in order.
        let hundred = of((1..=100).rev());
        assert_eq!(hundred.p50_ns, Some(50));
        assert_eq!(hundred.p90_ns, Some(90));
        assert_eq!(hundred.p99_ns, Some(99));
        assert_eq!((hundred.max_ns, hundred.mean_ns), (Some(100), Some(50)));
        assert!(!hundred.is_small());
        // ceil(0.5 * 5) = 3, ceil(0.9 * 15) = 14.
        assert_eq!(of([50, 10, 20, 40, 30]).p50_ns, Some(30));
        assert_eq!(of(1..=15).p90_ns, Some(14));
    }

    #[test]
    fn few_values_have_no_high_percentile() {
        assert_eq!(of([]), Summary::default());
        let one = of([7]);
        assert_eq!(
            (one.p50_ns, one.max_ns, one.mean_ns),
            (None, Some(7), Some(7))
        );
        assert!(one.is_small());
        let ninety_nine = of(1..=99);
        assert!(ninety_nine.p90_ns.is_some() && ninety_nine.p99_ns.is_none());
    }

    #[test]
    fn what_is_not_kept_is_counted() {
        let mut samples = Samples::new(2);
        [5, 6, 900].into_iter().for_each(|value| samples.add(value));
        let summary = samples.summary();
        assert_eq!((summary.count, summary.not_kept), (3, 1));
        assert_eq!(summary.max_ns, Some(900), "the largest is never lost");
        assert_eq!(summary.mean_ns, Some(303));
    }
}
