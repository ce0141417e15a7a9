use crate::abi;

/// Another profiler in the same process, as far as it shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OtherTool {
    /// There is none.
    #[default]
    Absent,
    /// It has subscribed: whoever subscribes gets 39, `CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`.
    Subscribed,
    /// It has subscribed and allows others beside it, since 13.2 (before that as `Subscribed`): who subscribes by `cuptiSubscribe_v2` and allows
    /// that, too, can; everybody else gets 39, and so do all functions that name no subscriber.
    AllowsOthers,
    /// It never subscribed, and registered its own buffer callbacks over everybody else's: no error says so, and the
    /// records are its own.
    TakesBuffers,
}

/// What goes wrong, each alone, and the same again under the same seed: faults of the tracer, of its reader's memory, of
/// the program.
///
/// "Every n-th" hits one of n; 0, the default, none. With the seed 0 the n-th is the first.
///
/// ```
/// use lineage_sim::{Config, Faults};
///
/// let config = Config::default().faults(Faults::default().duplicate_record_every_nth(10).seed(3));
/// assert_eq!(config.faults.duplicate_record_every_nth, 10);
/// ```
///
/// Some faults are settings elsewhere: records without times ([`Config::zero_time_every_nth`](crate::Config)), a
/// device clock that steps ([`Settings::device_step_ns`](crate::Settings)), buffers that are too small
/// ([`Config::activity_buffer_limit_bytes`](crate::Config)), ids about to wrap
/// ([`Config::first_correlation_id`](crate::Config)), ids of graphs that come again
/// ([`Config::reuse_graph_ids`](crate::Config)).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Faults {
    /// With which one "every n-th" begins, and how buffers are shuffled. Default: 0.
    pub seed: u64,
    /// Records of the device for which there is no room. CUPTI counts them as dropped.
    pub drop_record_every_nth: u32,
    /// Records of the device that never come, and that nothing counts.
    pub lose_record_every_nth: u32,
    /// Records of the device that have a start and no end.
    pub incomplete_record_every_nth: u32,
    /// Records of the device that come twice.
    pub duplicate_record_every_nth: u32,
    /// Buffers that come back empty. CUPTI counts their records as dropped.
    pub drop_buffer_every_nth: u32,
    /// Requests for a buffer that are answered as if the client had none. The record that asked is dropped and counted.
    pub null_buffer_every_nth: u32,
    /// Whether the records of a buffer come in another order, external ids right before their API record as ever.
    pub shuffle_buffers: bool,
    /// How far the next correlation id is from the one before. Default: 1. With 2^30 they wrap after four calls, and
    /// again after eight; but what is 2^31 or further apart cannot be told apart by who reads the records.
    pub correlation_id_step: u32,
    /// How long a buffer lies in CUPTI before a flush without force returns it, in ns of the simulator's clock: hours are quick
    /// with the virtual one.
    pub hold_buffers_ns: u64,
    /// The memory for the device's records is used up after so many: later ones have no times, and are not counted as dropped.
    /// `None`, the default: never.
    pub device_records_with_times: Option<u64>,
    /// How long a flush takes beside its work, in ns.
    pub flush_takes_ns: u64,
    /// The process kills itself (`SIGKILL`) at the call for work with this number, from 1. 0, the default: never.
    pub kill_at_call: u64,
    /// Kernel launches that fail.
    pub fail_launch_every_nth: u32,
    /// What they answer. Default: 701, `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`.
    pub failed_launch_result: u32,
    /// Another profiler in the process.
    pub other_tool: OtherTool,
    /// Whether the records of a new thread have the id of one that has exited, where system ids are chosen.
    pub reuse_thread_ids: bool,
    /// Whether a new event has the id of one that was destroyed.
    pub reuse_event_ids: bool,
    /// Records of calls for work (launches, graph launches, copies, sets) for which there is no room. CUPTI counts them as
    /// dropped. The external ids before them come all the same.
    pub drop_call_record_every_nth: u32,
    /// Records of calls for work that never come, and that nothing counts. The external ids before them come all the same.
    pub lose_call_record_every_nth: u32,
    /// Callbacks that tell from which node an exec's, or a cloned graph's, was cloned (`CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED`, 20), and
    /// that never come.
    pub lose_clone_callback_every_nth: u32,
    /// Whether the records of an exec's kernel node show the kernel and the dimensions from before `cuGraphExecKernelNodeSetParams`, as
    /// NVIDIA's did before 13.0.
    pub stale_node_records: bool,
    /// Functions that `libcupti.so` does not export, beside those that its version lacks.
    pub missing_symbols: Vec<String>,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            seed: 0,
            drop_record_every_nth: 0,
            lose_record_every_nth: 0,
            incomplete_record_every_nth: 0,
            duplicate_record_every_nth: 0,
            drop_buffer_every_nth: 0,
            null_buffer_every_nth: 0,
            shuffle_buffers: false,
            correlation_id_step: 1,
            hold_buffers_ns: 0,
            device_records_with_times: None,
            flush_takes_ns: 0,
            kill_at_call: 0,
            fail_launch_every_nth: 0,
            failed_launch_result: 701,
            other_tool: OtherTool::Absent,
            reuse_thread_ids: false,
            reuse_event_ids: false,
            drop_call_record_every_nth: 0,
            lose_call_record_every_nth: 0,
            lose_clone_callback_every_nth: 0,
            stale_node_records: false,
            missing_symbols: Vec::new(),
        }
    }
}

