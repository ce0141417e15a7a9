//! Times: on which clock, how exact, and which of them there are.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Answer, Arm};
use crate::check::clock::{difference, distribution, monotonic_ns, realtime_ns};
use crate::check::cupti::{LAUNCH_KERNEL, Setup};
use crate::check::failure::Failure;
use crate::check::record::{
    Domain, Operation, OperationKind, Record, operations, work_calls, work_calls_of,
};

pub(super) fn latency_timestamps_off(arm: &Arm) -> Result<Answer, Failure> {
    latency_timestamps(arm, false)
}

pub(super) fn latency_timestamps_on(arm: &Arm) -> Result<Answer, Failure> {
    latency_timestamps(arm, true)
}

fn latency_timestamps(arm: &Arm, on: bool) -> Result<Answer, Failure> {
    const LAUNCHES: usize = 100;
    let setup = Setup {
        latency_timestamps: on,
        ..Setup::default()
    };
    let (client, program) = arm.open(&setup)?;
    client.enable_operations()?;
    client.enable_work_calls()?;
    for label in 0..LAUNCHES {
        program.launch(label as u64)?;
    }
    program.synchronize()?;
    let records = client.take_until(|records| operations(records).len() >= LAUNCHES)?;
    let entered = entered(&records);
    let kernels = operations(&records);
    let share = |has: &dyn Fn(&Operation) -> bool| match kernels
        .iter()
        .filter(|kernel| has(kernel))
        .count()
    {
        0 => "none",
        some if some == kernels.len() => "all",
        _ => "some",
    };
    // api_enter ≤ queued ≤ submitted ≤ start, as far as they are known.
    let is_in_order = |kernel: &Operation| {
        let stages = [
            entered.get(&kernel.correlation).copied().unwrap_or(0),
            kernel.queued,
            kernel.submitted,
            kernel.start,
        ];
        let known: Vec<u64> = stages.into_iter().filter(|&time| time != 0).collect();
        known.windows(2).all(|pair| pair[0] <= pair[1])
    };
    let answer = json!({
        "kernels": kernels.len(),
        "queued": share(&|kernel| kernel.queued != 0),
        "submitted": share(&|kernel| kernel.submitted != 0),
        "in_order": share(&is_in_order),
    });
    let waits = |later: fn(&Operation) -> u64, earlier: fn(&Operation) -> u64| {
        let both = kernels
            .iter()
            .filter(|kernel| later(kernel) != 0 && earlier(kernel) != 0);
        distribution(both.map(|kernel| difference(later(kernel), earlier(kernel))))
    };
    let measured = json!({
        "queued_to_submitted_ns": waits(|kernel| kernel.submitted, |kernel| kernel.queued),
        "submitted_to_start_ns": waits(|kernel| kernel.start, |kernel| kernel.submitted),
    });
    Ok(Answer::new(answer, measured).with_records(&records))
}

/// When the call of each id was entered; the innermost one where several have an id.
fn entered(records: &[Record]) -> HashMap<u32, u64> {
    let mut entered = HashMap::new();
    for api in work_calls(records) {
        let at = entered.entry(api.correlation).or_insert(api.start);
        *at = api.start.max(*at);
    }
    entered
}

pub(super) fn with_callback(arm: &Arm) -> Result<Answer, Failure> {
    clock(arm, &Setup::default())
}

pub(super) fn without_callback(arm: &Arm) -> Result<Answer, Failure> {
    clock(
        arm,
        &Setup {
            clock: None,
            ..Setup::default()
        },
    )
}

