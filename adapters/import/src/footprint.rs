//! What a kernel takes, in the eight bytes that an entry has for it.

use lineage_core::observation::Footprint;

/// `None` where a number has more than 16 bits: no device has so many registers for a thread, or blocks of
/// a cluster.
pub(crate) fn pack(of: Footprint) -> Option<u64> {
    let registers = u16::try_from(of.registers_per_thread).ok()?;
    let cluster = of.blocks_per_cluster.map_or(Ok(0), u16::try_from).ok()?;
    let halves = [registers, cluster].map(u64::from);
    Some(u64::from(of.shared_bytes) << 32 | halves[0] << 16 | halves[1])
}

pub(crate) fn unpack(packed: u64) -> Footprint {
    let half = |shift: u32| (packed >> shift) as u32 & 0xffff;
    Footprint {
        registers_per_thread: half(16),
        shared_bytes: (packed >> 32) as u32,
        blocks_per_cluster: Some(half(0)).filter(|blocks| *blocks > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_what_has_no_room_is_not_packed() {
        for (registers_per_thread, shared_bytes, blocks_per_cluster) in [
            (0, 0, None),
            (255, 233_472, Some(16)),
            (65_535, u32::MAX, Some(65_535)),
        ] {
            let footprint = Footprint {
                registers_per_thread,
                shared_bytes,
                blocks_per_cluster,
            };
            assert_eq!(pack(footprint).map(unpack), Some(footprint));
        }
        let large = |registers_per_thread, blocks| Footprint {
            registers_per_thread,
            shared_bytes: 0,
            blocks_per_cluster: Some(blocks),
        };
        assert_eq!(pack(large(65_536, 1)), None);
        assert_eq!(pack(large(32, 65_536)), None);
    }
}