macro_rules! setters {
    ($($name:ident: $type:ty;)*) => {
        $(
            #[doc = concat!("Sets [`Faults::", stringify!($name), "`](#structfield.", stringify!($name), ").")]
            #[must_use]
            pub fn $name(mut self, $name: $type) -> Self {
                self.$name = $name;
                self
            }
        )*
    };
}

impl Faults {
    setters! {
        seed: u64;
        drop_record_every_nth: u32;
        lose_record_every_nth: u32;
        incomplete_record_every_nth: u32;
        duplicate_record_every_nth: u32;
        drop_buffer_every_nth: u32;
        null_buffer_every_nth: u32;
        shuffle_buffers: bool;
        correlation_id_step: u32;
        hold_buffers_ns: u64;
        device_records_with_times: Option<u64>;
        flush_takes_ns: u64;
        kill_at_call: u64;
        fail_launch_every_nth: u32;
        failed_launch_result: u32;
        other_tool: OtherTool;
        reuse_thread_ids: bool;
        reuse_event_ids: bool;
        drop_call_record_every_nth: u32;
        lose_call_record_every_nth: u32;
        lose_clone_callback_every_nth: u32;
        stale_node_records: bool;
    }

    /// Adds a function that is not exported: see [`Faults::missing_symbols`](#structfield.missing_symbols).
    #[must_use]
    pub fn missing_symbol(mut self, name: impl Into<String>) -> Self {
        self.missing_symbols.push(name.into());
        self
    }

    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "there is no gpu elsewhere")
    )]
    pub(crate) fn raw(&self) -> abi::RawFaults {
        abi::RawFaults {
            seed: self.seed,
            drop_record_every_nth: self.drop_record_every_nth,
            lose_record_every_nth: self.lose_record_every_nth,
            incomplete_record_every_nth: self.incomplete_record_every_nth,
            duplicate_record_every_nth: self.duplicate_record_every_nth,
            drop_buffer_every_nth: self.drop_buffer_every_nth,
            null_buffer_every_nth: self.null_buffer_every_nth,
            shuffle_buffers: self.shuffle_buffers.into(),
            correlation_id_step: self.correlation_id_step.max(1),
            hold_buffers_ns: self.hold_buffers_ns,
            device_records_with_times: self.device_records_with_times.unwrap_or(u64::MAX),
            flush_takes_ns: self.flush_takes_ns,
            kill_at_call: self.kill_at_call,
            fail_launch_every_nth: self.fail_launch_every_nth,
            failed_launch_result: self.failed_launch_result,
            other_tool: match self.other_tool {
                OtherTool::Absent => abi::OTHER_TOOL_NONE,
                OtherTool::Subscribed => abi::OTHER_TOOL_SUBSCRIBED,
                OtherTool::AllowsOthers => abi::OTHER_TOOL_ALLOWS_OTHERS,
                OtherTool::TakesBuffers => abi::OTHER_TOOL_TAKES_BUFFERS,
            },
            reuse_thread_ids: self.reuse_thread_ids.into(),
            reuse_event_ids: self.reuse_event_ids.into(),
            drop_call_record_every_nth: self.drop_call_record_every_nth,
            lose_call_record_every_nth: self.lose_call_record_every_nth,
            lose_clone_callback_every_nth: self.lose_clone_callback_every_nth,
            stale_node_records: self.stale_node_records.into(),
        }
    }
}
