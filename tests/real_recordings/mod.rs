//! Real recordings, and what is known to be in them.
#![allow(dead_code, reason = "each test uses its share")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lineage_core::correlator::{Correlator, Limits};
use lineage_core::row::Row;
use lineage_import::{Recording, Settings};
use lineage_validator::{Conclusions, Options, Validation, validate};

/// What is known of one recording: a row of `tests/traces/expected.tsv`, by column.
#[derive(Debug, Clone)]
pub(crate) struct Expected(BTreeMap<String, String>);

impl Expected {
    /// A count.
    pub(crate) fn count(&self, column: &str) -> u64 {
        self.0[column].parse().expect("a count")
    }
}

/// A table with a header, by the column `file`.
pub(crate) fn table(path: &Path) -> BTreeMap<String, Expected> {
    let text = std::fs::read_to_string(path).expect("a table of what is expected");
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
    let header: Vec<String> = lines.next().expect("a header").collect();
    lines
        .map(|line| Expected(header.iter().cloned().zip(line).collect()))
        .map(|row| (row.0["file"].clone(), row))
        .collect()
}

/// What is known of every recording.
pub(crate) fn expected() -> BTreeMap<String, Expected> {
    table(&in_repository().join("expected.tsv"))
}

fn in_repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces")
}

/// The folder with all recordings. Where it is absent the test says so, and fails if `LINEAGE_REQUIRE`
/// has `traces`.
pub(crate) fn all_recordings() -> Option<PathBuf> {
    let named = std::env::var_os("LINEAGE_TRACES").filter(|path| !path.is_empty());
    let folder = named.map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/traces"),
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

/// A recording, by its path in the folder of all. The small ones are in the repository.
pub(crate) fn path(file: &str) -> Option<PathBuf> {
    let here = in_repository().join(file);
    if here.is_file() {
        return Some(here);
    }
    all_recordings().map(|folder| folder.join(file))
}

/// Imports a recording with the importer that its folder names.
pub(crate) fn import(path: &Path, settings: Settings) -> Recording {
    if path
        .extension()
        .is_some_and(|extension| extension == "sqlite")
    {
        lineage_nsys::import(path, settings, &mut |_| {}).expect("a sound database")
    } else {
        lineage_kineto::import(path, settings.into(), &mut |_| {}).expect("a sound trace")
    }
}

/// A recording, joined and validated.
pub(crate) struct Joined {
    /// The correlator's rows, of all slices.
    pub(crate) rows: Vec<Row>,
    /// What the validator says, of all slices.
    pub(crate) validation: Validation,
    /// How many slices there were.
    pub(crate) slices: usize,
}

/// Joins and validates a recording as the command does, in slices of about so many records.
pub(crate) fn join(recording: &Recording, slice_records: usize) -> Joined {
    let mut joined: Option<Joined> = None;
    let options = Options::default();
    for slice in recording.slices(slice_records).expect("temporary files") {
        let slice = slice.expect("temporary files");
        let mut correlator = Correlator::new(Limits::default());
        for observation in &slice.observations {
            correlator.observe(observation);
        }
        correlator.end();
        let (mut rows, mut faults) = (Vec::new(), Vec::new());
        correlator.drain(&mut rows, &mut faults);
        let conclusions = Conclusions {
            rows: &rows,
            faults: &faults,
        };
        let validation = validate(&slice.observations, Some(conclusions), &options);
        match &mut joined {
            None => {
                joined = Some(Joined {
                    rows,
                    validation,
                    slices: 1,
                });
            }
            Some(joined) => {
                joined.rows.extend(rows);
                joined.validation.merge(validation, options.listed_per_code);
                joined.slices += 1;
            }
        }
    }
    joined.expect("a recording has a slice")
}
