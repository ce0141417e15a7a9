//! Every number of the raw layer, compared with what a C compiler makes of NVIDIA's own headers.
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use lineage_core::observation::ApiDomain;
use lineage_cupti::order;
use lineage_cupti::sys::{codes, layout};
use lineage_cupti::work::{self, Extent, LaunchFunction, Work};

mod common;
#[path = "headers/graphs.rs"]
mod graphs;
#[path = "headers/roles.rs"]
mod roles;

/// The include folders, separated by `:`.
fn headers(variable: &str) -> Option<Vec<PathBuf>> {
    let folders = common::part(variable, "headers")?;
    Some(std::env::split_paths(&folders).collect())
}

/// A C expression, and what we hold it to be; in headers from this version of CUPTI on.
type Claim = (String, u64, u32);

struct Claims(Vec<Claim>);

impl Claims {
    fn value(&mut self, expression: &str, ours: u32) {
        self.0.push((expression.into(), ours.into(), 0));
    }

    fn offsets(&mut self, since: u32, of: &str, fields: &[(&str, usize)]) {
        for (field, ours) in fields {
            self.0
                .push((format!("offsetof({of}, {field})"), *ours as u64, since));
        }
    }

    fn size(&mut self, since: u32, of: &str, ours: usize) {
        self.0.push((format!("sizeof({of})"), ours as u64, since));
    }

    fn width(&mut self, of: &str, field: &str, ours: usize) {
        self.0
            .push((format!("sizeof((({of} *)0)->{field})"), ours as u64, 0));
    }
}

fn claims() -> Vec<Claim> {
    let mut claims = Claims(Vec::new());
    values(&mut claims);
    records(&mut claims);
    records_of_order(&mut claims);
    graphs::claims(&mut claims);
    callback_data(&mut claims);
    extents(&mut claims);
    claims.0
}

fn values(claims: &mut Claims) {
    use codes::{domain, external_kind, kind, result, site};
    for (name, ours) in [
        ("SUCCESS", result::SUCCESS),
        ("ERROR_INVALID_PARAMETER", result::INVALID_PARAMETER),
        ("ERROR_OUT_OF_MEMORY", result::OUT_OF_MEMORY),
        ("ERROR_MAX_LIMIT_REACHED", result::MAX_LIMIT_REACHED),
        ("ERROR_NOT_COMPATIBLE", result::NOT_COMPATIBLE),
        ("ERROR_NOT_INITIALIZED", result::NOT_INITIALIZED),
        ("ERROR_QUEUE_EMPTY", result::QUEUE_EMPTY),
        ("ERROR_INVALID_KIND", result::INVALID_KIND),
        ("ERROR_NOT_SUPPORTED", result::NOT_SUPPORTED),
        (
            "ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
            result::VIRTUALIZED_DEVICE_NOT_SUPPORTED,
        ),
        (
            "ERROR_INSUFFICIENT_PRIVILEGES",
            result::INSUFFICIENT_PRIVILEGES,
        ),
        (
            "ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
            result::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
        ),
        (
            "ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
            result::VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
        ),
        (
            "ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
            result::CONFIDENTIAL_COMPUTING_NOT_SUPPORTED,
        ),
        ("ERROR_UNKNOWN", result::UNKNOWN),
        ("ACTIVITY_KIND_INVALID", kind::INVALID),
        ("ACTIVITY_KIND_MEMCPY", kind::MEMCPY),
        ("ACTIVITY_KIND_MEMSET", kind::MEMSET),
        ("ACTIVITY_KIND_KERNEL", kind::KERNEL),
        ("ACTIVITY_KIND_DRIVER", kind::DRIVER),
        ("ACTIVITY_KIND_RUNTIME", kind::RUNTIME),
        ("ACTIVITY_KIND_CONCURRENT_KERNEL", kind::CONCURRENT_KERNEL),
        ("ACTIVITY_KIND_OVERHEAD", kind::OVERHEAD),
        ("ACTIVITY_KIND_MEMCPY2", kind::MEMCPY2),
        (
            "ACTIVITY_KIND_EXTERNAL_CORRELATION",
            kind::EXTERNAL_CORRELATION,
        ),
        (
            "ACTIVITY_KIND_INTERNAL_LAUNCH_API",
            kind::INTERNAL_LAUNCH_API,
        ),
        ("EXTERNAL_CORRELATION_KIND_CUSTOM0", external_kind::CUSTOM0),
        ("EXTERNAL_CORRELATION_KIND_CUSTOM1", external_kind::CUSTOM1),
        ("EXTERNAL_CORRELATION_KIND_CUSTOM2", external_kind::CUSTOM2),
        ("CB_DOMAIN_DRIVER_API", domain::DRIVER_API),
        ("CB_DOMAIN_RUNTIME_API", domain::RUNTIME_API),
        ("API_ENTER", site::ENTER),
        ("API_EXIT", site::EXIT),
        ("ACTIVITY_FLAG_FLUSH_FORCED", codes::FLUSH_FORCED),
        (
            "ACTIVITY_THREAD_ID_TYPE_SYSTEM",
            codes::THREAD_ID_TYPE_SYSTEM,
        ),
    ] {
        claims.value(&format!("CUPTI_{name}"), ours);
    }
    for (value, kind) in (0..).zip(codes::MEMCPY_KINDS) {
        let name = format!("CUPTI_ACTIVITY_MEMCPY_KIND_{}", kind.to_uppercase());
        claims.value(&name, value);
    }
}

