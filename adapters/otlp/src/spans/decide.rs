//! How much of which work is exported: decided at its head where somebody decided there, else at
//! its tail.

use std::sync::Arc;
use std::time::Duration;

use lineage_core::id::W3cParent;
use opentelemetry::TraceId;
use rustc_hash::FxHashMap;

/// How much of a request's work is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail {
    /// Nothing.
    Nothing,
    /// One span for each epoch, with sums over its operations.
    Sums,
    /// Sums, and everything if the request turns out to be late, slow or faulty: decided when all of
    /// its work is over.
    SumsAndLate,
    /// Everything: participations in batches, the batches' steps, every operation.
    Everything,
}

/// What decides for work that has no parent span, and so no head that decided.
///
/// The names and the meaning of the ratio are those of `OTEL_TRACES_SAMPLER`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum RootSampler {
    /// Nothing does: [`Volume::unsampled`] holds.
    Undecided,
    /// Every one is sampled.
    AlwaysOn,
    /// None is exported at all.
    AlwaysOff,
    /// This part of them is sampled, by trace id; for the others [`Volume::unsampled`] holds.
    Ratio(f64),
}

/// When a time is too long.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Threshold {
    /// Never.
    Never,
    /// Over a fixed time.
    Over(Duration),
    /// Over a multiple of the median of its kind, once 20 of its kind were seen, and over a time.
    OverMedian {
        /// The multiple.
        times: f64,
        /// No shorter time is too long, whatever the median.
        at_least: Duration,
    },
}

/// How much is exported.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Volume {
    /// Of work whose parent span says that it is sampled, or that `roots` samples. What a parent
    /// says is *not* sampled is never exported.
    pub sampled: Detail,
    /// Of work without a parent span that `roots` does not sample.
    pub unsampled: Detail,
    /// What samples work without a parent span.
    pub roots: RootSampler,
    /// When an operation is late: the time from its call's entry to its start. Its kind is its name.
    pub late: Threshold,
    /// When a request is slow: the time from its declaration to its end. Its kind is the epoch's
    /// name.
    pub slow: Threshold,
}

impl Default for Volume {
    fn default() -> Self {
        Self {
            sampled: Detail::Everything,
            unsampled: Detail::SumsAndLate,
            roots: RootSampler::Undecided,
            late: Threshold::OverMedian {
                times: 4.0,
                at_least: Duration::from_millis(1),
            },
            slow: Threshold::OverMedian {
                times: 2.0,
                at_least: Duration::from_millis(10),
            },
        }
    }
}

impl Volume {
    /// The same amount of all work, whatever its length. What a parent span says is not sampled is
    /// not exported all the same.
    pub fn of_all(detail: Detail) -> Self {
        Self {
            sampled: detail,
            unsampled: detail,
            ..Self::default()
        }
    }

    /// What is decided at the head.
    pub(crate) fn at_head(&self, parent: Option<W3cParent>, trace: TraceId) -> Detail {
        if let Some(parent) = parent {
            return if parent.sampled() {
                self.sampled
            } else {
                Detail::Nothing
            };
        }
        match self.roots {
            RootSampler::Undecided => self.unsampled,
            RootSampler::AlwaysOn => self.sampled,
            RootSampler::AlwaysOff => Detail::Nothing,
            RootSampler::Ratio(ratio) if chosen(trace, ratio) => self.sampled,
            RootSampler::Ratio(_) => self.unsampled,
        }
    }
}

/// As OpenTelemetry's `TraceIdRatioBased` does it: by the low 63 bits of the trace id's last half.
fn chosen(trace: TraceId, ratio: f64) -> bool {
    let [.., a, b, c, d, e, f, g, h] = trace.to_bytes();
    let random = u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1;
    // At 1 every one is below; a float above 2^63 is cut to u64's greatest.
    random < (ratio.max(0.0) * (1u64 << 63) as f64) as u64
}

/// What is decided for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Full(Because),
    Sums,
    Nothing,
}

/// Why work is exported in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Because {
    Sampled,
    Late,
    Slow,
    Fault,
}

impl Outcome {
    pub(crate) fn is_full(self) -> bool {
        matches!(self, Self::Full(_))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full(Because::Sampled) => "sampled",
            Self::Full(Because::Late) => "late",
            Self::Full(Because::Slow) => "slow",
            Self::Full(Because::Fault) => "fault",
            Self::Sums => "sums",
            Self::Nothing => "nothing",
        }
    }
}

