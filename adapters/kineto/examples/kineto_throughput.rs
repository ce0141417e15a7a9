//! How fast a trace is imported, and in how much memory:
//! `cargo run --release -p lineage-kineto --example kineto_throughput -- FILE…`
//!
//! Megabytes are of the decompressed text. The peak of memory is the whole process's (`VmHWM` of
//! Linux), so give one file if it matters.

use std::io::{self, Read};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    if files.is_empty() {
        return Err("give at least one trace: FILE…".into());
    }
    for file in files {
        let began = Instant::now();
        let recording =
            lineage_kineto::import(&file, lineage_kineto::Settings::default(), &mut |_| {})?;
        let took = began.elapsed();
        let holdings = recording.holdings();
        let text_bytes = text_bytes(&file)?;
        #[expect(clippy::cast_precision_loss, reason = "for people to read")]
        let megabytes = text_bytes as f64 / 1e6;
        println!(
            "{}: {megabytes:.1} MB of text in {:.1} ms, {:.0} MB/s, {} calls, {} operations, peak of memory {}",
            std::path::Path::new(&file).display(),
            took.as_secs_f64() * 1e3,
            megabytes / took.as_secs_f64(),
            holdings.sum(|process| process.api_calls),
            holdings.sum(|process| process.operations()),
            peak_of_memory().unwrap_or_else(|| "unknown".to_owned()),
        );
    }
    Ok(())
}

/// The size of a file's text, decompressed.
fn text_bytes(file: &std::ffi::OsStr) -> io::Result<u64> {
    let mut magic = [0; 2];
    let _ = std::fs::File::open(file)?.read(&mut magic)?;
    let mut file = std::fs::File::open(file)?;
    if magic == [0x1f, 0x8b] {
        io::copy(
            &mut flate2::read::MultiGzDecoder::new(file),
            &mut io::sink(),
        )
    } else {
        io::copy(&mut file, &mut io::sink())
    }
}

fn peak_of_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.trim_start_matches("VmHWM:").trim().to_owned())
}
