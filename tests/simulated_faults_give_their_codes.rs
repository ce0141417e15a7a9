//! Each fault that the simulator makes on demand, alone, in a session: the code that the validator gives for it, or that it gives none and
//! every join stands.

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use launch_lineage::core::DeviceEvidence;
use launch_lineage::core::fault::FaultCode::{self, L03, L04, L07, L08, T02};
use launch_lineage::core::fault::FaultFamily;
use launch_lineage::core::ledger::{Entry, Reader, Writer};
use launch_lineage::row::Binding;
use launch_lineage::{Cupti, Epoch, Lineage};
use lineage_sim::{Config, CuptiVersion, Faults, Gpu, OtherTool, Settings, isolated};
use lineage_validator::{Conclusions, Options, Validation, validate};

const PTX: &str = ".version 7.0\n.target sm_50\n.address_size 64\n\
                   .visible .entry serve(.param .u64 request) { ret; }";

/// How many requests a program serves: one launch each.
const REQUESTS: u64 = 6;

/// What a session under a fault ended with.
struct Outcome {
    validation: Validation,
    device: DeviceEvidence,
    /// Launches that the driver refused.
    refused: u64,
    /// The label of each kernel that has a row with an epoch, and the request of that epoch.
    joined: Vec<(u64, u64)>,
}

impl Outcome {
    fn codes(&self) -> BTreeMap<FaultCode, u64> {
        self.validation.fault_counts.clone()
    }

    /// Every join that was made is right, by the labels that the kernels carried.
    fn assert_joined(&self, count: usize) {
        let right = self.joined.iter().all(|(truly, said)| truly == said);
        assert!(right, "{:?}", self.joined);
        assert_eq!(self.joined.len(), count, "{}", self.validation.summary());
    }
}

/// Serves all requests under a session; `after` is called when one is asked for.
fn serve(config: Config, clock: Option<fn() -> u64>, after: impl Fn(&Gpu, u64)) -> Outcome {
    serve_into(config, clock, None, after)
}

/// The same, into a ledger.
fn serve_into(
    config: Config,
    clock: Option<fn() -> u64>,
    ledger: Option<Writer<File>>,
    after: impl Fn(&Gpu, u64),
) -> Outcome {
    let gpu = lineage_sim::load(config).expect("the simulator loads");
    let kernel = gpu.kernel("serve").label_argument(0).duration_ns(500_000);
    kernel.timed().expect("a valid name");
    let mut builder = Lineage::builder()
        .device(Cupti::new().library("libcupti.so"))
        .drain_every(Duration::from_millis(5))
        .flush_every(Duration::from_millis(20))
        .keep_in_memory(10_000);
    if let Some(clock) = clock {
        builder = builder.clock(clock);
    }
    if let Some(ledger) = ledger {
        builder = builder.sink(ledger);
    }
    let lineage = builder.start().expect("the only session");
    let context = CudaContext::new(0).expect("the simulated device");
    let module = context.load_module(Ptx::from_src(PTX)).expect("valid PTX");
    let kernel = module.load_function("serve").expect("it has it");
    let stream = context.default_stream();
    let mut epochs = Vec::new();
    let mut refused = 0;
    for request in 1..=REQUESTS {
        let epoch = Epoch::declare("request");
        epochs.push((epoch.id().map(|epoch| epoch.id), request));
        epoch.launch(|| {
            let mut call = stream.launch_builder(&kernel);
            call.arg(&request);
            // SAFETY: the kernel's one parameter is a `u64`.
            let launched = unsafe { call.launch(LaunchConfig::for_num_elems(1)) };
            refused += u64::from(launched.is_err());
        });
        after(&gpu, request);
    }
    stream.synchronize().expect("nothing fails for good");
    let report = lineage.shutdown(Duration::from_secs(10));
    let conclusions = Conclusions {
        rows: &report.rows,
        faults: &report.faults,
    };
    let validation = validate(&report.observations, Some(conclusions), &Options::default());
    eprintln!("{}\n{report}", validation.summary());
    for fault in &validation.faults {
        eprintln!("{fault:?}");
    }
    let mut joined = Vec::new();
    let truth = gpu.truth();
    for row in &report.rows {
        let (Some(operation), Binding::Bound(epoch)) = (&row.operation, row.binding) else {
            continue;
        };
        let mut operations = truth.operations.iter();
        let truly = operations.find(|truly| truly.correlation_id == operation.correlation.0);
        let said = epochs.iter().find(|(id, _)| *id == Some(epoch.id));
        let label = truly.and_then(|truly| truly.label).unwrap_or(0);
        joined.push((label, said.map_or(0, |(_, request)| *request)));
    }
    Outcome {
        validation,
        device: report.device,
        refused,
        joined,
    }
}

