//! A bar on standard error for work that takes a while, hidden where that is no terminal.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lineage_validator::printable;

use crate::text::counted;

/// Files below this many bytes are read before a bar would be seen.
const WORTH_A_BAR: u64 = 8 << 20;
/// Rows below this many are judged before a spinner would be seen.
const WORTH_A_SPINNER: usize = 100_000;

/// How far the work on a file has come.
pub(crate) struct Progress {
    bar: ProgressBar,
    name: String,
}

impl Progress {
    /// A bar for a file of so many bytes.
    pub(crate) fn of(path: &Path, bytes: u64) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = printable(&name.to_string_lossy());
        let bar = if bytes < WORTH_A_BAR {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(bytes)
        };
        let template = "{wide_msg} {bar:20} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(format!("reading {name}"));
        Self { bar, name }
    }

    /// For work on so many rows that does not say how far it is: that it goes on is seen.
    pub(crate) fn judging(path: &Path, rows: usize) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let name = printable(&name.to_string_lossy());
        if rows < WORTH_A_SPINNER {
            let bar = ProgressBar::hidden();
            return Self { bar, name };
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{wide_msg} {spinner} {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(format!(
            "judging {} of {name}",
            counted(rows as u64, "row", "rows")
        ));
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar, name }
    }

    /// So many bytes of so many were read.
    pub(crate) fn bytes(&self, read: u64, of: Option<u64>) {
        if let Some(of) = of {
            self.bar.set_length(of);
        }
        self.bar.set_position(read);
    }

    /// From here on records are counted, as many as there are.
    pub(crate) fn now_joining(&self, records: u64) {
        let template = "{wide_msg} {bar:20} {human_pos} of {human_len} records, {eta} to go";
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.set_message(format!("joining {}", self.name));
        self.bar.set_length(records);
        self.bar.set_position(0);
        self.bar.reset_eta();
    }

    /// So many records more are joined.
    pub(crate) fn joined(&self, records: u64) {
        self.bar.inc(records);
    }

    /// Counts what is read through it.
    pub(crate) fn reader<R: std::io::Read>(&self, reader: R) -> impl std::io::Read + use<R> {
        self.bar.wrap_read(reader)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
