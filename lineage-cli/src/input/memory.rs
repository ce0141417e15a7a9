//! How much memory a ledger takes, said before it is taken.

use std::path::Path;

use lineage_arrow::Table;
use lineage_core::observation::Observation;
use lineage_core::row::Row;

use super::ledger::Wanted;
use crate::part::Within;
use crate::text::printable_path;

/// Below this many bytes nothing is said.
const WORTH_SAYING: u64 = 2 << 30;
/// What judging takes beside what is judged, in bytes a row and a call's observation, as measured.
const A_ROW: u64 = 450;
const AN_OBSERVATION: u64 = 60;
/// Bytes of memory for each byte of JSON lines, as measured of 1.1 million entries: 1.1 by `diagnose`, and
/// this by `validate`.
const OF_JSON: f64 = 1.3;

/// What a ledger takes, as far as it can be told before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Need {
    bytes: u64,
}

impl Need {
    /// What is held of a ledger and worked out of it, where that much of it is read.
    pub(super) fn of(file: &Path, wanted: &Wanted) -> Self {
        if !file.is_dir() {
            let length = std::fs::metadata(file).map_or(0, |of| of.len());
            // What a part takes is not known before it is read.
            let bytes = if wanted.between.is_empty() {
                (length as f64 * OF_JSON) as u64
            } else {
                0
            };
            return Self { bytes };
        }
        let Ok(reader) = lineage_arrow::Reader::open(file) else {
            return Self::default();
        };
        let mut bytes = 0_u64;
        for (directory, survey) in reader.survey().iter().enumerate() {
            let between = wanted.between.get(directory);
            let read = survey.batches.iter().filter(|batch| {
                let outside = batch.times.zip(between);
                outside.is_none_or(|(times, (from, to))| times.meets(*from, *to))
            });
            for batch in read {
                for table in Table::ALL {
                    let each = match table {
                        Table::Names => 0,
                        _ if wanted.without.contains(&table) => 0,
                        Table::Launches => size_of::<Row>() as u64 + A_ROW,
                        _ => size_of::<Observation>() as u64 + AN_OBSERVATION,
                    };
                    bytes = bytes.saturating_add(batch.entries_of(table).saturating_mul(each));
                }
            }
        }
        Self { bytes }
    }

    /// Says on standard error what a part takes, where that is much, and how to do with less.
    pub(super) fn warn(self, file: &Path, within: &Within) {
        if within.is_whole() {
            let less = "`--last 10m` looks at the end of it only";
            self.say(file, "the whole of it takes", less);
        } else {
            self.say(file, "this part of it takes", "a shorter one takes less");
        }
    }

    /// The same of what can only be looked at as a whole.
    pub(super) fn warn_of_whole(self, file: &Path) {
        let less =
            "`lineage diagnose --last 10m` and `lineage show` look at it without holding it all";
        self.say(file, "validating it takes", less);
    }

    fn say(self, file: &Path, what: &str, less: &str) {
        if self.bytes < WORTH_SAYING {
            return;
        }
        let free = match available() {
            Some(free) if free < self.bytes => format!(
                " and {} are free: the system may end this command before it is done",
                size(free)
            ),
            Some(free) => format!(", and {} are free", size(free)),
            None => String::new(),
        };
        let said = format!(
            "{}: {what} about {} of memory{free}; {less}",
            printable_path(file),
            size(self.bytes)
        );
        // Where nobody listens, nothing is to be done about it.
        _ = std::io::Write::write_fmt(&mut anstream::stderr(), format_args!("{said}\n"));
    }
}

/// Bytes in a person's unit.
fn size(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 30;
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

/// Memory that the system can give without taking it from others, where it says so.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_gibibytes() {
        assert_eq!(size(3 << 30), "3.0 GiB");
        assert_eq!(size((5 << 30) / 2), "2.5 GiB");
        assert_eq!(size(u64::MAX), "1717986918.3 GiB");
    }
}
