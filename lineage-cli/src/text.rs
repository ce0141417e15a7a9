//! Text that fits: numbers people can read, lines that are no wider than the terminal, tables.

use console::measure_text_width;
use lineage_validator::printable;

use crate::terminal::{FAINT, HEADING};

/// A number with its digits in groups of three.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number with its noun.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        thousands(count),
        if count == 1 { one } else { many }
    )
}

/// A span of time, in the unit that fits.
pub(crate) fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{}.{:02} µs", ns / 1_000, ns % 1_000 / 10),
        1_000_000..1_000_000_000 => format!("{}.{:02} ms", ns / 1_000_000, ns / 10_000 % 100),
        1_000_000_000..120_000_000_000 => {
            format!("{}.{:02} s", ns / 1_000_000_000, ns / 10_000_000 % 100)
        }
        _ => format!("{} min", thousands(ns / 60_000_000_000)),
    }
}

/// A longer text from elsewhere, made fit to be shown: a message, on one line.
pub(crate) fn printable_text(text: &str) -> String {
    let words = text
        .split([' ', '\n', '\r', '\t'])
        .filter(|word| !word.is_empty());
    words.map(printable_whole).collect::<Vec<_>>().join(" ")
}

/// A path, made fit to be shown.
pub(crate) fn printable_path(path: &std::path::Path) -> String {
    printable_whole(&path.display().to_string())
}

/// Text made printable without being shortened, as names are.
pub(crate) fn printable_whole(text: &str) -> String {
    // Fewer than a name may have.
    const PIECE: usize = 50;
    let characters: Vec<char> = text.chars().collect();
    let pieces = characters.chunks(PIECE);
    pieces
        .map(|piece| printable(&piece.iter().collect::<String>()))
        .collect()
}

/// What a person calls a process: its rank, its number, its name.
pub(crate) fn process_label(
    ordinal: u32,
    pid: Option<u64>,
    rank: Option<u32>,
    name: Option<&str>,
) -> String {
    let mut parts = Vec::new();
    parts.extend(rank.map(|rank| format!("rank {rank}")));
    parts.extend(pid.map(|pid| pid.to_string()));
    parts.extend(name.map(printable));
    if parts.is_empty() {
        format!("process {ordinal}")
    } else {
        parts.join(" ")
    }
}

/// An object as a line of JSON.
pub(crate) fn json_line(object: &impl serde::Serialize) -> String {
    // Nothing that is given here can fail to be written: keys are text, and numbers whole.
    let mut line = serde_json::to_string(object).unwrap_or_default();
    line.push('\n');
    line
}

/// Breaks a text into lines of at most so many columns, at spaces. A word that is longer stays
/// whole: a path or an id is of no use in two parts.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let words = text.split(' ').filter(|word| !word.is_empty());
    fill(words, " ", columns)
}

/// Breaks a list into lines of at most so many columns, between its items where they fit.
pub(crate) fn wrap_list(items: &[String], columns: usize) -> Vec<String> {
    if items.iter().all(|item| measure_text_width(item) < columns) {
        return fill(items.iter().map(String::as_str), ", ", columns);
    }
    wrap(&items.join(", "), columns)
}