fn under(faults: Faults) -> Outcome {
    serve(Config::default().faults(faults), None, |_, _| ())
}

/// Waits until the device has done everything.
fn idle(gpu: &Gpu) {
    while gpu.counts().operations_pending > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn codes<const N: usize>(codes: [(FaultCode, u64); N]) -> BTreeMap<FaultCode, u64> {
    codes.into()
}

#[test]
fn without_a_fault_there_is_none() {
    isolated("without_a_fault_there_is_none", || {
        let outcome = under(Faults::default());
        assert_eq!(outcome.codes(), codes([]));
        outcome.assert_joined(6);
    });
}

#[test]
fn dropped_records() {
    isolated("dropped_records", || {
        let outcome = under(Faults::default().drop_record_every_nth(3).seed(1));
        assert_eq!(outcome.codes(), codes([(L03, 2), (L07, 2)]));
        outcome.assert_joined(4);
    });
}

#[test]
fn lost_records() {
    isolated("lost_records", || {
        let outcome = under(Faults::default().lose_record_every_nth(3).seed(1));
        assert_eq!(outcome.codes(), codes([(L03, 2)]));
        outcome.assert_joined(4);
    });
}

/// The last call's record may come after the recording's end, as far as anybody can tell: that it is lost is not said.
#[test]
fn a_lost_record_at_the_edge_is_no_fault() {
    isolated("a_lost_record_at_the_edge_is_no_fault", || {
        let outcome = under(Faults::default().lose_record_every_nth(6));
        assert_eq!(outcome.codes(), codes([]));
        assert_eq!(outcome.validation.counts.after_recording, 1);
        outcome.assert_joined(5);
    });
}

#[test]
fn records_without_times() {
    isolated("records_without_times", || {
        let outcome = serve(Config::default().zero_time_every_nth(3), None, |_, _| ());
        assert_eq!(outcome.codes(), codes([(L08, 2)]));
        outcome.assert_joined(6);
    });
}

#[test]
fn a_device_whose_memory_for_records_is_used_up() {
    isolated("a_device_whose_memory_for_records_is_used_up", || {
        let outcome = under(Faults::default().device_records_with_times(Some(2)));
        assert_eq!(outcome.codes(), codes([(L08, 4)]));
        outcome.assert_joined(6);
    });
}

#[test]
fn incomplete_records() {
    isolated("incomplete_records", || {
        let outcome = under(Faults::default().incomplete_record_every_nth(4));
        assert_eq!(outcome.codes(), codes([(L08, 1)]));
        outcome.assert_joined(6);
    });
}

#[test]
fn duplicates_are_counted_and_no_fault() {
    isolated("duplicates_are_counted_and_no_fault", || {
        let outcome = under(Faults::default().duplicate_record_every_nth(3));
        assert_eq!(outcome.codes(), codes([]));
        assert_eq!(outcome.validation.counts.duplicate_records, 2);
        outcome.assert_joined(6);
    });
}

#[test]
fn records_out_of_order_are_no_fault() {
    isolated("records_out_of_order_are_no_fault", || {
        let outcome = under(Faults::default().shuffle_buffers(true).seed(7));
        assert_eq!(outcome.codes(), codes([]));
        outcome.assert_joined(6);
    });
}

#[test]
fn dropped_buffers() {
    isolated("dropped_buffers", || {
        let outcome = under(Faults::default().drop_buffer_every_nth(1));
        // Of each launch an external id, a call and a kernel.
        assert_eq!(outcome.codes(), codes([(L03, 6), (L07, 18)]));
        outcome.assert_joined(0);
    });
}

#[test]
fn null_buffers() {
    isolated("null_buffers", || {
        let outcome = under(Faults::default().null_buffer_every_nth(1));
        // Of each launch an external id, a call and a kernel.
        assert_eq!(outcome.codes(), codes([(L03, 6), (L07, 18)]));
        outcome.assert_joined(0);
    });
}

#[test]
fn a_buffer_that_lay_idle_for_hours_is_no_fault() {
    isolated("a_buffer_that_lay_idle_for_hours_is_no_fault", || {
        let faults = Faults::default().hold_buffers_ns(3 * 3_600_000_000_000);
        let config = Config::default().virtual_clock().faults(faults);
        let outcome = serve(config, Some(lineage_sim::now_ns), |gpu, _| {
            gpu.spend_ns(3_600_000_000_000);
        });
        assert_eq!(outcome.codes(), codes([]));
        outcome.assert_joined(6);
    });
}

#[test]
fn correlation_ids_that_wrap_are_no_fault() {
    isolated("correlation_ids_that_wrap_are_no_fault", || {
        let config = Config::default().first_correlation_id(u32::MAX - 2);
        let outcome = serve(config, None, |_, _| ());
        assert_eq!(outcome.codes(), codes([]));
        outcome.assert_joined(6);
    });
}

#[test]
fn correlation_ids_that_wrap_twice_are_no_fault() {
    isolated("correlation_ids_that_wrap_twice_are_no_fault", || {
        // Two calls a request, 1.6 thousand million ids apart: six requests are more than two rounds of 2^32.
        // Each is done and joined before the next: across 2^31 ids in flight nobody could tell.
        let faults = Faults::default().correlation_id_step(0x3000_0000);
        let outcome = serve(Config::default().faults(faults), None, |gpu, _| {
            idle(gpu);
            std::thread::sleep(Duration::from_millis(200));
        });
        assert_eq!(outcome.codes(), codes([]));
        outcome.assert_joined(6);
    });
}

#[test]
fn thread_ids_that_come_again_are_no_fault() {
    isolated("thread_ids_that_come_again_are_no_fault", || {
        let outcome = under(Faults::default().reuse_thread_ids(true));
        assert_eq!(outcome.codes(), codes([]));
        outcome.assert_joined(6);
    });
}

#[test]
fn event_ids_that_come_again_are_no_fault() {
    isolated("event_ids_that_come_again_are_no_fault", || {
        let outcome = under(Faults::default().reuse_event_ids(true));
        assert_eq!(outcome.codes(), codes([]));
        outcome.assert_joined(6);
    });
}

#[test]
fn a_second_subscriber_is_no_evidence_and_says_who() {
    isolated("a_second_subscriber_is_no_evidence_and_says_who", || {
        let outcome = under(Faults::default().other_tool(OtherTool::Subscribed));
        let DeviceEvidence::Absent { why } = &outcome.device else {
            panic!("{}", outcome.device);
        };
        let why = why.to_string();
        assert!(
            why.contains("another subscriber has CUPTI (code 39)"),
            "{why}"
        );
        outcome.assert_joined(0);
    });
}

/// Since 13.2 the first subscriber may allow others, which then have to name themselves; who does not is refused as ever.
#[test]
fn a_subscriber_that_allows_others_is_no_evidence_either() {
    isolated(
        "a_subscriber_that_allows_others_is_no_evidence_either",
        || {
            let faults = Faults::default().other_tool(OtherTool::AllowsOthers);
            let config = Config::default().cupti_version(CuptiVersion::V13_5);
            let outcome = serve(config.faults(faults), None, |_, _| ());
            let DeviceEvidence::Absent { why } = &outcome.device else {
                panic!("{}", outcome.device);
            };
            let why = why.to_string();
            assert!(
                why.contains("another subscriber has CUPTI (code 39)"),
                "{why}"
            );
            outcome.assert_joined(0);
        },
    );
}

#[test]
fn a_tool_that_takes_the_buffers_without_subscribing() {
    isolated("a_tool_that_takes_the_buffers_without_subscribing", || {
        let outcome = under(Faults::default().other_tool(OtherTool::TakesBuffers));
        assert_eq!(outcome.codes(), codes([(L03, 6)]));
        outcome.assert_joined(0);
    });
}

#[test]
fn a_missing_symbol_is_no_evidence_and_is_named() {
    isolated("a_missing_symbol_is_no_evidence_and_is_named", || {
        let outcome = under(Faults::default().missing_symbol("cuptiActivityFlushAll"));
        let DeviceEvidence::Absent { why } = &outcome.device else {
            panic!("{}", outcome.device);
        };
        let why = why.to_string();
        assert!(
            why.contains("has no function cuptiActivityFlushAll"),
            "{why}"
        );
        outcome.assert_joined(0);
    });
}

#[test]
fn a_launch_that_fails_is_no_fault() {
    isolated("a_launch_that_fails_is_no_fault", || {
        let outcome = under(Faults::default().fail_launch_every_nth(3));
        assert_eq!(
            (outcome.refused, outcome.validation.counts.failed_calls),
            (2, 2)
        );
        assert_eq!(outcome.codes(), codes([]));
        outcome.assert_joined(4);
    });
}

#[test]
fn a_slow_flush_is_no_fault() {
    isolated("a_slow_flush_is_no_fault", || {
        let outcome = under(Faults::default().flush_takes_ns(100_000_000));
        assert_eq!(outcome.codes(), codes([]));
        outcome.assert_joined(6);
    });
}

#[test]
fn a_device_clock_that_steps_back() {
    isolated("a_device_clock_that_steps_back", || {
        let model = Settings::default()
            .device_step_at_ns(1_001_250_000)
            .device_step_ns(-1_000_000);
        let config = Config::default().model(model).virtual_clock();
        let outcome = serve(config, Some(lineage_sim::now_ns), |_, _| ());
        assert_eq!(outcome.codes(), codes([(T02, 1)]));
    });
}

/// Every version of CUPTI that the simulator has: the joins stand, whatever layouts, symbols and behaviour that version has.
macro_rules! versions {
    ($($name:ident: $version:ident;)+) => { $(
        #[test]
        fn $name() {
            isolated(stringify!($name), || {
                let config = Config::default().cupti_version(CuptiVersion::$version);
                let outcome = serve(config, None, |_, _| ());
                assert_eq!(outcome.codes(), codes([]));
                assert_eq!(outcome.validation.counts.bound_by_two_sources, 6);
                outcome.assert_joined(6);
            });
        }
    )+ };
}
versions! {
    with_cupti_12_0: V12_0;
    with_cupti_12_4: V12_4;
    with_cupti_12_9: V12_9;
    with_cupti_13_0: V13_0;
    with_cupti_13_1: V13_1;
    with_cupti_13_4: V13_4;
    with_cupti_13_5: V13_5;
}

#[test]
fn a_panic_in_the_callback_ends_recording_and_is_counted() {
    isolated(
        "a_panic_in_the_callback_ends_recording_and_is_counted",
        || {
            let outcome = serve(Config::default(), None, |_, request| {
                if request == 3 {
                    lineage_cupti::testing::panic_in_next_callback();
                }
            });
            assert_eq!(outcome.refused, 0, "no panic reached the driver");
            // The panic, and whatever CUPTI found no buffer for after it.
            assert!(outcome.codes()[&L07] >= 1);
            // Whether the others were launched cannot be said, so it is not.
            let codes = outcome.codes();
            assert!(!codes.contains_key(&L04), "{codes:?}");
            assert!(!outcome.validation.session_faults.contains_key(&L04));
            let wrong = codes.keys();
            let wrong = wrong.filter(|code| code.family() == FaultFamily::Wrong);
            assert_eq!(wrong.count(), 0);
            assert_eq!(outcome.validation.counts.bound_by_two_sources, 3);
        },
    );
}

/// The ledger that the process which is to be killed writes.
const LEDGER: &str = "LINEAGE_TEST_LEDGER";

#[test]
fn a_killed_process_leaves_a_ledger_that_stands_as_far_as_it_goes() {
    if let Some(path) = std::env::var_os(LEDGER) {
        let faults = Faults::default().kill_at_call(5);
        let file = File::create(path).expect("the parent named a file");
        serve_into(
            Config::default().faults(faults),
            None,
            Some(Writer::new(file)),
            |gpu, request| {
                // The first three are done, and drained.
                if request == 3 {
                    idle(gpu);
                    std::thread::sleep(Duration::from_millis(1_500));
                }
            },
        );
        return;
    }
    let name = "a_killed_process_leaves_a_ledger_that_stands_as_far_as_it_goes";
    let path = std::env::temp_dir().join(format!("lineage-killed-{}.jsonl", std::process::id()));
    let output = Command::new(std::env::current_exe().expect("a path"))
        .args([name, "--exact", "--nocapture"])
        .env(LEDGER, &path)
        .output()
        .expect("this test can be started again");
    let file = File::open(&path).expect("it was written");
    let _ = std::fs::remove_file(&path);
    // SIGKILL
    assert_eq!(output.status.signal(), Some(9), "{output:?}");

    let mut observations = Vec::new();
    let mut reader = Reader::new(BufReader::new(file));
    for entry in reader.by_ref() {
        match entry {
            Ok(Entry::Observation(observation)) => observations.push(observation),
            Ok(_) => {}
            // The last line was being written.
            Err(error) => eprintln!("{error}"),
        }
    }
    assert!(
        !reader.summary().is_complete(),
        "that it was cut short is seen"
    );
    let validation = validate(&observations, None, &Options::default());
    eprintln!("{}", validation.summary());
    assert_eq!(validation.fault_counts, codes([]));
    assert_eq!(validation.counts.joined_kernels, 3);
    assert_eq!(validation.counts.bound_by_two_sources, 3);
}
