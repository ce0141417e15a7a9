//! `lineage diagnose`: why work began when it did, as far as the evidence tells.

mod draw;
mod gather;
mod json;
mod summary;
mod told;

use crate::arguments::Diagnose;
use crate::terminal::Terminal;
use crate::{BAD, FINE};

/// Diagnoses each file. One that cannot be read does not keep the others from being diagnosed.
pub(crate) fn run(arguments: &Diagnose, terminal: &mut Terminal) -> u8 {
    let mut code = FINE;
    for (number, file) in arguments.files.iter().enumerate() {
        match gather::gather(file, arguments) {
            Ok(diagnosis) => {
                let text = if arguments.json {
                    json::object(&diagnosis)
                } else {
                    let between = if number > 0 { "\n" } else { "" };
                    let width = terminal.width();
                    format!("{between}{}", summary::text(&diagnosis, arguments, width))
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
