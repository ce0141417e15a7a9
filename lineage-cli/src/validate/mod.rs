//! `lineage validate`.

mod advice;
mod examine;
mod import;
mod joins;
mod json;
mod tables;

use crate::arguments::Validate;
use crate::terminal::Terminal;
use crate::{BAD, FAULTS, FINE};

use examine::examine;

/// Validates each file on its own. A file that cannot be read does not keep the others from being
/// looked at.
pub(crate) fn run(arguments: &Validate, terminal: &mut Terminal) -> u8 {
    let mut code = FINE;
    // A graph may be captured in one file and replayed in the next.
    let mut captures = Vec::new();
    let mut total = tables::Total::default();
    for file in &arguments.files {
        code = code.max(match examine(file, arguments, &mut captures) {
            Ok(examined) => {
                total.add(&examined);
                let text = if arguments.json {
                    json::object(&examined)
                } else {
                    tables::file(&examined, terminal.width())
                };
                terminal.print(&text);
                let joins = !arguments.require_joins || joins::none(&examined).is_none();
                if examined.whole.is_sound() && joins {
                    FINE
                } else {
                    FAULTS
                }
            }
            Err(refusal) => {
                total.refused += 1;
                if arguments.json {
                    terminal.print(&refusal.object(json::SCHEMA, file));
                }
                terminal.complain(&refusal.to_string());
                BAD
            }
        });
    }
    if arguments.files.len() > 1 && !arguments.json {
        terminal.print(&total.line(terminal.width()));
    }
    code
}
