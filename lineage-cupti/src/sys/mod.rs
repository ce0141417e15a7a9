//! NVIDIA's CUPTI, raw: what its headers declare, in types that no version of it can break.
//!
//! Three rules, each bought with somebody's undefined behaviour:
//!
//! * **Codes and kinds are `u32`**, never a Rust `enum`. A newer library answers with values that
//!   this crate does not know.
//! * **Records are bytes, read by offset.** They are packed to 8 bytes and grow at the end with
//!   each version of the library, so there is no struct to cast to and no reference into one.
//! * **The library is found at run time**, and what is missing is an error value that names it:
//!   the library ([`LoadError::NotFound`]), a function ([`LoadError::SymbolMissing`]), or a version
//!   this crate can work with ([`LoadError::TooOld`]).
//!
//! All numbers are those of the headers `cupti_activity.h`, `cupti_callbacks.h` and
//! `cupti_result.h` of CUDA 12.9 and 13.5; the crate's layout test compiles a C program against
//! them and compares.

pub mod codes;
pub mod layout;

#[cfg(target_os = "linux")]
mod functions;
#[cfg(target_os = "linux")]
mod library;

#[cfg(target_os = "linux")]
pub use functions::{
    ApiCallback, BufferCompleted, BufferRequested, Functions, NextRecord, SYMBOLS, Subscriber,
    Symbol, TimestampCallback,
};
#[cfg(target_os = "linux")]
pub use library::{LIBRARY_VARIABLE, Library, LoadError};
