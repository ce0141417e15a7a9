//! Calls: their correlation ids, their threads, and those that ask for nothing.

use lineage_cupti::sys::codes::domain;
use serde_json::{Value, json};

use super::external::one_call;
use super::{Answer, Arm};
use crate::check::cupti::{LAUNCH_KERNEL, Setup};
use crate::check::failure::Failure;
use crate::check::program::Runtime;
use crate::check::record::{Api, Domain, Record, operations, work_calls, work_calls_of};

pub(super) fn nested_ids(arm: &Arm) -> Result<Answer, Failure> {
    let (client, program) = arm.open(&Setup::default())?;
    client.enable_all()?;
    let runtime = Runtime::open(&arm.of, arm.cudart())?;
    if client.call_back_for_work() == 0 {
        return Err(Failure::unexpected(
            "CUPTI calls back for no function that asks for work",
        ));
    }
    runtime.warm_up(&program)?;
    client.keep_calls();
    client.take_calls();
    let records = one_call(&client, &program, None, || runtime.set(&program, 64))?;
    let seen = client.take_calls();

    let outer = work_calls_of(&records, Domain::Runtime);
    let inner = work_calls_of(&records, Domain::Driver);
    let (Some(&outer), Some(&inner)) = (outer.first(), inner.first()) else {
        let found = format!(
            "{} of the runtime and {} of the driver",
            outer.len(),
            inner.len()
        );
        return Err(Failure::unexpected(format!(
            "one call of the runtime has these API records: {found}"
        )));
    };
    let operation = operations(&records)
        .first()
        .map(|operation| operation.correlation);
    let callback_agrees = |number: u32, api: &Api| {
        let call = seen
            .iter()
            .find(|call| call.domain == number && call.cbid == api.cbid);
        call.map(|call| call.correlation == api.correlation)
    };
    let answer = json!({
        "equal": outer.correlation == inner.correlation,
        "operation_has_the_runtimes": operation.map(|id| id == outer.correlation),
        "operation_has_the_drivers": operation.map(|id| id == inner.correlation),
        "callback_of_the_runtime_agrees": callback_agrees(domain::RUNTIME_API, outer),
        "callback_of_the_driver_agrees": callback_agrees(domain::DRIVER_API, inner),
        "driver_lies_inside_runtime": outer.start <= inner.start && inner.end <= outer.end,
    });
    let measured = json!({ "seen_by_callback": seen });
    Ok(Answer::new(answer, measured).with_records(&records))
}

pub(super) fn correlation_ids(arm: &Arm) -> Result<Answer, Failure> {
    const LAUNCHES: usize = 6;
    let (client, program) = arm.open(&Setup::default())?;
    client.enable_operations()?;
    client.enable_work_calls()?;
    program.launch(0)?;
    program.synchronize()?;
    let first = client.take_until(|records| !operations(records).is_empty())?;
    for label in 0..LAUNCHES {
        program.launch(label as u64)?;
    }
    // Not recorded, since it asks for no work.
    program.synchronize()?;
    program.launch(0)?;
    program.synchronize()?;
    let records = client.take_until(|records| operations(records).len() > LAUNCHES)?;
    let mut ids: Vec<u32> = work_calls_of(&records, Domain::Driver)
        .iter()
        .map(|api| api.correlation)
        .collect();
    ids.sort_unstable();
    if ids.len() != LAUNCHES + 1 {
        return Err(Failure::unexpected(format!(
            "{} API records of {} launches",
            ids.len(),
            LAUNCHES + 1
        )));
    }
    let steps: Vec<u32> = ids.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (across, between) = steps
        .split_last()
        .map_or((0, &[][..]), |(last, others)| (*last, others));
    let answer = json!({
        "smallest_step_between_launches": between.iter().min(),
        "largest_step_between_launches": between.iter().max(),
        "step_across_a_call_that_is_not_recorded": across,
    });
    let measured = json!({ "first_id": work_calls(&first).iter().map(|api| api.correlation).min(), "ids": ids });
    Ok(Answer::new(answer, measured).with_records(&records))
}

pub(super) fn empty_work(arm: &Arm) -> Result<Answer, Failure> {
    let (client, program) = arm.open(&Setup::default())?;
    client.enable_all()?;
    program.launch(0)?;
    let mut all = Vec::new();
    let mut ask = |call: &dyn Fn() -> Result<(), Failure>| -> Result<Value, Failure> {
        program.synchronize()?;
        client.take()?;
        let outcome = call();
        // So that the records of the call are not held for want of a later one.
        program.launch(1)?;
        program.synchronize()?;
        let records = client.take_until(|records| !operations(records).is_empty())?;
        let is_launch = |api: &&Api| api.domain == Domain::Driver && api.cbid == LAUNCH_KERNEL;
        let launch = work_calls(&records)
            .into_iter()
            .find(is_launch)
            .map(|api| api.correlation);
        let others: Vec<&Api> = work_calls_of(&records, Domain::Driver)
            .into_iter()
            .filter(|api| Some(api.correlation) != launch)
            .collect();
        let operations = operations(&records);
        let answer = json!({
            "error": outcome.err().map(|failure| failure.to_string()),
            "api_record": !others.is_empty(),
            "api_result": others.first().map(|api| api.result),
            "operations": operations.len().saturating_sub(1),
        });
        all.extend(records);
        Ok(answer)
    };
    let answer = json!({
        "set": ask(&|| program.set(0))?,
        "copy_to_device": ask(&|| program.copy_to_device(0))?,
    });
    Ok(Answer::new(answer, json!({})).with_records(&all))
}

pub(super) fn thread_ids(arm: &Arm) -> Result<Answer, Failure> {
    let setup = Setup {
        system_thread_ids: false,
        ..Setup::default()
    };
    let (client, program) = arm.open(&setup)?;
    client.enable_all()?;
    let mut default_type = u32::MAX;
    if let Some(get) = client.functions().get_thread_id_type {
        // SAFETY: a valid place.
        client.check("cuptiGetThreadIdType", unsafe { get(&mut default_type) })?;
    }
    program.launch(0)?;
    let by_default = one_call(&client, &program, None, || program.launch(1))?;
    client.use_system_thread_ids()?;
    let by_system = one_call(&client, &program, None, || program.launch(2))?;
    let thread = |records: &[Record]| work_calls(records).first().map(|api| api.thread);
    // SAFETY: both ask for a number.
    let (system, posix) = unsafe { (libc::gettid() as u32, libc::pthread_self() as u32) };
    let answer = json!({
        "default_type": (default_type != u32::MAX).then_some(default_type),
        "default_is_pthread_self_cut_to_32_bits": thread(&by_default) == Some(posix),
        "default_is_gettid": thread(&by_default) == Some(system),
        "system_type_is_gettid": thread(&by_system) == Some(system),
    });
    Ok(Answer::new(answer, json!({})))
}
