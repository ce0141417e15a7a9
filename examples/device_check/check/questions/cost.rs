//! What it costs: a push and a pop, and a loop of launches in four forms.

use std::hint::black_box;
use std::time::Duration;

use launch_lineage::{Cupti, Epoch, Lineage};
use serde_json::{Value, json};

use super::{Answer, Arm};
use crate::check::clock::{difference, distribution, monotonic_ns, process_cpu_ns, thread_cpu_ns};
use crate::check::cupti::{Client, Setup};
use crate::check::failure::Failure;
use crate::check::program::Program;
use crate::check::record::{externals, operations, work_calls};

pub(super) fn push_and_pop(arm: &Arm) -> Result<Answer, Failure> {
    const PAIRS: u64 = 20_000;
    let (client, program) = arm.open(&Setup::default())?;
    client.enable_operations()?;
    client.enable_work_calls()?;
    program.launch(0)?;
    program.synchronize()?;
    let (mut pushes, mut pops, mut nothing) = (Vec::new(), Vec::new(), Vec::new());
    let mut wrong = 0_u64;
    for number in 1..=PAIRS {
        let id = number << 24 | 1;
        let begin = monotonic_ns();
        let empty = monotonic_ns();
        client.push(id)?;
        let pushed = monotonic_ns();
        let popped = black_box(client.pop());
        let end = monotonic_ns();
        wrong += u64::from(popped != Ok(id));
        nothing.push(difference(empty, begin));
        pushes.push(difference(pushed, empty));
        pops.push(difference(end, pushed));
    }
    // All at once, without the clock in between.
    let begin = monotonic_ns();
    for number in 1..=PAIRS {
        client.push(number << 24 | 1)?;
        wrong += u64::from(black_box(client.pop()) != Ok(number << 24 | 1));
    }
    let together = monotonic_ns() - begin;
    let answer = json!({ "popped_ids_are_the_pushed_ones": wrong == 0 });
    let measured = json!({
        "push_and_two_clock_reads_ns": distribution(pushes),
        "pop_and_two_clock_reads_ns": distribution(pops),
        "two_clock_reads_ns": distribution(nothing),
        "pair_ns": together as f64 / PAIRS as f64,
    });
    Ok(Answer::new(answer, measured))
}

/// Launches that are timed together, fewer than a driver's queue takes: no call waits for the device.
const SEGMENT: u32 = 500;
/// Launches under one boundary in the form that does so.
const STEP: u32 = 16;
const WARM_UP: u32 = 200;

struct Timed {
    launches: u32,
    wall_ns: Vec<i64>,
    thread_cpu_ns: Vec<i64>,
    process_cpu_ns: u64,
}

impl Timed {
    fn json(&self) -> Value {
        json!({
            "launches": self.launches,
            // Each number is that of a segment, divided by its launches and rounded.
            "wall_ns_per_launch": distribution(self.wall_ns.iter().copied()),
            "thread_cpu_ns_per_launch": distribution(self.thread_cpu_ns.iter().copied()),
            "process_cpu_ns_per_launch": self.process_cpu_ns as f64 / f64::from(self.launches),
        })
    }
}

/// Runs the loop: `launch` makes as many launches as it is told.
fn run_loop(
    arm: &Arm,
    program: &Program,
    mut launch: impl FnMut(u32) -> Result<(), Failure>,
) -> Result<Timed, Failure> {
    launch(WARM_UP)?;
    program.synchronize()?;
    let mut timed = Timed {
        launches: 0,
        wall_ns: Vec::new(),
        thread_cpu_ns: Vec::new(),
        process_cpu_ns: process_cpu_ns(),
    };
    while timed.launches < arm.of.launches {
        let count = SEGMENT.min(arm.of.launches - timed.launches);
        let (wall, cpu) = (monotonic_ns(), thread_cpu_ns());
        launch(count)?;
        let (cpu, wall) = (thread_cpu_ns() - cpu, monotonic_ns() - wall);
        timed.wall_ns.push((wall / u64::from(count)) as i64);
        timed.thread_cpu_ns.push((cpu / u64::from(count)) as i64);
        timed.launches += count;
        program.synchronize()?;
    }
    timed.process_cpu_ns = process_cpu_ns() - timed.process_cpu_ns;
    Ok(timed)
}