fn records(claims: &mut Claims) {
    use layout::{api, external, kernel, memcpy, memcpy_peer, memset, overhead};

    claims.offsets(
        0,
        "CUpti_ActivityAPI",
        &[
            ("kind", 0),
            ("cbid", api::CBID),
            ("start", api::START),
            ("end", api::END),
            ("processId", api::PROCESS_ID),
            ("threadId", api::THREAD_ID),
            ("correlationId", api::CORRELATION_ID),
            ("returnValue", api::RETURN_VALUE),
        ],
    );
    claims.size(0, "CUpti_ActivityAPI", api::SIZE);
    claims.width("CUpti_ActivityAPI", "kind", 4);
    claims.width("CUpti_ActivityAPI", "threadId", 4);

    claims.offsets(
        0,
        "CUpti_ActivityExternalCorrelation",
        &[
            ("kind", 0),
            ("externalKind", external::EXTERNAL_KIND),
            ("externalId", external::EXTERNAL_ID),
            ("correlationId", external::CORRELATION_ID),
        ],
    );
    claims.size(0, "CUpti_ActivityExternalCorrelation", external::SIZE);
    claims.width("CUpti_ActivityExternalCorrelation", "externalKind", 4);

    let versions = [
        (8, 0),
        (9, 0),
        (10, 130_000),
        (11, 130_100),
        (12, 130_300),
        (13, 130_400),
    ];
    for (version, since) in versions {
        claims.offsets(
            since,
            &format!("CUpti_ActivityKernel{version}"),
            &[
                ("kind", 0),
                ("start", kernel::START),
                ("end", kernel::END),
                ("deviceId", kernel::DEVICE_ID),
                ("contextId", kernel::CONTEXT_ID),
                ("streamId", kernel::STREAM_ID),
                ("gridX", kernel::GRID),
                ("gridY", kernel::GRID + 4),
                ("gridZ", kernel::GRID + 8),
                ("blockX", kernel::BLOCK),
                ("blockY", kernel::BLOCK + 4),
                ("blockZ", kernel::BLOCK + 8),
                ("correlationId", kernel::CORRELATION_ID),
                ("name", kernel::NAME),
                ("queued", kernel::QUEUED),
                ("submitted", kernel::SUBMITTED),
                ("graphNodeId", kernel::GRAPH_NODE_ID),
                ("graphId", kernel::GRAPH_ID),
            ],
        );
    }
    claims.size(0, "CUpti_ActivityKernel8", kernel::SIZE_8);
    claims.size(0, "CUpti_ActivityKernel9", kernel::SIZE_9);
    claims.size(130_400, "CUpti_ActivityKernel13", kernel::SIZE_13);

    for (version, since) in [(5, 0), (6, 26), (7, 130_400)] {
        let of = format!("CUpti_ActivityMemcpy{version}");
        claims.offsets(
            since,
            &of,
            &[
                ("kind", 0),
                ("copyKind", memcpy::COPY_KIND),
                ("bytes", memcpy::BYTES),
                ("start", memcpy::START),
                ("end", memcpy::END),
                ("deviceId", memcpy::DEVICE_ID),
                ("contextId", memcpy::CONTEXT_ID),
                ("streamId", memcpy::STREAM_ID),
                ("correlationId", memcpy::CORRELATION_ID),
                ("graphNodeId", memcpy::GRAPH_NODE_ID),
                ("graphId", memcpy::GRAPH_ID),
            ],
        );
        if version >= 6 {
            claims.offsets(since, &of, &[("copyCount", memcpy::COPY_COUNT)]);
        }
    }
    claims.size(0, "CUpti_ActivityMemcpy5", memcpy::SIZE_5);
    claims.size(26, "CUpti_ActivityMemcpy6", memcpy::SIZE_6);
    claims.size(130_400, "CUpti_ActivityMemcpy7", memcpy::SIZE_7);

    claims.offsets(
        0,
        "CUpti_ActivityMemcpyPtoP4",
        &[
            ("kind", 0),
            ("copyKind", memcpy_peer::COPY_KIND),
            ("bytes", memcpy_peer::BYTES),
            ("start", memcpy_peer::START),
            ("end", memcpy_peer::END),
            ("deviceId", memcpy_peer::DEVICE_ID),
            ("contextId", memcpy_peer::CONTEXT_ID),
            ("streamId", memcpy_peer::STREAM_ID),
            ("correlationId", memcpy_peer::CORRELATION_ID),
            ("graphNodeId", memcpy_peer::GRAPH_NODE_ID),
            ("graphId", memcpy_peer::GRAPH_ID),
        ],
    );
    claims.size(0, "CUpti_ActivityMemcpyPtoP4", memcpy_peer::SIZE_4);

    for (version, since) in [(4, 0), (5, 130_400)] {
        claims.offsets(
            since,
            &format!("CUpti_ActivityMemset{version}"),
            &[
                ("kind", 0),
                ("bytes", memset::BYTES),
                ("start", memset::START),
                ("end", memset::END),
                ("deviceId", memset::DEVICE_ID),
                ("contextId", memset::CONTEXT_ID),
                ("streamId", memset::STREAM_ID),
                ("correlationId", memset::CORRELATION_ID),
                ("graphNodeId", memset::GRAPH_NODE_ID),
                ("graphId", memset::GRAPH_ID),
            ],
        );
    }
    claims.size(0, "CUpti_ActivityMemset4", memset::SIZE_4);
    claims.size(130_400, "CUpti_ActivityMemset5", memset::SIZE_5);

    claims.offsets(
        codes::version::CUDA_12_4,
        "CUpti_ActivityOverhead3",
        &[
            ("kind", 0),
            ("overheadKind", overhead::OVERHEAD_KIND),
            ("start", overhead::START),
            ("end", overhead::END),
            ("correlationId", overhead::CORRELATION_ID),
            ("overheadData", overhead::OVERHEAD_DATA),
        ],
    );
    claims.size(
        codes::version::CUDA_12_4,
        "CUpti_ActivityOverhead3",
        overhead::SIZE_3,
    );
}

