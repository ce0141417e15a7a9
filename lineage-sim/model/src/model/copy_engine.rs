//! Copy engines: some for each direction; each does one copy at a time, in the order of arrival.

use std::collections::VecDeque;

use crate::settings::Settings;
use crate::work::Direction;

use super::Model;
use super::operations::OperationKey;

struct Engines {
    /// 0: as many as are wanted.
    count: u32,
    busy: u32,
    waiting: VecDeque<OperationKey>,
    ended_number: u64,
}

impl Engines {
    fn new(count: u32) -> Self {
        Self {
            count,
            busy: 0,
            waiting: VecDeque::new(),
            ended_number: 0,
        }
    }

    fn is_free(&self) -> bool {
        self.count == 0 || self.busy < self.count
    }
}

/// The engines of one device.
pub(super) struct CopyEngines([Engines; 3]);

impl CopyEngines {
    pub(super) fn new(settings: &Settings) -> Self {
        Self([
            Engines::new(settings.copy_engines_to_device),
            Engines::new(settings.copy_engines_to_host),
            Engines::new(settings.copy_engines_within),
        ])
    }

    fn of(&mut self, direction: Direction) -> &mut Engines {
        &mut self.0[direction as usize]
    }

    /// A copy has ended.
    pub(super) fn release(&mut self, direction: Direction, number: u64) {
        let engines = self.of(direction);
        engines.busy = engines.busy.saturating_sub(1);
        engines.ended_number = number;
    }

    pub(super) fn can_start(&self) -> bool {
        self.0
            .iter()
            .any(|engines| engines.is_free() && !engines.waiting.is_empty())
    }
}

impl<P> Model<P> {
    pub(super) fn copy_arrives(&mut self, device: usize, direction: Direction, key: OperationKey) {
        self.copy_engines[device]
            .of(direction)
            .waiting
            .push_back(key);
    }

    /// Starts the copies for which there are engines.
    pub(super) fn start_copies(&mut self, device: usize) {
        for direction in [Direction::ToDevice, Direction::ToHost, Direction::Within] {
            loop {
                let engines = self.copy_engines[device].of(direction);
                if !engines.is_free() {
                    break;
                }
                let Some(key) = engines.waiting.pop_front() else {
                    break;
                };
                engines.busy += 1;
                let ended_number = engines.ended_number;
                if let Some(operation) = self.operations.get_mut(key)
                    && operation.dispatched_ns < self.now_ns
                {
                    operation.facts.resource_number = ended_number;
                }
                self.begin(key);
            }
        }
    }
}
