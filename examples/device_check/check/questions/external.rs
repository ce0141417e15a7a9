//! External correlation: how many records, from where, for which calls.

use lineage_cupti::sys::codes::domain;
use serde_json::{Value, json};

use super::{Answer, Arm};
use crate::check::cupti::{At, Client, LAUNCH_KERNEL, Setup};
use crate::check::failure::Failure;
use crate::check::options::RuntimeCallsChoice;
use crate::check::program::{Program, Runtime};
use crate::check::record::{Domain, Record, externals, operations, work_calls, work_calls_of};

/// Ids that nothing else uses; the lower 24 bits are not 0, as in a packed epoch.
const ID: u64 = 0x11_0000_0001;

/// Runs one call under a pushed id, alone: what was there before is taken away, what comes is its own.
pub(super) fn one_call(
    client: &Client,
    program: &Program,
    id: Option<u64>,
    call: impl FnOnce() -> Result<(), Failure>,
) -> Result<Vec<Record>, Failure> {
    program.synchronize()?;
    client.take()?;
    if let Some(id) = id {
        client.push(id)?;
    }
    call()?;
    if id.is_some() {
        let popped = client.pop();
        if popped.ok() != id {
            return Err(Failure::unexpected(format!(
                "pushed {id:?} and popped {popped:?}"
            )));
        }
    }
    program.synchronize()?;
    client.take_until(|records| !operations(records).is_empty())
}

fn counts(records: &[Record]) -> Value {
    let externals = externals(records);
    let calls = work_calls(records);
    let own = externals.iter().filter(|external| external.id == ID);
    json!({
        "api_records": calls.len(),
        "external_records": own.clone().count(),
        "external_records_of_its_ids":
            own.filter(|external| calls.iter().any(|call| call.correlation == external.correlation)).count(),
    })
}

pub(super) fn records_per_call(arm: &Arm) -> Result<Answer, Failure> {
    let (client, program) = arm.open(&Setup::default())?;
    client.enable_all()?;
    program.launch(0)?;
    let launch = one_call(&client, &program, Some(ID), || program.launch(1))?;
    // The simulator wraps the driver's calls where it makes runtime calls: there is none alone.
    let is_wrapped = arm.of.is_simulated() && arm.of.sim_runtime_calls != RuntimeCallsChoice::Off;
    let driver_call = if is_wrapped {
        Value::Null
    } else {
        counts(&launch)
    };
    let mut records = launch;
    let runtime_call = match Runtime::open(&arm.of, arm.cudart()) {
        Ok(runtime) => {
            runtime.warm_up(&program)?;
            let set = one_call(&client, &program, Some(ID), || runtime.set(&program, 64))?;
            let counts = counts(&set);
            records.extend(set);
            counts
        }
        Err(Failure::Skipped(_)) => Value::Null,
        Err(failure) => return Err(failure),
    };
    let answer = json!({ "driver_call": driver_call, "runtime_call": runtime_call });
    Ok(Answer::new(answer, json!({})).with_records(&records))
}

pub(super) fn push_inside_enter(arm: &Arm) -> Result<Answer, Failure> {
    let (client, program) = arm.open(&Setup::default())?;
    client.enable_all()?;
    if !client.call_back(domain::DRIVER_API, LAUNCH_KERNEL) {
        return Err(Failure::unexpected(
            "CUPTI does not call back for cuLaunchKernel",
        ));
    }
    program.launch(0)?;
    let mut all = Vec::new();
    let mut counts = |push, pop, id: u64| {
        let records = one_call(&client, &program, None, || {
            client.inside_calls(push, pop, id);
            let outcome = program.launch(1);
            client.inside_calls(At::Never, At::Never, 0);
            outcome
        })?;
        // Left on the stack where it was not popped inside.
        if pop == At::Never && client.pop() != Ok(id) {
            return Err(Failure::unexpected(
                "what was pushed inside the callback was not on the stack",
            ));
        }
        // What is left on the stack is recorded for the synchronisation after it: only the launch counts.
        let launch = work_calls_of(&records, Domain::Driver)
            .first()
            .map(|api| api.correlation);
        let launch = launch.ok_or_else(|| Failure::unexpected("the launch has no API record"))?;
        let found = externals(&records)
            .iter()
            .any(|found| found.id == id && found.correlation == launch);
        all.extend(records);
        Ok(found)
    };
    let popped_later = counts(At::Enter, At::Never, ID + 1)?;
    let popped_at_exit = counts(At::Enter, At::Exit, ID + 2)?;
    let pushed_at_exit = counts(At::Exit, At::Never, ID + 3)?;
    let answer = json!({
        "counts": popped_later,
        "counts_if_popped_inside_exit": popped_at_exit,
        "push_inside_exit_counts": pushed_at_exit,
        "greatest_code": client.code_inside_calls(),
    });
    Ok(Answer::new(answer, json!({})).with_records(&all))
}

pub(super) fn per_id_enabling(arm: &Arm) -> Result<Answer, Failure> {
    let (client, program) = arm.open(&Setup::default())?;
    // Neither of the kinds DRIVER and RUNTIME: only the one function.
    client.enable_operations()?;
    client.enable_driver_call(LAUNCH_KERNEL)?;
    program.launch(0)?;
    let launch = one_call(&client, &program, Some(ID), || program.launch(1))?;
    let set = one_call(&client, &program, Some(ID), || program.set(64))?;
    let has_external =
        |records: &[Record]| externals(records).iter().any(|external| external.id == ID);
    let has_correlated = |records: &[Record]| {
        operations(records)
            .iter()
            .any(|operation| operation.correlation != 0)
    };
    let answer = json!({
        "chosen_call": {
            "api_record": !work_calls(&launch).is_empty(),
            "external_record": has_external(&launch),
            "operation_has_correlation_id": has_correlated(&launch),
        },
        "other_call": {
            "api_record": !work_calls(&set).is_empty(),
            "external_record": has_external(&set),
            "operation_has_correlation_id": has_correlated(&set),
        },
    });
    Ok(Answer::new(answer, json!({}))
        .with_records(&launch)
        .with_records(&set))
}