fn records_of_order(claims: &mut Claims) {
    use layout::{command_buffer_full, context, cuda_event, launch_config, overhead, stream};
    use layout::{kernel, memcpy, memcpy_peer, memset, synchronization};

    let of = "CUpti_ActivityOverheadCommandBufferFullData";
    let since = codes::version::CUDA_12_4;
    claims.offsets(since, of, &[("channelID", command_buffer_full::CHANNEL_ID)]);
    claims.size(since, of, command_buffer_full::SIZE);
    claims.offsets(
        since,
        "CUpti_ActivityOverhead3",
        &[
            ("objectKind", overhead::OBJECT_KIND),
            ("objectId.pt.threadId", overhead::THREAD_ID),
        ],
    );
    claims.offsets(
        0,
        "CUpti_ActivityKernel9",
        &[("channelID", kernel::CHANNEL_ID)],
    );
    claims.offsets(
        0,
        "CUpti_ActivityMemcpy5",
        &[("channelID", memcpy::CHANNEL_ID)],
    );
    claims.offsets(
        0,
        "CUpti_ActivityMemcpyPtoP4",
        &[("channelID", memcpy_peer::CHANNEL_ID)],
    );
    claims.offsets(
        0,
        "CUpti_ActivityMemset4",
        &[("channelID", memset::CHANNEL_ID)],
    );
    claims.offsets(
        0,
        "CUlaunchConfig",
        &[
            ("attrs", launch_config::ATTRIBUTES),
            ("numAttrs", launch_config::ATTRIBUTE_COUNT),
        ],
    );
    claims.offsets(
        0,
        "CUlaunchAttribute",
        &[
            ("id", launch_config::ATTRIBUTE_ID),
            ("value", launch_config::ATTRIBUTE_VALUE),
        ],
    );
    claims.size(0, "CUlaunchAttribute", launch_config::ATTRIBUTE_SIZE);
    for (name, ours) in [
        (
            "PROGRAMMATIC_STREAM_SERIALIZATION",
            codes::launch_attribute::PROGRAMMATIC_STREAM_SERIALIZATION,
        ),
        (
            "PROGRAMMATIC_EVENT",
            codes::launch_attribute::PROGRAMMATIC_EVENT,
        ),
        (
            "LAUNCH_COMPLETION_EVENT",
            codes::launch_attribute::LAUNCH_COMPLETION_EVENT,
        ),
    ] {
        claims.value(&format!("CU_LAUNCH_ATTRIBUTE_{name}"), ours);
    }
    for (name, ours) in [
        ("DRIVER_COMPILER", codes::overhead_kind::DRIVER_COMPILER),
        ("CUPTI_BUFFER_FLUSH", codes::overhead_kind::BUFFER_FLUSH),
        (
            "CUPTI_INSTRUMENTATION",
            codes::overhead_kind::INSTRUMENTATION,
        ),
        ("CUPTI_RESOURCE", codes::overhead_kind::RESOURCE),
        (
            "RUNTIME_TRIGGERED_MODULE_LOADING",
            codes::overhead_kind::MODULE_LOADING,
        ),
        (
            "LAZY_FUNCTION_LOADING",
            codes::overhead_kind::LAZY_FUNCTION_LOADING,
        ),
        (
            "COMMAND_BUFFER_FULL",
            codes::overhead_kind::COMMAND_BUFFER_FULL,
        ),
        (
            "ACTIVITY_BUFFER_REQUEST",
            codes::overhead_kind::BUFFER_REQUEST,
        ),
        ("UVM_ACTIVITY_INIT", codes::overhead_kind::UVM_ACTIVITY_INIT),
    ] {
        let name = format!("CUPTI_ACTIVITY_OVERHEAD_{name}");
        claims.value(&name, ours);
    }
    claims.value("CUPTI_ACTIVITY_OBJECT_THREAD", codes::OVERHEAD_OF_A_THREAD);
    claims.value("CUPTI_INVALID_CHANNEL_ID", codes::NO_CHANNEL);

    let since = codes::version::CUDA_12_8;

    claims.offsets(
        0,
        "CUpti_ActivitySynchronization",
        &[
            ("type", synchronization::TYPE),
            ("start", synchronization::START),
            ("end", synchronization::END),
            ("correlationId", synchronization::CORRELATION_ID),
            ("contextId", synchronization::CONTEXT_ID),
            ("streamId", synchronization::STREAM_ID),
            ("cudaEventId", synchronization::CUDA_EVENT_ID),
        ],
    );
    let of = "CUpti_ActivitySynchronization";
    claims.size(0, of, synchronization::SIZE_1);
    claims.offsets(
        since,
        "CUpti_ActivitySynchronization2",
        &[
            ("correlationId", synchronization::CORRELATION_ID),
            ("cudaEventId", synchronization::CUDA_EVENT_ID),
            ("cudaEventSyncId", synchronization::CUDA_EVENT_SYNC_ID),
            ("returnValue", synchronization::RETURN_VALUE),
        ],
    );
    let of = "CUpti_ActivitySynchronization2";
    claims.size(since, of, synchronization::SIZE_2);
    claims.offsets(
        0,
        "CUpti_ActivityCudaEvent",
        &[
            ("correlationId", cuda_event::CORRELATION_ID),
            ("contextId", cuda_event::CONTEXT_ID),
            ("streamId", cuda_event::STREAM_ID),
            ("eventId", cuda_event::EVENT_ID),
        ],
    );
    claims.size(0, "CUpti_ActivityCudaEvent", cuda_event::SIZE_1);
    for (since, of, size) in [
        (since, "CUpti_ActivityCudaEvent2", cuda_event::SIZE_2),
        (
            codes::version::CUDA_13_5,
            "CUpti_ActivityCudaEvent3",
            cuda_event::SIZE_3,
        ),
    ] {
        claims.offsets(
            since,
            of,
            &[
                ("correlationId", cuda_event::CORRELATION_ID),
                ("eventId", cuda_event::EVENT_ID),
                ("deviceId", cuda_event::DEVICE_ID),
                ("deviceTimestamp", cuda_event::DEVICE_TIMESTAMP),
                ("cudaEventSyncId", cuda_event::CUDA_EVENT_SYNC_ID),
            ],
        );
        claims.size(since, of, size);
    }
    claims.offsets(
        0,
        "CUpti_ActivityStream",
        &[
            ("contextId", stream::CONTEXT_ID),
            ("streamId", stream::STREAM_ID),
            ("priority", stream::PRIORITY),
            ("flag", stream::FLAG),
            ("correlationId", stream::CORRELATION_ID),
        ],
    );
    claims.size(0, "CUpti_ActivityStream", stream::SIZE);
    for (since, of) in [
        (0, "CUpti_ActivityContext"),
        (codes::version::CUDA_13_5, "CUpti_ActivityContext4"),
    ] {
        claims.offsets(
            since,
            of,
            &[
                ("contextId", context::CONTEXT_ID),
                ("deviceId", context::DEVICE_ID),
                ("nullStreamId", context::NULL_STREAM_ID),
            ],
        );
    }
    for (name, ours) in [
        ("KIND_CONTEXT", codes::kind::CONTEXT),
        ("KIND_CUDA_EVENT", codes::kind::CUDA_EVENT),
        ("KIND_STREAM", codes::kind::STREAM),
        ("KIND_SYNCHRONIZATION", codes::kind::SYNCHRONIZATION),
        (
            "SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE",
            codes::synchronization_type::EVENT,
        ),
        (
            "SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT",
            codes::synchronization_type::STREAM_WAIT,
        ),
        (
            "SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE",
            codes::synchronization_type::STREAM,
        ),
        (
            "SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE",
            codes::synchronization_type::CONTEXT,
        ),
        ("STREAM_CREATE_FLAG_DEFAULT", codes::stream_flag::DEFAULT),
        (
            "STREAM_CREATE_FLAG_NON_BLOCKING",
            codes::stream_flag::NON_BLOCKING,
        ),
        ("STREAM_CREATE_FLAG_NULL", codes::stream_flag::NULL),
    ] {
        claims.value(&format!("CUPTI_ACTIVITY_{name}"), ours);
    }
    claims.value("CUPTI_SYNCHRONIZATION_INVALID_VALUE", codes::NOT_APPLICABLE);
}

