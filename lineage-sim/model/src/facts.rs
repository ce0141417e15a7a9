//! What the model knows of an operation, and why it waited.

/// What held an operation back between its call and its start. The order is that of the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cause {
    /// Host time of the call, beside the causes below.
    Host,
    /// The function was loaded at its first launch.
    LazyLoading,
    /// The channel's ring or push buffer was full.
    QueueFull,
    /// Queued, and not yet seen by the device.
    Doorbell,
    /// Something that it depends on had not happened.
    Dependency,
    /// Other work was ahead of it in its channel, although nothing else orders them (a false dependency, if it is another stream's).
    Channel,
    /// The device's own latency.
    Dispatch,
    /// Another process had the device, or was about to get it.
    Neighbour,
    /// No block of it fitted onto a multiprocessor.
    Multiprocessors,
    /// Every copy engine of its direction was busy.
    CopyEngine,
    /// The simulator itself came late; only with the real clock.
    Simulator,
}

impl Cause {
    /// All of them, in order.
    pub const ALL: [Self; 11] = [
        Self::Host,
        Self::LazyLoading,
        Self::QueueFull,
        Self::Doorbell,
        Self::Dependency,
        Self::Channel,
        Self::Dispatch,
        Self::Neighbour,
        Self::Multiprocessors,
        Self::CopyEngine,
        Self::Simulator,
    ];

    /// A short name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::LazyLoading => "lazy loading",
            Self::QueueFull => "queue full",
            Self::Doorbell => "doorbell",
            Self::Dependency => "dependency",
            Self::Channel => "channel",
            Self::Dispatch => "dispatch",
            Self::Neighbour => "neighbour",
            Self::Multiprocessors => "multiprocessors",
            Self::CopyEngine => "copy engine",
            Self::Simulator => "simulator",
        }
    }
}

/// The time from the call to the start, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitSplit([u64; Cause::ALL.len()]);

impl WaitSplit {
    /// The share of one cause, in ns.
    pub fn of(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// The sum of all causes: exactly the time from the call to the start, in ns.
    pub fn total_ns(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The causes that took time, in the order of the stages.
    pub fn causes(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        let all = Cause::ALL.into_iter().zip(self.0);
        all.filter(|(_, share)| *share > 0)
    }

    /// What was binding: the last cause that took time, without which the operation would have started earlier.
    pub fn binding(&self) -> Option<Cause> {
        self.causes().last().map(|(cause, _)| cause)
    }

    /// The shares as plain numbers, in the order of [`Cause::ALL`].
    pub fn shares(&self) -> [u64; Cause::ALL.len()] {
        self.0
    }

    /// From plain numbers in the order of [`Cause::ALL`].
    pub fn from_shares(shares: [u64; Cause::ALL.len()]) -> Self {
        Self(shares)
    }

    pub(crate) fn add(&mut self, cause: Cause, share_ns: u64) {
        self.0[cause as usize] += share_ns;
    }
}

/// What an operation depended on last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DependencyKind {
    /// Nothing.
    #[default]
    None,
    /// Its predecessor in the stream.
    Stream,
    /// The order of the legacy default stream.
    DefaultStream,
    /// An event that its stream waited for.
    Event,
    /// An edge of its graph.
    GraphEdge,
    /// The previous launch of the same graph exec.
    GraphExec,
    /// A value in memory.
    Semaphore,
    /// The trigger of its primary kernel.
    Programmatic,
}

impl DependencyKind {
    /// All of them, in order.
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::Stream,
        Self::DefaultStream,
        Self::Event,
        Self::GraphEdge,
        Self::GraphExec,
        Self::Semaphore,
        Self::Programmatic,
    ];
}

/// Which limit of a multiprocessor held a kernel back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// None did.
    #[default]
    None,
    /// Threads.
    Threads,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// Blocks.
    Blocks,
    /// A kernel of higher priority, or that came first, had blocks to place.
    Order,
}

impl Limit {
    /// All of them, in order.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Threads,
        Self::Registers,
        Self::SharedMemory,
        Self::Blocks,
        Self::Order,
    ];
}

/// What the host knows of a call: when it began, and what it waited for before the work was queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostWait {
    /// Entry into the call.
    pub called_ns: u64,
    /// Of the time since: waiting for room in the channel.
    pub queue_full_ns: u64,
    /// Of the time since: loading the function.
    pub lazy_loading_ns: u64,
}

impl HostWait {
    /// A call that began then, and waited for nothing.
    pub fn since(called_ns: u64) -> Self {
        Self {
            called_ns,
            ..Self::default()
        }
    }
}

/// Everything that the model knows of one operation. Times are on the model's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// The number under which it was submitted.
    pub number: u64,
    /// The device.
    pub device: u32,
    /// The channel, counted per device.
    pub channel: u32,
    /// Entry into the call.
    pub called_ns: u64,
    /// It was put into its channel's ring.
    pub queued_ns: u64,
    /// The doorbell was rung for it.
    pub submitted_ns: u64,
    /// Everything that it depends on had happened. May be before it was queued.
    pub dependencies_ns: u64,
    /// What that was last.
    pub last_dependency: DependencyKind,
    /// The operation behind that; 0 where there is none.
    pub dependency_number: u64,
    /// It left its channel.
    pub issued_ns: u64,
    /// The operation that was issued just before it in the channel; 0 where there was none.
    pub channel_number: u64,
    /// An engine had room for it.
    pub resources_ns: u64,
    /// The operation whose end made that room; 0 where it waited for none.
    pub resource_number: u64,
    /// Which limit it waited for.
    pub limit: Limit,
    /// Start.
    pub start_ns: u64,
    /// End.
    pub end_ns: u64,
    /// Of the time between: preempted in favour of another process.
    pub preempted_ns: u64,
    /// Of the time between: waiting inside, for the others of a collective or the primary of a programmatic launch.
    pub waited_inside_ns: u64,
    /// The time from the call to the start, by cause.
    pub waits: WaitSplit,
}

/// [`Facts`] while the operation is under way: why it waited is said when it has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known {
    pub(crate) number: u64,
    pub(crate) device: u32,
    pub(crate) channel: u32,
    pub(crate) called_ns: u64,
    pub(crate) queued_ns: u64,
    pub(crate) submitted_ns: u64,
    pub(crate) dependencies_ns: u64,
    pub(crate) last_dependency: DependencyKind,
    pub(crate) dependency_number: u64,
    pub(crate) issued_ns: u64,
    pub(crate) channel_number: u64,
    pub(crate) resources_ns: u64,
    pub(crate) resource_number: u64,
    pub(crate) limit: Limit,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) preempted_ns: u64,
    pub(crate) waited_inside_ns: u64,
}

impl Known {
    pub(crate) fn with(&self, waits: WaitSplit) -> Facts {
        let &Self {
            number,
            device,
            channel,
            called_ns,
            queued_ns,
            submitted_ns,
            dependencies_ns,
            last_dependency,
            dependency_number,
            issued_ns,
            channel_number,
            resources_ns,
            resource_number,
            limit,
            start_ns,
            end_ns,
            preempted_ns,
            waited_inside_ns,
        } = self;
        Facts {
            number,
            device,
            channel,
            called_ns,
            queued_ns,
            submitted_ns,
            dependencies_ns,
            last_dependency,
            dependency_number,
            issued_ns,
            channel_number,
            resources_ns,
            resource_number,
            limit,
            start_ns,
            end_ns,
            preempted_ns,
            waited_inside_ns,
            waits,
        }
    }
}
