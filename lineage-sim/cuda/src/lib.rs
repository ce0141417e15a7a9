//! The simulated `libcuda.so` of lineage-sim. All state of the simulator lives in this library.
//!
//! * `driver`: the `cu*` functions; `call` is what happens around each of them.
//! * `device`: drives the model of the device (the crate `lineage-sim-model`); `operation`: what is done.
//! * `hosts`: the virtual clock, and the order of the calls of several threads.
//! * `cupti`: CUPTI's behaviour; the simulated `libcupti.so` only forwards to it.
//! * `graph`: templates, captures, execs and their launches; `requests`: what calls and nodes ask for.
//! * `interface`: registration of kernels, and the truth, for the loader only.
#![cfg(target_os = "linux")]

#[path = "../../src/abi.rs"]
mod abi;
mod call;
mod callback_ids;
mod clock;
mod config;
mod cupti;
mod device;
mod driver;
mod faults;
mod graph;
mod handles;
mod hosts;
mod interface;
mod kernels;
mod memory;
mod objects;
mod operation;
mod ptx;
mod requests;
mod result;
mod submit;
mod sync;
mod threads;
mod truth;
