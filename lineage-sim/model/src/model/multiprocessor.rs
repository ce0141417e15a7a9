//! Multiprocessors: threads, registers, shared memory and blocks, and what fits.

use crate::facts::Limit;
use crate::settings::Settings;
use crate::work::Footprint;

/// What one multiprocessor has left, or has in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    threads: u32,
    registers: u32,
    shared_bytes: u32,
    blocks: u32,
}

impl Room {
    /// How many blocks fit, and which limit says so.
    fn fits(&self, footprint: &Footprint) -> (u32, Limit) {
        let of = |room: u32, taken: u32| room.checked_div(taken).unwrap_or(u32::MAX);
        [
            (of(self.threads, footprint.threads), Limit::Threads),
            (of(self.registers, footprint.registers), Limit::Registers),
            (
                of(self.shared_bytes, footprint.shared_bytes),
                Limit::SharedMemory,
            ),
            (self.blocks, Limit::Blocks),
        ]
        .into_iter()
        .min_by_key(|(blocks, _)| *blocks)
        .unwrap_or((0, Limit::None))
    }

    fn take(&mut self, footprint: &Footprint, blocks: u32) {
        // More than all of it is taken only by a block that is larger than a multiprocessor, which then has it alone.
        self.threads = self
            .threads
            .saturating_sub(footprint.threads.saturating_mul(blocks));
        self.registers = self
            .registers
            .saturating_sub(footprint.registers.saturating_mul(blocks));
        self.shared_bytes = self
            .shared_bytes
            .saturating_sub(footprint.shared_bytes.saturating_mul(blocks));
        self.blocks = self.blocks.saturating_sub(blocks);
    }

    fn give_back(&mut self, footprint: &Footprint, blocks: u32, full: &Self) {
        let back = |room: &mut u32, taken: u32, full: u32| {
            *room = room.saturating_add(taken.saturating_mul(blocks)).min(full);
        };
        back(&mut self.threads, footprint.threads, full.threads);
        back(&mut self.registers, footprint.registers, full.registers);
        back(
            &mut self.shared_bytes,
            footprint.shared_bytes,
            full.shared_bytes,
        );
        back(&mut self.blocks, 1, full.blocks);
    }
}

/// Where blocks are: multiprocessor and count. Empty where there is no limit.
pub(super) type Places = Vec<(u32, u32)>;

pub(super) struct Multiprocessors {
    /// Empty: no limit.
    room: Vec<Room>,
    full: Room,
}

impl Multiprocessors {
    pub(super) fn new(settings: &Settings) -> Self {
        let full = Room {
            threads: settings.threads_per_multiprocessor,
            registers: settings.registers_per_multiprocessor,
            shared_bytes: settings.shared_bytes_per_multiprocessor,
            blocks: settings.blocks_per_multiprocessor.max(1),
        };
        Self {
            room: vec![full; settings.multiprocessors as usize],
            full,
        }
    }

    /// Places as many of a kernel's blocks as fit, evenly. How many, where, and which limit stops the next one.
    pub(super) fn place(&mut self, footprint: &Footprint, wanted: u64) -> (u64, Places, Limit) {
        if self.room.is_empty() {
            return (wanted, Vec::new(), Limit::None);
        }
        let fits: Vec<(u32, Limit)> = self
            .room
            .iter()
            .map(|room| match room.fits(footprint) {
                // What fits nowhere gets a multiprocessor of its own.
                (0, limit) if *room == self.full => (1, limit),
                fits => fits,
            })
            .collect();
        // The fewest that one multiprocessor must take so that all are placed, or all that fit.
        let placed_with = |most: u32| -> u64 {
            fits.iter()
                .map(|(blocks, _)| u64::from(*blocks.min(&most)))
                .sum()
        };
        let (mut low, mut high) = (0, fits.iter().map(|(blocks, _)| *blocks).max().unwrap_or(0));
        while low < high {
            let middle = low + (high - low) / 2;
            if placed_with(middle) >= wanted {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let placed = wanted.min(placed_with(low));
        // All have one less than that; the first of those that can have one more.
        let even = low.saturating_sub(1);
        let mut more = placed - placed_with(even).min(placed);
        let mut places = Vec::new();
        for (at, (fits, _)) in fits.iter().enumerate() {
            let mut blocks = (*fits).min(even);
            if more > 0 && *fits > even {
                blocks += 1;
                more -= 1;
            }
            if blocks > 0 {
                self.room[at].take(footprint, blocks);
                places.push((at as u32, blocks));
            }
        }
        let limit = fits
            .iter()
            .max_by_key(|(blocks, _)| *blocks)
            .map_or(Limit::None, |(_, limit)| *limit);
        (placed, places, limit)
    }

    pub(super) fn release(&mut self, footprint: &Footprint, places: &Places) {
        for (at, blocks) in places {
            if let Some(room) = self.room.get_mut(*at as usize) {
                room.give_back(footprint, *blocks, &self.full);
            }
        }
    }
}