/// Values of one kind that are enough to say what is usual.
const ENOUGH: usize = 20;
/// The newest values that count.
const RECENT: usize = 128;
/// Kinds that are told apart.
const KINDS: usize = 4_096;

/// Tells what is too long, from what was seen before.
#[derive(Debug)]
pub(crate) struct TooLong {
    threshold: Threshold,
    kinds: FxHashMap<Arc<str>, Recent>,
}

#[derive(Debug, Default)]
struct Recent {
    values_ns: Vec<u64>,
    next: usize,
    median_ns: u64,
    since: usize,
}

impl TooLong {
    pub(crate) fn new(threshold: Threshold) -> Self {
        Self {
            threshold,
            kinds: FxHashMap::default(),
        }
    }

    /// Whether this one is, by those before it; then it is one of those.
    pub(crate) fn see(&mut self, kind: &Arc<str>, ns: u64) -> bool {
        let over = |limit: Duration| u128::from(ns) > limit.as_nanos();
        match self.threshold {
            Threshold::Never => false,
            Threshold::Over(limit) => over(limit),
            Threshold::OverMedian { times, at_least } => {
                if !self.kinds.contains_key(kind) && self.kinds.len() >= KINDS {
                    return false;
                }
                let recent = self.kinds.entry(Arc::clone(kind)).or_default();
                let median = recent.median_ns();
                recent.add(ns);
                median.is_some_and(|median| ns as f64 > median as f64 * times) && over(at_least)
            }
        }
    }
}

impl Recent {
    fn median_ns(&mut self) -> Option<u64> {
        if self.values_ns.len() < ENOUGH {
            return None;
        }
        // Sorting anew for each value would cost more than the value is worth.
        if self.median_ns == 0 || self.since >= RECENT / 8 {
            let mut sorted = self.values_ns.clone();
            sorted.sort_unstable();
            self.median_ns = sorted[sorted.len() / 2].max(1);
            self.since = 0;
        }
        Some(self.median_ns)
    }

    fn add(&mut self, ns: u64) {
        self.since += 1;
        if self.values_ns.len() < RECENT {
            self.values_ns.push(ns);
        } else {
            self.values_ns[self.next] = ns;
            self.next = (self.next + 1) % RECENT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(flags: u8) -> Option<W3cParent> {
        Some(W3cParent {
            trace_id: 1,
            span_id: 1,
            flags,
        })
    }

    #[test]
    fn a_head_that_did_not_sample_is_obeyed_in_every_setting() {
        for detail in [Detail::Everything, Detail::Sums, Detail::SumsAndLate] {
            let volume = Volume {
                roots: RootSampler::AlwaysOn,
                ..Volume::of_all(detail)
            };
            assert_eq!(volume.at_head(parent(0), TraceId::from(1)), Detail::Nothing);
            assert_eq!(volume.at_head(parent(1), TraceId::from(1)), detail);
        }
    }

    #[test]
    fn the_ratio_is_that_of_opentelemetry() {
        let volume = |ratio| Volume {
            roots: RootSampler::Ratio(ratio),
            ..Volume::default()
        };
        // The low half is 2^63: shifted it is 2^62, which is half of all there are.
        let half = TraceId::from(1u128 << 63);
        assert_eq!(volume(0.5).at_head(None, half), Detail::SumsAndLate);
        assert_eq!(volume(0.500_001).at_head(None, half), Detail::Everything);
        // Only the low half counts, and its last bit does not.
        let one = TraceId::from(u128::MAX << 64 | 1);
        assert_eq!(volume(1e-18).at_head(None, one), Detail::Everything);
        let greatest = TraceId::from(u128::MAX);
        assert_eq!(volume(1.0).at_head(None, greatest), Detail::Everything);
        assert_eq!(volume(0.0).at_head(None, one), Detail::SumsAndLate);
    }

    #[test]
    fn what_is_usual_is_learnt_by_kind() {
        let mut slow = TooLong::new(Threshold::OverMedian {
            times: 2.0,
            at_least: Duration::from_nanos(150),
        });
        let (long, short): (Arc<str>, Arc<str>) = ("long".into(), "short".into());
        for _ in 0..20 {
            assert!(!slow.see(&long, 1_000_000), "nothing is known yet");
            assert!(!slow.see(&short, 10));
        }
        assert!(slow.see(&long, 2_000_001));
        assert!(!slow.see(&long, 2_000_000));
        assert!(!slow.see(&short, 150), "over the median, but not long");
        assert!(slow.see(&short, 151));
    }
}
