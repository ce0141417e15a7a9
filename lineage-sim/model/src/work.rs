//! What a stream can be asked to do.

/// What a kernel takes of the multiprocessors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Footprint {
    /// Blocks of the grid.
    pub blocks: u64,
    /// Threads of a block.
    pub threads: u32,
    /// Registers of a block: those of a thread times its threads.
    pub registers: u32,
    /// Shared memory of a block, in bytes.
    pub shared_bytes: u32,
}

impl Footprint {
    /// A grid of `blocks` blocks of `threads` threads, without registers and shared memory.
    pub fn new(blocks: u64, threads: u32) -> Self {
        Self {
            blocks,
            threads,
            registers: 0,
            shared_bytes: 0,
        }
    }

    /// Sets the registers of a block.
    #[must_use]
    pub fn registers(mut self, registers: u32) -> Self {
        self.registers = registers;
        self
    }

    /// Sets the shared memory of a block, in bytes.
    #[must_use]
    pub fn shared_bytes(mut self, shared_bytes: u32) -> Self {
        self.shared_bytes = shared_bytes;
        self
    }
}

impl Default for Footprint {
    /// One block of one thread.
    fn default() -> Self {
        Self::new(1, 1)
    }
}

/// A kernel's part in programmatic dependent launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Programmatic {
    /// As primary: how long after its last block's start the kernel lets dependents start (`griddepcontrol.launch_dependents`).
    /// None: when it ends, as a kernel that never says so does.
    pub triggers_after_ns: Option<u64>,
    /// As dependent: launched with the attribute of programmatic stream serialization.
    pub may_overlap: bool,
    /// As dependent: how long after its start it waits for the end of its primary (`griddepcontrol.wait`).
    pub waits_after_ns: u64,
}

/// A kernel that runs on several devices, or streams, and waits in each for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Collective {
    /// Which collective.
    pub key: u64,
    /// How many members it has. The n-th launch of each stream belongs to the n-th round.
    pub size: u32,
}

/// Which way a copy goes; each has engines of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Direction {
    /// From host to device.
    ToDevice,
    /// From device to host.
    ToHost,
    /// Inside a device, or to a peer.
    Within,
}

/// What a waiting semaphore's value must be, as of `cuStreamWaitValue64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// Value minus this is not negative, as a signed number.
    AtLeast(u64),
    /// Equal.
    Equal(u64),
    /// They have a bit in common.
    And(u64),
    /// Some bit is set in neither.
    Nor(u64),
}

impl Condition {
    /// Whether a value meets it, as a number of 32 or of 64 bits.
    pub fn is_met_by(self, value: u64, is_wide: bool) -> bool {
        let narrow = |value: u64| if is_wide { value } else { value & 0xffff_ffff };
        match self {
            Self::AtLeast(wanted) if is_wide => value.wrapping_sub(wanted) as i64 >= 0,
            Self::AtLeast(wanted) => (value as u32).wrapping_sub(wanted as u32) as i32 >= 0,
            Self::Equal(wanted) => narrow(value) == narrow(wanted),
            Self::And(mask) => narrow(value & mask) != 0,
            Self::Nor(mask) => narrow(!(value | mask)) != 0,
        }
    }
}

/// A value in memory on which streams wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Where it is.
    pub address: u64,
    /// 64 bits, not 32.
    pub is_wide: bool,
}

/// When an edge of a graph lets its second node start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Edge {
    /// When the first has ended (`CU_GRAPH_KERNEL_NODE_PORT_DEFAULT`).
    #[default]
    End,
    /// When all blocks of the first have triggered (`…_PORT_PROGRAMMATIC`); the second then waits inside for the end.
    Programmatic,
    /// When all blocks of the first have begun (`…_PORT_LAUNCH_ORDER`).
    LaunchOrder,
}

/// One piece of work. How long it lasts is said when it begins, except in the pure form that [`Host`](crate::Host) drives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Work {
    /// Takes no time: an event record, a wait for one, an allocation in stream order.
    Marker,
    /// A kernel.
    Kernel {
        /// What it takes.
        footprint: Footprint,
        /// Its part in programmatic dependent launch.
        programmatic: Programmatic,
        /// Waits for the others of its kind.
        collective: Option<Collective>,
        /// How long one block lasts.
        duration_ns: u64,
    },
    /// A copy.
    Copy {
        /// Which way.
        direction: Direction,
        /// How long it lasts.
        duration_ns: u64,
    },
    /// Work that no engine is modelled for: a set, a host function.
    Other {
        /// How long it lasts.
        duration_ns: u64,
    },
    /// A node of a graph that runs other nodes inside it, round after round: each time that it begins, it is answered with
    /// [`Model::begun_with_nodes`](crate::Model::begun_with_nodes); without nodes it ends.
    Nested,
    /// Holds its channel until a value in memory meets a condition.
    WaitValue {
        /// Where.
        place: Place,
        /// What it must be.
        condition: Condition,
    },
    /// Writes a value into memory.
    WriteValue {
        /// Where.
        place: Place,
        /// What.
        value: u64,
    },
}

impl Work {
    /// A kernel of one block.
    pub fn kernel(duration_ns: u64) -> Self {
        Self::kernel_with(Footprint::default(), duration_ns)
    }

    /// A kernel that takes something.
    pub fn kernel_with(footprint: Footprint, duration_ns: u64) -> Self {
        Self::Kernel {
            footprint,
            programmatic: Programmatic::default(),
            collective: None,
            duration_ns,
        }
    }

    /// A copy.
    pub fn copy(direction: Direction, duration_ns: u64) -> Self {
        Self::Copy {
            direction,
            duration_ns,
        }
    }

    /// How long it lasts, as far as it was said in advance.
    pub fn duration_ns(&self) -> u64 {
        match self {
            Self::Kernel { duration_ns, .. }
            | Self::Copy { duration_ns, .. }
            | Self::Other { duration_ns } => *duration_ns,
            Self::Marker | Self::Nested | Self::WaitValue { .. } | Self::WriteValue { .. } => 0,
        }
    }
}
