//! Names that many entries have, each held once.

use std::collections::HashSet;
use std::sync::Arc;

use lineage_core::ledger::Entry;
use lineage_core::observation::Event;

/// Different names that are held; further ones are each entry's own.
const MOST: usize = 1 << 16;

/// Names that entries share. A line of JSON has its own copy of each, and kernels' names are long.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<Arc<str>>);

impl Names {
    /// Puts the names that are held in the place of an entry's own.
    pub(super) fn share(&mut self, entry: &mut Entry) {
        match entry {
            Entry::Observation(of) => match &mut of.event {
                Event::Call(of) => self.optional(&mut of.api.name),
                Event::Api(of) => self.optional(&mut of.api.name),
                Event::Operation(of) => self.optional(&mut of.name),
                Event::OsCall(of) => self.one(&mut of.name),
                Event::Declared(of) => {
                    self.one(&mut of.name);
                    self.site(of.site.as_mut());
                }
                Event::Sent(of) => self.site(of.site.as_mut()),
                _ => {}
            },
            Entry::Row(row) => {
                if let Some(call) = &mut row.call {
                    self.optional(&mut call.api.name);
                }
                if let Some(operation) = &mut row.operation {
                    self.optional(&mut operation.name);
                }
            }
            _ => {}
        }
    }

    fn site(&mut self, site: Option<&mut lineage_core::observation::Site>) {
        if let Some(site) = site {
            self.one(&mut site.file);
        }
    }

    fn optional(&mut self, name: &mut Option<Arc<str>>) {
        if let Some(name) = name {
            self.one(name);
        }
    }

    fn one(&mut self, name: &mut Arc<str>) {
        match self.0.get(&**name) {
            Some(held) => *name = held.clone(),
            None if self.0.len() < MOST => _ = self.0.insert(name.clone()),
            None => {}
        }
    }
}
