//! What is listed as "not supported" is what the libraries export and answer so, and nothing that is simulated is listed.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::process::Command;

use libloading::os::unix::Library;
use lineage_sim::{Config, CuptiVersion, NotSupported, isolated, load, not_supported};

/// The functions with this prefix that a built library exports.
fn exports(file: &str, prefix: &str) -> BTreeSet<String> {
    let test = std::env::current_exe().expect("a path");
    let library = test.parent().expect("a folder").join(file);
    let output = Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(&library)
        .output()
        .expect("nm");
    assert!(output.status.success(), "{}", library.display());
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split([' ', '@']).next())
        .filter(|name| name.starts_with(prefix))
        .map(str::to_owned)
        .collect()
}

/// What a function of a loaded library answers; none if it has no such function.
fn answer(library: &Library, name: &str) -> Option<u32> {
    // SAFETY: it is listed as a function that does nothing but answer, so that it takes no argument in truth.
    let function = unsafe { library.get::<unsafe extern "C" fn() -> u32>(name.as_bytes()) };
    // SAFETY: as above.
    function.ok().map(|function| unsafe { function() })
}

fn open(name: &str) -> Library {
    // SAFETY: the simulated library, loaded before.
    unsafe { Library::new(name) }.expect("the simulator is loaded")
}

fn as_listed_in(version: CuptiVersion) {
    load(Config::default().cupti_version(version)).unwrap();
    let listed = not_supported(version);
    for (library, names, code) in [
        ("libcuda.so", &listed.driver, 801),
        ("libcupti.so", &listed.cupti, 27),
    ] {
        let library = open(library);
        assert!(names.len() > 50, "{} names", names.len());
        assert!(names.is_sorted(), "in alphabetical order");
        for name in names {
            assert_eq!(answer(&library, name), Some(code), "{name}");
        }
    }
    assert_eq!(
        (NotSupported::DRIVER_CODE, NotSupported::CUPTI_CODE),
        (801, 27)
    );
}

#[test]
fn all_of_them_answer_so_in_12_0() {
    isolated("all_of_them_answer_so_in_12_0", || {
        as_listed_in(CuptiVersion::V12_0);
    });
}

#[test]
fn all_of_them_answer_so_in_13_5() {
    isolated("all_of_them_answer_so_in_13_5", || {
        as_listed_in(CuptiVersion::V13_5);
    });
}

/// Every version's list is what the library exports less what `simulated` says; the names are written down here once more, so that a
/// function that is simulated from now on, or no longer, is seen.
#[test]
fn what_cupti_exports_and_is_not_listed_is_what_is_simulated() {
    let mut listed = BTreeSet::new();
    for version in CuptiVersion::ALL {
        listed.extend(
            not_supported(version)
                .cupti
                .iter()
                .map(|name| (*name).to_owned()),
        );
    }
    let exported = exports("liblineage_sim_cupti.so", "cupti");
    assert!(listed.is_subset(&exported));
    let simulated: Vec<&str> = exported.difference(&listed).map(String::as_str).collect();
    assert_eq!(
        simulated,
        [
            "cuptiActivityDisable",
            "cuptiActivityDisable_v2",
            "cuptiActivityEnable",
            "cuptiActivityEnableAllSyncRecords",
            "cuptiActivityEnableCudaEventDeviceTimestamps",
            "cuptiActivityEnableDriverApi",
            "cuptiActivityEnableDriverApi_v2",
            "cuptiActivityEnableLatencyTimestamps",
            "cuptiActivityEnableRuntimeApi",
            "cuptiActivityEnableRuntimeApi_v2",
            "cuptiActivityEnable_v2",
            "cuptiActivityFlushAll",
            "cuptiActivityFlushPeriod",
            "cuptiActivityGetAttribute",
            "cuptiActivityGetAttribute_v2",
            "cuptiActivityGetNextRecord",
            "cuptiActivityGetNextRecord_v2",
            "cuptiActivityGetNumDroppedRecords",
            "cuptiActivityGetNumDroppedRecords_v2",
            "cuptiActivityGetStructSize",
            "cuptiActivityPopExternalCorrelationId",
            "cuptiActivityPopExternalCorrelationId_v2",
            "cuptiActivityPushExternalCorrelationId",
            "cuptiActivityPushExternalCorrelationId_v2",
            "cuptiActivityRegisterCallbacks",
            "cuptiActivityRegisterCallbacks_v2",
            "cuptiActivityRegisterTimestampCallback",
            "cuptiActivitySetAttribute",
            "cuptiActivitySetAttribute_v2",
            "cuptiEnableAllDomains",
            "cuptiEnableCallback",
            "cuptiEnableDomain",
            "cuptiFinalize",
            "cuptiGetCallbackName",
            "cuptiGetCallbackState",
            "cuptiGetContextId",
            "cuptiGetDeviceId",
            "cuptiGetGraphExecId",
            "cuptiGetGraphId",
            "cuptiGetGraphNodeId",
            "cuptiGetLastError",
            "cuptiGetResultString",
            "cuptiGetStreamId",
            "cuptiGetStreamIdEx",
            "cuptiGetThreadIdType",
            "cuptiGetTimestamp",
            "cuptiGetTimestamp_v2",
            "cuptiGetVersion",
            "cuptiSetThreadIdType",
            "cuptiSubscribe",
            "cuptiSubscribe_v2",
            "cuptiUnsubscribe",
        ]
    );
}

#[test]
fn what_the_driver_exports_and_is_not_listed_is_simulated() {
    let listed: BTreeSet<String> = not_supported(CuptiVersion::V13_5)
        .driver
        .iter()
        .map(|name| (*name).to_owned())
        .collect();
    let exported = exports("liblineage_sim_cuda.so", "cu");
    assert!(listed.is_subset(&exported));
    for name in [
        "cuInit",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cuGraphExecUpdate_v2",
        "cuStreamWaitValue64_v2",
        "cuMemAllocAsync",
        "cuMemcpyPeerAsync",
        "cuGraphConditionalHandleCreate",
    ] {
        assert!(exported.contains(name) && !listed.contains(name), "{name}");
    }
    // Families that the simulator says it does not have.
    for name in [
        "cuArrayCreate_v2",
        "cuTexRefCreate",
        "cuMulticastCreate",
        "cuWaitExternalSemaphoresAsync",
    ] {
        assert!(listed.contains(name), "{name}");
    }
}
