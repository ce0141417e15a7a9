//! The layouts that the simulator writes, compared with what a C compiler makes of NVIDIA's own headers: those of CUDA
//! 12.9, and of 13.5, which have the older structures, too.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

#[path = "../cuda/src/cupti/layout.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each of the two uses its share"
)]
mod layout;

#[path = "../cuda/src/cupti/parameters.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "each of the two uses its share"
)]
mod parameters;

#[path = "../src/abi.rs"]
mod abi;

use std::mem::offset_of;

use layout::version;
use parameters::{
    ActivityConfig, ApiIdOptions, ApiOptions, CompleteInfo, RequestInfo, SubscriberParams,
};

/// The include folders that a variable names. Without them the test is skipped with a message, or fails if `LINEAGE_REQUIRE`
/// asks for `headers`.
fn headers(variable: &str) -> Option<Vec<PathBuf>> {
    if let Some(folders) = std::env::var_os(variable).filter(|folders| !folders.is_empty()) {
        return Some(std::env::split_paths(&folders).collect());
    }
    let required = std::env::var("LINEAGE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|part| part.trim() == "headers"),
        "{variable} is not set, and LINEAGE_REQUIRE asks for headers: eval \"$(scripts/fetch-parts)\""
    );
    eprintln!("skipped: {variable} is not set (scripts/fetch-parts sets it)");
    None
}

