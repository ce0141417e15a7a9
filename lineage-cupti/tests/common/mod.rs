//! What the tests of this crate share.
#![cfg(target_os = "linux")]
#![allow(dead_code, reason = "each test uses its share")]

use std::path::PathBuf;

/// A part that the repository does not hold, by the environment variable that names it. Where it is
/// absent the test is skipped with a message, or fails if `LINEAGE_REQUIRE` has `required_as`.
pub(crate) fn part(variable: &str, required_as: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable).filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    let required = std::env::var("LINEAGE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|part| part.trim() == required_as),
        "{variable} is not set, and LINEAGE_REQUIRE asks for {required_as}: eval \"$(scripts/fetch-parts)\""
    );
    eprintln!("skipped: {variable} is not set (scripts/fetch-parts sets it)");
    None
}

#[cfg(feature = "record")]
pub(crate) mod gpu;
#[cfg(feature = "record")]
pub(crate) mod graphs;
