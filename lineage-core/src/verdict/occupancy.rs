//! Whether a kernel that ran left no room for one that waited.
//!
//! # What fits
//!
//! A multiprocessor holds so many threads, registers, bytes of shared memory and blocks. What a block
//! takes of them is known from below: its nominal numbers. From above it is known as far as NVIDIA
//! documents what is set aside: threads by warps of 32; registers by 256 for a warp, here by 512, for
//! warps by 4 (CUDA's occupancy calculator). How much shared memory a multiprocessor is set to, and how
//! much of it the system takes, is not known, only the most: so there may always have been too little.
//! Each number is used on the side on which an error costs a claim, and makes none.
//!
//! # What is proved
//!
//! A kernel of at least as many blocks as the device can hold at most *fills* it: once its blocks are
//! placed, no multiprocessor has room for one more, however many are there. How many that are is not
//! known, so each number that may be is looked at. Another kernel's block has no room beside them if
//! the nominal numbers say so, or if it takes at least as much of everything of which there may have
//! been too little for one more block of the first.
//!
//! How long that lasts is not known from any record: with the last blocks placed, those that end leave
//! room, and a long last one leaves most of it. So the stretch is bound at its end: the kernel that
//! waited began within the dispatch floor of the other's end. One that began earlier, in the tail, is
//! not claimed to have waited for it, though it most likely did.
//!
//! # What else could have held it back
//!
//! All dependencies are known, and nobody else can have the device: that is looked at before. Here:
//! the first ran already when the second was there (what is overtaken may have been held back in other
//! ways), both are of one context, nothing else ran beside the first, none of both is of clusters or of
//! unknown ones (which are placed together, and leave room that single blocks would take), the second is
//! no graph's node, and nothing of another stream was ahead of it in its channel. Neither was a wait for
//! an event, in its stream or its channel: when the event happened no record says.

use super::path::{Bench, Known, LOOKED_BACK};
use super::scene::Ran;
use super::threads::Stretch;
use crate::id::HostNanos;
use crate::observation::{ActivityKind, DeviceDescribed, Operation};

/// How many operations of a channel are looked at that began after a kernel was there: as many as a
/// channel's ring can hold.
const LOOKED_AHEAD: usize = 1_024;

/// Threads, registers, bytes of shared memory, blocks.
type Amounts = [u64; 4];

/// What a device holds.
#[derive(Debug, Clone, Copy)]
struct Device {
    multiprocessors: u64,
    /// Each of them.
    each: Amounts,
}

impl Device {
    /// `None` unless all of it is known.
    fn of(described: &DeviceDescribed) -> Option<Self> {
        let of = described.multiprocessors?;
        let each = [of.threads?, of.registers?, of.shared_bytes?, of.blocks?];
        let known = of.count? > 0 && each.iter().all(|of| *of > 0);
        known.then_some(Self {
            multiprocessors: u64::from(of.count?),
            each: each.map(u64::from),
        })
    }
}

/// A kernel's blocks.
#[derive(Debug, Clone, Copy)]
struct Grid {
    blocks: u64,
    threads: u64,
    registers_per_thread: u64,
    shared_bytes: u64,
}

impl Grid {
    /// `None` for what is no kernel, has no footprint, or is or may be of clusters.
    fn of(operation: &Operation) -> Option<Self> {
        let footprint = operation.footprint?;
        let product = |of: [u32; 3]| {
            let mut all = of.into_iter().map(u64::from);
            all.try_fold(1_u64, |product, of| product.checked_mul(of))
        };
        let grid = Self {
            blocks: product(operation.grid)?,
            threads: product(operation.block)?,
            registers_per_thread: u64::from(footprint.registers_per_thread),
            shared_bytes: u64::from(footprint.shared_bytes),
        };
        let single = footprint.blocks_per_cluster == Some(1);
        let kernel = operation.kind == ActivityKind::Kernel;
        // No block of CUDA's has more threads.
        let real = grid.blocks > 0 && (1..=1_024).contains(&grid.threads);
        (kernel && single && real).then_some(grid)
    }

    /// What one block takes at least.
    fn least(&self) -> Amounts {
        let registers = self.registers_per_thread.saturating_mul(self.threads);
        [self.threads, registers, self.shared_bytes, 1]
    }

