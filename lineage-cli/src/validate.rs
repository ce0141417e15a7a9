//! `lineage validate`.

use std::path::Path;

use lineage_validator::{Conclusions, Options, Validation, validate};

use crate::arguments::Validate;
use crate::load::{Ledger, load};
use crate::refusal::Refusal;
use crate::render;
use crate::terminal::Terminal;
use crate::{BAD, FAULTS, FINE};

/// Validates each file on its own. A file that cannot be read does not keep the others from being
/// looked at.
pub(crate) fn run(arguments: &Validate, terminal: &mut Terminal) -> u8 {
    let mut code = FINE;
    for file in &arguments.files {
        code = code.max(match one(file, arguments) {
            Ok((ledger, validation)) => {
                let text = if arguments.json {
                    render::json(&ledger, &validation)
                } else {
                    render::tables(&ledger, &validation, terminal.width())
                };
                terminal.print(&text);
                let joins = !arguments.require_joins || validation.operations_with_epoch() > 0;
                if validation.is_sound() && joins {
                    FINE
                } else {
                    FAULTS
                }
            }
            Err(refusal) => {
                terminal.complain(&refusal.to_string());
                BAD
            }
        });
    }
    code
}

fn one(file: &Path, arguments: &Validate) -> Result<(Ledger, Validation), Refusal> {
    let ledger = load(file)?;
    let missing = ledger.summary.skipped() + ledger.summary.not_written;
    let options = Options::default()
        .clock_error_ns(arguments.clock_error_ns)
        .listed_per_code(arguments.list)
        .evicted_observations(missing);
    let conclusions = Conclusions {
        rows: &ledger.rows,
        faults: &ledger.faults,
    };
    // A ledger of observations alone, as an importer writes it, concludes nothing.
    let concluded = !(ledger.rows.is_empty() && ledger.faults.is_empty());
    let validation = validate(
        &ledger.observations,
        concluded.then_some(conclusions),
        &options,
    );
    Ok((ledger, validation))
}
