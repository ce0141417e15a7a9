//! The launch epoch, its packed form for CUPTI, and what a thread's work is attributed to.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};

/// Bits of a packed epoch that hold the version.
const VERSION_BITS: u32 = 24;
const VERSION_MASK: u64 = (1 << VERSION_BITS) - 1;

/// The greatest version an epoch id can have; the next step continues under a fresh id.
pub const MAX_VERSION: u32 = (1 << VERSION_BITS) - 1;

/// The 40-bit id that is reserved for work that belongs to no epoch on purpose.
pub const DETACHED_ID: u64 = (1 << 40) - 1;

/// The greatest id an epoch can have.
pub const MAX_EPOCH_ID: u64 = DETACHED_ID - 1;

/// Identity of one declaration of GPU work: a 40-bit number from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "u64", into = "u64"))]
pub struct EpochId(NonZeroU64);

impl EpochId {
    /// An id from its number; `None` for 0, for the reserved id and for what needs over 40 bits.
    #[inline]
    pub const fn new(number: u64) -> Option<Self> {
        if number > MAX_EPOCH_ID {
            return None;
        }
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The id's number, from 1 to [`MAX_EPOCH_ID`].
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Debug for EpochId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EpochId({})", self.0)
    }
}

impl fmt::Display for EpochId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<EpochId> for u64 {
    fn from(id: EpochId) -> Self {
        id.get()
    }
}

impl TryFrom<u64> for EpochId {
    type Error = OutOfRange;

    fn try_from(number: u64) -> Result<Self, OutOfRange> {
        Self::new(number).ok_or(OutOfRange {
            what: "epoch id",
            number,
        })
    }
}

/// Version of an epoch: a 24-bit number from 1 that only a step or a retry raises.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "u32", into = "u32"))]
pub struct EpochVersion(NonZeroU32);

impl EpochVersion {
    /// The version every epoch begins with.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// A version from its number; `None` for 0 and for what needs over 24 bits.
    #[inline]
    pub const fn new(number: u32) -> Option<Self> {
        if number > MAX_VERSION {
            return None;
        }
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The version's number, from 1 to [`MAX_VERSION`].
    pub const fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Debug for EpochVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EpochVersion({})", self.0)
    }
}

impl From<EpochVersion> for u32 {
    fn from(version: EpochVersion) -> Self {
        version.get()
    }
}

impl TryFrom<u32> for EpochVersion {
    type Error = OutOfRange;

    fn try_from(number: u32) -> Result<Self, OutOfRange> {
        Self::new(number).ok_or(OutOfRange {
            what: "epoch version",
            number: u64::from(number),
        })
    }
}

/// A number that is outside the range of the identity it was read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{number} is no valid {what}")]
pub struct OutOfRange {
    what: &'static str,
    number: u64,
}

/// Identity of declared GPU work: whose it is, and which step of it.
///
/// Made where the work is first declared, carried along by value, and pushed into CUPTI in its
/// [packed form](PackedEpoch).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LaunchEpoch {
    /// Which declaration.
    pub id: EpochId,
    /// Which step or attempt of it.
    pub version: EpochVersion,
}

impl LaunchEpoch {
    /// The first version of an epoch.
    pub const fn first(id: EpochId) -> Self {
        Self {
            id,
            version: EpochVersion::FIRST,
        }
    }

    /// The epoch of these numbers; `None` if one of them is out of range.
    #[inline]
    pub const fn from_numbers(id: u64, version: u32) -> Option<Self> {
        match (EpochId::new(id), EpochVersion::new(version)) {
            (Some(id), Some(version)) => Some(Self { id, version }),
            _ => None,
        }
    }

    /// The `u64` that is given to CUPTI.
    #[inline]
    pub const fn pack(self) -> PackedEpoch {
        PackedEpoch((self.id.get() << VERSION_BITS) | self.version.get() as u64)
    }
}

impl fmt::Debug for LaunchEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Written `id.version`, for example `88.3`.
impl fmt::Display for LaunchEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.id.get(), self.version.get())
    }
}

/// Why work belongs to no epoch on purpose: the number of a name given to
/// [`detached`](crate::detached). 0 means that a launch boundary had no epoch at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct DetachedReason(pub u32);

/// An epoch in one `u64`: the id in the high 40 bits, the version in the low 24.
///
/// 0 is "none". The reserved id [`DETACHED_ID`] with version 0 is "a boundary without an epoch",
/// with a greater version "detached, for the reason of that number". Any value below 2^24 cannot
/// be ours, so a small external id of another tool is never taken for an epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PackedEpoch(u64);

