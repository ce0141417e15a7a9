//! `lineage show`: what a file holds, what evidence it lacks, and what that leaves open.

mod evidence;
mod held;
mod json;
mod render;

use std::path::Path;

use crate::arguments::{Candidates, Show};
use crate::input::{self, Format, Refusal};
use crate::terminal::Terminal;
use crate::{BAD, FINE};

use held::{Counter, Held};

/// Shows each file. One that cannot be read does not keep the others from being shown.
pub(crate) fn run(arguments: &Show, terminal: &mut Terminal) -> u8 {
    let mut code = FINE;
    for (number, file) in arguments.files.iter().enumerate() {
        match hold(file) {
            Ok(held) => {
                let text = if arguments.json {
                    json::object(file, &held)
                } else {
                    let between = if number > 0 { "\n" } else { "" };
                    format!("{between}{}", render::text(file, &held, terminal.width()))
                };
                terminal.print(&text);
            }
            Err(refusal) => {
                if arguments.json {
                    terminal.print(&json::refused(file, &refusal));
                }
                terminal.complain(&refusal.to_string());
                code = BAD;
            }
        }
    }
    code
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
