//! What a ring holds: records as the kernel writes them (`linux/perf_event.h`, `perf_event_type`).
//!
//! Every record is a header, a body that depends on its type, and the same three words at its end,
//! since that is what was asked for: who, when, on which processor.

use lineage_core::id::HostNanos;
use lineage_core::observation::SwitchedOff;

const HEADER_BYTES: usize = 8;
const STAMP_BYTES: usize = 24;

const LOST: u32 = 2;
const EXIT: u32 = 4;
const SWITCH: u32 = 14;

const SWITCHED_OUT: u16 = 1 << 13;
const STILL_RUNNABLE: u16 = 1 << 14;

/// One record of the kinds that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    /// The thread was put on a processor.
    In { at: HostNanos, cpu: u32 },
    /// It was taken off one.
    Out {
        at: HostNanos,
        cpu: u32,
        why: SwitchedOff,
    },
    /// This many records had no room before this time.
    Lost { count: u64, at: HostNanos },
    /// The thread ended.
    Exit { at: HostNanos },
    /// A kind that says nothing of scheduling, as that the thread started another.
    Other,
}

/// A record whose size cannot be right: what follows it cannot be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Reads records one after the other.
pub(super) struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some((record, rest)) = split(self.rest) else {
            self.rest = &[];
            return Some(Err(Malformed));
        };
        self.rest = rest;
        Some(decode(record).ok_or(Malformed))
    }
}

/// The first record and what follows it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let size = usize::from(u16_at(bytes, 6)?);
    if size < HEADER_BYTES {
        return None;
    }
    bytes.split_at_checked(size)
}

fn decode(record: &[u8]) -> Option<Record> {
    let kind = u32_at(record, 0)?;
    if !matches!(kind, LOST | EXIT | SWITCH) {
        return Some(Record::Other);
    }
    let flags = u16_at(record, 4)?;
    let stamp = record.len().checked_sub(STAMP_BYTES)?;
    if stamp < HEADER_BYTES {
        return None;
    }
    let at = HostNanos(u64_at(record, stamp + 8)?);
    let cpu = u32_at(record, stamp + 16)?;
    Some(match kind {
        // Which event, and how many.
        LOST if stamp >= HEADER_BYTES + 16 => Record::Lost {
            count: u64_at(record, HEADER_BYTES + 8)?,
            at,
        },
        LOST => return None,
        EXIT => Record::Exit { at },
        _ if flags & SWITCHED_OUT == 0 => Record::In { at, cpu },
        _ => Record::Out {
            at,
            cpu,
            why: match flags & STILL_RUNNABLE {
                0 => SwitchedOff::Blocked,
                _ => SwitchedOff::Preempted,
            },
        },
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A record as the kernel would write it.
    fn record(kind: u32, flags: u16, body: &[u64], at: u64, cpu: u32) -> Vec<u8> {
        let size = (HEADER_BYTES + body.len() * 8 + STAMP_BYTES) as u16;
        let mut bytes = Vec::new();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(100_u32.to_ne_bytes());
        bytes.extend(101_u32.to_ne_bytes());
        bytes.extend(at.to_ne_bytes());
        bytes.extend(cpu.to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn each_kind_is_read_with_its_time_and_its_processor() {
        let mut bytes = record(14, 1 << 13, &[], 1_000, 3);
        bytes.extend(record(14, 1 << 13 | 1 << 14, &[], 2_000, 2));
        bytes.extend(record(14, 0, &[], 3_000, 1));
        bytes.extend(record(2, 0, &[77, 12], 4_000, 0));
        bytes.extend(record(7, 0, &[1, 2, 3], 5_000, 0));
        bytes.extend(record(4, 0, &[1, 2, 3], 6_000, 0));
        let read: Vec<_> = Records::new(&bytes).collect();
        let expected = [
            Record::Out {
                at: HostNanos(1_000),
                cpu: 3,
                why: SwitchedOff::Blocked,
            },
            Record::Out {
                at: HostNanos(2_000),
                cpu: 2,
                why: SwitchedOff::Preempted,
            },
            Record::In {
                at: HostNanos(3_000),
                cpu: 1,
            },
            Record::Lost {
                count: 12,
                at: HostNanos(4_000),
            },
            Record::Other,
            Record::Exit {
                at: HostNanos(6_000),
            },
        ];
        assert_eq!(read, expected.map(Ok));
    }

    #[test]
    fn a_record_without_room_for_what_it_must_hold_is_malformed() {
        // A switch without its stamp: what follows it can still be read.
        let mut bytes = vec![0; 8];
        bytes[0..4].copy_from_slice(&14_u32.to_ne_bytes());
        bytes[6..8].copy_from_slice(&8_u16.to_ne_bytes());
        bytes.extend(record(14, 0, &[], 9, 0));
        let read: Vec<_> = Records::new(&bytes).collect();
        let next = Record::In {
            at: HostNanos(9),
            cpu: 0,
        };
        assert_eq!(read, [Err(Malformed), Ok(next)]);
        // A loss that does not say how many.
        let read: Vec<_> = Records::new(&record(2, 0, &[77], 9, 0)).collect();
        assert_eq!(read, [Err(Malformed)]);
        // A size of less than the header, and one that reaches beyond the end: the rest is lost.
        for size in [0_u16, 7, 200] {
            let mut bytes = record(14, 0, &[], 9, 0);
            bytes[6..8].copy_from_slice(&size.to_ne_bytes());
            bytes.extend(record(14, 0, &[], 9, 0));
            let read: Vec<_> = Records::new(&bytes).collect();
            assert_eq!(read, [Err(Malformed)], "size {size}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let most = bytes.len() / HEADER_BYTES + 1;
            prop_assert!(Records::new(&bytes).count() <= most);
        }
    }
}
