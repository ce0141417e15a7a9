//! Ids and times as they come from threads, tasks and CUPTI.

use std::fmt;

/// One process of an observation stream: 0 in a live session, an index where an importer brings
/// several. Ids of different processes are never joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct ProcessOrdinal(pub u32);

/// A time on the recording host's clock, in nanoseconds. Zero is a time like any other here: where
/// a source means "unknown" by 0, the field is an `Option`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct HostNanos(pub u64);

impl HostNanos {
    /// CUPTI's convention: 0 means that the time was not collected.
    pub const fn from_cupti(ns: u64) -> Option<Self> {
        if ns == 0 { None } else { Some(Self(ns)) }
    }

    /// Signed nanoseconds from `earlier` to `self`; negative where `self` is the earlier one.
    pub const fn since(self, earlier: Self) -> i128 {
        self.0 as i128 - earlier.0 as i128
    }
}

impl fmt::Display for HostNanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

/// A thread: the system's thread id, and a number that tells apart the threads that bore it one
/// after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ThreadKey {
    /// The system's thread id (`gettid` on Linux).
    pub tid: u64,
    /// Counts all threads that lineage saw, from 1.
    pub generation: u32,
}

/// An async task, as the runtime numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct TaskId(pub u64);

/// One crossing of a thread or task boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct HandoffId(pub u64);

/// Number of a scope on its thread: from 1, without holes, in order of entry. The scope with the
/// greatest token among those open is the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct ScopeToken(pub u64);

/// CUPTI's correlation id as it is on the wire: 32 bits that wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct CorrelationId(pub u32);

/// A correlation id that no longer wraps: the wire's 32 bits below the number of wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct UnwrappedCorrelationId(pub u64);

impl UnwrappedCorrelationId {
    /// The id as it was on the wire.
    pub const fn wire(self) -> CorrelationId {
        CorrelationId(self.0 as u32)
    }
}

/// The parent span of a request as W3C Trace Context carries it, opaque to lineage.
///
/// <https://www.w3.org/TR/trace-context/>
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct W3cParent {
    /// The trace's 128-bit id, not 0.
    pub trace_id: u128,
    /// The parent span's 64-bit id, not 0.
    pub span_id: u64,
    /// The trace flags; bit 0 is "sampled".
    pub flags: u8,
}

impl W3cParent {
    /// Reads a `traceparent` header value; `None` where it is not a valid one.
    ///
    /// Versions above 00 are read by their first four fields, as the recommendation asks.
    pub fn parse(header: &str) -> Option<Self> {
        let header = header.trim();
        let bytes = header.as_bytes();
        let dashes_in_place = bytes.len() >= 55 && [2, 35, 52].iter().all(|&at| bytes[at] == b'-');
        if !dashes_in_place || !header.is_ascii() {
            return None;
        }
        let hex = |range: std::ops::Range<usize>| {
            let digits = &header[range];
            digits
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
                .then_some(digits)
        };
        let version = u8::from_str_radix(hex(0..2)?, 16).ok()?;
        let ends_rightly = match version {
            0xff => false,
            0 => bytes.len() == 55,
            _ => bytes.len() == 55 || bytes[55] == b'-',
        };
        let parent = Self {
            trace_id: u128::from_str_radix(hex(3..35)?, 16).ok()?,
            span_id: u64::from_str_radix(hex(36..52)?, 16).ok()?,
            flags: u8::from_str_radix(hex(53..55)?, 16).ok()?,
        };
        (ends_rightly && parent.trace_id != 0 && parent.span_id != 0).then_some(parent)
    }

    /// Whether the head of the trace chose to keep it.
    pub const fn sampled(self) -> bool {
        self.flags & 1 == 1
    }
}

/// Written as a `traceparent` header value of version 00.
impl fmt::Display for W3cParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace_id, self.span_id, self.flags
        )
    }
}

impl fmt::Debug for W3cParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<W3cParent> for String {
    fn from(parent: W3cParent) -> Self {
        parent.to_string()
    }
}

/// A text that is not a valid `traceparent`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a valid traceparent: {0:?}")]
pub struct ParseW3cParentError(String);

impl TryFrom<String> for W3cParent {
    type Error = ParseW3cParentError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or(ParseW3cParentError(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recommendations_own_example_is_read_and_written_back() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = W3cParent::parse(text).expect("valid");
        assert_eq!(parent.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(parent.span_id, 0x00f0_67aa_0ba9_02b7);
        assert!(parent.sampled());
        assert_eq!(parent.to_string(), text);
    }

    #[test]
    fn invalid_parents_are_refused() {
        for text in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b-01x",
        ] {
            assert_eq!(W3cParent::parse(text), None, "{text}");
        }
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-what";
        assert!(W3cParent::parse(later).is_some_and(|parent| !parent.sampled()));
    }
}
