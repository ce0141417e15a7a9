//! Processes and threads of a file.
//!
//! A `globalTid` is a serialized id: the thread's number in the low 24 bits, the process's in the 24
//! above, and the machine's above those. A `globalPid` is the same with zeros for the thread. So a
//! process is known by all but the low 24 bits, and two machines' processes of one number are two.

use lineage_core::id::ProcessOrdinal;
use lineage_import::{Collector, ProcessDescription, Skip};
use rustc_hash::FxHashMap;

use crate::ImportError;
use crate::database::Database;
use crate::tables::{Schema, Value, scan};
use crate::text;

const THREAD_BITS: u32 = 24;
const THREAD_MASK: u64 = (1 << THREAD_BITS) - 1;

/// Processes that are told apart. A capture of a whole machine has some thousands.
const MOST_PROCESSES: usize = 1 << 16;

/// A process of a file, and a thread of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) process: ProcessOrdinal,
    /// The system's number of the thread; 0 where it is not recorded.
    pub(crate) tid: u64,
}

/// What `PROCESSES` says of a process.
#[derive(Debug)]
struct Description {
    pid: Option<u64>,
    name: Option<String>,
}

/// Processes of a file: those that a record speaks of.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    described: FxHashMap<u64, Description>,
    known: FxHashMap<u64, ProcessOrdinal>,
    pids: Vec<(u64, ProcessOrdinal)>,
}

impl Processes {
    /// Reads the names, which are those of all processes of the recorded machine.
    pub(crate) fn read(database: &Database, schema: &Schema) -> Result<Self, ImportError> {
        let mut processes = Self::default();
        let Some(table) = schema.table(database, "PROCESSES")? else {
            return Ok(processes);
        };
        let columns = ["globalPid", "pid", "name"];
        scan(database, &table, columns, |[global, pid, name]| {
            if let Ok(Some(global)) = global.bits()
                && processes.described.len() < MOST_PROCESSES
            {
                let description = Description {
                    pid: pid.number().unwrap_or(None),
                    name: text::of(name, text::NOTE_BYTES),
                };
                processes
                    .described
                    .insert(global & !THREAD_MASK, description);
            }
            Ok(())
        })?;
        Ok(processes)
    }

    /// Process and thread of a `globalTid`, or of a `globalPid`, which has no thread; `None` where the
    /// row has none.
    pub(crate) fn thread(
        &mut self,
        collector: &mut Collector,
        global: Value<'_>,
    ) -> Result<Option<Thread>, Skip> {
        let Some(global) = global.bits()? else {
            return Ok(None);
        };
        let key = global & !THREAD_MASK;
        let tid = global & THREAD_MASK;
        if let Some(&process) = self.known.get(&key) {
            return Ok(Some(Thread { process, tid }));
        }
        if self.known.len() == MOST_PROCESSES {
            return Err(Skip::NoProcess);
        }
        let described = self.described.get(&key);
        let pid = described
            .and_then(|found| found.pid)
            .unwrap_or((key >> THREAD_BITS) & THREAD_MASK);
        let process = collector.process(ProcessDescription {
            pid: Some(pid),
            name: described.and_then(|found| found.name.clone()),
            rank: None,
        });
        self.known.insert(key, process);
        self.pids.push((pid, process));
        Ok(Some(Thread { process, tid }))
    }

    /// The thread of a `globalTid`, of a process that other records made known.
    pub(crate) fn known_thread(&self, global: u64) -> (Option<ProcessOrdinal>, u64) {
        let process = self.known.get(&(global & !THREAD_MASK)).copied();
        (process, global & THREAD_MASK)
    }

    /// Processes of a number: more than one if several machines were recorded.
    pub(crate) fn of_pid(&self, pid: u64) -> impl Iterator<Item = ProcessOrdinal> + '_ {
        let found = self.pids.iter().filter(move |(found, _)| *found == pid);
        found.map(|&(_, process)| process)
    }

    /// Whose the records are that name no process: those of the only one, if there is only one.
    pub(crate) fn only(&mut self, collector: &mut Collector) -> Option<ProcessOrdinal> {
        match self.pids.as_slice() {
            [] => {
                let process = collector.process(ProcessDescription {
                    pid: None,
                    name: None,
                    rank: None,
                });
                // No `globalPid` has this key: its thread bits are not zero.
                self.known.insert(u64::MAX, process);
                self.pids.push((u64::MAX, process));
                Some(process)
            }
            [(_, process)] => Some(*process),
            _ => None,
        }
    }
}
