//! Where text goes: as wide as the terminal, coloured only where that is wanted.

use std::io::{self, Write};

pub(crate) use clap::builder::styling::Style;
use clap::builder::styling::{AnsiColor, Effects};

/// Columns where there is no terminal.
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
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let size = console::Term::stdout().size_checked();
        let width = size.map_or(WITHOUT_TERMINAL, |(_, columns)| usize::from(columns));
        Self {
            out: anstream::stdout(),
            err: anstream::stderr(),
            width: width.clamp(NARROWEST, WIDEST),
        }
    }

    /// Columns to fill.
    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    /// Prints text. A reader that went away wants no more of it: that is no error.
    pub(crate) fn print(&mut self, text: &str) {
        let _ = self.out.write_all(text.as_bytes());
        let _ = self.out.flush();
    }

    /// Says what went wrong.
    pub(crate) fn complain(&mut self, text: &str) {
        let text = format!("{FAULT}lineage:{FAULT:#} {text}\n");
        let _ = self.err.write_all(text.as_bytes());
    }
}

/// Breaks a text into lines of at most so many columns, at spaces. A word that is longer stays
/// whole: a path or an id is of no use in two parts.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let Some(line) = lines.last_mut() else { break };
        let width = console::measure_text_width(line);
        if width > 0 && width + 1 + console::measure_text_width(word) > columns {
            lines.push(word.to_owned());
        } else {
            if width > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// A text under a label: the label on the left, the lines of the text beside it.
pub(crate) fn labelled(
    indent: usize,
    label: &str,
    label_columns: usize,
    text: &str,
    width: usize,
) -> String {
    let left = indent + label_columns + 1;
    let mut out = String::new();
    for (number, line) in wrap(text, width.saturating_sub(left).max(20))
        .iter()
        .enumerate()
    {
        let label = if number == 0 { label } else { "" };
        out += &format!(
            "{:indent$}{FAINT}{label:<label_columns$}{FAINT:#} {line}\n",
            ""
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_spaces_and_long_words_stay_whole() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a_very_long_path x", 5), ["a_very_long_path", "x"]);
        assert_eq!(wrap("", 5), [""]);
        // Wide characters take two columns each.
        assert_eq!(wrap("日本 語", 5), ["日本", "語"]);
    }
}
