//! The inference server.
fn main() {}
