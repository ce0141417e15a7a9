//! Files one after the other.

use std::path::{Path, PathBuf};

use crate::input::Refusal;
use crate::terminal::Terminal;
use crate::{BAD, FINE};

/// Prints what each file comes to: as text with an empty line between two, or, where a schema of the
/// output is given, as lines of JSON. One that cannot be read does not keep the others from being
/// looked at.
pub(crate) fn each(
    files: &[PathBuf],
    json_schema: Option<u32>,
    terminal: &mut Terminal,
    print: impl Fn(&Path, usize) -> Result<String, Refusal>,
) -> u8 {
    let mut code = FINE;
    for (number, file) in files.iter().enumerate() {
        match print(file, terminal.width()) {
            Ok(text) => {
                let between = if number > 0 && json_schema.is_none() {
                    "\n"
                } else {
                    ""
                };
                terminal.print(&format!("{between}{text}"));
            }
            Err(refusal) => {
                if let Some(schema) = json_schema {
                    terminal.print(&refusal.object(schema, file));
                }
                terminal.complain(&refusal.to_string());
                code = BAD;
            }
        }
    }
    code
}
