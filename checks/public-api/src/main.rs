//! Prints the public interface that a rustdoc JSON file describes, one item a line, sorted.
//!
//! To stay readable it leaves out what follows from other lines: blanket implementations, the methods of derived traits (that
//! the trait is implemented is a line), and auto traits, except where a type is *not* `Send` or `Sync`, which may be a promise.

use std::error::Error;
use std::io::Write as _;

const AUTO_TRAITS: [&str; 6] = [
    "core::marker::Freeze",
    "core::marker::Send",
    "core::marker::Sync",
    "core::marker::Unpin",
    "core::marker::UnsafeUnpin",
    "core::panic::unwind_safe::",
];
const DERIVED_METHODS: [&str; 8] = [
    "clone",
    "cmp",
    "default",
    "drop",
    "eq",
    "fmt",
    "hash",
    "partial_cmp",
];

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or("the path of a rustdoc JSON file is missing")?;
    let api = public_api::Builder::from_rustdoc_json(path)
        .omit_blanket_impls(true)
        .build()?;
    let mut out = std::io::stdout().lock();
    for item in api.items() {
        let line = item.to_string();
        if says_something(&line) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn says_something(line: &str) -> bool {
    if line.starts_with("impl") {
        let denied = line.contains("!core::marker::Send") || line.contains("!core::marker::Sync");
        let auto = AUTO_TRAITS.iter().any(|name| line.contains(name));
        return denied || !auto && !line.contains("StructuralPartialEq");
    }
    let Some(method) = line.strip_prefix("pub fn ") else {
        return true;
    };
    let path = method.split(['(', '<']).next().unwrap_or(method);
    let (_, name) = path.rsplit_once("::").unwrap_or(("", path));
    !DERIVED_METHODS.contains(&name)
}