impl PackedEpoch {
    /// No epoch.
    pub const NONE: Self = Self(0);
    /// What a launch boundary pushes when no epoch is current.
    pub const BOUNDARY_WITHOUT_EPOCH: Self = Self(DETACHED_ID << VERSION_BITS);

    /// Detached work for the reason of this number; numbers over 24 bits become 1.
    pub const fn detached(reason: DetachedReason) -> Self {
        let number = if reason.0 == 0 || reason.0 > MAX_VERSION {
            1
        } else {
            reason.0
        };
        Self((DETACHED_ID << VERSION_BITS) | number as u64)
    }

    /// The value as it was received, whatever it means.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The value for the wire.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// What the value stands for.
    #[inline]
    pub const fn unpack(self) -> Attribution {
        let (id, version) = (self.0 >> VERSION_BITS, (self.0 & VERSION_MASK) as u32);
        if self.0 == 0 {
            Attribution::None
        } else if id == DETACHED_ID {
            if version == 0 {
                Attribution::BoundaryWithoutEpoch
            } else {
                Attribution::Detached(DetachedReason(version))
            }
        } else {
            match LaunchEpoch::from_numbers(id, version) {
                Some(epoch) => Attribution::Epoch(epoch),
                None => Attribution::Foreign(self.0),
            }
        }
    }
}

impl From<LaunchEpoch> for PackedEpoch {
    fn from(epoch: LaunchEpoch) -> Self {
        epoch.pack()
    }
}

impl From<Attribution> for PackedEpoch {
    fn from(attribution: Attribution) -> Self {
        match attribution {
            Attribution::None => Self::NONE,
            Attribution::Epoch(epoch) => epoch.pack(),
            Attribution::Detached(reason) => Self::detached(reason),
            Attribution::BoundaryWithoutEpoch => Self::BOUNDARY_WITHOUT_EPOCH,
            Attribution::Foreign(bits) => Self::from_bits(bits),
        }
    }
}

impl fmt::Debug for PackedEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackedEpoch({:?})", self.unpack())
    }
}

/// What work on a thread is attributed to at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Attribution {
    /// No epoch is current.
    #[default]
    None,
    /// This epoch.
    Epoch(LaunchEpoch),
    /// On purpose to none.
    Detached(DetachedReason),
    /// A launch boundary was entered while no epoch was current.
    BoundaryWithoutEpoch,
    /// A value that no epoch of ours can have.
    Foreign(u64),
}

impl Attribution {
    /// The epoch, where there is one.
    pub const fn epoch(self) -> Option<LaunchEpoch> {
        match self {
            Self::Epoch(epoch) => Some(epoch),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_puts_the_id_in_the_high_40_bits_and_the_version_in_the_low_24() {
        let epoch = LaunchEpoch::from_numbers(0x12_3456_789a, 0x00bc_def0).expect("in range");
        assert_eq!(epoch.pack().bits(), 0x1234_5678_9abc_def0);
        assert_eq!(epoch.pack().unpack(), Attribution::Epoch(epoch));
    }

    #[test]
    fn values_below_two_to_the_24_are_never_ours() {
        for bits in [1, 2, 88, (1 << 24) - 1] {
            assert_eq!(
                PackedEpoch::from_bits(bits).unpack(),
                Attribution::Foreign(bits)
            );
        }
        // An id of ours with version 0 was never pushed either.
        assert_eq!(
            PackedEpoch::from_bits(1 << 24).unpack(),
            Attribution::Foreign(1 << 24)
        );
        assert_eq!(
            PackedEpoch::from_bits((1 << 24) + 1).unpack(),
            Attribution::Epoch(LaunchEpoch::from_numbers(1, 1).expect("in range"))
        );
    }

    #[test]
    fn reserved_values_keep_their_meaning() {
        assert_eq!(PackedEpoch::NONE.unpack(), Attribution::None);
        assert_eq!(
            PackedEpoch::from_bits(0xffff_ffff_ff00_0000).unpack(),
            Attribution::BoundaryWithoutEpoch
        );
        let reason = DetachedReason(7);
        assert_eq!(PackedEpoch::detached(reason).bits(), 0xffff_ffff_ff00_0007);
        assert_eq!(
            PackedEpoch::detached(reason).unpack(),
            Attribution::Detached(reason)
        );
        assert_eq!(EpochId::new(DETACHED_ID), None);
        assert_eq!(EpochId::new(0), None);
        assert_eq!(
            EpochId::new(MAX_EPOCH_ID).map(EpochId::get),
            Some((1 << 40) - 2)
        );
    }
}