fn callback_data(claims: &mut Claims) {
    use layout::callback_data as at;
    claims.offsets(
        0,
        "CUpti_CallbackData",
        &[
            ("callbackSite", at::CALLBACK_SITE),
            ("functionName", at::FUNCTION_NAME),
            ("functionParams", at::FUNCTION_PARAMS),
            ("functionReturnValue", at::FUNCTION_RETURN_VALUE),
            ("symbolName", at::SYMBOL_NAME),
            ("context", at::CONTEXT),
            ("correlationData", at::CORRELATION_DATA),
            ("correlationId", at::CORRELATION_ID),
        ],
    );
    claims.size(0, "CUpti_CallbackData", at::SIZE);
    claims.width("CUpti_CallbackData", "callbackSite", 4);
    claims.width("CUpti_CallbackData", "correlationId", 4);
}

/// Where the sizes of copies and sets are in the parameters.
fn extents(claims: &mut Claims) {
    for function in work::functions(ApiDomain::Driver) {
        let (Work::Copy(extent) | Work::Set(extent)) = function.work else {
            continue;
        };
        let of = format!("{}_params", function.name);
        match extent {
            Extent::At(offset) => {
                let field = if function.name.starts_with("cuMemset") {
                    "N"
                } else {
                    "ByteCount"
                };
                claims.offsets(0, &of, &[(field, offset)]);
                claims.width(&of, field, 8);
            }
            Extent::Both(width, height) => {
                claims.offsets(0, &of, &[("Width", width), ("Height", height)]);
                claims.width(&of, "Height", 8);
            }
            _ => panic!("an extent this test does not know: {extent:?}"),
        }
    }
}

