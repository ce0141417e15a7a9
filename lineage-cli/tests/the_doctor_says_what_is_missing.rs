//! `lineage doctor` survives whatever library it finds, and its exit code is its verdict.

mod common;

use common::{Ran, lineage, run};
use serde_json::Value;

fn check<'o>(object: &'o Value, name: &str) -> &'o Value {
    let all = object["checks"].as_array().expect("a list");
    let found = all.iter().find(|of| of["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {object}"))
}

fn doctor(variables: &[(&str, &str)]) -> (Ran, Value) {
    let ran = run(lineage()
        .args(["doctor", "--json"])
        .envs(variables.iter().copied()));
    let object = ran.objects().remove(0);
    assert_eq!(ran.err, "");
    let verdict = if object["device_evidence"] == true {
        0
    } else {
        1
    };
    assert_eq!(ran.code, Some(verdict), "{object}");
    (ran, object)
}

#[test]
fn what_works_everywhere_is_said_first() {
    let (_, object) = doctor(&[]);
    assert_eq!(object["checks"][0]["name"], "lineage");
    assert_eq!(object["checks"][0]["state"], "ok");
    assert_eq!(check(&object, "clock")["state"], "ok");
    // Until this version's successor records the scheduler.
    assert_eq!(check(&object, "scheduler")["state"], "unknown");
    for of in object["checks"].as_array().expect("a list") {
        if of["state"] == "missing" && of["name"] != "session" {
            assert!(of["next"].is_string(), "{of} says what to do");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_library_that_is_no_cupti_is_named_with_what_it_lacks() {
    let (_, object) = doctor(&[("LINEAGE_CUPTI_LIBRARY", "libc.so.6")]);
    let cupti = check(&object, "CUPTI");
    assert_eq!(cupti["state"], "missing");
    assert!(
        cupti["found"]
            .as_str()
            .is_some_and(|text| text.contains("libc.so.6 has no function cuptiGetVersion"))
    );
    assert_eq!(object["device_evidence"], false);

    let (_, object) = doctor(&[("LINEAGE_CUPTI_LIBRARY", "/nowhere/libcupti.so")]);
    let cupti = check(&object, "CUPTI");
    assert!(
        cupti["found"]
            .as_str()
            .is_some_and(|text| text.contains("/nowhere/libcupti.so"))
    );
    assert_eq!(cupti["next"], "correct or unset LINEAGE_CUPTI_LIBRARY");
}

/// The real CUPTI 12.9 and 13.5, with and without a real driver's library: whatever they answer.
#[cfg(target_os = "linux")]
#[test]
fn real_libraries_without_a_device_are_survived_and_explained() {
    let mut tried = 0;
    for cupti in ["LINEAGE_CUPTI_12", "LINEAGE_CUPTI_13"] {
        let Ok(library) = std::env::var(cupti) else {
            let required = std::env::var("LINEAGE_REQUIRE").unwrap_or_default();
            assert!(
                !required.split(',').any(|part| part.trim() == "cupti"),
                "{cupti} is not set"
            );
            eprintln!("skipped: {cupti} is not set (scripts/fetch-parts sets it)");
            continue;
        };
        let drivers = ["LINEAGE_LIBCUDA_535", "LINEAGE_LIBCUDA_550"];
        let folders = drivers.iter().filter_map(|name| {
            let library = std::env::var_os(name)?;
            Some(
                std::path::PathBuf::from(library)
                    .parent()?
                    .display()
                    .to_string(),
            )
        });
        for folder in std::iter::once(String::new()).chain(folders) {
            let (_, object) = doctor(&[
                ("LINEAGE_CUPTI_LIBRARY", &library),
                ("LD_LIBRARY_PATH", &folder),
            ]);
            tried += 1;
            if object["device_evidence"] == true {
                continue; // A machine with a GPU.
            }
            let session = check(&object, "session");
            let cupti = check(&object, "CUPTI");
            assert_eq!(session["state"], "missing");
            assert!(
                session["next"].is_string() || cupti["next"].is_string(),
                "{object}"
            );
            if !folder.is_empty() {
                let driver = check(&object, "driver");
                let found = driver["found"].as_str().unwrap_or_default();
                assert!(found.contains("cuInit answers 100 (no device)"), "{found}");
            }
        }
    }
    eprintln!("{tried} pairs of libraries");
}