/// Evaluates C expressions with these headers.
fn evaluate(name: &str, folders: &[PathBuf], expressions: &[String]) -> Vec<u64> {
    let mut program = String::from(
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <cupti.h>\nint main(void) {\n",
    );
    for expression in expressions {
        program.push_str(&format!(
            "  printf(\"%llu\\n\", (unsigned long long)({expression}));\n"
        ));
    }
    program.push_str("  return 0;\n}\n");
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (
        scratch.join(format!("sim-{name}-{}.c", std::process::id())),
        scratch.join(format!("sim-{name}-{}", std::process::id())),
    );
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
    let output = Command::new(&binary).output().expect("the program runs");
    let _ = std::fs::remove_file(source);
    let _ = std::fs::remove_file(binary);
    let text = String::from_utf8(output.stdout).expect("numbers");
    text.lines()
        .map(|line| line.parse().expect("a number"))
        .collect()
}

/// All that is said about structures of up to this version: C expressions, and what we hold them to be.
fn claims(newest: u32) -> Vec<(String, u64)> {
    let mut claims = Vec::new();
    for record in layout::ALL {
        for (index, structure) in record.structures.iter().enumerate() {
            if structure.since > newest {
                continue;
            }
            let of = format!("CUpti_Activity{}", structure.name);
            claims.push((format!("sizeof({of})"), structure.bytes as u64));
            claims.push((format!("offsetof({of}, kind)"), 0));
            for field in record.fields.iter().filter(|field| field.since <= index) {
                claims.push((
                    format!("offsetof({of}, {})", field.name),
                    field.offset as u64,
                ));
            }
        }
    }
    claims
}

/// The structures that functions take and give, which only 13.5 has as they are here.
fn claims_of_parameters() -> Vec<(String, u64)> {
    let mut claims = Vec::new();
    macro_rules! claim {
        ($ours:ident is $theirs:literal { $($field:ident = $name:literal),+ }) => {
            claims.push((concat!("sizeof(", $theirs, ")").to_owned(), size_of::<$ours>() as u64));
            $(claims.push((
                concat!("offsetof(", $theirs, ", ", $name, ")").to_owned(),
                offset_of!($ours, $field) as u64,
            ));)+
        };
    }
    claim!(SubscriberParams is "CUpti_SubscriberParams" {
        bytes = "structSize", name = "subscriberName", first_name = "oldSubscriberName",
        first_name_bytes = "oldSubscriberSize", allows_several = "allowMultipleSubscribers"
    });
    claim!(RequestInfo is "CUpti_BufferCallbackRequestInfo" { bytes = "structSize" });
    claim!(CompleteInfo is "CUpti_BufferCallbackCompleteInfo" {
        bytes = "structSize", thread_id = "threadId", layouts = "ppRecordLayouts", layouts_count = "numRecordLayouts"
    });
    claim!(ActivityConfig is "CUpti_ActivityConfig" {
        bytes = "structSize", selection_bytes = "fieldSelection.structSize", fields_count = "fieldSelection.numFields",
        fields = "fieldSelection.pFieldIds", options = "pKindOptions"
    });
    claim!(ApiOptions is "CUpti_ActivityApiOptions" { bytes = "structSize", ids = "pCbidOptions" });
    claim!(ApiIdOptions is "CUpti_ActivityApiCbidOptions" {
        bytes = "structSize", ids = "pCbids", count = "numCbids", are_allowed = "enable"
    });
    claims.push((
        "CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE".to_owned(),
        20,
    ));
    claims.push(("CUPTI_ACTIVITY_ATTR_TIMESTAMP_CALLBACK".to_owned(), 22));
    claims.push(("CUPTI_ACTIVITY_ATTR_COUNT".to_owned(), 25));
    claims
}

/// The offsets of a copy's record at which that of a copy between devices is written, too.
const IN_BOTH_COPIES: [&str; 10] = [
    "copyKind",
    "srcKind",
    "dstKind",
    "flags",
    "bytes",
    "start",
    "end",
    "deviceId",
    "contextId",
    "streamId",
];

fn compare(name: &str, variable: &str, newest: u32) {
    let Some(folders) = headers(variable) else {
        return;
    };
    let mut claims = claims(newest);
    assert!(claims.len() > 150, "only {} claims", claims.len());
    if newest == version::CUDA_13_5 {
        claims.extend(claims_of_parameters());
    }
    for field in IN_BOTH_COPIES {
        let mut fields = layout::memcpy::RECORD.fields.iter();
        let ours = fields.find(|ours| ours.name == field).expect(field).offset;
        let expression = format!("offsetof(CUpti_ActivityMemcpyPtoP4, {field})");
        claims.push((expression, ours as u64));
    }
    let expressions: Vec<_> = claims
        .iter()
        .map(|(expression, _)| expression.clone())
        .collect();
    let theirs = evaluate(name, &folders, &expressions);
    assert_eq!(theirs.len(), claims.len());
    let wrong: Vec<_> = claims
        .iter()
        .zip(theirs)
        .filter(|((_, ours), theirs)| ours != theirs)
        .map(|((expression, ours), theirs)| format!("{expression} is {theirs}, not {ours}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn are_those_of_cuda_12_9() {
    compare("12", "LINEAGE_CUPTI_HEADERS_12", version::CUDA_12_9);
}

#[test]
fn are_those_of_cuda_13_5_and_of_the_versions_before_it() {
    compare("13", "LINEAGE_CUPTI_HEADERS_13", version::CUDA_13_5);
}

/// A field that an older structure ends before is not claimed of it: `in` of the table is the first structure that has the field.
#[test]
fn fields_are_inside_the_structures_that_have_them_and_outside_of_those_before() {
    for record in layout::ALL {
        for field in record.fields {
            assert!(field.offset < record.structures[field.since].bytes);
            if let Some(before) = field.since.checked_sub(1) {
                assert!(
                    field.offset >= record.structures[before].bytes,
                    "{} is in {}, too",
                    field.name,
                    record.structures[before].name
                );
            }
        }
    }
}

/// The structures that each version of the library writes, from the headers of that version (those of 12.0, 12.4, 13.0, 13.1 and 13.4 are not
/// fetched by CI; they were read when this was written).
#[test]
fn each_version_writes_the_newest_structure_it_knows() {
    let names = |version: u32| -> Vec<&str> {
        layout::ALL
            .iter()
            .filter_map(|record| {
                let bytes = record.bytes(version)?;
                let all = record.structures.iter();
                all.filter(|structure| structure.bytes == bytes)
                    .map(|structure| structure.name)
                    .next()
            })
            .collect()
    };
    let (api, external, stream) = ("API", "ExternalCorrelation", "Stream");
    #[rustfmt::skip]
    let expected: [(u32, Vec<&str>); 7] = [
        (18, vec![api, external, "Kernel9", "Memcpy5", "MemcpyPtoP4", "Memset4", "Synchronization", "CudaEvent", "Overhead", "Context", stream, "GraphTrace"]),
        (22, vec![api, external, "Kernel9", "Memcpy5", "MemcpyPtoP4", "Memset4", "Synchronization", "CudaEvent", "Overhead3", "Context2", stream, "GraphTrace2"]),
        (28, vec![api, external, "Kernel9", "Memcpy6", "MemcpyPtoP4", "Memset4", "Synchronization2", "CudaEvent2", "Overhead3", "Context3", stream, "GraphTrace2"]),
        (130_000, vec![api, external, "Kernel10", "Memcpy6", "MemcpyPtoP4", "Memset4", "Synchronization2", "CudaEvent2", "Overhead3", "Context3", stream, "GraphTrace2"]),
        (130_100, vec![api, external, "Kernel11", "Memcpy6", "MemcpyPtoP4", "Memset4", "Synchronization2", "CudaEvent2", "Overhead3", "Context4", stream, "GraphTrace2", "GraphHostNode", "ComputeEngineCtxSwitch", "HostLaunch"]),
        (130_400, vec![api, external, "Kernel13", "Memcpy7", "MemcpyPtoP4", "Memset5", "Synchronization2", "CudaEvent2", "Overhead3", "Context4", stream, "GraphTrace2", "GraphHostNode", "ComputeEngineCtxSwitch", "HostLaunch"]),
        (130_500, vec![api, external, "Kernel13", "Memcpy7", "MemcpyPtoP4", "Memset5", "Synchronization2", "CudaEvent3", "Overhead3", "Context4", stream, "GraphTrace2", "GraphHostNode", "ComputeEngineCtxSwitch", "HostLaunch"]),
    ];
    for (version, expected) in expected {
        assert_eq!(names(version), expected, "{version}");
    }
}

/// How an argument is passed: as a pointer, or as a number of so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passed {
    Pointer,
    Number(u32),
}

fn passed_in_c(parameter: &str) -> Passed {
    let words: Vec<&str> = parameter
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '*')
        .filter(|word| !word.is_empty() && *word != "const")
        .collect();
    let is_handle = |word: &&str| {
        [
            "CUcontext",
            "CUstream",
            "CUgraph",
            "CUgraphNode",
            "CUgraphExec",
        ]
        .contains(word)
            || word.ends_with("Handle")
            || word.contains("CallbackFunc")
            || word.contains("CallbackRequestFunc")
            || word.contains("CallbackCompleteFunc")
    };
    if parameter.contains('*') || words.first().is_some_and(is_handle) {
        return Passed::Pointer;
    }
    match words[0] {
        "uint64_t" | "size_t" => Passed::Number(8),
        "uint8_t" => Passed::Number(1),
        // Enumerations, and numbers of this size.
        "uint32_t" => Passed::Number(4),
        other if other.starts_with("CUpti_") || other == "CUptiResult" => Passed::Number(4),
        other => panic!("a type that is not known here: {other}"),
    }
}

fn passed_in_rust(argument: &str) -> Passed {
    match argument {
        "u64" | "usize" => Passed::Number(8),
        "u32" => Passed::Number(4),
        "u8" => Passed::Number(1),
        other => {
            assert!(
                other.starts_with('*') || other.starts_with("Option"),
                "{other}"
            );
            Passed::Pointer
        }
    }
}

macro_rules! signatures {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        [$((stringify!($name), vec![$(passed_in_rust(stringify!($type))),*])),*]
    };
}

