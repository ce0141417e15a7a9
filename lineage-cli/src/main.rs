//! The command `lineage`: checks recordings of launch lineage and of other tools, shows what they
//! hold, and explains what it finds.
#![forbid(unsafe_code)]

mod arguments;
mod compare;
mod convert;
mod diagnose;
mod doctor;
mod explain;
mod files;
mod input;
mod lab;
mod schema;
mod service;
mod shell;
mod show;
mod terminal;
mod text;
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
        Command::Show(show) => show::run(&show, &mut terminal),
        Command::Diagnose(diagnose) => diagnose::run(&diagnose, &mut terminal),
        Command::Service(service) => service::run(&service, &mut terminal),
        Command::Compare(compare) => compare::run(&compare, &mut terminal),
        Command::Convert(convert) => convert::run(&convert, &mut terminal),
        Command::Doctor(doctor) => doctor::run(&doctor, &mut terminal),
        Command::Lab(lab) => lab::run(&lab, &mut terminal),
        Command::Explain(explain) => explain::run(&explain, &mut terminal),
        Command::Schema { of } => schema::run(of, &mut terminal),
        Command::Completions { shell } => shell::completions(shell, &mut terminal),
        Command::Man { command } => shell::man(command.as_deref(), &mut terminal),
    };
    ExitCode::from(if terminal.is_incomplete() { BAD } else { code })
}
