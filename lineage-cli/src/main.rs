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
mod part;
mod schema;
mod service;
mod shell;
mod show;
mod terminal;
mod text;
mod validate;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use arguments::{Arguments, Command};
use terminal::Terminal;

/// Everything is fine.
const FINE: u8 = 0;
/// There are faults.
const FAULTS: u8 = 1;
/// The input or the use of the command is bad. clap's own errors have this code, too.
const BAD: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| {
        if let Some(file) = file_for_a_command(&error) {
            let file = text::printable_whole(&file);
            let hint = format!(
                "what is to be done with {file}? `lineage show {file}` says what it holds, `lineage diagnose {file}` \
                 where its time went; `lineage --help` lists the others"
            );
            Terminal::new().complain(&hint);
            std::process::exit(BAD.into());
        }
        error.exit()
    });
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

/// A file that was named where a command is wanted.
fn file_for_a_command(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    match error.get(ContextKind::InvalidSubcommand)? {
        ContextValue::String(text) => Some(text.clone()).filter(|of| Path::new(of).exists()),
        _ => None,
    }
}
