//! Subscribers: a second one, and one that leaves and comes again.

use lineage_cupti::sys::codes::domain;
use serde_json::json;

use super::{Answer, Arm};
use crate::check::cupti::{Client, LAUNCH_KERNEL, Setup};
use crate::check::failure::Failure;
use crate::check::program::Program;
use crate::check::record::{Record, externals, operations, work_calls};

pub(super) fn second(arm: &Arm) -> Result<Answer, Failure> {
    let (client, _program) = arm.open(&Setup::default())?;
    let code = client.subscribe();
    let answer = json!({ "code": code });
    let meaning = client
        .check("cuptiSubscribe", code)
        .err()
        .map(|failure| failure.to_string());
    Ok(Answer::new(answer, json!({ "meaning": meaning })))
}

/// One launch, and whatever comes of it.
fn launch(client: &Client, program: &Program) -> Result<(Vec<Record>, bool), Failure> {
    let before = client.callbacks();
    program.launch(1)?;
    program.synchronize()?;
    let records = client.take_until(|records| !operations(records).is_empty())?;
    Ok((records, client.callbacks() != before))
}

pub(super) fn again(arm: &Arm) -> Result<Answer, Failure> {
    const ID: u64 = 7 << 24 | 1;
    let (client, program) = arm.open(&Setup::default())?;
    client.enable_operations()?;
    client.enable_work_calls()?;
    client.call_back(domain::DRIVER_API, LAUNCH_KERNEL);
    client.push(ID)?;
    program.launch(0)?;
    let (first, called_back) = launch(&client, &program)?;
    if !called_back {
        return Err(Failure::unexpected("the callback was not called"));
    }
    client.unsubscribe()?;
    let (unsubscribed, _) = launch(&client, &program)?;
    client.check("cuptiSubscribe", client.subscribe())?;
    let (again, called_back_by_itself) = launch(&client, &program)?;
    client.enable_operations()?;
    client.enable_work_calls()?;
    client.call_back(domain::DRIVER_API, LAUNCH_KERNEL);
    let (enabled_again, called_back_again) = launch(&client, &program)?;
    let popped = client.pop();

    let ids = |records: &[Record]| {
        work_calls(records)
            .iter()
            .map(|api| api.correlation)
            .collect::<Vec<_>>()
    };
    let last = ids(&first).into_iter().max().unwrap_or(0);
    let next = ids(&enabled_again).into_iter().min();
    let starts_are_sane = enabled_again
        .iter()
        .filter_map(Record::operation)
        .all(|operation| {
            work_calls(&enabled_again)
                .iter()
                .filter(|api| api.correlation == operation.correlation)
                .all(|api| api.start <= operation.start)
        });
    let answer = json!({
        "records_while_unsubscribed": !operations(&unsubscribed).is_empty(),
        "records_before_enabling_again": !operations(&again).is_empty(),
        "callbacks_before_enabling_again": called_back_by_itself,
        "callbacks_after_enabling_again": called_back_again,
        "ids_restart": next.map(|next| next <= last),
        "external_ids_stay_on_the_stack": popped == Ok(ID),
        "external_records_after": externals(&enabled_again).iter().any(|external| external.id == ID),
        "operations_start_after_their_calls": starts_are_sane,
    });
    let measured = json!({
        "ids": ids(&first), "ids_while_unsubscribed": ids(&unsubscribed), "ids_after": ids(&enabled_again),
        "code_of_pop": popped.err().unwrap_or(0),
    });
    let answer = Answer::new(answer, measured)
        .with_records(&first)
        .with_records(&unsubscribed);
    Ok(answer.with_records(&again).with_records(&enabled_again))
}
