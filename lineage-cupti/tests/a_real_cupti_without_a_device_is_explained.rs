//! The real `libcupti` of CUDA 12.9 and 13.5, without a device and with and without a driver: never
//! a panic, always a text that says what happened, to what, and what to do.
//!
//! One process each, since a process has one CUPTI for good.
#![cfg(all(target_os = "linux", feature = "record"))]

use std::ffi::OsStr;
use std::path::Path;

use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_NOW};
use lineage_core::source::{EvidenceSource, SourceContext, Tier};
use lineage_cupti::Cupti;
use lineage_cupti::sys::{Library, LoadError, SYMBOLS};
use lineage_sim::isolated;

mod common;

fn clock() -> u64 {
    1
}

fn load(path: &Path) -> Option<Handle> {
    // SAFETY: the libraries loaded here are NVIDIA's, whose initialisers are made for it.
    unsafe { Handle::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.ok()
}

/// Why there is no evidence with this CUPTI, in a process that loaded `driver` before, if any.
fn why(cupti: &str, driver: Option<&str>) -> Option<String> {
    let cupti = common::part(cupti, "cupti")?;
    if load(Path::new("libcuda.so.1")).is_some() {
        eprintln!("skipped: this machine has an NVIDIA driver of its own");
        return None;
    }
    if let Some(driver) = driver {
        let driver = common::part(driver, "cupti")?;
        let handle = load(&driver).expect("the driver's library loads without a device");
        std::mem::forget(handle);
    }
    let mut source = Cupti::new().library(cupti);
    let answer = source.start(SourceContext::new(clock, Tier::Correlate));
    let why = answer.expect_err("there is no device").to_string();
    // What comes after a failed start is nothing, and no panic.
    source.flush();
    source.drain(&mut |observation| panic!("nothing was collected, yet {observation:?}"));
    source.stop(std::time::Duration::from_secs(1), &mut |observation| {
        panic!("nothing was collected, yet {observation:?}")
    });
    assert_eq!(
        source
            .start(SourceContext::new(clock, Tier::Correlate))
            .map_err(|no| no.to_string()),
        Err(why.clone()),
        "the same again"
    );
    eprintln!("{why}");
    Some(why)
}

fn says(why: &str, all: &[&str]) {
    assert!(why.starts_with("no device evidence: "), "{why}");
    for part in all {
        assert!(why.contains(part), "{part:?} is not in: {why}");
    }
}

#[test]
fn cupti_12_without_a_driver() {
    isolated("cupti_12_without_a_driver", || {
        if let Some(why) = why("LINEAGE_CUPTI_12", None) {
            says(
                &why,
                &[
                    "cuptiSubscribe",
                    "libcupti.so.12 (CUPTI version 28)",
                    "code 15 (not initialized)",
                    "there is no NVIDIA driver here",
                    "install it, or run on a machine with a GPU",
                ],
            );
        }
    });
}

#[test]
fn cupti_12_with_a_driver_and_no_device() {
    isolated("cupti_12_with_a_driver_and_no_device", || {
        if let Some(why) = why("LINEAGE_CUPTI_12", Some("LINEAGE_LIBCUDA")) {
            says(
                &why,
                &[
                    "cuptiSubscribe",
                    "code 15 (not initialized)",
                    "the NVIDIA driver (for CUDA 12.",
                    "cuInit answers 100 (no device)",
                    "nvidia-smi",
                ],
            );
        }
    });
}

#[test]
fn cupti_13_without_a_driver() {
    isolated("cupti_13_without_a_driver", || {
        if let Some(why) = why("LINEAGE_CUPTI_13", None) {
            says(
                &why,
                &[
                    "cuptiGetVersion",
                    "libcupti.so.13",
                    "code 999",
                    "there is no NVIDIA driver here",
                ],
            );
        }
    });
}

#[test]
fn cupti_13_with_an_older_driver() {
    isolated("cupti_13_with_an_older_driver", || {
        if let Some(why) = why("LINEAGE_CUPTI_13", Some("LINEAGE_LIBCUDA")) {
            // Beside an older driver CUPTI 13 says its version, and nothing else.
            says(
                &why,
                &[
                    "cuptiSubscribe",
                    "libcupti.so.13 (CUPTI version 130500)",
                    "code 999",
                    "the NVIDIA driver (for CUDA 12.",
                    "cuInit answers 100 (no device)",
                    "CUPTI of CUDA 13 needs a driver for CUDA 13",
                ],
            );
        }
    });
}

/// All but those that came with a later CUDA than this, and those are not there.
fn has_all_functions(variable: &str, major: u32) {
    let Some(path) = common::part(variable, "cupti") else {
        return;
    };
    let handle = load(&path).expect("the real library loads");
    let came_later = |since: &str| {
        let version = since.split('.').next().and_then(|it| it.parse().ok());
        version.is_some_and(|version: u32| version > major)
    };
    let later: Vec<_> = SYMBOLS
        .iter()
        .filter(|symbol| came_later(symbol.since))
        .map(|symbol| symbol.name)
        .collect();
    let missing: Vec<_> = SYMBOLS
        .iter()
        .filter(|symbol| {
            // SAFETY: only looked up, never called.
            unsafe { handle.get::<*const u8>(symbol.name.as_bytes()) }.is_err()
        })
        .map(|symbol| symbol.name)
        .collect();
    std::mem::forget(handle);
    assert_eq!(missing, later, "are not in {}", path.display());
}

#[test]
fn cupti_12_has_every_function_we_look_for() {
    isolated("cupti_12_has_every_function_we_look_for", || {
        has_all_functions("LINEAGE_CUPTI_12", 12)
    });
}

#[test]
fn cupti_13_has_every_function_we_look_for() {
    isolated("cupti_13_has_every_function_we_look_for", || {
        has_all_functions("LINEAGE_CUPTI_13", 13)
    });
}

#[test]
fn the_raw_layer_loads_cupti_12_by_path() {
    isolated("the_raw_layer_loads_cupti_12_by_path", || {
        let Some(path) = common::part("LINEAGE_CUPTI_12", "cupti") else {
            return;
        };
        let library = Library::load_from(&path).expect("12.9 says its version without a driver");
        assert_eq!(library.version(), 28);
        assert!(library.functions().activity_enable_driver_api.is_some());
        let message = library.message(39).expect("CUPTI has words for it");
        assert!(message.to_lowercase().contains("subscriber"), "{message}");
    });
}

#[test]
fn a_library_that_is_none_is_a_value_that_says_so() {
    let mut source = Cupti::new().library(OsStr::new("/nowhere/libcupti.so"));
    let answer = source.start(SourceContext::new(clock, Tier::Correlate));
    let why = answer.expect_err("there is no such file").to_string();
    says(
        &why,
        &[
            "/nowhere/libcupti.so",
            "No such file",
            "LINEAGE_CUPTI_LIBRARY",
        ],
    );
    assert!(matches!(
        Library::load_from(Path::new("/nowhere/libcupti.so")),
        Err(LoadError::NamedNotLoaded { .. })
    ));
}

#[test]
fn the_environment_names_the_library() {
    isolated("the_environment_names_the_library", || {
        // SAFETY: this process runs this one test, and nothing reads the environment meanwhile.
        unsafe { std::env::set_var("LINEAGE_CUPTI_LIBRARY", "/nowhere/named.so") };
        let answer = Cupti::new().start(SourceContext::new(clock, Tier::Correlate));
        let why = answer.expect_err("there is no such file").to_string();
        says(
            &why,
            &[
                "CUPTI could not be loaded from /nowhere/named.so",
                "correct or unset",
            ],
        );
    });
}

#[test]
fn where_there_is_none_every_candidate_is_named() {
    isolated("where_there_is_none_every_candidate_is_named", || {
        if load(Path::new("libcupti.so")).is_some() || Path::new("/usr/local/cuda").exists() {
            eprintln!("skipped: this machine has a CUPTI of its own");
            return;
        }
        let answer = Cupti::new().start(SourceContext::new(clock, Tier::Correlate));
        let why = answer.expect_err("there is none").to_string();
        says(
            &why,
            &[
                "no CUPTI library could be loaded (tried libcupti.so, libcupti.so.13, libcupti.so.12, ",
                "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
                "set LINEAGE_CUPTI_LIBRARY",
            ],
        );
    });
}