fn launch_each(program: &Program, count: u32) -> Result<(), Failure> {
    (0..count).try_for_each(|label| program.launch(label.into()))
}

pub(super) fn loop_off(arm: &Arm) -> Result<Answer, Failure> {
    let program = arm.program()?;
    let timed = run_loop(arm, &program, |count| launch_each(&program, count))?;
    Ok(Answer::new(json!({}), timed.json()))
}

pub(super) fn loop_cupti(arm: &Arm) -> Result<Answer, Failure> {
    let client = Client::open(&Setup::default())?;
    client.enable_operations()?;
    client.enable_work_calls()?;
    client.call_back_for_work();
    let program = arm.program()?;
    let before = client.callbacks();
    let timed = run_loop(arm, &program, |count| launch_each(&program, count))?;
    let after = client.callbacks();
    let expected = (timed.launches + WARM_UP) as usize;
    let records = client.take_until(|records| operations(records).len() >= expected)?;
    let per_launch = |count: usize| count as f64 / expected as f64;
    let (requested, denied) = client.requests();
    let mut measured = timed.json();
    measured["buffers_requested"] = requested.into();
    measured["buffers_denied"] = denied.into();
    let answer = json!({
        "callbacks_per_launch": per_launch((after.0 + after.1 - before.0 - before.1) as usize),
        "api_records_per_launch": per_launch(work_calls(&records).len()),
        "external_records_per_launch": per_launch(externals(&records).len()),
        "operations_per_launch": per_launch(operations(&records).len()),
    });
    Ok(Answer::new(answer, measured))
}

pub(super) fn loop_lineage(arm: &Arm) -> Result<Answer, Failure> {
    with_lineage(arm, |epoch, program, count| {
        (0..count).try_for_each(|label| epoch.launch(|| program.launch(label.into())))
    })
}

pub(super) fn loop_lineage_step(arm: &Arm) -> Result<Answer, Failure> {
    with_lineage(arm, |epoch, program, count| {
        (0..count.div_ceil(STEP)).try_for_each(|step| {
            let left = STEP.min(count - step * STEP);
            epoch.launch(|| launch_each(program, left))
        })
    })
}

fn with_lineage(
    arm: &Arm,
    launch: impl Fn(&Epoch, &Program, u32) -> Result<(), Failure>,
) -> Result<Answer, Failure> {
    let lineage = Lineage::builder()
        .service("device_check")
        .device(Cupti::new())
        .start()
        .map_err(|error| Failure::unexpected(format!("no session: {error}")))?;
    let program = arm.program()?;
    let epoch = Epoch::declare("launch_loop");
    let timed = run_loop(arm, &program, |count| launch(&epoch, &program, count))?;
    drop(epoch);
    let report = lineage.shutdown(Duration::from_secs(10));
    let totals = &report.totals;
    let launches = u64::from(timed.launches + WARM_UP);
    let answer = json!({
        "all_bound": totals.bound == launches,
        "lost": totals.lost,
        "wrong": totals.wrong,
        "unattributed": totals.unattributed.total(),
    });
    let mut measured = timed.json();
    measured["calls"] = totals.calls.into();
    measured["operations"] = totals.operations.total().into();
    measured["observations"] = totals.observations.into();
    measured["evidence"] = report.device.to_string().into();
    // Where the drain is too slow, rings fill, and what they lose has CUPTI's word alone.
    measured["by_both_sources"] = totals.bound_by.external_and_callback.into();
    measured["by_external_only"] = totals.bound_by.external_only.into();
    measured["by_callback_only"] = totals.bound_by.callback_only.into();
    measured["dropped_in_rings"] = totals.dropped_in_rings.into();
    Ok(Answer::new(answer, measured))
}
