use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

use lineage_sim_model::{DependencyKind, Limit, WaitSplit};

use crate::abi;
use crate::kernel::{KernelResult, Launch, call_closure, drop_closure};
use crate::truth::{Call, Counts, GraphNode, Operation, OperationKind, StackDepth, Truth};

/// The simulated GPU of this process: kernels are registered here, and the truth is read here.
///
/// A cheap handle; all handles of a process mean the same GPU.
#[derive(Clone)]
pub struct Gpu {
    pub(crate) interface: &'static abi::SimInterface,
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Gpu").finish_non_exhaustive()
    }
}

/// Why a kernel could not be registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name is empty or holds a NUL.
    #[error("`{0}` cannot be the name of a kernel")]
    InvalidName(String),
}

impl Gpu {
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "there is no gpu elsewhere")
    )]
    pub(crate) fn new(interface: &'static abi::SimInterface) -> Self {
        Self { interface }
    }

    /// Begins the registration of a kernel under the name that the PTX text gives its entry.
    ///
    /// A later registration of the same name replaces the earlier one for launches that follow.
    /// A kernel of the PTX that is never registered runs as timed work of [`Config::default_kernel_ns`](crate::Config).
    pub fn kernel(&self, name: impl Into<String>) -> KernelBuilder<'_> {
        KernelBuilder {
            gpu: self,
            name: name.into(),
            duration_ns: u64::MAX,
            label_argument: u32::MAX,
            label_is_behind: false,
            registers_per_thread: 32,
            triggers_after_ns: u64::MAX,
            waits_after_ns: 0,
            collective_size: 0,
        }
    }

    /// Registers a host function for a kernel: short for [`Gpu::kernel`] and [`KernelBuilder::run`].
    ///
    /// # Errors
    ///
    /// [`RegisterError::InvalidName`].
    pub fn register_kernel<F>(
        &self,
        name: impl Into<String>,
        host_function: F,
    ) -> Result<(), RegisterError>
    where
        F: Fn(&mut Launch<'_>) -> KernelResult + Send + Sync + 'static,
    {
        self.kernel(name).run(host_function)
    }

    /// What really happened so far, and takes it away: a long run that does so now and then keeps all of it in bounded memory.
    pub fn drain_truth(&self) -> Truth {
        let mut operations = Collected::<abi::RawOperation>::default();
        let mut calls = Collected::<abi::RawCall>::default();
        // SAFETY: the callbacks are called with our own collectors, during the call only.
        unsafe {
            (self.interface.drain_truth)(
                collect::<abi::RawOperation>,
                operations.pointer(),
                collect::<abi::RawCall>,
                calls.pointer(),
            );
        }
        self.read(&operations, &calls)
    }

    /// What really happened so far. A copy; nothing is taken away.
    pub fn truth(&self) -> Truth {
        let mut operations = Collected::<abi::RawOperation>::default();
        let mut calls = Collected::<abi::RawCall>::default();
        // SAFETY: the callbacks are called with our own collectors, during the call only.
        unsafe {
            (self.interface.each_operation)(collect::<abi::RawOperation>, operations.pointer());
            (self.interface.each_call)(collect::<abi::RawCall>, calls.pointer());
        }
        self.read(&operations, &calls)
    }

    fn read(
        &self,
        operations: &Collected<abi::RawOperation>,
        calls: &Collected<abi::RawCall>,
    ) -> Truth {
        let counts = self.raw_counts();
        let mut names = Names::default();
        let calls: Vec<Call> = calls
            .items
            .iter()
            .map(|raw| call(raw, &mut names))
            .collect();
        let ends: HashMap<u64, u64> = calls
            .iter()
            .map(|call| (call.ordinal, call.end_ns))
            .collect();
        Truth {
            operations: operations
                .items
                .iter()
                .map(|raw| operation(raw, ends.get(&raw.call_ordinal).copied(), &mut names))
                .collect(),
            calls,
            operations_not_kept: counts.operations_not_kept,
            calls_not_kept: counts.calls_not_kept,
        }
    }

    /// Forgets the truth so far, so that a long run can look at it in parts.
    pub fn clear_truth(&self) {
        // SAFETY: takes nothing and returns nothing.
        unsafe { (self.interface.clear_truth)() }
    }

    /// Totals, and the external correlation stacks that are not empty.
    pub fn counts(&self) -> Counts {
        let raw = self.raw_counts();
        let mut stacks = Collected::<abi::RawStackDepth>::default();
        // SAFETY: the callback is called with our own collector, during the call only.
        unsafe { (self.interface.each_stack)(collect::<abi::RawStackDepth>, stacks.pointer()) };
        Counts {
            api_calls: raw.api_calls,
            work_calls: raw.work_calls,
            operations_completed: raw.operations_completed,
            operations_pending: raw.operations_pending,
            pushes: raw.pushes,
            pops: raw.pops,
            pops_of_empty_stacks: raw.pops_of_empty_stacks,
            records_written: raw.records_written,
            records_dropped: raw.records_dropped,
            buffers_requested: raw.buffers_requested,
            buffers_completed: raw.buffers_completed,
            panics_caught: raw.panics_caught,
            allocations: raw.allocations,
            allocated_bytes: raw.allocated_bytes,
            stacks: stacks
                .items
                .iter()
                .map(|raw| StackDepth {
                    thread_id: raw.thread_id,
                    kind: raw.kind,
                    depth: raw.depth,
                })
                .collect(),
        }
    }

    /// The simulator's clock: nanoseconds of `CLOCK_MONOTONIC`, or the virtual time of the calling thread.
    pub fn now_ns(&self) -> u64 {
        // SAFETY: takes nothing and returns a number.
        unsafe { (self.interface.now_ns)() }
    }

    fn raw_counts(&self) -> abi::RawCounts {
        let mut raw = abi::RawCounts::default();
        // SAFETY: `raw` is valid to be written during the call.
        unsafe { (self.interface.counts)(&mut raw) };
        raw
    }
}

