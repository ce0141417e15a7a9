//! Every name that leaves the process: attributes, metrics, events, in one place.
//!
//! `docs/attributes.md` in the repository describes each with its unit; a test holds it to this file.
//! Names that OpenTelemetry's semantic conventions have (`service.name`, `thread.id`,
//! `code.function.name` and the like) are used as they are there; of GPU work they name nothing, so
//! what is here is our own, under a schema URL of our own.

/// The schema that these names belong to. It changes when a name does.
pub const SCHEMA_URL: &str =
    "https://github.com/launch-lineage/launch-lineage/blob/main/docs/attributes.md#version-1";

/// The instrumentation scope of all spans, metrics and logs.
pub const SCOPE_NAME: &str = "launch-lineage";

/// Declares the names of one kind, and a list of them for the test.
macro_rules! names {
    ($(#[$about:meta])* $list:ident: $($(#[$doc:meta])* $name:ident = $text:literal;)+) => {
        $($(#[$doc])* pub const $name: &str = $text;)+
        $(#[$about])*
        pub const $list: &[&str] = &[$($name),+];
    };
}

names! {
    /// All attributes of the resource.
    RESOURCE_ATTRIBUTES:
    /// UUID of the recording process; with it every id below is unique.
    PROCESS = "lineage.process";
    /// What turns a time of the session's clock into Unix time, in nanoseconds.
    CLOCK_UNIX_OFFSET_NS = "lineage.clock.unix_offset_ns";
}

names! {
    /// All attributes of spans, their links and their events.
    SPAN_ATTRIBUTES:
    /// What a span stands for: `request`, `part`, `step`, `batch`, `participation`, `operation`.
    SPAN = "lineage.span";
    /// Number of the launch epoch.
    EPOCH_ID = "lineage.epoch.id";
    /// Version of the launch epoch.
    EPOCH_VERSION = "lineage.epoch.version";
    /// How the epoch ended: `done`, `cancelled`, or `live` if it had not.
    EPOCH_ENDED = "lineage.epoch.ended";
    /// Where the epoch was declared: file, line and, if known, column.
    EPOCH_SITE = "lineage.epoch.site";
    /// Number of the tokio task, or of another runtime's.
    TASK_ID = "lineage.task.id";
    /// Why the span is in full: `sampled`, `late`, `slow`, `fault`; `sums` if it is not.
    DETAIL = "lineage.detail";
    /// The decision was made before all was known, to stay within the bound of what is held.
    DECIDED_EARLY = "lineage.decided_early";
    /// Operations bound to this epoch or version alone.
    OPERATIONS = "lineage.operations";
    /// The sum of their durations on the device, in nanoseconds.
    DEVICE_TIME_NS = "lineage.device_time_ns";
    /// The bytes they copied or set.
    BYTES = "lineage.bytes";
    /// Operations of the batches it took part in.
    SHARED_OPERATIONS = "lineage.shared.operations";
    /// The sum of their durations, in nanoseconds.
    SHARED_DEVICE_TIME_NS = "lineage.shared.device_time_ns";
    /// The same, each divided by the number of the batch's members, in nanoseconds.
    SHARE_DEVICE_TIME_NS = "lineage.share.device_time_ns";
    /// Rows and handoffs with a fault in those steps.
    SHARED_FAULT_COUNT = "lineage.shared.fault.count";
    /// Steps of batches it took part in.
    SHARED_STEPS = "lineage.shared.steps";
    /// The longest time between a call's entry and the start of its operation, in nanoseconds.
    LAUNCH_DELAY_MAX_NS = "lineage.launch_delay.max_ns";
    /// The sum of those times, in nanoseconds.
    LAUNCH_DELAY_SUM_NS = "lineage.launch_delay.sum_ns";
    /// Operations without a time: they have no span.
    WITHOUT_TIMES = "lineage.operations.without_times";
    /// Rows and handoffs with a fault.
    FAULT_COUNT = "lineage.fault.count";
    /// Members of the batch.
    MEMBERS = "lineage.batch.members";
    /// Members whose span is not known, since their records were lost: they have no link.
    MEMBERS_UNKNOWN = "lineage.batch.members_unknown";
    /// Number of the batch's epoch.
    BATCH_ID = "lineage.batch.id";
    /// Version of the batch's epoch: its step.
    BATCH_VERSION = "lineage.batch.version";
    /// Why a link is there: `member`, `batch`, `previous_step`, `asked_by`.
    LINK = "lineage.link";
    /// Time between the call's entry and the operation's start, in nanoseconds.
    LAUNCH_DELAY_NS = "lineage.launch_delay_ns";
    /// Entry of the call, in nanoseconds since the Unix epoch.
    CALL_ENTER_UNIX_NS = "lineage.call.enter_unix_ns";
    /// Exit of the call, in nanoseconds since the Unix epoch.
    CALL_EXIT_UNIX_NS = "lineage.call.exit_unix_ns";
    /// When the work was put into a command buffer, in nanoseconds since the Unix epoch.
    QUEUED_UNIX_NS = "lineage.queued_unix_ns";
    /// When that buffer was given to the device, in nanoseconds since the Unix epoch.
    SUBMITTED_UNIX_NS = "lineage.submitted_unix_ns";
    /// What says whose work it is: `external+callback`, `external`, `callback`, `containment`.
    JOINED_BY = "lineage.joined_by";
    /// Codes of the row's faults.
    FAULTS = "lineage.faults";
    /// The epoch had been retired when the call was made.
    AFTER_RETIREMENT = "lineage.after_retirement";
    /// The CUDA function that asked for the work.
    CUDA_API = "cuda.api.name";
    /// CUPTI's number of the call, unwrapped.
    CUDA_CORRELATION_ID = "cuda.correlation_id";
    /// Number of the CUPTI session in its process.
    CUDA_SESSION = "cuda.cupti.session";
    /// Device ordinal.
    CUDA_DEVICE = "cuda.device.ordinal";
    /// CUPTI's context id.
    CUDA_CONTEXT = "cuda.context.id";
    /// CUPTI's stream id.
    CUDA_STREAM = "cuda.stream.id";
    /// CUPTI's id of the graph the operation ran in.
    CUDA_GRAPH = "cuda.graph.id";
    /// CUPTI's id of its node.
    CUDA_GRAPH_NODE = "cuda.graph.node_id";
    /// CUPTI's id of the executable graph that was launched.
    CUDA_GRAPH_EXEC = "cuda.graph.exec_id";
    /// Number of the launch among those of its executable graph, from 1.
    GRAPH_REPLAY = "lineage.graph.replay";
    /// How often the node has run in this launch, from 1, where that is more than once.
    GRAPH_ITERATION = "lineage.graph.iteration";
    /// How it is known who built the node: `known`, `inferred`, or why it is not.
    GRAPH_TEMPLATE = "lineage.graph.template";
    /// CUPTI's id of the node that was captured or made by hand.
    CUDA_GRAPH_TEMPLATE_NODE = "cuda.graph.template_node_id";
    /// Number of the epoch that captured or made it.
    CAPTURE_EPOCH_ID = "lineage.graph.capture.epoch.id";
    /// Version of that epoch.
    CAPTURE_EPOCH_VERSION = "lineage.graph.capture.epoch.version";
    /// `kernel`, `copy`, `set`, or `graph`.
    GPU_OPERATION = "gpu.operation";
    /// Grid of a kernel.
    GPU_GRID = "gpu.kernel.grid";
    /// Block of a kernel.
    GPU_BLOCK = "gpu.kernel.block";
    /// Copies that one record stands for, where they are several.
    GPU_COPIES = "gpu.copies";
    /// The calling thread (semantic conventions).
    THREAD_ID = "thread.id";
    /// Its name (semantic conventions).
    THREAD_NAME = "thread.name";
    /// What carried the epoch: `future`, `task`, `envelope`, ….
    HANDOFF_CARRIER = "lineage.handoff.carrier";
    /// Time between sent and received, in nanoseconds.
    HANDOFF_NS = "lineage.handoff.duration_ns";
    /// Where it was sent: file, line and column.
    HANDOFF_SITE = "lineage.handoff.site";
    /// The thread that sent it.
    HANDOFF_FROM = "lineage.handoff.from.thread.id";
    /// Code of a fault, as `lineage explain` takes it.
    FAULT_CODE = "lineage.fault.code";
    /// What happened, for a person.
    FAULT_DETAIL = "lineage.fault.detail";
}

names! {
    /// Names of span events.
    EVENTS:
    /// The work was handed over to another thread or task.
    EVENT_HANDOFF = "lineage.handoff";
    /// The application marked the work as ready.
    EVENT_READY = "lineage.mark.ready";
    /// The application expects the work to start.
    EVENT_EXPECTED = "lineage.mark.expected";
    /// The batch is formed.
    EVENT_BATCH_FORMED = "lineage.mark.batch_formed";
    /// The work was cancelled.
    EVENT_CANCELLED = "lineage.mark.cancelled";
    /// Another attempt at the same work.
    EVENT_RETRY = "lineage.retry";
    /// Something about the epoch is faulty.
    EVENT_FAULT = "lineage.fault";
}

names! {
    /// Names of metrics.
    METRICS:
    /// Time between a call's entry and the start of its operation. Seconds.
    METRIC_LAUNCH_DELAY = "lineage.launch.delay";
    /// Time of operations on the device. Seconds.
    METRIC_DEVICE_TIME = "lineage.device.time";
    /// Rows, by what became of their join.
    METRIC_JOINS = "lineage.joins";
    /// Faults, by code.
    METRIC_FAULTS = "lineage.faults";
    /// Records that were lost, by place.
    METRIC_DROPPED = "lineage.records.dropped";
    /// Epochs declared.
    METRIC_EPOCHS = "lineage.epochs";
    /// Items exported, by signal and what became of them.
    METRIC_EXPORTED = "lineage.export.items";
    /// Bytes in the export queue.
    METRIC_QUEUE = "lineage.export.queue.size";
    /// Bytes held until it is decided whether an epoch is exported in full.
    METRIC_HELD = "lineage.export.held.size";
    /// Processor time of lineage's own threads. Seconds.
    METRIC_CPU = "lineage.cpu.time";
}

names! {
    /// Attributes of metrics.
    METRIC_ATTRIBUTES:
    /// Name of the epoch's kind, of a bounded number; `other` beyond it.
    EPOCH_NAME = "lineage.epoch.name";
    /// `bound`, `lost`, `wrong`, `disputed`, `unattributed`.
    JOIN_OUTCOME = "lineage.join.outcome";
    /// Where records were lost.
    DROP_SITE = "lineage.drop.site";
    /// `traces`, `metrics` or `logs`.
    EXPORT_SIGNAL = "lineage.export.signal";
    /// `sent`, `retried`, `refused`, or `lost`.
    EXPORT_OUTCOME = "lineage.export.outcome";
    /// `drain` or `export`.
    LINEAGE_THREAD = "lineage.thread";
}
