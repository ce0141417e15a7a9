//! Records sorted in bounded memory: what does not fit is written to temporary files in sorted runs,
//! and merged from there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Write};

use bytemuck::Zeroable;

use crate::entry::Entry;
use crate::error::CollectError;

/// Entries of a run that are read at once.
const READ_AT_ONCE: usize = 512;

/// Runs that are merged at once; more are merged in several passes.
const MERGED_AT_ONCE: usize = 256;

/// What entries are sorted by.
pub(crate) type Order = fn(&Entry) -> [u64; 3];

/// By process, correlation id, what it is of, and time.
pub(crate) fn by_correlation(entry: &Entry) -> [u64; 3] {
    let id = u64::from(entry.process) << 32 | u64::from(entry.rank);
    [id, entry.sort() as u64, entry.start]
}

/// By process and time; of those that begin at one time, the longest first.
pub(crate) fn by_time(entry: &Entry) -> [u64; 3] {
    let length = entry.end.saturating_sub(entry.start);
    [u64::from(entry.process), entry.start, u64::MAX - length]
}

/// Takes entries in any order.
#[derive(Debug)]
pub(crate) struct Spool {
    order: Order,
    in_memory: usize,
    held: Vec<Entry>,
    runs: Vec<Run>,
}

/// Entries in order, in a file.
#[derive(Debug)]
struct Run {
    file: File,
    entries: u64,
}

impl Spool {
    pub(crate) fn new(order: Order, in_memory: usize) -> Self {
        Self {
            order,
            in_memory: in_memory.max(1),
            held: Vec::new(),
            runs: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, entry: Entry) -> Result<(), CollectError> {
        if self.held.len() >= self.in_memory {
            self.spill()?;
        }
        self.held.push(entry);
        Ok(())
    }

    fn sort_held(&mut self) {
        // Stable, so that records that are alike stay in the file's order.
        self.held.sort_by_key(self.order);
    }

    fn spill(&mut self) -> Result<(), CollectError> {
        self.sort_held();
        let mut file = tempfile::tempfile().map_err(CollectError::spill("made"))?;
        file.write_all(bytemuck::cast_slice(&self.held))
            .map_err(CollectError::spill("written"))?;
        self.runs.push(Run {
            file,
            entries: self.held.len() as u64,
        });
        self.held.clear();
        if self.runs.len() >= MERGED_AT_ONCE {
            self.merge_runs()?;
        }
        Ok(())
    }

    /// Makes one run of all, so that their number stays bounded.
    fn merge_runs(&mut self) -> Result<(), CollectError> {
        let mut file = tempfile::tempfile().map_err(CollectError::spill("made"))?;
        let mut merged = Merged::new(self.order, &[], &self.runs, 0)?;
        let mut batch: Vec<Entry> = Vec::with_capacity(READ_AT_ONCE);
        let mut entries = 0;
        loop {
            let next = merged.next().transpose()?;
            batch.extend(next);
            if batch.len() >= READ_AT_ONCE || (next.is_none() && !batch.is_empty()) {
                entries += batch.len() as u64;
                file.write_all(bytemuck::cast_slice(&batch))
                    .map_err(CollectError::spill("written"))?;
                batch.clear();
            }
            if next.is_none() {
                break;
            }
        }
        drop(merged);
        self.runs = vec![Run { file, entries }];
        Ok(())
    }

    /// All entries, to be read in order, with their times counted from `base_ns` earlier.
    pub(crate) fn finish(mut self, base_ns: u64) -> Sorted {
        self.sort_held();
        self.held.shrink_to_fit();
        Sorted {
            order: self.order,
            held: self.held,
            runs: self.runs,
            base_ns,
        }
    }
}

/// Entries that can be read in order, as often as wanted.
#[derive(Debug)]
pub(crate) struct Sorted {
    order: Order,
    held: Vec<Entry>,
    runs: Vec<Run>,
    base_ns: u64,
}

impl Sorted {
    pub(crate) fn iter(&self) -> Result<Merged<'_>, CollectError> {
        Merged::new(self.order, &self.held, &self.runs, self.base_ns)
    }
}

