//! Where text goes: as wide as the terminal, coloured only where that is wanted.

use std::io::{self, Write};

pub(crate) use clap::builder::styling::Style;
use clap::builder::styling::{AnsiColor, Effects};

/// Columns where there is no terminal and COLUMNS says nothing.
const WITHOUT_TERMINAL: usize = 100;
/// Columns beyond which text is hard to read.
const WIDEST: usize = 120;
const NARROWEST: usize = 40;

pub(crate) const HEADING: Style = Style::new().effects(Effects::BOLD);
pub(crate) const FAULT: Style = AnsiColor::Red.on_default().effects(Effects::BOLD);
pub(crate) const SOUND: Style = AnsiColor::Green.on_default();
/// Neither good nor bad.
pub(crate) const UNSURE: Style = AnsiColor::Yellow.on_default();
pub(crate) const FAINT: Style = Style::new().effects(Effects::DIMMED);

/// Standard output and error.
pub(crate) struct Terminal {
    out: anstream::AutoStream<io::Stdout>,
    err: anstream::AutoStream<io::Stderr>,
    width: usize,
    unprinted: Option<io::Error>,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let size = console::Term::stdout().size_checked();
        let width = size.map(|(_, columns)| usize::from(columns)).or_else(|| {
            let columns = std::env::var("COLUMNS").ok()?;
            columns.parse().ok()
        });
        let width = width.unwrap_or(WITHOUT_TERMINAL);
        Self {
            out: anstream::stdout(),
            err: anstream::stderr(),
            width: width.clamp(NARROWEST, WIDEST),
            unprinted: None,
        }
    }

    /// Columns to fill.
    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    /// Prints text. A reader that went away wants no more of it: that is no error.
    pub(crate) fn print(&mut self, text: &str) {
        let printed = self.out.write_all(text.as_bytes());
        match printed.and_then(|()| self.out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe && self.unprinted.is_none() => {
                self.complain(&format!("the output cannot be written: {error}"));
                self.unprinted = Some(error);
            }
            _ => {}
        }
    }

    /// Whether anything could not be printed, and was wanted.
    pub(crate) const fn is_incomplete(&self) -> bool {
        self.unprinted.is_some()
    }

    /// Says what went wrong.
    pub(crate) fn complain(&mut self, text: &str) {
        let text = format!("{FAULT}lineage:{FAULT:#} {text}\n");
        let _ = self.err.write_all(text.as_bytes());
    }
}
