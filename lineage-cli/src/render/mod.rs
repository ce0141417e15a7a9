//! A validation as text: tables for people, one JSON object for programs.

mod json;
mod tables;

pub(crate) use json::json;
pub(crate) use tables::tables;