/// Launches and blocking copies between stamps of the host.
fn clock(arm: &Arm, setup: &Setup) -> Result<Answer, Failure> {
    const LAUNCHES: usize = 600;
    const COPIES: usize = 100;
    const COPY_BYTES: usize = 64 << 10;
    let now = if setup.clock.is_some() {
        monotonic_ns
    } else {
        realtime_ns
    };
    let (client, mut program) = arm.open(setup)?;
    client.enable_operations()?;
    client.enable_work_calls()?;
    program.launch(0)?;
    program.copy_to_host(COPY_BYTES)?;
    program.synchronize()?;
    client.take_until(|records| operations(records).len() >= 2)?;

    let (begun_monotonic, begun_realtime) = (monotonic_ns(), realtime_ns());
    let mut launches = Vec::new();
    for label in 0..LAUNCHES {
        let before = now();
        program.launch(label as u64)?;
        launches.push((before, now()));
        if label % 32 == 31 {
            program.synchronize()?;
        }
    }
    let mut copies = Vec::new();
    for _ in 0..COPIES {
        let before = now();
        program.copy_to_host(COPY_BYTES)?;
        copies.push((before, now()));
    }
    program.synchronize()?;
    let records = client.take_until(|records| operations(records).len() >= LAUNCHES + COPIES)?;

    let mut calls = work_calls_of(&records, Domain::Driver);
    calls.sort_by_key(|api| api.correlation);
    let (kernels, copied): (Vec<_>, Vec<_>) =
        calls.into_iter().partition(|api| api.cbid == LAUNCH_KERNEL);
    let operations = operations(&records);
    if (kernels.len(), copied.len(), operations.len()) != (LAUNCHES, COPIES, LAUNCHES + COPIES) {
        return Err(Failure::unexpected(format!(
            "{LAUNCHES} launches and {COPIES} copies have {} and {} API records of the driver and {} operations",
            kernels.len(),
            copied.len(),
            operations.len()
        )));
    }
    let first = kernels[0].start;
    let near = |time: u64| difference(first, time).unsigned_abs() < 10_000_000_000;
    let entered = entered(&records);
    let zero = operations
        .iter()
        .filter(|operation| operation.start == 0 || operation.end == 0)
        .count()
        + kernels
            .iter()
            .chain(&copied)
            .filter(|api| api.start == 0 || api.end == 0)
            .count();
    let since_enter: Vec<i64> = operations
        .iter()
        .filter(|operation| operation.of == OperationKind::Kernel)
        .filter_map(|kernel| Some(difference(kernel.start, *entered.get(&kernel.correlation)?)))
        .collect();
    // How far the record of a blocking copy ends after the host was told that it has ended.
    let copies_by_start = {
        let mut found: Vec<_> = operations
            .iter()
            .filter(|operation| operation.of == OperationKind::Copy)
            .collect();
        found.sort_by_key(|copy| copy.start);
        found
    };
    let after_return: Vec<i64> = copies_by_start
        .iter()
        .zip(&copies)
        .map(|(copy, (_, returned))| difference(copy.end, *returned))
        .collect();
    let before_call: Vec<i64> = copies_by_start
        .iter()
        .zip(&copies)
        .map(|(copy, (before, _))| difference(copy.start, *before))
        .collect();
    let answer = json!({
        "clock": match (near(begun_monotonic), near(begun_realtime)) {
            (true, _) => "monotonic",
            (_, true) => "realtime",
            _ => "neither monotonic nor realtime",
        },
        "zero_times": zero > 0,
        "operations_start_before_their_calls": since_enter.iter().any(|&wait| wait < 0),
        "copies_end_after_their_return": after_return.iter().any(|&late| late > 0),
        "copies_start_before_their_call": before_call.iter().any(|&wait| wait < 0),
    });
    let stamps = |of: fn(&(u64, u64), &(u64, u64)) -> i64| -> Value {
        distribution(
            kernels
                .iter()
                .zip(&launches)
                .map(|(api, stamps)| of(&(api.start, api.end), stamps)),
        )
    };
    let measured = json!({
        "records_with_zero_times": zero,
        "start_minus_api_enter_ns": distribution(since_enter),
        "copy_end_minus_return_ns": distribution(after_return),
        "copy_start_minus_call_ns": distribution(before_call),
        "api_enter_minus_stamp_before_ns": stamps(|api, stamps| difference(api.0, stamps.0)),
        "stamp_after_minus_api_exit_ns": stamps(|api, stamps| difference(stamps.1, api.1)),
    });
    Ok(Answer::new(answer, measured).with_records(&records))
}
