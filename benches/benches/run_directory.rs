//! What a ledger costs: bytes per row, and the writer's CPU time per entry, as a run directory, as JSON
//! lines, and as SQLite tables of the same entries.
//!
//! Counts the thread's own CPU time, so that a busy machine disturbs less. Prints a table. Budget: at most 24 bytes per row of the
//! table `launches`. Reads the JSON-lines ledger that LINEAGE_BENCH_LEDGER names: `inference_server --out DIR` writes one.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use launch_lineage::core::ledger::{self, Entry};
use launch_lineage::core::source::{SessionInfo, Sink};
use lineage_arrow::export::Sqlite;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(ledger) = std::env::var_os("LINEAGE_BENCH_LEDGER") else {
        println!("run_directory: LINEAGE_BENCH_LEDGER names no ledger; nothing is measured");
        return Ok(());
    };
    let read = ledger::Reader::new(BufReader::new(File::open(ledger)?));
    let entries: Vec<Entry> = read.collect::<Result<_, _>>()?;
    let rows = entries
        .iter()
        .filter(|of| matches!(of, Entry::Row(_)))
        .count();
    println!("{} entries, {rows} of them rows\n", entries.len());
    println!(
        "{:<14} {:>12} {:>14} {:>14}",
        "form", "bytes", "bytes / entry", "ns CPU / entry"
    );

    let folder = std::env::temp_dir().join(format!("lineage-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let directory = folder.join("run.lineage");
    let lines = folder.join("run.jsonl");
    let database = folder.join("run.sqlite");
    let said = |form: &str, bytes: u64, ns: u64| {
        let many = entries.len().max(1) as f64;
        let (each, cpu) = (bytes as f64 / many, ns as f64 / many);
        println!("{form:<14} {bytes:>12} {each:>14.1} {cpu:>14.0}");
    };

    let began = cpu_ns();
    give(lineage_arrow::Writer::new(&directory), &entries)?;
    let took = cpu_ns() - began;
    said("run directory", size(&directory)?, took);

    let began = cpu_ns();
    give(ledger::Writer::new(File::create(&lines)?), &entries)?;
    let took = cpu_ns() - began;
    said("JSON lines", size(&lines)?, took);

    let began = cpu_ns();
    let mut sqlite = Sqlite::create(&database)?;
    for entry in &entries {
        sqlite.add(entry)?;
    }
    sqlite.finish()?;
    let took = cpu_ns() - began;
    said("SQLite", size(&database)?, took);

    let mut launches = 0;
    for segment in fs::read_dir(&directory)? {
        let file = segment?.path().join("launches.arrows");
        launches += fs::metadata(file).map_or(0, |of| of.len());
    }
    println!(
        "\nlaunches: {:.1} bytes per row",
        launches as f64 / rows.max(1) as f64
    );
    fs::remove_dir_all(folder)?;
    Ok(())
}

fn give(mut sink: impl Sink, entries: &[Entry]) -> Result<(), Box<dyn std::error::Error>> {
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
