//! `lineage show`: what a file holds, what evidence it lacks, and what that leaves open.

mod evidence;
mod held;
mod json;
mod render;
mod scheduler;

use std::path::Path;

use crate::arguments::{Candidates, Show};
use crate::files;
use crate::input::{self, Format, Refusal};
use crate::terminal::Terminal;

use held::{Counter, Held};

/// Shows each file. One that cannot be read does not keep the others from being shown.
pub(crate) fn run(arguments: &Show, terminal: &mut Terminal) -> u8 {
    let schema = arguments.json.then_some(json::SCHEMA);
    files::each(&arguments.files, schema, terminal, |file, width| {
        let held = hold(file)?;
        Ok(if arguments.json {
            json::object(file, &held)
        } else {
            render::text(file, &held, width)
        })
    })
}

fn hold(file: &Path) -> Result<Held, Refusal> {
    match input::format(file)? {
        Format::Ledger => {
            let mut counter = Counter::default();
            let read = input::read(file, |entry| counter.add(&entry))?;
            Ok(counter.finish(&read))
        }
        format => {
            let imported = input::import(file, format, &Candidates::none(), true)?;
            Ok(Held::imported(format, imported.recording.holdings()))
        }
    }
}