fn fill<'t>(items: impl Iterator<Item = &'t str>, between: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for item in items {
        let Some(line) = lines.last_mut() else { break };
        let width = measure_text_width(line);
        // What is between stays at the line's end, without its space.
        let joined = width + between.len() + measure_text_width(item);
        let room = columns.saturating_sub(between.trim_end().len());
        if width == 0 {
            line.push_str(item);
        } else if joined > room {
            line.push_str(between.trim_end());
            lines.push(item.to_owned());
        } else {
            line.push_str(between);
            line.push_str(item);
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

/// What a person should know of a file before its figures, each under the label `note`.
pub(crate) fn notes(all: &[String], label_columns: usize, width: usize) -> String {
    /// More are told of by number.
    const SHOWN: usize = 4;
    let mut out = String::new();
    for note in all.iter().take(SHOWN) {
        out += &labelled(2, "note", label_columns, &printable_text(note), width);
    }
    if let more @ 1.. = all.len().saturating_sub(SHOWN) {
        let said = format!("and {more} more: see `lineage show`");
        out += &labelled(2, "", label_columns, &said, width);
    }
    out
}

/// Text of so many columns at most, its end cut off where it is longer.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    console::truncate_str(text, columns, "…").into_owned()
}

/// A table whose first column is text and whose others are numbers, right-aligned, no wider than
/// the terminal: the text gives way.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>], width: usize) -> String {
    const GAP: usize = 2;
    const LEAST_TEXT: usize = 12;
    let columns = header.len();
    let mut widths: Vec<usize> = header
        .iter()
        .map(|title| measure_text_width(title))
        .collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(measure_text_width(cell));
        }
    }
    let numbers: usize = widths.iter().skip(1).map(|width| width + GAP).sum();
    let Some(text) = widths.first_mut() else {
        return String::new();
    };
    *text = (*text).min(width.saturating_sub(2 + numbers).max(LEAST_TEXT));
    let line = |cells: &[String]| {
        let mut line = String::from("  ");
        for (number, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let cell = cut(cell, *width);
            let pad = " ".repeat(width.saturating_sub(measure_text_width(&cell)));
            line += &if number == 0 {
                format!("{cell}{pad}")
            } else {
                format!("{:GAP$}{pad}{cell}", "")
            };
        }
        line.truncate(line.trim_end().len());
        line
    };
    let header: Vec<String> = header.iter().map(|title| (*title).to_owned()).collect();
    debug_assert!(rows.iter().all(|row| row.len() == columns));
    let mut out = format!("{HEADING}{}{HEADING:#}\n", line(&header));
    for row in rows {
        out += &line(row);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_000), "1,000");
        assert_eq!(thousands(12_345_678), "12,345,678");
    }

    #[test]
    fn durations_are_in_the_unit_that_fits() {
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(1_509), "1.50 µs");
        assert_eq!(duration(12_345_678), "12.34 ms");
        assert_eq!(duration(3_456_000_000), "3.45 s");
        assert_eq!(duration(7_200_000_000_000), "120 min");
    }

    #[test]
    fn text_is_broken_at_spaces_and_long_words_stay_whole() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a_very_long_path x", 5), ["a_very_long_path", "x"]);
        assert_eq!(wrap("", 5), [""]);
        // Wide characters take two columns each.
        assert_eq!(wrap("日本 語", 5), ["日本", "語"]);
    }

    #[test]
    fn lists_are_broken_between_their_items() {
        let items = [
            "21 failed".to_owned(),
            "3 perhaps captured".to_owned(),
            "1 lost".to_owned(),
        ];
        assert_eq!(
            wrap_list(&items, 22),
            ["21 failed,", "3 perhaps captured,", "1 lost"]
        );
        assert_eq!(
            wrap_list(&items, 30),
            ["21 failed, 3 perhaps captured,", "1 lost"]
        );
        // An item that is too long is broken as text is.
        assert_eq!(
            wrap_list(&["one two three".to_owned()], 7),
            ["one two", "three"]
        );
        assert_eq!(wrap_list(&[], 7), [""]);
    }

    #[test]
    fn nothing_in_a_text_from_elsewhere_is_obeyed() {
        assert_eq!(
            printable_text("not all\n\u{1b}[2J events"),
            "not all \\u{1b}[2J events"
        );
        let long = format!("{}\u{7}", "long/".repeat(40));
        let path = printable_path(std::path::Path::new(&long));
        assert_eq!(path, format!("{}\\u{{7}}", "long/".repeat(40)));
    }

    #[test]
    fn a_table_fits_and_its_text_gives_way() {
        let rows = [vec![
            "a process with a long name".to_owned(),
            "1,234".to_owned(),
        ]];
        let table = table(&["process", "calls"], &rows, 24);
        assert_eq!(
            console::strip_ansi_codes(&table),
            "  process          calls\n  a process with…  1,234\n"
        );
        for line in table.lines() {
            assert!(measure_text_width(line) <= 24, "{line}");
        }
    }
}