/// Has a C compiler evaluate all expressions.
fn evaluate(folders: &[PathBuf], claims: &[Claim]) -> BTreeMap<usize, u64> {
    let mut program = String::from(
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n\
         #include <cupti.h>\n\
         int main(void) {\n",
    );
    for (place, (expression, _, since)) in claims.iter().enumerate() {
        writeln!(
            program,
            "#if CUPTI_API_VERSION >= {since}\n  \
             printf(\"{place} %llu\\n\", (unsigned long long)({expression}));\n#endif"
        )
        .expect("strings take everything");
    }
    program.push_str("  return 0;\n}\n");

    let scratch = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let name = format!(
        "layout-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let name: String = name
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    let (source, binary) = (scratch.join(format!("{name}.c")), scratch.join(&name));
    std::fs::write(&source, program).expect("the scratch folder of tests can be written to");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let built = Command::new(compiler)
        .args(
            folders
                .iter()
                .flat_map(|folder| [Path::new("-isystem"), folder.as_path()]),
        )
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .output()
        .expect("a C compiler");
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    let output = Command::new(&binary)
        .output()
        .expect("the program just built runs");
    let _ = std::fs::remove_file(source);
    let _ = std::fs::remove_file(binary);
    String::from_utf8(output.stdout)
        .expect("numbers")
        .lines()
        .map(|line| {
            let (place, value) = line.split_once(' ').expect("two numbers a line");
            (
                place.parse().expect("a number"),
                value.parse().expect("a number"),
            )
        })
        .collect()
}

fn compare(variable: &str, at_least: usize) {
    let Some(folders) = headers(variable) else {
        return;
    };
    let claims = claims();
    let theirs = evaluate(&folders, &claims);
    assert!(
        theirs.len() >= at_least,
        "only {} of {} evaluated",
        theirs.len(),
        claims.len()
    );
    let wrong: Vec<String> = claims
        .iter()
        .enumerate()
        .filter_map(|(place, (expression, ours, _))| {
            let theirs = theirs.get(&place)?;
            (theirs != ours).then(|| format!("{expression} is {theirs}, not {ours}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn of_cuda_12() {
    compare("LINEAGE_CUPTI_HEADERS_12", 200);
}

#[test]
fn of_cuda_13() {
    let all = claims().len();
    compare("LINEAGE_CUPTI_HEADERS_13", all);
}

// ---- callback ids

/// Names and ids of `enum` entries with this prefix.
fn entries(folders: &[PathBuf], header: &str, prefix: &str) -> BTreeMap<String, u32> {
    let path = folders
        .iter()
        .map(|folder| folder.join(header))
        .find(|path| path.exists())
        .unwrap_or_else(|| panic!("{header} is in none of {folders:?}"));
    let text = std::fs::read_to_string(path).expect("the header can be read");
    text.lines()
        .filter_map(|line| {
            let (name, value) = line.trim().strip_prefix(prefix)?.split_once('=')?;
            let value = value.trim().trim_end_matches(',');
            Some((name.trim().to_owned(), value.parse().ok()?))
        })
        .collect()
}

/// Whether a function is one of the LAUNCH set by its name; written apart from the table.
fn asks_for_work(name: &str) -> bool {
    let launches = [
        "cuLaunch",
        "cudaLaunch",
        "__cudaLaunch",
        "cuGraphLaunch",
        "cudaGraphLaunch",
    ];
    let copies = ["cuMemcpy", "cudaMemcpy", "cuMemset", "cudaMemset"];
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    // A host function is no GPU work. `cuMemcpy_v2` is a name that CUDA 13 no longer lists, and no
    // driver exports it.
    (starts(&launches) || starts(&copies)) && !name.contains("HostFunc") && name != "cuMemcpy_v2"
}

/// Whether a driver function is one of the ORDER set by its name; written apart from the table.
fn orders_work(name: &str) -> bool {
    let name = name.trim_end_matches("_ptsz");
    let name = match name.rsplit_once("_v") {
        Some((plain, version)) if version.parse::<u32>().is_ok() => plain,
        _ => name,
    };
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    let waits = [
        "cuStreamWait",
        "cuCtxWaitEvent",
        "cuGreenCtxWaitEvent",
        "cuWaitExternal",
        "cuGraphicsMap",
    ];
    let marks = [
        "cuEventRecord",
        "cuCtxRecordEvent",
        "cuGreenCtxRecordEvent",
        "cuSignalExternal",
        "cuGraphicsUnmap",
    ];
    let memory = [
        "cuMemAlloc",
        "cuMemFree",
        "cuMemHostAlloc",
        "cuMemHostRegister",
        "cuMemPrefetch",
        "cuMemDiscard",
        "cuMemBatchDecompress",
    ];
    let streams = [
        "cuStreamWrite",
        "cuStreamBatchMemOp",
        "cuStreamCreate",
        "cuStreamDestroy",
        "cuStreamAttachMem",
        "cuStreamAddCallback",
        "cuGreenCtxStreamCreate",
    ];
    name.ends_with("Synchronize")
        || [
            "cuStreamQuery",
            "cuEventQuery",
            "cuGraphUpload",
            "cuLaunchHostFunc",
        ]
        .contains(&name)
        || starts(&waits)
        || starts(&marks)
        || starts(&memory)
        || starts(&streams)
}

/// The second is not listed by CUDA 13 any more, and no driver exports it. The third is what CUDA
/// 12.9 calls `cuStreamBeginCaptureToCig`.
const NOT_OF_THE_SET: [&str; 3] = ["SIZE", "cuMemHostAlloc_v2", "cuStreamCreateForCaptureToCig"];

fn compare_order(theirs: &BTreeMap<String, u32>, end: u32) {
    let ours = order::functions();
    for known in ours.iter().filter(|known| known.cbid < end) {
        assert_eq!(theirs.get(known.name), Some(&known.cbid), "{}", known.name);
    }
    for (name, cbid) in theirs
        .iter()
        .filter(|(name, _)| !NOT_OF_THE_SET.contains(&name.as_str()))
    {
        assert_eq!(
            orders_work(name),
            order::function(*cbid).is_some(),
            "{name}: in the set, by its name and by the table"
        );
    }
}

fn compare_ids(variable: &str, domain: ApiDomain, header: &str, prefix: &str, all: bool) {
    let Some(folders) = headers(variable) else {
        return;
    };
    let theirs = entries(&folders, header, prefix);
    let end = theirs["SIZE"];
    let ours = work::functions(domain);
    roles::compare(&theirs, domain);
    for LaunchFunction { cbid, name, .. } in ours {
        if all || *cbid < end {
            assert_eq!(theirs.get(*name), Some(cbid), "{name}");
        }
    }
    if domain == ApiDomain::Driver {
        for (cbid, name) in codes::UNLOADING {
            assert_eq!(theirs.get(name), Some(&cbid), "{name}");
        }
    }
    if domain == ApiDomain::Driver {
        compare_order(&theirs, if all { u32::MAX } else { end });
        graphs::compare(&theirs, end);
    }
    let missing: Vec<_> = theirs
        .iter()
        .filter(|(name, cbid)| {
            asks_for_work(name) && !ours.iter().any(|function| function.cbid == **cbid)
        })
        .collect();
    assert!(
        missing.is_empty(),
        "ask for work and are not in the table: {missing:?}"
    );
    let surplus: Vec<_> = ours
        .iter()
        .filter(|function| !asks_for_work(function.name))
        .collect();
    assert!(
        surplus.is_empty(),
        "in the table, and do not ask for work: {surplus:?}"
    );
}

#[test]
fn callback_ids_of_cuda_12() {
    let headers = "LINEAGE_CUPTI_HEADERS_12";
    let (driver, runtime) = ("CUPTI_DRIVER_TRACE_CBID_", "CUPTI_RUNTIME_TRACE_CBID_");
    compare_ids(
        headers,
        ApiDomain::Driver,
        "cupti_driver_cbid.h",
        driver,
        false,
    );
    compare_ids(
        headers,
        ApiDomain::Runtime,
        "cupti_runtime_cbid.h",
        runtime,
        false,
    );
}

#[test]
fn callback_ids_of_cuda_13() {
    let headers = "LINEAGE_CUPTI_HEADERS_13";
    let (driver, runtime) = ("CUPTI_DRIVER_TRACE_CBID_", "CUPTI_RUNTIME_TRACE_CBID_");
    compare_ids(
        headers,
        ApiDomain::Driver,
        "cupti_driver_cbid.h",
        driver,
        true,
    );
    compare_ids(
        headers,
        ApiDomain::Runtime,
        "cupti_runtime_cbid.h",
        runtime,
        true,
    );
}
