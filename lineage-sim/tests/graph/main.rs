//! What graphs do: captured, built, launched, changed and traced; one promise per file.

#![cfg(target_os = "linux")]
#![allow(missing_docs, unreachable_pub)]
#![allow(dead_code, reason = "the helpers are shared by several test programs")]
#![allow(
    clippy::macro_metavars_in_unsafe,
    reason = "`call!` takes the arguments of a C call"
)]

mod build;
#[path = "../cupti/client.rs"]
mod client;
#[path = "../cupti/driver.rs"]
mod driver;
mod program;

mod a_capture_is_replayed_as_often_as_launched;
mod bodies_run_as_their_value_says;
mod branches_overlap_and_join;
mod built_graphs_do_what_their_nodes_say;
mod callbacks_tell_of_graphs;
mod execs_are_changed_in_place;
mod faults_leave_their_traces;
mod memory_is_allocated_and_freed_by_nodes;
mod records_name_the_nodes_of_the_exec;
mod wrong_captures_give_cudas_codes;
