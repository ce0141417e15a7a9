//! What a ledger costs: bytes per row, and the writer's CPU time per entry, as a run directory, as JSON
//! lines, and as SQLite tables of the same entries.
//!
//! Counts the thread's own CPU time, so that a busy machine disturbs less, and takes the least of five rounds, in
//! each of which every form is written once. Prints a table. Budget: at most 24 bytes per row of the table
//! `launches`. Reads the JSON-lines ledger that LINEAGE_BENCH_LEDGER names: `inference_server --out DIR` writes one.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use launch_lineage::core::id::HostNanos;
use launch_lineage::core::ledger::{self, Entry};
use launch_lineage::core::source::{SessionInfo, Sink};
use lineage_arrow::Table;
use lineage_arrow::export::Sqlite;

const ROUNDS: usize = 5;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// A form, and what writes the entries in it to a path.
type Form = (&'static str, fn(&Path, &[Entry]) -> Outcome<()>);

const FORMS: [Form; 3] = [
    ("run directory", |path, entries| {
        give(lineage_arrow::Writer::new(path), entries)
    }),
    ("JSON lines", |path, entries| {
        give(ledger::Writer::new(File::create(path)?), entries)
    }),
    ("SQLite", |path, entries| {
        let mut sqlite = Sqlite::create(path)?;
        for entry in entries {
            sqlite.add(entry)?;
        }
        sqlite.finish()?;
        Ok(())
    }),
];

fn main() -> Outcome<()> {
    let Some(ledger) = std::env::var_os("LINEAGE_BENCH_LEDGER") else {
        println!("run_directory: LINEAGE_BENCH_LEDGER names no ledger; nothing is measured");
        return Ok(());
    };
    let read = ledger::Reader::new(BufReader::new(File::open(ledger)?));
    let entries: Vec<Entry> = read.collect::<Result<_, _>>()?;
    let rows = entries.iter().filter(|of| matches!(of, Entry::Row(_)));
    let rows = rows.count();
    let ran_ns = span_ns(&entries);
    println!(
        "{} entries, {rows} of them rows, of a run of {:.1} s\n",
        entries.len(),
        ran_ns as f64 / 1e9
    );

    let folder = std::env::temp_dir().join(format!("lineage-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let mut least = [u64::MAX; FORMS.len()];
    let mut bytes = [0; FORMS.len()];
    let mut launches = 0;
    for _ in 0..ROUNDS {
        for (at, (name, write)) in FORMS.into_iter().enumerate() {
            let path = folder.join(name.replace(' ', "_"));
            let began = cpu_ns();
            write(&path, &entries)?;
            least[at] = least[at].min(cpu_ns() - began);
            bytes[at] = size(&path)?;
            if path.is_dir() {
                launches = size_of_table(&path, Table::Launches)?;
                fs::remove_dir_all(&path)?;
            } else {
                fs::remove_file(&path)?;
            }
        }
    }
    fs::remove_dir_all(folder)?;

    println!(
        "{:<14} {:>12} {:>8} {:>14} {:>16} {:>8} {:>14}",
        "form", "bytes", "", "bytes / entry", "ns CPU / entry", "", "of one core"
    );
    let many = entries.len().max(1) as f64;
    for (at, (name, _)) in FORMS.into_iter().enumerate() {
        let (size, cpu) = (bytes[at] as f64, least[at] as f64);
        println!(
            "{name:<14} {size:>12} {:>7.1}x {:>14.1} {:>16.0} {:>7.1}x {:>12.2} %",
            size / bytes[0] as f64,
            size / many,
            cpu / many,
            cpu / least[0] as f64,
            cpu * 100.0 / ran_ns.max(1) as f64,
        );
    }
    println!(
        "\nlaunches: {:.1} bytes per row",
        launches as f64 / rows.max(1) as f64
    );
    Ok(())
}

/// From the first time that a row has to the last.
fn span_ns(entries: &[Entry]) -> u64 {
    let rows = entries.iter().filter_map(|entry| match entry {
        Entry::Row(row) => Some(row.stages),
        _ => None,
    });
    let times: Vec<HostNanos> = rows
        .flat_map(|of| [of.declared.at(), of.api_enter.at(), of.end.at()])
        .flatten()
        .collect();
    let first = times.iter().min().map_or(0, |at| at.0);
    times.iter().max().map_or(0, |at| at.0 - first)
}

fn give(mut sink: impl Sink, entries: &[Entry]) -> Outcome<()> {
    for entry in entries {
        match entry {
            Entry::Header(of) => {
                sink.begin(&SessionInfo::new(of.process, &*of.service, of.started))?;
            }
            Entry::Observation(of) => sink.observations(std::slice::from_ref(of))?,
            Entry::Row(of) => sink.rows(std::slice::from_ref(of), &[])?,
            Entry::Fault(of) => sink.rows(&[], std::slice::from_ref(of))?,
            _ => {}
        }
    }
    Ok(sink.finish()?)
}

/// Bytes of a table in all segments.
fn size_of_table(directory: &Path, table: Table) -> std::io::Result<u64> {
    let mut bytes = 0;
    for segment in fs::read_dir(directory)? {
        let file = segment?.path().join(format!("{}.arrows", table.name()));
        bytes += fs::metadata(file).map_or(0, |of| of.len());
    }
    Ok(bytes)
}

/// Bytes of a file, or of all that is in a folder.
fn size(path: &Path) -> std::io::Result<u64> {
    if !path.is_dir() {
        return Ok(fs::metadata(path)?.len());
    }
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        bytes += size(&entry?.path())?;
    }
    Ok(bytes)
}

/// CPU time of this thread.
fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
