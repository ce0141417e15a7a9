//! A recording that was read: what it holds, and its observations.

use std::sync::Arc;

use lineage_core::observation::Extent;

use crate::captures::Captures;
use crate::error::CollectError;
use crate::function::{Function, function};
use crate::holdings::Holdings;
use crate::names::NameId;
use crate::settings::Settings;
use crate::slices::Slices;
use crate::spool::Sorted;

/// A recording that was read.
#[derive(Debug)]
pub struct Recording {
    pub(crate) settings: Settings,
    pub(crate) holdings: Holdings,
    pub(crate) texts: Vec<Arc<str>>,
    pub(crate) functions: Vec<Option<Function>>,
    pub(crate) captures: Vec<Captures>,
    pub(crate) extents: Vec<Extent>,
    pub(crate) calls: Sorted,
    pub(crate) ranges: Sorted,
    pub(crate) timed: Sorted,
}

impl Recording {
    /// What it holds.
    pub fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    /// How it was imported.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Its observations, in slices of about so many records, and at least one. Each slice can be
    /// correlated and validated on its own; together they are the recording. The slices can be
    /// asked for again.
    ///
    /// # Errors
    /// Those of the temporary file, if records did not fit into memory.
    pub fn slices(&self, records: usize) -> Result<Slices<'_>, CollectError> {
        Slices::new(self, records.max(1))
    }

    pub(crate) fn text(&self, name: NameId) -> Option<Arc<str>> {
        self.texts.get(name.0 as usize).cloned()
    }

    pub(crate) fn function(&self, name: Option<NameId>) -> Function {
        let known = name.and_then(|name| self.functions.get(name.0 as usize).copied().flatten());
        known.unwrap_or_else(|| function(""))
    }
}
