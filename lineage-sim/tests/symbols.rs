//! A simulated `libcupti.so` exports what the real one of its version exports, and nothing else.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use libloading::os::unix::Library;
use lineage_sim::{Config, CuptiVersion, Faults, isolated, load};

/// The `cupti…` functions that a library file exports.
fn exports(library: &Path) -> BTreeSet<String> {
    let output = Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=posix"])
        .arg(library)
        .output()
        .expect("nm");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split([' ', '@']).next())
        .filter(|name| name.starts_with("cupti"))
        .map(str::to_owned)
        .collect()
}

fn open() -> Library {
    // SAFETY: the simulated library, loaded before.
    unsafe { Library::new("libcupti.so") }.expect("the simulator is loaded")
}

fn has(library: &Library, name: &str) -> bool {
    // SAFETY: only looked up, never called.
    unsafe { library.get::<*const u8>(name.as_bytes()) }.is_ok()
}

/// Where the test's own library and the simulated one lie, under the name that the loader gives it.
fn exports_of_what_is_loaded() -> BTreeSet<String> {
    let library = open();
    // All that any version has: the file that Cargo built.
    let profile = std::env::current_exe().expect("a path");
    let folder = profile.parent().expect("a folder");
    let built = folder.join("liblineage_sim_cupti.so");
    let all = exports(&built);
    assert!(all.len() > 200, "{} exports", all.len());
    all.into_iter().filter(|name| has(&library, name)).collect()
}

fn are_those_of(version: CuptiVersion, variable: &str) {
    let Some(real) = std::env::var_os(variable).filter(|path| !path.is_empty()) else {
        let required = std::env::var("LINEAGE_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|part| part.trim() == "cupti"),
            "{variable} is not set, and LINEAGE_REQUIRE asks for cupti: eval \"$(scripts/fetch-parts)\""
        );
        eprintln!("skipped: {variable} is not set (scripts/fetch-parts sets it)");
        return;
    };
    load(Config::default().cupti_version(version)).unwrap();
    assert_eq!(exports_of_what_is_loaded(), exports(Path::new(&real)));
}

#[test]
fn of_12_9_are_those_of_the_real_library() {
    isolated("of_12_9_are_those_of_the_real_library", || {
        are_those_of(CuptiVersion::V12_9, "LINEAGE_CUPTI_12");
    });
}

#[test]
fn of_13_5_are_those_of_the_real_library() {
    isolated("of_13_5_are_those_of_the_real_library", || {
        are_those_of(CuptiVersion::V13_5, "LINEAGE_CUPTI_13");
    });
}

/// How many functions the real libraries of 12.0, 12.4, 13.0, 13.1 and 13.4 export (`nm -D` of the wheels 12.0.90, 12.4.127,
/// 13.0.85, 13.1.115 and 13.4.92), and some that came or went with each.
fn others(version: CuptiVersion, count: usize, there: &[&str], lacking: &[&str]) {
    load(Config::default().cupti_version(version)).unwrap();
    let exports = exports_of_what_is_loaded();
    assert_eq!(exports.len(), count);
    for name in there {
        assert!(exports.contains(*name), "{name} is missing");
    }
    for name in lacking {
        assert!(!exports.contains(*name), "{name} is there");
    }
}

#[test]
fn of_12_0_lack_what_came_later() {
    isolated("of_12_0_lack_what_came_later", || {
        others(
            CuptiVersion::V12_0,
            136,
            &["cuptiSubscribe", "cuptiDeviceGetTimestamp"],
            &["cuptiGetErrorMessage", "cuptiActivityEnableDriverApi"],
        );
    });
}

#[test]
fn of_12_4_cannot_choose_calls_one_by_one() {
    isolated("of_12_4_cannot_choose_calls_one_by_one", || {
        others(
            CuptiVersion::V12_4,
            148,
            &["cuptiGetErrorMessage", "cuptiGetGraphExecId"],
            &[
                "cuptiDeviceGetTimestamp",
                "cuptiActivityEnableDriverApi",
                "cuptiActivityEnableRuntimeApi",
                "cuptiActivityEnableAllSyncRecords",
            ],
        );
    });
}

#[test]
fn of_13_0_have_device_times_of_events() {
    isolated("of_13_0_have_device_times_of_events", || {
        others(
            CuptiVersion::V13_0,
            194,
            &[
                "cuptiActivityEnableCudaEventDeviceTimestamps",
                "cuptiSubscribe_v2",
            ],
            &["cuptiActivityEnable_v2", "cuptiEnableNonOverlappingMode"],
        );
    });
}

#[test]
fn of_13_1_are_as_many_as_of_13_0() {
    isolated("of_13_1_are_as_many_as_of_13_0", || {
        others(
            CuptiVersion::V13_1,
            194,
            &["cuptiSubscribe_v2"],
            &["cuptiActivityEnable_v2"],
        );
    });
}

#[test]
fn of_13_4_take_a_subscriber() {
    isolated("of_13_4_take_a_subscriber", || {
        others(
            CuptiVersion::V13_4,
            220,
            &["cuptiActivityEnable_v2", "cuptiActivityGetNextRecord_v2"],
            &["cuptiDeviceGetTimestamp"],
        );
    });
}

#[test]
fn that_are_to_be_missing_are_missing_and_nothing_else() {
    isolated(
        "that_are_to_be_missing_are_missing_and_nothing_else",
        || {
            let faults = Faults::default().missing_symbol("cuptiActivityFlushAll");
            load(Config::default().faults(faults)).unwrap();
            let library = open();
            assert!(!has(&library, "cuptiActivityFlushAll"));
            assert!(has(&library, "cuptiActivityFlushPeriod"));
            assert!(has(&library, "cuptiSubscribe"));
        },
    );
}
