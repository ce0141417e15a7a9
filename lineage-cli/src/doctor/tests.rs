//! Machines that are not this one.

use std::path::PathBuf;

use super::check::{Check, State};
use super::machine::Machine;
use super::trial::{CuptiAnswer, DriverAnswer, Outcome};
use super::{Diagnosis, diagnose, render};

/// A machine of files, gone with the test.
struct Files(PathBuf);

impl Files {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root =
            std::env::temp_dir().join(format!("lineage-doctor-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        std::fs::create_dir_all(&root).expect("a folder");
        Self(root)
    }

    fn machine(&self, variables: &[(&str, &str)]) -> Machine {
        Machine::of(&self.0, variables)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn no_driver() -> Outcome<DriverAnswer> {
    Outcome::Answered(DriverAnswer {
        path: None,
        found: false,
        version: 0,
        init: 0,
        devices: Vec::new(),
    })
}

fn driver(init: u32, devices: &[&str]) -> Outcome<DriverAnswer> {
    Outcome::Answered(DriverAnswer {
        path: Some("/usr/lib/libcuda.so.550.54".to_owned()),
        found: true,
        version: 12_040,
        init,
        devices: devices.iter().map(|name| (*name).to_owned()).collect(),
    })
}

fn cupti(version: u32, no_session: Option<&str>) -> Outcome<CuptiAnswer> {
    Outcome::Answered(CuptiAnswer {
        path: Some("/opt/cuda/lib64/libcupti.so.12".to_owned()),
        version: Some(version),
        no_session: no_session.map(str::to_owned),
        ..CuptiAnswer::default()
    })
}

fn no_cupti() -> Outcome<CuptiAnswer> {
    Outcome::Answered(CuptiAnswer {
        not_loaded: Some("no CUPTI library could be loaded".to_owned()),
        tried: vec!["libcupti.so".to_owned()],
        ..CuptiAnswer::default()
    })
}

fn check<'d>(diagnosis: &'d Diagnosis, name: &str) -> &'d Check {
    let named = diagnosis.checks.iter().find(|check| check.name == name);
    named.unwrap_or_else(|| panic!("no {name} among {:?}", diagnosis.checks))
}

fn next<'d>(diagnosis: &'d Diagnosis, name: &str) -> &'d str {
    check(diagnosis, name).next.as_deref().unwrap_or_default()
}

const MODULE: (&str, &str) = (
    "/proc/driver/nvidia/version",
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version: 12\n",
);

#[test]
fn a_session_that_started_is_device_evidence_and_nothing_else_is() {
    let files = Files::new("works", &[MODULE]);
    let machine = files.machine(&[]);
    let works = diagnose(
        &machine,
        &driver(0, &["H200", "H200"]),
        &cupti(130_100, None),
    );
    assert!(works.device_evidence);
    assert_eq!(check(&works, "devices").found, "2 of H200");
    assert_eq!(check(&works, "device times").state, State::Ok);
    assert!(
        check(&works, "driver")
            .found
            .contains("for CUDA 12.4, kernel module 550.54.15")
    );

    let taken = diagnose(
        &machine,
        &driver(0, &["H200"]),
        &cupti(28, Some("another subscriber has CUPTI (code 39): stop it")),
    );
    assert!(!taken.device_evidence);
    assert_eq!(check(&taken, "session").state, State::Missing);
    let text = render::text(&taken, 80);
    assert!(text.contains("begin with `session`"), "{text}");
}

#[test]
fn versions_of_cupti_that_lose_times_are_named() {
    let files = Files::new("versions", &[]);
    let times = |version| {
        let diagnosis = diagnose(&files.machine(&[]), &no_driver(), &cupti(version, None));
        check(&diagnosis, "device times").state
    };
    // NVIDIA's release notes: from 12.6 Update 2 (25), mended in 13.1.
    assert_eq!(times(24), State::Ok);
    assert_eq!(times(25), State::Unknown);
    assert_eq!(times(28), State::Unknown);
    assert_eq!(times(130_001), State::Unknown);
    assert_eq!(times(130_100), State::Ok);
}

