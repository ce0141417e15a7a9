//! Text for the terminal: names, numbers and notes in three columns.

use std::fmt::Write as _;
use std::path::Path;

use crate::numbers::grouped;

const BOLD: &str = "\x1b[1m";
const BOLD_RED: &str = "\x1b[1;31m";
const BOLD_GREEN: &str = "\x1b[1;32m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

/// How something is meant, shown by its colour.
#[derive(Clone, Copy)]
pub enum Tone {
    /// A figure.
    Plain,
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// Beside the point.
    Aside,
}

impl Tone {
    /// For the number of things that should not be.
    pub fn zero_is_good(count: u64) -> Self {
        if count == 0 { Self::Good } else { Self::Bad }
    }

    /// Text in its colour.
    pub fn paint(self, text: &str) -> String {
        let colour = match self {
            Self::Plain => BOLD,
            Self::Good => BOLD_GREEN,
            Self::Bad => BOLD_RED,
            Self::Aside => DIM,
        };
        format!("{colour}{text}{PLAIN}")
    }
}

/// Names, numbers and notes in three columns.
#[derive(Default)]
pub struct Table(String);

impl Table {
    /// A name, its number and a note.
    pub fn row(&mut self, name: &str, number: u64, tone: Tone, note: &str) {
        let number = tone.paint(&format!("{:>9}", grouped(number)));
        let _ = writeln!(self.0, "  {name:<12} {number}   {note}");
    }

    /// One more note for the row above.
    pub fn note(&mut self, note: &str) {
        let _ = writeln!(self.0, "{:27}{note}", "");
    }

    /// A name and a text.
    pub fn line(&mut self, name: &str, text: &str) {
        let _ = writeln!(self.0, "  {name:<12} {text}");
    }

    /// A sentence.
    pub fn sentence(&mut self, text: &str) {
        let _ = writeln!(self.0, "  {text}");
    }

    /// An empty line.
    pub fn gap(&mut self) {
        self.0.push('\n');
    }

    /// To the terminal; without colours where it is none.
    pub fn print(&self) {
        anstream::print!("{}", self.0);
    }
}

/// As it can be typed from here: relative where that is shorter.
pub fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here)
        .unwrap_or(path)
        .display()
        .to_string()
}
