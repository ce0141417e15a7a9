//! Texts that rows refer to by number: the table `StringIds`.

use lineage_core::observation::SynchronizationKind;
use lineage_import::{Collector, NameId, Skip};
use rusqlite::{OptionalExtension, Statement};
use rustc_hash::FxHashMap;

use crate::ImportError;
use crate::database::Database;
use crate::reading::Fault;
use crate::tables::{Schema, Table, Value, scan};
use crate::{text, waits};

/// Numbers whose names are remembered; the others are looked up each time.
const MOST_REMEMBERED: usize = 1 << 20;

/// A name, and what it says of a call of that name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name {
    pub(crate) id: NameId,
    /// What a call of this name waits for, if it waits.
    pub(crate) waits_for: Option<SynchronizationKind>,
}

/// The names of a file. Only those that rows refer to are read.
pub(crate) struct Names<'db> {
    database: &'db Database,
    lookup: Option<Statement<'db>>,
    /// `None` for a number that has no row.
    known: FxHashMap<i64, Option<Name>>,
    unnamed: NameId,
}

impl<'db> Names<'db> {
    /// Prepares to look names up. Where numbers are no key, which no export does but a trimmed copy
    /// may, a look-up would be a pass over the table: then the table is read once, here.
    pub(crate) fn open(
        database: &'db Database,
        schema: &Schema,
        collector: &mut Collector,
    ) -> Result<Self, ImportError> {
        let mut names = Self {
            database,
            lookup: None,
            known: FxHashMap::default(),
            unnamed: collector.name(""),
        };
        match schema.table(database, TABLE)? {
            Some(table) if table.id_is_key && table.has("value") => {
                let statement = "select value from main.StringIds where id = ?1";
                let lookup = database.connection.prepare(statement);
                names.lookup = Some(lookup.map_err(|error| database.failure(error, Some(TABLE)))?);
            }
            Some(table) => names.read_all(&table, collector)?,
            None => {}
        }
        Ok(names)
    }

    fn read_all(&mut self, table: &Table, collector: &mut Collector) -> Result<(), ImportError> {
        scan(self.database, table, ["id", "value"], |[id, value]| {
            if let Value::Integer(id) = id
                && self.known.len() < MOST_REMEMBERED
            {
                let name = text::of(value, text::NAME_BYTES);
                self.known
                    .insert(id, name.map(|name| named(&name, collector)));
            }
            Ok(())
        })
    }

    /// The name for things that have none.
    pub(crate) fn unnamed(&self) -> NameId {
        self.unnamed
    }

    /// The name of a number; [`Skip::UnknownName`] if the number has no row.
    pub(crate) fn get(
        &mut self,
        collector: &mut Collector,
        number: Value<'_>,
    ) -> Result<Name, Fault> {
        let number = number.integer()?.ok_or(Skip::UnknownName)?;
        if let Some(name) = self.known.get(&number) {
            return Ok(name.ok_or(Skip::UnknownName)?);
        }
        let lookup = self.lookup.as_mut().ok_or(Skip::UnknownName)?;
        let found = lookup
            .query_row([number], |row| {
                Ok(text::of(row.get_ref(0)?.into(), text::NAME_BYTES))
            })
            .optional()
            .map_err(|error| self.database.failure(error, Some(TABLE)))?;
        let name = found.flatten().map(|name| named(&name, collector));
        if self.known.len() < MOST_REMEMBERED {
            self.known.insert(number, name);
        }
        Ok(name.ok_or(Skip::UnknownName)?)
    }
}

const TABLE: &str = "StringIds";

fn named(name: &str, collector: &mut Collector) -> Name {
    Name {
        id: collector.name(name),
        waits_for: waits::kind_of(name),
    }
}
