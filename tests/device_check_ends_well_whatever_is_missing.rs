//! `device_check` on machines where something is missing or fails: it says what, asks on, and ends in time.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

mod device_check;
use device_check::Run;

#[test]
fn without_any_libcupti_every_question_is_skipped_and_the_run_ends_well() {
    let run = Run::with(&["--gpu", "real"], |command| {
        command.env("LINEAGE_CUPTI_LIBRARY", "/nowhere/libcupti.so");
    });
    assert_eq!(run.status, Some(0), "{}", run.text);
    let summary = run.summary();
    assert_eq!(summary["complete"], true);
    assert_eq!(summary["gpu"], "real");
    assert!(summary["machine"]["cupti"].is_null(), "{summary}");
    assert!(summary["machine"]["kernel"].is_string(), "{summary}");
    let questions = summary["questions"].as_object().expect("an object");
    // 19 questions, 23 scenarios, the server, and the launch loop.
    assert_eq!(questions.len(), 44);
    for (name, question) in questions {
        assert_eq!(question["status"], "skipped", "{name}");
        let error = question["error"].as_str().expect("a reason");
        assert!(error.starts_with("no libcupti: "), "{name}: {error}");
        assert!(error.contains("/nowhere/libcupti.so"), "{name}: {error}");
        assert_eq!(run.question(name)["status"], "skipped");
    }
    assert_eq!(summary["counts"]["skipped"], 44);
}

#[test]
fn a_question_that_fails_is_recorded_with_its_code_and_the_next_is_asked() {
    // CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, for everybody who subscribes.
    let questions = ["second_subscriber", "thread_ids"];
    let run = Run::new(&[
        "--gpu",
        "sim",
        "--only",
        &questions.join(","),
        "--sim-fail-subscribe-with",
        "35",
    ]);
    assert_eq!(run.status, Some(1), "{}", run.text);
    let summary = run.summary();
    assert_eq!(summary["complete"], true);
    assert_eq!(summary["machine"]["cupti"]["subscribe_code"], 35);
    assert_eq!(summary["counts"]["failed"], 2);
    for name in questions {
        assert_eq!(run.status_of(name), "failed");
        let error = &summary["questions"][name]["error"];
        assert!(
            error
                .as_str()
                .is_some_and(|error| error.starts_with("cuptiSubscribe failed with code 35")),
            "{error}"
        );
    }
}

#[test]
fn a_question_that_takes_too_long_is_ended_and_what_there_is_no_time_for_is_skipped() {
    let begin = Instant::now();
    // Far more launches than fit into the time, of 4.5 µs each at least.
    let arguments = [
        "--gpu",
        "sim",
        "--only",
        "second_subscriber,launch_loop",
        "--launches",
        "10000000",
    ];
    let run = Run::new(&[&arguments[..], &["--rounds", "1", "--within", "6"]].concat());
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}\n{}",
        begin.elapsed(),
        run.text
    );
    assert_eq!(run.status, Some(1), "{}", run.text);
    assert_eq!(run.status_of("second_subscriber"), "answered");
    assert_eq!(run.status_of("launch_loop"), "timed_out");
    let error = run.summary()["questions"]["launch_loop"]["error"].clone();
    assert!(
        error
            .as_str()
            .is_some_and(|error| error.contains("no answer within")),
        "{error}"
    );
    assert_eq!(run.summary()["complete"], true);
}

#[test]
fn a_question_that_does_not_exist_is_an_error_and_nothing_is_asked() {
    let run = Run::new(&["--gpu", "sim", "--only", "why"]);
    assert_eq!(run.status, Some(2), "{}", run.text);
    assert!(run.text.contains("no question why"), "{}", run.text);
    assert!(!run.folder.exists());
}

#[test]
fn no_file_names_the_host_the_user_or_their_home() {
    // A home below which the missing library lies, so that there is something to hide.
    let run = Run::with(&["--gpu", "real", "--only", "thread_ids"], |command| {
        command
            .env("HOME", "/elsewhere/somebody")
            .env("USER", "somebody");
        command.env(
            "LINEAGE_CUPTI_LIBRARY",
            "/elsewhere/somebody/lib/libcupti.so",
        );
    });
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut files = 0;
    for entry in std::fs::read_dir(&run.folder)
        .expect("it was made")
        .flatten()
    {
        let text = std::fs::read_to_string(entry.path()).expect("text");
        files += 1;
        assert!(!text.contains("somebody"), "{text}");
        assert!(
            host.trim().len() <= 3 || !text.contains(host.trim()),
            "{text}"
        );
        assert!(text.contains("~/lib/libcupti.so"), "{text}");
    }
    assert_eq!(files, 2, "the summary and the question");
}

#[test]
fn the_real_cupti_without_a_device_is_recorded_with_its_codes() {
    for (variable, version) in [("LINEAGE_CUPTI_12", Some(28)), ("LINEAGE_CUPTI_13", None)] {
        let Some(library) = std::env::var_os(variable).filter(|path| !path.is_empty()) else {
            let required = std::env::var("LINEAGE_REQUIRE").unwrap_or_default();
            assert!(
                !required.split(',').any(|part| part == "cupti"),
                "{variable} is not set: see scripts/fetch-parts"
            );
            eprintln!("skipped: {variable} is not set (scripts/fetch-parts sets it)");
            continue;
        };
        let run = Run::with(&["--gpu", "real", "--only", "thread_ids"], |command| {
            command.env("LINEAGE_CUPTI_LIBRARY", &library);
        });
        assert_eq!(run.status, Some(0), "{}", run.text);
        let summary = run.summary();
        if run.status_of("thread_ids") == "answered" {
            eprintln!("skipped: this machine has a working gpu");
            return;
        }
        let error = summary["questions"]["thread_ids"]["error"]
            .as_str()
            .expect("a reason")
            .to_owned();
        match version {
            // 12.9 loads without a driver, and refuses to be subscribed to: not initialized.
            Some(version) => {
                assert_eq!(
                    summary["machine"]["cupti"]["cupti_version"], version,
                    "{summary}"
                );
                assert_eq!(
                    summary["machine"]["cupti"]["subscribe_code"], 15,
                    "{summary}"
                );
                assert!(error.starts_with("no usable device: "), "{error}");
            }
            // 13.5 without a driver answers 999 even to the question for its version.
            None if summary["machine"]["cupti"].is_null() => {
                assert!(error.contains("999"), "{error}")
            }
            None => assert!(error.starts_with("no usable device: "), "{error}"),
        }
    }
}
