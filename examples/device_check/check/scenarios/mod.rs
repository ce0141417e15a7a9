//! Small pieces of GPU work, and CUPTI's records of each, told so that those of two machines can be compared.
//!
//! A scenario ([`streams`], [`memory`], [`graphs`]) runs on a [`stage`], which keeps CUPTI's records of it. [`told`] makes of them what
//! any machine should answer the same way: times become relations, ids ordinals, and a record is known by its place in the scenario.
//! [`words`] says what two machines told differently.

mod fields;
pub mod graph_callbacks;
mod graphs;
mod memory;
mod stage;
mod streams;
mod told;
pub mod words;

use serde_json::json;

use super::failure::Failure;
use super::questions::{Answer, Arm, Question, scenario};
pub use stage::Stage;

/// What every scenario's name begins with.
pub const PREFIX: &str = "scenario_";

/// All scenarios, in the order in which they are run.
pub const SCENARIOS: &[Question] = &[
    scenario("scenario_kernel", "one kernel", streams::kernel),
    scenario(
        "scenario_back_to_back",
        "three kernels one behind the other in one stream",
        streams::back_to_back,
    ),
    scenario(
        "scenario_two_streams",
        "a long kernel in each of two streams",
        streams::two_streams,
    ),
    scenario(
        "scenario_two_streams_with_an_event",
        "a kernel that waits for an event behind a long one in another stream",
        streams::two_streams_with_an_event,
    ),
    scenario(
        "scenario_legacy_default_stream",
        "the legacy default stream between two kernels of a blocking stream, and a stream that does not block",
        streams::legacy_default_stream,
    ),
    scenario(
        "scenario_per_thread_default_stream",
        "the thread's own default stream beside a blocking stream",
        streams::per_thread_default_stream,
    ),
    scenario(
        "scenario_events",
        "two events that are recorded and waited for by host and stream",
        streams::events,
    ),
    scenario(
        "scenario_host_function",
        "a host function between two kernels",
        streams::host_function,
    ),
    scenario(
        "scenario_wait_value",
        "a kernel that waits for a value that another stream writes behind a long kernel",
        streams::wait_value,
    ),
    scenario(
        "scenario_programmatic_launch",
        "a kernel that may begin before the one in front has ended",
        streams::programmatic_launch,
    ),
    scenario(
        "scenario_pageable_copies",
        "copies to the device and back, of pageable memory",
        memory::pageable_copies,
    ),
    scenario(
        "scenario_pinned_copies",
        "copies to the device, within it and back, of pinned memory",
        memory::pinned_copies,
    ),
    scenario("scenario_sets", "sets of bytes and of words", memory::sets),
    scenario(
        "scenario_pooled_memory",
        "memory of a pool, freed in one stream and allocated in another behind it",
        memory::pooled,
    ),
    scenario(
        "scenario_captured_graph",
        "a captured graph, launched three times",
        graphs::captured,
    ),
    scenario(
        "scenario_forked_graph",
        "a graph whose two long branches fork and join",
        graphs::forked,
    ),
    scenario(
        "scenario_exec_update",
        "a graph, launched before and after an update of its exec",
        graphs::exec_update,
    ),
    scenario(
        "scenario_disabled_node",
        "a graph, launched with a node disabled and enabled again",
        graphs::disabled_node,
    ),
    scenario(
        "scenario_set_params",
        "a graph, launched before and after a node of its exec is given other parameters",
        graphs::set_one,
    ),
    scenario(
        "scenario_cloned_graph",
        "a graph and its clone, each instantiated and launched",
        graphs::cloned,
    ),
    scenario(
        "scenario_child_graph",
        "a captured graph as the child of a built one, behind a kernel",
        graphs::child,
    ),
    scenario(
        "scenario_several_execs",
        "two execs of one graph, launched in two streams, and one of them again in the other's",
        graphs::several_execs,
    ),
    scenario(
        "scenario_exec_made_again",
        "an exec that is launched and destroyed, and a second of the same graph",
        graphs::made_again,
    ),
];

/// Runs one and tells what CUPTI recorded.
pub fn ask(arm: &Arm, run: fn(&Stage) -> Result<(), Failure>) -> Result<Answer, Failure> {
    let stage = Stage::open(arm)?;
    run(&stage)?;
    let told = stage.end()?.tell();
    Ok(Answer::new(told, json!({})))
}