/// The entries of several runs, in order.
pub(crate) struct Merged<'a> {
    order: Order,
    held: std::slice::Iter<'a, Entry>,
    runs: Vec<RunReader<'a>>,
    /// The order of the next of each, and whose it is.
    next: BinaryHeap<Reverse<([u64; 3], usize)>>,
    heads: Vec<Entry>,
    base_ns: u64,
}

struct RunReader<'a> {
    file: &'a File,
    /// Where in the file the next read begins.
    at: u64,
    left: u64,
    read: std::vec::IntoIter<Entry>,
}

/// Reads from a place of a file without moving its position, which other readers share.
#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

/// Reads from a place of a file; the system moves its position all the same, so it is never used.
#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = &mut bytes[read..];
        at += read as u64;
    }
    Ok(())
}

impl RunReader<'_> {
    fn next(&mut self) -> Result<Option<Entry>, CollectError> {
        if let Some(entry) = self.read.next() {
            return Ok(Some(entry));
        }
        if self.left == 0 {
            return Ok(None);
        }
        let count = self.left.min(READ_AT_ONCE as u64);
        let mut entries = vec![Entry::zeroed(); usize::try_from(count).unwrap_or(READ_AT_ONCE)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut entries);
        read_exact_at(self.file, bytes, self.at).map_err(CollectError::spill("read"))?;
        self.at += bytes.len() as u64;
        self.left -= count;
        self.read = entries.into_iter();
        Ok(self.read.next())
    }
}

impl<'a> Merged<'a> {
    fn new(
        order: Order,
        held: &'a [Entry],
        runs: &'a [Run],
        base_ns: u64,
    ) -> Result<Self, CollectError> {
        let readers = runs.iter().map(|run| RunReader {
            file: &run.file,
            at: 0,
            left: run.entries,
            read: Vec::new().into_iter(),
        });
        let mut merged = Self {
            order,
            held: held.iter(),
            runs: readers.collect(),
            next: BinaryHeap::new(),
            heads: vec![Entry::zeroed(); runs.len() + 1],
            base_ns,
        };
        for source in 0..=runs.len() {
            merged.advance(source)?;
        }
        Ok(merged)
    }

    /// Takes the next entry of a run; the last source is what is held in memory, which came last.
    fn advance(&mut self, source: usize) -> Result<(), CollectError> {
        let entry = match self.runs.get_mut(source) {
            Some(run) => run.next()?,
            None => self.held.next().copied(),
        };
        if let Some(entry) = entry {
            self.heads[source] = entry;
            self.next.push(Reverse(((self.order)(&entry), source)));
        }
        Ok(())
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<Entry, CollectError>;

    fn next(&mut self) -> Option<Self::Item> {
        let Reverse((_, source)) = self.next.pop()?;
        let entry = self.heads[source].later_by(self.base_ns);
        Some(self.advance(source).map(|()| entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Entry;
    use crate::given::Scheduled;

    fn entry(at_ns: u64) -> Entry {
        Entry::scheduled(&Scheduled {
            process: None,
            tid: at_ns % 7,
            at_ns,
            cpu: None,
            running: true,
            off: None,
            state: None,
        })
    }

    #[test]
    fn what_is_read_is_what_was_given_in_order_however_little_fits_into_memory() {
        // Every number below 2,003 once, in an order of its own.
        let given = || (0..2_003_u64).map(|number| number * 1_234 % 2_003);
        for in_memory in [1, 5, 100, 5_000] {
            let mut spool = Spool::new(by_time, in_memory);
            for at in given() {
                spool.push(entry(at)).expect("a temporary file");
            }
            let sorted = spool.finish(0);
            for _ in 0..2 {
                let read = sorted.iter().expect("readable");
                let times: Vec<u64> = read.map(|entry| entry.expect("readable").start).collect();
                assert_eq!(
                    times,
                    (0..2_003).collect::<Vec<_>>(),
                    "{in_memory} in memory"
                );
            }
        }
    }
}
