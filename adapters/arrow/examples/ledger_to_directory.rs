//! A JSON-lines ledger as a run directory, and what that costs:
//!
//! ```text
//! cargo run --release -p lineage-arrow --example ledger_to_directory -- ledger.jsonl llm.lineage
//! ```

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Instant;

use lineage_arrow::{Reader, Table, Writer};
use lineage_core::ledger::{self, Entry};
use lineage_core::source::{SessionInfo, Sink};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: ledger_to_directory FROM.jsonl TO.lineage".into());
    };
    let entries: Vec<Entry> =
        ledger::Reader::new(BufReader::new(File::open(&from)?)).collect::<Result<_, _>>()?;

    let began = Instant::now();
    let mut writer = Writer::new(&to).replace(true);
    for entry in &entries {
        match entry {
            Entry::Header(of) => {
                writer.begin(&SessionInfo::new(of.process, &*of.service, of.started))?;
            }
            Entry::Observation(of) => writer.observations(std::slice::from_ref(of))?,
            Entry::Row(of) => writer.rows(std::slice::from_ref(of), &[])?,
            Entry::Fault(of) => writer.rows(&[], std::slice::from_ref(of))?,
            _ => {}
        }
    }
    writer.finish()?;
    let wrote = began.elapsed();

    let began = Instant::now();
    let mut read = 0_usize;
    for entry in Reader::open(&to)? {
        entry?;
        read += 1;
    }
    let (many, ns) = (
        entries.len(),
        wrote.as_nanos() / entries.len().max(1) as u128,
    );
    println!(
        "{many} entries written, {ns} ns each; {read} read in {:?}",
        began.elapsed()
    );
    let mut all = 0;
    for table in Table::ALL {
        let file = Path::new(&to).join(format!("000001/{}.arrows", table.name()));
        let bytes = std::fs::metadata(file).map_or(0, |of| of.len());
        all += bytes;
        println!("{:>14} {bytes:>10} bytes", table.name());
    }
    println!(
        "{:>14} {all:>10} bytes; JSON lines {}",
        "all",
        std::fs::metadata(&from)?.len()
    );
    let rows = entries
        .iter()
        .filter(|of| matches!(of, Entry::Row(_)))
        .count();
    println!("{rows} rows");
    Ok(())
}
