//! The command `lineage`: checks recordings of launch lineage, and explains what it finds.
#![forbid(unsafe_code)]

mod arguments;
mod doctor;
mod explain;
mod joins;
mod load;
mod refusal;
mod render;
mod terminal;
mod validate;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use terminal::Terminal;

/// Everything is fine.
const FINE: u8 = 0;
/// There are faults.
const FAULTS: u8 = 1;
/// The input or the use of the command is bad. clap's own errors have this code, too.
const BAD: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    arguments.color.choose();
    let mut terminal = Terminal::new();
    let code = match arguments.command {
        Command::Validate(validate) => validate::run(&validate, &mut terminal),
        Command::Doctor(doctor) => doctor::run(&doctor, &mut terminal),
        Command::Explain(explain) => explain::run(&explain, &mut terminal),
    };
    ExitCode::from(code)
}