#[test]
fn a_cupti_that_lies_elsewhere_is_found_and_named() {
    let library = "/venv/lib/python3.12/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12";
    let files = Files::new("elsewhere", &[(library, "")]);
    let venv = files.0.join("venv");
    let machine = files.machine(&[("VIRTUAL_ENV", venv.to_str().expect("UTF-8"))]);
    let diagnosis = diagnose(&machine, &no_driver(), &no_cupti());
    let wanted = format!(
        "LINEAGE_CUPTI_LIBRARY={}",
        files.0.join(&library[1..]).display()
    );
    assert!(
        next(&diagnosis, "CUPTI").ends_with(&wanted),
        "{}",
        next(&diagnosis, "CUPTI")
    );

    let bare = Files::new("bare", &[]);
    let diagnosis = diagnose(&bare.machine(&[]), &no_driver(), &no_cupti());
    assert!(next(&diagnosis, "CUPTI").contains("pip install nvidia-cuda-cupti-cu12"));
}

#[test]
fn a_container_without_its_gpu_is_told_how_to_get_it() {
    let files = Files::new("container", &[MODULE, ("/.dockerenv", "")]);
    let diagnosis = diagnose(&files.machine(&[]), &no_driver(), &no_cupti());
    assert_eq!(check(&diagnosis, "container").state, State::Missing);
    assert!(next(&diagnosis, "container").contains("--gpus all"));
    assert!(
        check(&diagnosis, "driver")
            .found
            .contains("the kernel module 550.54.15 is loaded")
    );
    assert!(next(&diagnosis, "driver").contains("--gpus all"));
}

#[test]
fn counters_for_administrators_do_not_keep_lineage_from_recording() {
    let parameters = "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n";
    let files = Files::new("admin", &[("/proc/driver/nvidia/params", parameters)]);
    let diagnosis = diagnose(&files.machine(&[]), &driver(0, &["A100"]), &cupti(28, None));
    let permissions = check(&diagnosis, "permissions");
    assert_eq!(permissions.state, State::Ok);
    assert!(permissions.found.contains("RmProfilingAdminOnly: 1"));
}

#[test]
fn tools_that_are_loaded_into_every_program_are_named_and_made_printable() {
    let files = Files::new("tools", &[]);
    let machine = files.machine(&[("CUDA_INJECTION64_PATH", "/opt/\u{1b}[31mtool.so")]);
    let diagnosis = diagnose(&machine, &no_driver(), &no_cupti());
    let tools = check(&diagnosis, "other tools");
    assert_eq!(tools.state, State::Unknown);
    assert_eq!(
        tools.found,
        "CUDA_INJECTION64_PATH is /opt/\\u{1b}[31mtool.so"
    );
}

#[test]
fn the_scheduler_is_said_to_be_closed_where_it_is() {
    let scheduler = |name: &str, level: &str, status: &str| {
        let files = Files::new(
            name,
            &[
                ("/proc/sys/kernel/perf_event_paranoid", level),
                ("/proc/self/status", status),
            ],
        );
        let diagnosis = diagnose(&files.machine(&[]), &no_driver(), &no_cupti());
        check(&diagnosis, "scheduler").found.clone()
    };
    let nobody = "Uid:\t1000\t1000\nCapEff:\t0000000000000000\nSeccomp:\t0\n";
    assert!(scheduler("open", "2\n", nobody).starts_with("a program may watch its own"));
    assert!(scheduler("closed", "4\n", nobody).starts_with("a program may not watch"));
    // CAP_PERFMON is bit 38.
    let perfmon = "CapEff:\t0000004000000000\n";
    assert!(scheduler("privileged", "4\n", perfmon).contains("privileged"));
    let filtered = "CapEff:\t0000000000000000\nSeccomp:\t2\n";
    assert!(scheduler("filtered", "2\n", filtered).contains("system calls are filtered"));
}

#[test]
fn a_library_that_crashes_is_a_finding() {
    let files = Files::new("crash", &[]);
    let crashed = Outcome::Died("it crashed with signal 11".to_owned());
    let diagnosis = diagnose(&files.machine(&[]), &no_driver(), &crashed);
    assert!(!diagnosis.device_evidence);
    assert!(check(&diagnosis, "CUPTI").found.contains("signal 11"));
    assert!(next(&diagnosis, "CUPTI").contains("LINEAGE_CUPTI_LIBRARY"));
}

#[test]
fn the_text_fits_narrow_terminals() {
    let files = Files::new("narrow", &[MODULE, ("/.dockerenv", "")]);
    let diagnosis = diagnose(
        &files.machine(&[]),
        &driver(100, &[]),
        &cupti(
            28,
            Some("cuptiSubscribe failed with code 15 (not initialized): see the driver"),
        ),
    );
    for width in [60, 80, 100, 120] {
        for line in render::text(&diagnosis, width).lines() {
            let columns = console::measure_text_width(line);
            assert!(columns <= width, "{columns} columns of {width}: {line}");
        }
    }
}