/// A kernel that is being registered; see [`Gpu::kernel`].
#[derive(Debug)]
#[must_use = "a kernel is registered by `run`, `run_raw` or `timed`"]
pub struct KernelBuilder<'a> {
    gpu: &'a Gpu,
    name: String,
    duration_ns: u64,
    label_argument: u32,
    label_is_behind: bool,
    registers_per_thread: u32,
    triggers_after_ns: u64,
    waits_after_ns: u64,
    collective_size: u32,
}

impl KernelBuilder<'_> {
    /// Tags the parameter with this index (from 0) as the label: it is read from the launch's
    /// parameters when the kernel runs on the device, and becomes [`Operation::label`]. Parameters
    /// of 1 to 8 bytes are taken as little-endian numbers.
    pub fn label_argument(mut self, index: u32) -> Self {
        self.label_argument = index;
        self.label_is_behind = false;
        self
    }

    /// Tags the parameter with this index (from 0) as the address of the label: 8 bytes of device memory that are read, as a
    /// little-endian number, when the kernel runs. For kernels that are replayed in graphs: their parameters stay as they were
    /// captured, and what differs from launch to launch is copied into memory beforehand. Without a label where the address is
    /// no device memory.
    pub fn label_behind_argument(mut self, index: u32) -> Self {
        self.label_argument = index;
        self.label_is_behind = true;
        self
    }

    /// How many registers each thread takes, where multiprocessors are modelled. Default: 32.
    pub fn registers_per_thread(mut self, registers: u32) -> Self {
        self.registers_per_thread = registers;
        self
    }

    /// How long after its start the kernel lets programmatic dependents start. Default: when it ends.
    pub fn triggers_after_ns(mut self, after_ns: u64) -> Self {
        self.triggers_after_ns = after_ns;
        self
    }

    /// How long after its start the kernel, launched as a programmatic dependent, waits for its primary's end. Default: 0.
    pub fn waits_after_ns(mut self, after_ns: u64) -> Self {
        self.waits_after_ns = after_ns;
        self
    }

    /// Makes the kernel a collective of so many members: the n-th launch in each of so many streams, of any device, waits inside until all
    /// have started. Default: it is none.
    pub fn collective(mut self, members: u32) -> Self {
        self.collective_size = members;
        self
    }

    /// How long the kernel runs, in ns: each of its blocks, where multiprocessors are modelled. With a host function and the
    /// real clock, at least so long.
    pub fn duration_ns(mut self, duration_ns: u64) -> Self {
        self.duration_ns = duration_ns;
        self
    }

    /// Registers the kernel as timed work without a host function.
    ///
    /// # Errors
    ///
    /// [`RegisterError::InvalidName`].
    pub fn timed(self) -> Result<(), RegisterError> {
        self.register(None, std::ptr::null_mut(), None)
    }

    /// Registers the kernel with a host function, which runs on the device's thread for every
    /// launch. It must call no CUDA function.
    ///
    /// # Errors
    ///
    /// [`RegisterError::InvalidName`].
    pub fn run<F>(self, host_function: F) -> Result<(), RegisterError>
    where
        F: Fn(&mut Launch<'_>) -> KernelResult + Send + Sync + 'static,
    {
        let user = Box::into_raw(Box::new(host_function)).cast::<c_void>();
        let outcome = self.register(Some(call_closure::<F>), user, Some(drop_closure::<F>));
        if outcome.is_err() {
            // SAFETY: the registration was refused, so nobody else holds `user`.
            unsafe { drop_closure::<F>(user) };
        }
        outcome
    }

    /// Registers the kernel with a C function and a pointer of the caller's.
    ///
    /// # Errors
    ///
    /// [`RegisterError::InvalidName`].
    ///
    /// # Safety
    ///
    /// `function` must be sound to call with `user` on another thread for as long as the process
    /// lives or until the name is registered anew and all its launches have ended, and must not unwind.
    pub unsafe fn run_raw(
        self,
        function: unsafe extern "C" fn(launch: *const RawLaunch, user: *mut c_void) -> i32,
        user: *mut c_void,
    ) -> Result<(), RegisterError> {
        self.register(Some(function), user, None)
    }

    fn register(
        self,
        function: Option<abi::RawKernelFunction>,
        user: *mut c_void,
        drop_user: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> Result<(), RegisterError> {
        let raw = abi::RawKernel {
            name: self.name.as_ptr(),
            name_bytes: self.name.len(),
            function,
            user,
            drop_user,
            duration_ns: self.duration_ns,
            label_argument: self.label_argument,
            label_is_behind: self.label_is_behind.into(),
            registers_per_thread: self.registers_per_thread,
            triggers_after_ns: self.triggers_after_ns,
            waits_after_ns: self.waits_after_ns,
            collective_size: self.collective_size,
        };
        // SAFETY: `raw` and the name live during the call; the function and its pointer live as
        // long as `run` and `run_raw` promise.
        match unsafe { (self.gpu.interface.register_kernel)(&raw) } {
            abi::OK => Ok(()),
            _ => Err(RegisterError::InvalidName(self.name)),
        }
    }
}

/// One launch as a C host function sees it: see [`KernelBuilder::run_raw`].
pub use crate::abi::RawLaunch;

struct Collected<T> {
    items: Vec<T>,
}

impl<T> Default for Collected<T> {
    fn default() -> Self {
        Self { items: Vec::new() }
    }
}

impl<T> Collected<T> {
    fn pointer(&mut self) -> *mut c_void {
        std::ptr::from_mut(self).cast()
    }
}

/// # Safety
///
/// `item` must be valid to read and `collected` a [`Collected<T>`] that nobody else uses meanwhile.
unsafe extern "C" fn collect<T: Copy>(item: *const T, collected: *mut c_void) {
    // SAFETY: by this function's own contract.
    unsafe { (*collected.cast::<Collected<T>>()).items.push(*item) }
}

/// Names come as pointers that live as long as the process: one `Arc` for each.
#[derive(Default)]
struct Names(HashMap<(usize, usize), Arc<str>>);

impl Names {
    fn get(&mut self, name: *const u8, bytes: usize) -> Arc<str> {
        self.0
            .entry((name.addr(), bytes))
            .or_insert_with(|| {
                // SAFETY: the interface gives names that live as long as the process.
                let bytes = unsafe { std::slice::from_raw_parts(name, bytes) };
                String::from_utf8_lossy(bytes).into()
            })
            .clone()
    }
}

fn operation(raw: &abi::RawOperation, call_end_ns: Option<u64>, names: &mut Names) -> Operation {
    Operation {
        ordinal: raw.ordinal,
        call_ordinal: raw.call_ordinal,
        kind: match raw.kind {
            abi::OPERATION_KERNEL => OperationKind::Kernel,
            abi::OPERATION_COPY_HOST_TO_DEVICE => OperationKind::CopyHostToDevice,
            abi::OPERATION_COPY_DEVICE_TO_HOST => OperationKind::CopyDeviceToHost,
            abi::OPERATION_COPY_DEVICE_TO_DEVICE => OperationKind::CopyDeviceToDevice,
            abi::OPERATION_COPY_PEER => OperationKind::CopyPeer,
            _ => OperationKind::Set,
        },
        name: (!raw.name.is_null()).then(|| names.get(raw.name, raw.name_bytes)),
        label: (raw.has_label == 1).then_some(raw.label),
        bytes: raw.bytes,
        thread_id: raw.thread_id,
        call_start_ns: raw.call_start_ns,
        call_end_ns,
        start_ns: raw.start_ns,
        end_ns: raw.end_ns,
        stream_id: raw.stream_id,
        context_id: raw.context_id,
        correlation_id: raw.correlation_id,
        result: raw.result,
        thread_ordinal: raw.thread_ordinal,
        device: raw.device,
        channel: raw.channel,
        queued_ns: raw.queued_ns,
        submitted_ns: raw.submitted_ns,
        dependencies_ns: raw.dependencies_ns,
        last_dependency: at(&DependencyKind::ALL, raw.last_dependency),
        dependency_ordinal: some(raw.dependency_ordinal),
        issued_ns: raw.issued_ns,
        channel_ordinal: some(raw.channel_ordinal),
        resources_ns: raw.resources_ns,
        resource_ordinal: some(raw.resource_ordinal),
        limit: at(&Limit::ALL, raw.limit),
        preempted_ns: raw.preempted_ns,
        waited_inside_ns: raw.waited_inside_ns,
        graph: (raw.graph_id > 0).then(|| GraphNode {
            graph_id: raw.graph_id,
            launch: raw.graph_launch,
            node_id: raw.graph_node_id,
            source_node_id: raw.source_node_id,
            capture_call_ordinal: some(raw.capture_call_ordinal),
        }),
        waits: WaitSplit::from_shares(raw.waits),
    }
}

/// Ordinals are from 1; 0 stands for none.
fn some(ordinal: u64) -> Option<u64> {
    (ordinal > 0).then_some(ordinal)
}

/// The value that a number of the interface means.
fn at<T: Copy + Default>(all: &[T], index: u32) -> T {
    all.get(index as usize).copied().unwrap_or_default()
}

fn call(raw: &abi::RawCall, names: &mut Names) -> Call {
    // SAFETY: the interface gives NUL-terminated names that live as long as the process.
    let bytes = unsafe { CStr::from_ptr(raw.function) }.to_bytes();
    Call {
        ordinal: raw.ordinal,
        function: names.get(bytes.as_ptr(), bytes.len()),
        callback_id: raw.callback_id,
        thread_id: raw.thread_id,
        thread_ordinal: raw.thread_ordinal,
        start_ns: raw.start_ns,
        end_ns: raw.end_ns,
        correlation_id: raw.correlation_id,
        runtime_correlation_id: raw.runtime_correlation_id,
        result: raw.result,
        operations: raw.operations,
    }
}
