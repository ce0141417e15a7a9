//! Any bytes as a Kineto trace, plain or compressed.
#![no_main]

use lineage_fuzz::{follow, settings};
use lineage_kineto::{Settings, import_from};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // A small gzip file may hold a thousand times its size; more text than this takes long and finds nothing more.
    let settings = Settings::default()
        .collect(settings(input))
        .text_bytes_at_most(4 << 20);
    match import_from(input, settings, &mut |_| {}) {
        Ok(recording) => follow(&recording),
        // The message is what a person reads, so it must be writable, and what was read before counts.
        Err(error) => {
            assert!(!error.to_string().is_empty());
            if let Some(partial) = error.into_partial() {
                follow(&partial);
            }
        }
    }
});
