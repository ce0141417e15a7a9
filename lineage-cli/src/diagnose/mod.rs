//! `lineage diagnose`: why work began when it did, as far as the evidence tells.

mod draw;
mod gather;
mod json;
mod summary;
mod told;

use crate::arguments::Diagnose;
use crate::files;
use crate::terminal::Terminal;

/// Diagnoses each file. One that cannot be read does not keep the others from being diagnosed.
pub(crate) fn run(arguments: &Diagnose, terminal: &mut Terminal) -> u8 {
    let schema = arguments.json.then_some(json::SCHEMA);
    files::each(&arguments.files, schema, terminal, |file, width| {
        let diagnosis = gather::gather(file, arguments)?;
        Ok(if arguments.json {
            json::object(&diagnosis)
        } else {
            summary::text(&diagnosis, arguments, width)
        })
    })
}