/// Every simulated function takes what the header's declaration says: as many arguments, pointers where there are pointers, and numbers of that size.
fn signatures(variable: &str, at_least: usize) {
    let Some(folders) = headers(variable) else {
        return;
    };
    let mut text = String::new();
    for folder in &folders {
        for file in [
            "cupti_activity.h",
            "cupti_callbacks.h",
            "cupti_result.h",
            "cupti_version.h",
            "cupti_events.h",
        ] {
            text.push_str(&std::fs::read_to_string(folder.join(file)).unwrap_or_default());
        }
    }
    let mut compared = 0;
    for (name, ours) in abi::cupti_functions!(signatures) {
        let declaration = format!("CUPTIAPI {name}(");
        let Some(begin) = text.find(&declaration) else {
            continue;
        };
        let parameters = &text[begin + declaration.len()..];
        let parameters = &parameters[..parameters.find(')').expect("it ends")];
        let theirs: Vec<Passed> = match parameters.trim() {
            "" | "void" => Vec::new(),
            some => some.split(',').map(passed_in_c).collect(),
        };
        assert_eq!(ours, theirs, "{name}");
        compared += 1;
    }
    assert!(
        compared >= at_least,
        "only {compared} declarations were found"
    );
}

#[test]
fn functions_take_what_the_headers_of_12_9_say() {
    signatures("LINEAGE_CUPTI_HEADERS_12", 35);
}

#[test]
fn functions_take_what_the_headers_of_13_5_say() {
    signatures("LINEAGE_CUPTI_HEADERS_13", 50);
}
