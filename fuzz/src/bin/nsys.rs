//! Any bytes as an SQLite export of Nsight Systems.
#![no_main]

use lineage_fuzz::{follow, settings};
use lineage_nsys::from_bytes;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    match from_bytes(input, settings(input), None, &mut |_| {}) {
        Ok(recording) => follow(&recording),
        // The message is what a person reads, so it must be writable.
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