    /// What one block takes at most.
    fn most(&self) -> Amounts {
        let registers = self.registers_per_thread.next_multiple_of(16);
        [
            self.threads.next_multiple_of(32),
            registers.saturating_mul(self.threads.next_multiple_of(128)),
            u64::MAX,
            1,
        ]
    }

    /// Of what one block takes at least as much as one of another's, whatever is set aside for it.
    fn as_much_as(&self, other: &Self) -> [bool; 4] {
        let threads = self.threads >= other.threads;
        let registers = threads && self.registers_per_thread >= other.registers_per_thread;
        [
            threads,
            registers,
            self.shared_bytes >= other.shared_bytes,
            true,
        ]
    }

    /// Blocks that a multiprocessor holds at most.
    fn resident_at_most(&self, device: &Device) -> u64 {
        let amounts = device.each.into_iter().zip(self.least());
        let fits = amounts.filter_map(|(has, takes)| has.checked_div(takes));
        fits.min().unwrap_or(0)
    }

    /// Whether this, once it is placed, leaves no room on any multiprocessor for a block of another.
    fn leaves_no_room_for(&self, other: &Self, device: &Device) -> bool {
        let most_resident = self.resident_at_most(device);
        let capacity = device.multiprocessors.saturating_mul(most_resident);
        if most_resident == 0 || self.blocks < capacity {
            return false;
        }
        let (own, others) = (self.least(), other.least());
        let as_much = other.as_much_as(self);
        (1..=most_resident).all(|resident| {
            let full = (0..4).any(|of| resident * own[of] + others[of] > device.each[of]);
            let mut all = (0..4).zip(self.most());
            full || all.all(|(of, most)| {
                // That there was too little of it for one more of this.
                let perhaps = most.saturating_mul(resident + 1) > device.each[of];
                !perhaps || as_much[of]
            })
        })
    }
}

