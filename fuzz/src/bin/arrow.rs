//! Any bytes as the files of a run directory: each as its name, its length in four bytes, and itself.
#![no_main]

use std::collections::BTreeMap;

use lineage_arrow::Reader;

/// Entries that are looked at: more take long and find nothing more.
const ENTRIES: usize = 100_000;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut files = BTreeMap::new();
    let mut rest = input;
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        let name = String::from_utf8_lossy(&rest[..end]).into_owned();
        let Some((length, after)) = rest[end + 1..].split_first_chunk() else {
            break;
        };
        let length = (u32::from_le_bytes(*length) as usize).min(after.len());
        let (bytes, after) = after.split_at(length);
        files.insert(name, bytes.to_vec());
        rest = after;
    }
    match Reader::in_memory(files) {
        Ok(mut reader) => {
            for entry in reader.by_ref().take(ENTRIES) {
                if let Err(error) = entry {
                    // The message is what a person reads, so it must be writable.
                    assert!(!error.to_string().is_empty());
                }
            }
            let _ = reader.summary().notes();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
