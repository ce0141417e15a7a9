//! For the shell: completion scripts and man pages.

use clap::{Command, CommandFactory};
use lineage_validator::printable;

use crate::arguments::Arguments;
use crate::terminal::Terminal;
use crate::{BAD, FINE};

/// Prints a completion script.
pub(crate) fn completions(shell: clap_complete::Shell, terminal: &mut Terminal) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "lineage", &mut script);
    terminal.print(&String::from_utf8_lossy(&script));
    FINE
}

/// Prints the man page of the command, or of a subcommand.
pub(crate) fn man(of: Option<&str>, terminal: &mut Terminal) -> u8 {
    let mut whole = Arguments::command();
    // Gives the subcommands their full names.
    whole.build();
    let page = match of {
        None => whole,
        Some(name) => match whole.find_subcommand(name).cloned() {
            Some(page) => page,
            None => {
                let names: Vec<&str> = whole.get_subcommands().map(Command::get_name).collect();
                terminal.complain(&format!(
                    "no subcommand is called {}; there are {}",
                    printable(name),
                    names.join(", ")
                ));
                return BAD;
            }
        },
    };
    let mut roff = Vec::new();
    match clap_mangen::Man::new(page).render(&mut roff) {
        Ok(()) => {
            terminal.print(&String::from_utf8_lossy(&roff));
            FINE
        }
        Err(error) => {
            terminal.complain(&format!("the page cannot be written: {error}"));
            BAD
        }
    }
}
