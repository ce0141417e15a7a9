//! Traces written by the tests, and the real ones of the repository.
#![allow(dead_code, reason = "each test uses its share")]

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use lineage_core::observation::{ApiRecord, Event, EventRecord, Operation, Scope, Synchronization};
use lineage_import::{Recording, Skip};
use lineage_kineto::{ImportError, Settings, import_from};

/// Imports this text with these settings.
pub(crate) fn import_with(text: &[u8], settings: Settings) -> Result<Recording, ImportError> {
    import_from(text, settings, &mut |_| {})
}

/// Imports this text.
pub(crate) fn import(text: impl AsRef<[u8]>) -> Result<Recording, ImportError> {
    import_with(text.as_ref(), Settings::default())
}

/// Imports a sound trace.
pub(crate) fn sound(text: impl AsRef<[u8]>) -> Recording {
    import(text).expect("a sound trace")
}

/// A trace of these events, in an object with these other members before the list.
pub(crate) fn trace(members: &str, events: &[&str]) -> String {
    format!(
        "{{{members}\n\"traceEvents\": [\n{}\n]}}",
        events.join(",\n")
    )
}

/// The text as one member of a gzip file.
pub(crate) fn gzip(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_ref()).expect("room in memory");
    encoder.finish().expect("room in memory")
}

/// All that a recording has seen.
pub(crate) fn events(recording: &Recording) -> Vec<Event> {
    let slices = recording.slices(usize::MAX).expect("records in memory");
    slices
        .flat_map(|slice| slice.expect("records in memory").observations)
        .map(|observation| observation.event)
        .collect()
}

/// Its calls, by correlation id.
pub(crate) fn calls(recording: &Recording) -> Vec<ApiRecord> {
    let seen = events(recording).into_iter();
    seen.filter_map(|event| match event {
        Event::Api(call) => Some(call),
        _ => None,
    })
    .collect()
}

/// Its operations, by correlation id.
pub(crate) fn operations(recording: &Recording) -> Vec<Operation> {
    let seen = events(recording).into_iter();
    seen.filter_map(|event| match event {
        Event::Operation(operation) => Some(operation),
        _ => None,
    })
    .collect()
}

/// Its waits, by correlation id.
pub(crate) fn waits(recording: &Recording) -> Vec<Synchronization> {
    let seen = events(recording).into_iter();
    seen.filter_map(|event| match event {
        Event::Synchronization(wait) => Some(wait),
        _ => None,
    })
    .collect()
}

/// Its records of events, by correlation id.
pub(crate) fn event_records(recording: &Recording) -> Vec<EventRecord> {
    let seen = events(recording).into_iter();
    seen.filter_map(|event| match event {
        Event::EventRecord(record) => Some(record),
        _ => None,
    })
    .collect()
}

/// The scopes of its candidate epochs.
pub(crate) fn scopes(recording: &Recording) -> Vec<Scope> {
    let seen = events(recording).into_iter();
    seen.filter_map(|event| match event {
        Event::Scope(scope) => Some(scope),
        _ => None,
    })
    .collect()
}

/// What it could not use, by reason.
pub(crate) fn skipped(recording: &Recording) -> Vec<(Skip, u64)> {
    let skipped = recording.holdings().skipped.iter();
    skipped.map(|(why, count)| (*why, *count)).collect()
}

/// Calls, kernels, copies and sets.
pub(crate) fn counts(recording: &Recording) -> [u64; 4] {
    let holdings = recording.holdings();
    [
        holdings.sum(|process| process.api_calls),
        holdings.sum(|process| process.kernels),
        holdings.sum(|process| process.memcpys),
        holdings.sum(|process| process.memsets),
    ]
}

/// The small real recordings, which are in the repository.
pub(crate) fn in_repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces")
}

/// The folder with all real recordings. Where it is absent the test says so, and fails if
/// `LINEAGE_REQUIRE` has `traces`.
pub(crate) fn all() -> Option<PathBuf> {
    let named = std::env::var_os("LINEAGE_TRACES").filter(|path| !path.is_empty());
    let folder = named.map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces"),
        PathBuf::from,
    );
    if folder.join("kineto").is_dir() {
        return Some(folder);
    }
    let required = std::env::var("LINEAGE_REQUIRE").unwrap_or_default();
    assert!(
        !required.split(',').any(|part| part.trim() == "traces"),
        "no recordings in {}, and LINEAGE_REQUIRE asks for traces",
        folder.display()
    );
    eprintln!(
        "skipped: no recordings in {} (LINEAGE_TRACES names their folder)",
        folder.display()
    );
    None
}
