//! Semaphores: values in memory that streams wait for and write.

use std::collections::HashMap;

use crate::facts::DependencyKind;
use crate::work::{Condition, Place, Work};

use super::{Model, OperationKey};

/// Where the values of semaphores are.
#[derive(Debug)]
#[non_exhaustive]
pub enum Memory {
    /// In the model; what was never written is 0.
    Own(HashMap<u64, u64>),
    /// Outside: how to read and how to write there. What a host writes is seen at the next [`Model::poll`].
    Outside {
        /// Reads a value; narrow ones are extended with zeros.
        read: fn(Place) -> u64,
        /// Writes a value.
        write: fn(Place, u64),
    },
}

#[derive(Debug)]
pub(super) struct Watched {
    memory: Memory,
    /// Channels whose head waits for a value.
    channels: Vec<usize>,
    /// Nodes of graphs whose turn has come, and that wait for a value.
    nodes: Vec<OperationKey>,
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            memory: Memory::Own(HashMap::new()),
            channels: Vec::new(),
            nodes: Vec::new(),
        }
    }
}

impl Watched {
    pub(super) fn meets(&self, place: Place, condition: Condition) -> bool {
        let value = match &self.memory {
            Memory::Own(values) => values.get(&place.address).copied().unwrap_or(0),
            Memory::Outside { read, .. } => read(place),
        };
        condition.is_met_by(value, place.is_wide)
    }

    pub(super) fn write(&mut self, place: Place, value: u64) {
        match &mut self.memory {
            Memory::Own(values) => {
                values.insert(place.address, value);
            }
            Memory::Outside { write, .. } => write(place, value),
        }
    }

    pub(super) fn watch(&mut self, channel: usize) {
        if !self.channels.contains(&channel) {
            self.channels.push(channel);
        }
    }

    pub(super) fn watch_for_node(&mut self, node: OperationKey) {
        self.nodes.push(node);
    }

    pub(super) fn is_watched(&self) -> bool {
        !self.channels.is_empty() || !self.nodes.is_empty()
    }
}

impl<P> Model<P> {
    /// Keeps the values of semaphores elsewhere.
    pub fn set_memory(&mut self, memory: Memory) {
        self.memory.memory = memory;
    }

    /// A host writes a value at a time; for models that keep the values themselves.
    pub fn host_writes(&mut self, now_ns: u64, address: u64, value: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        let place = Place {
            address,
            is_wide: true,
        };
        self.memory.write(place, value);
        self.memory_changed();
    }

    /// Channels and nodes that wait for a value look again.
    pub(super) fn memory_changed(&mut self) {
        for channel in std::mem::take(&mut self.memory.channels) {
            self.touch(channel);
        }
        for node in std::mem::take(&mut self.memory.nodes) {
            if self.is_met(node) {
                self.node_has_its_value(node);
            } else {
                self.memory.watch_for_node(node);
            }
        }
    }

    fn node_has_its_value(&mut self, node: OperationKey) {
        let now_ns = self.now_ns;
        if let Some(operation) = self.operations.get_mut(node) {
            operation.facts.dependencies_ns = now_ns;
            operation.facts.last_dependency = DependencyKind::Semaphore;
            operation.facts.dependency_number = 0;
            operation.facts.issued_ns = now_ns;
        }
        self.end_at_once(node);
    }

    /// Whether an operation waits for a value that is there now.
    pub(super) fn is_met(&self, operation: OperationKey) -> bool {
        let operation = self.operations.get(operation);
        operation.is_some_and(|operation| match operation.work {
            Work::WaitValue { place, condition } => self.memory.meets(place, condition),
            _ => false,
        })
    }

    /// Lets them look whether a host has written, when nothing else happens up to now. True when one may go on.
    pub(super) fn look_at_memory(&mut self, now_ns: u64) -> bool {
        let met = self
            .memory
            .channels
            .iter()
            .any(|channel| self.head_is_met(*channel))
            || self.memory.nodes.iter().any(|node| self.is_met(*node));
        if met {
            self.now_ns = self.now_ns.max(now_ns);
            self.memory_changed();
        }
        met
    }
}
