//! What all tables' readers share: where their records go, and what becomes of a row that cannot be
//! used.

use lineage_core::id::ProcessOrdinal;
use lineage_import::{CollectError, Collector, Skip};

use crate::ImportError;
use crate::database::Database;
use crate::names::{Name, Names};
use crate::processes::{Processes, Thread};
use crate::progress::Meter;
use crate::tables::{Table, Value};
use crate::waits::Waits;

/// Why a row gave no record.
pub(crate) enum Fault {
    /// It cannot be used: it is counted, and the next one is read.
    Skip(Skip),
    /// The import ends.
    Stop(ImportError),
}

impl From<Skip> for Fault {
    fn from(skip: Skip) -> Self {
        Self::Skip(skip)
    }
}

impl From<ImportError> for Fault {
    fn from(error: ImportError) -> Self {
        Self::Stop(error)
    }
}

impl From<CollectError> for Fault {
    fn from(error: CollectError) -> Self {
        Self::Stop(error.into())
    }
}

/// Which rows of a table are read. Exports of schema 2 may lack the process of a row: such rows are
/// left for a second pass, when it is known which processes there are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pass {
    /// Those that name their process.
    Named,
    /// The others: they are the only process's, or nobody's.
    Nameless(Option<ProcessOrdinal>),
}

/// A table that holds records.
pub(crate) struct Source {
    pub(crate) table: &'static str,
    /// The column that names a row's process.
    pub(crate) process_column: &'static str,
    pub(crate) read: fn(&Database, &Table, &mut Reading<'_>, Pass) -> Result<(), ImportError>,
}

/// Where records go.
pub(crate) struct Reading<'db> {
    pub(crate) collector: Collector,
    pub(crate) names: Names<'db>,
    pub(crate) processes: Processes,
    pub(crate) waits: Waits,
    pub(crate) meter: Meter<'db>,
    /// Rows of this pass that name no process.
    pub(crate) nameless: u64,
}

impl Reading<'_> {
    /// Reads a row of calls or operations, or counts why not.
    pub(crate) fn row(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), ImportError> {
        self.meter.row();
        match read(self) {
            Ok(()) => Ok(()),
            Err(Fault::Skip(skip)) => {
                self.collector.skip(skip);
                Ok(())
            }
            Err(Fault::Stop(error)) => Err(error),
        }
    }

    /// Reads a row of something else, for the want of which no join is lost.
    pub(crate) fn other_row(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), ImportError> {
        self.row(|reading| {
            read(reading).map_err(|fault| match fault {
                Fault::Skip(_) => Fault::Skip(Skip::OtherRecord),
                stop => stop,
            })
        })
    }

    /// A field that a record can do without: if it cannot be used, that is counted.
    pub(crate) fn optional<T>(&mut self, field: Result<Option<T>, Skip>) -> Option<T> {
        field.unwrap_or_else(|_| {
            self.collector.skip(Skip::Field);
            None
        })
    }

    /// A name that a record can do without.
    pub(crate) fn optional_name(&mut self, number: Value<'_>) -> Result<Option<Name>, Fault> {
        match self.names.get(&mut self.collector, number) {
            Ok(name) => Ok(Some(name)),
            Err(Fault::Skip(skip)) => {
                self.collector.skip(match skip {
                    Skip::UnknownName => skip,
                    _ => Skip::Field,
                });
                Ok(None)
            }
            Err(stop) => Err(stop),
        }
    }

    /// Whose a row is; `None` if it is not this pass's.
    pub(crate) fn owner(&mut self, pass: Pass, global: Value<'_>) -> Result<Option<Thread>, Fault> {
        match pass {
            Pass::Named if global.is_absent() => {
                self.nameless += 1;
                Ok(None)
            }
            Pass::Named => Ok(self.processes.thread(&mut self.collector, global)?),
            Pass::Nameless(_) if !global.is_absent() => Ok(None),
            Pass::Nameless(only) => {
                let process = only.ok_or(Skip::NoProcess)?;
                Ok(Some(Thread { process, tid: 0 }))
            }
        }
    }
}
