//! `lineage schema`: the JSON Schema of each output, and of a ledger's lines.

use crate::FINE;
use crate::arguments::Described;
use crate::terminal::Terminal;

/// Prints a schema.
pub(crate) fn run(of: Described, terminal: &mut Terminal) -> u8 {
    terminal.print(match of {
        Described::Ledger => include_str!("../schema/ledger.schema.json"),
        Described::Validate => include_str!("../schema/validate.schema.json"),
        Described::Show => include_str!("../schema/show.schema.json"),
        Described::Lab => include_str!("../schema/lab.schema.json"),
        Described::Service => include_str!("../schema/service.schema.json"),
        Described::Compare => include_str!("../schema/compare.schema.json"),
        Described::Diagnose => include_str!("../schema/diagnose.schema.json"),
        Described::Doctor => include_str!("../schema/doctor.schema.json"),
    });
    FINE
}