impl Bench<'_> {
    /// When a kernel ran that left no room for this one, which was there all the part and began at
    /// its end; and which.
    pub(super) fn no_room(
        &self,
        number: usize,
        operation: &Operation,
        part: Stretch<()>,
        known: &Known,
    ) -> Option<Stretch<usize>> {
        let limit_ns = self.floor?.limit_ns;
        let own = Grid::of(operation)?;
        let device = Device::of(self.scene.described(operation.device)?)?;
        if operation.graph_node.is_some() || self.scene.is_loose(operation) {
            return None;
        }
        let (ran, alone_since) = self.ran_before(number, operation.device, part, limit_ns)?;
        let running = self.scene.rows[ran.row].operation.as_ref()?;
        let proved = running.context == operation.context
            && Grid::of(running)?.leaves_no_room_for(&own, &device)
            && self.first_in_channel(number, operation, part, known)?;
        let found = Stretch {
            from: alone_since.max(ran.start).max(part.from),
            to: ran.end.min(part.to),
            of: ran.row,
        };
        (proved && found.from < found.to).then_some(found)
    }

    /// What ran when a part began and ended within the dispatch floor of the part's end, if that is
    /// one operation; and since when it had the device to itself, but for copies.
    fn ran_before(
        &self,
        number: usize,
        device: u32,
        part: Stretch<()>,
        limit_ns: u64,
    ) -> Option<(Ran, HostNanos)> {
        let list = self.scene.by_device.get(&device)?;
        let before = list.partition_point(|of| of.start < part.to);
        let mut found: Option<Ran> = None;
        let mut alone_since = part.from;
        let oldest = before.saturating_sub(LOOKED_BACK);
        if oldest > 0 && list[oldest].earlier_end > part.from {
            return None;
        }
        let copies = |of: &&Ran| {
            let operation = self.scene.rows[of.row].operation.as_ref();
            operation.is_some_and(|of| of.kind == ActivityKind::Copy)
        };
        let others = list[oldest..before]
            .iter()
            .filter(|of| of.row != number && of.end > part.from);
        for of in others.filter(|of| !copies(of)) {
            if of.start.0.saturating_add(limit_ns) >= part.to.0 {
                // It begins when this does.
                continue;
            }
            if of.start.0 > part.from.0.saturating_add(limit_ns) {
                return None;
            }
            if of.end.0.saturating_add(limit_ns) < part.to.0 {
                alone_since = alone_since.max(of.end);
                continue;
            }
            let at_the_end = of.end.0 <= part.to.0.saturating_add(limit_ns);
            if !at_the_end || found.replace(*of).is_some() {
                return None;
            }
        }
        let found = found?;
        // What ended just before it may be what made room.
        let apart = alone_since == part.from
            || alone_since.0.saturating_add(2 * limit_ns) < found.end.0.min(part.to.0);
        apart.then_some((found, alone_since))
    }

    /// Whether nothing of another stream was ahead of this in its channel, and no wait for an event in
    /// its own; `None` if that is not known.
    fn first_in_channel(
        &self,
        number: usize,
        operation: &Operation,
        part: Stretch<()>,
        known: &Known,
    ) -> Option<bool> {
        let scene = self.scene;
        let channel = scene.channel(number)?;
        let (enter, exit) = (known.enter?, known.exit?);
        let list = scene.by_channel.get(&(operation.device, channel))?;
        let of = |row: usize| scene.rows[row].operation.as_ref();
        let entered = |row: usize| scene.rows[row].stages.api_enter.at();
        let started_by = |row: usize, at| of(row).is_some_and(|of| of.start <= Some(at));
        let begun = list.partition_point(|&row| started_by(row, part.from));
        let later = &list[begun..];
        if later.len() > LOOKED_AHEAD {
            let next = later[LOOKED_AHEAD];
            // All that may have been ahead has to be among those that are looked at.
            if entered(next).is_none_or(|at| at < exit) {
                return None;
            }
        }
        for &row in later.iter().take(LOOKED_AHEAD) {
            let other = of(row)?;
            let same_stream =
                (other.context, other.stream) == (operation.context, operation.stream);
            if !same_stream && entered(row)? < exit {
                return Some(false);
            }
        }
        // What calls put into streams beside operations holds up what is behind it, too: in its stream, as
        // a wait for an event of which no record says when it happened, and in its channel. Until
        // something behind it has begun, that is.
        let own = (operation.context, operation.stream);
        let alone = scene.is_non_blocking(own);
        let over_until = scene.over_until(own.0, enter);
        let begun = &list[..begun];
        for (marker, returned) in scene.last_markers(exit)? {
            let is_own = marker.stream == Some(own);
            let elsewhere = marker.stream.is_some_and(|stream| {
                let on = scene.channel_of_stream.get(&stream).copied().flatten();
                on.is_some_and(|on| on != (operation.device, channel))
            });
            let other_context = marker.stream.is_some_and(|of| of.0 != own.0);
            if !other_context && returned <= over_until {
                continue;
            }
            if is_own && marker.is_record || !is_own && elsewhere && alone {
                continue;
            }
            let in_stream = is_own || marker.stream.is_none() || !alone;
            let passed = begun.iter().rev().take(LOOKED_BACK).any(|&row| {
                let behind = entered(row).is_some_and(|at| at >= returned);
                let stream = of(row).map(|of| (of.context, of.stream));
                behind && (!in_stream || stream == Some(own))
            });
            if !passed {
                return Some(false);
            }
        }
        (enter <= part.from).then_some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The A100's, compute capability 8.0, by the CUDA C++ Programming Guide: 108 multiprocessors of
    /// 2,048 threads, 65,536 registers, 164 KiB of shared memory and 32 blocks.
    const A100: Device = Device {
        multiprocessors: 108,
        each: [2_048, 65_536, 164 * 1_024, 32],
    };

    fn grid(blocks: u64, threads: u64, registers_per_thread: u64, shared_bytes: u64) -> Grid {
        Grid {
            blocks,
            threads,
            registers_per_thread,
            shared_bytes,
        }
    }

    #[test]
    fn what_is_resident_at_most_is_the_tightest_limit() {
        for (of, blocks) in [
            // 2,048 threads by 256.
            (grid(1, 256, 32, 0), 8),
            // 65,536 registers by 128 of 256 threads: 2.
            (grid(1, 256, 128, 0), 2),
            // 167,936 bytes by 49,152: 3.
            (grid(1, 128, 32, 49_152), 3),
            // 32 blocks of 32 threads, where 64 have threads.
            (grid(1, 32, 16, 0), 32),
        ] {
            assert_eq!(of.resident_at_most(&A100), blocks, "{of:?}");
        }
    }

    #[test]
    fn a_kernel_of_its_own_kind_has_no_room_beside_one_that_fills_the_device() {
        for of in [
            grid(864, 256, 32, 0),
            grid(216, 256, 128, 0),
            grid(324, 128, 32, 49_152),
            grid(3_456, 32, 16, 0),
        ] {
            assert!(of.leaves_no_room_for(&of, &A100), "{of:?}");
            // A block less, and a multiprocessor may have room.
            let less = Grid {
                blocks: of.blocks - 1,
                ..of
            };
            assert!(!less.leaves_no_room_for(&of, &A100), "{of:?}");
        }
    }

    #[test]
    fn a_smaller_block_has_no_room_where_a_limit_is_used_up_for_sure() {
        // Two blocks of 1,024 threads and 32 registers use all threads and registers: there is no
        // granularity by which one fits, since 2 of 32 · 1,024 are the 65,536 that there are.
        let full = grid(216, 1_024, 32, 0);
        assert!(full.leaves_no_room_for(&grid(1, 32, 16, 0), &A100));
        // 32 blocks of 64 threads: no block more, however small.
        let blocks = grid(3_456, 64, 16, 0);
        assert!(blocks.leaves_no_room_for(&grid(1, 32, 16, 0), &A100));
        // With 40 registers one of 1,024 threads is resident, and a half of all threads is free.
        let half = grid(108, 1_024, 40, 0);
        assert!(!half.leaves_no_room_for(&grid(1, 32, 16, 0), &A100));
        // As large a block has no room there, for want of registers.
        assert!(half.leaves_no_room_for(&grid(1, 1_024, 40, 0), &A100));
        // 26,000 registers are free: 25 · 1,024 fit beside 40 · 1,024.
        assert!(!half.leaves_no_room_for(&grid(1, 1_024, 24, 0), &A100));
    }

    #[test]
    fn shared_memory_excludes_what_wants_as_much_and_nothing_that_wants_none() {
        // 160 KiB of 164: one a multiprocessor.
        let large = grid(108, 128, 64, 160 * 1_024);
        assert!(large.leaves_no_room_for(&grid(1, 128, 32, 160 * 1_024), &A100));
        // 8 KiB and 160 are more than there are.
        assert!(large.leaves_no_room_for(&grid(1, 128, 32, 8 * 1_024), &A100));
        // 4 are not, though a device that sets 1 aside for each block has no room for them.
        assert!(!large.leaves_no_room_for(&grid(1, 128, 32, 4 * 1_024), &A100));
        assert!(!large.leaves_no_room_for(&grid(1, 128, 32, 0), &A100));
        // How much a multiprocessor is set to is not known: that two of these fit is not, either, and
        // beside one of them there is room for threads.
        let middle = grid(216, 1_024, 32, 16 * 1_024);
        assert!(!middle.leaves_no_room_for(&grid(1, 32, 16, 0), &A100));
        assert!(middle.leaves_no_room_for(&grid(1, 32, 16, 16 * 1_024), &A100));
    }

    #[test]
    fn what_nothing_is_set_aside_for_by_some_device_excludes_nothing() {
        // Nominally 65,536 by 33 · 960 is 2. Set aside by 8 or by 16 for a thread it is one or the
        // other, and beside one there is room.
        let odd = grid(216, 960, 33, 0);
        assert_eq!(odd.resident_at_most(&A100), 2);
        assert!(!odd.leaves_no_room_for(&grid(1, 256, 33, 0), &A100));
        assert!(odd.leaves_no_room_for(&grid(1, 960, 33, 0), &A100));
    }

    #[test]
    fn a_block_that_no_multiprocessor_can_hold_proves_nothing() {
        let absurd = grid(1_000, 1_024, 255, 0);
        assert!(!absurd.leaves_no_room_for(&absurd, &A100));
    }
}
