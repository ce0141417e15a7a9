//! Reading a ledger, whoever wrote it.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use super::format::{AnyHeader, Counts, Header, LineIn, MAX_LINE_BYTES, SCHEMA};
use super::lines::{Line, read_line};
use crate::observation::Observation;
use crate::row::{LooseFault, Row};

/// Different unknown kinds that are counted by name; more are counted together.
const MAX_UNKNOWN_KINDS: usize = 32;
/// Characters of an unknown kind's name that are kept.
const MAX_KIND_CHARS: usize = 48;

/// One line of a ledger.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
// Entries are handed over one by one and moved out at once.
#[expect(
    clippy::large_enum_variant,
    reason = "short-lived, and rows are the common case"
)]
pub enum Entry {
    /// The first line.
    Header(Header),
    /// Something that was seen.
    Observation(Observation),
    /// Something that the session concluded.
    Row(Row),
    /// A fault that belongs to no row.
    Fault(LooseFault),
    /// The last line; the counts agree with what was read, unless some was skipped.
    End(Counts),
}

/// A line of a ledger could not be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct ReadError {
    /// The line's number, from 1.
    pub line: u64,
    /// What is wrong with it.
    #[source]
    pub kind: ReadErrorKind,
}

/// What is wrong with a line of a ledger.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The file could not be read.
    #[error("the file could not be read: {0}")]
    Io(#[source] io::Error),
    /// There is nothing in the file.
    #[error("the file is empty")]
    Empty,
    /// The first line is no ledger's.
    #[error("not a ledger: the first line is no header ({why})")]
    NotALedger {
        /// Why not.
        why: String,
    },
    /// A newer lineage wrote the file, in a way this one would misunderstand.
    #[error("the file has schema {schema}, written by {writer}; this build reads up to {SCHEMA}")]
    NewerSchema {
        /// The file's schema.
        schema: u64,
        /// Who wrote it, by its own account.
        writer: String,
    },
    /// The line is too long.
    #[error("the line is longer than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// The line is not UTF-8.
    #[error("the line is not UTF-8 text")]
    NotUtf8,
    /// The line is not JSON, or not of the shape it should have.
    #[error("{0}")]
    Malformed(String),
    /// A second header.
    #[error("a second header: two ledgers were joined into one file, which mixes their ids")]
    SecondHeader,
    /// There is more after the end line.
    #[error("there is more after the end line")]
    AfterEnd,
    /// The end line counts otherwise than what is in the file.
    #[error("the end line says {said:?}, but the file has {found:?}")]
    CountsDiffer {
        /// What the end line says.
        said: Counts,
        /// What was read, unknown kinds left aside.
        found: Counts,
    },
}

/// What a reader met besides its entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ReadSummary {
    /// Entries read.
    pub read: Counts,
    /// Lines skipped since a newer writer's kind of line, event or value is in them, by its name.
    pub unknown_kinds: BTreeMap<String, u64>,
    /// Lines that were errors.
    pub bad_lines: u64,
    /// Whether the last line was cut short; it was left aside.
    pub last_line_truncated: bool,
    /// Whether the end line was there: if not, the file is not complete.
    pub ended: bool,
    /// Entries that the writer says it could not write.
    pub not_written: u64,
    /// Bytes read.
    pub bytes: u64,
}

impl ReadSummary {
    /// Lines skipped since something in them is not known to this build.
    pub fn skipped(&self) -> u64 {
        self.unknown_kinds.values().sum()
    }

    /// Whether all that the session wrote was read.
    pub fn is_complete(&self) -> bool {
        self.ended
            && !self.last_line_truncated
            && self.bad_lines == 0
            && self.skipped() == 0
            && self.not_written == 0
    }

    fn skip(&mut self, kind: &str) {
        let kind: String = kind.chars().take(MAX_KIND_CHARS).collect();
        let known = self.unknown_kinds.contains_key(&kind);
        let kind = if known || self.unknown_kinds.len() < MAX_UNKNOWN_KINDS {
            kind
        } else {
            "(others)".to_owned()
        };
        *self.unknown_kinds.entry(kind).or_default() += 1;
    }
}

/// Streams a ledger's entries. Memory is bounded by the longest line.
///
/// An error of one line is not the end: the iteration goes on with the next line if asked to.
/// After a first line that is no header, or an error of the file itself, it ends.
#[derive(Debug)]
pub struct Reader<R: BufRead> {
    inner: R,
    buffer: Vec<u8>,
    line: u64,
    summary: ReadSummary,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Header,
    Body,
    Ended,
    Over,
}

impl<R: BufRead> Reader<R> {
    /// A reader of this file.
    pub const fn new(inner: R) -> Self {
        Self {
            inner,
            buffer: Vec::new(),
            line: 0,
            summary: ReadSummary {
                read: Counts {
                    observations: 0,
                    rows: 0,
                    faults: 0,
                    not_written: 0,
                },
                unknown_kinds: BTreeMap::new(),
                bad_lines: 0,
                last_line_truncated: false,
                ended: false,
                not_written: 0,
                bytes: 0,
            },
            state: State::Header,
        }
    }

    /// What was met so far. Complete once the iteration has ended.
    pub const fn summary(&self) -> &ReadSummary {
        &self.summary
    }

    /// Number of the line that was read last, from 1.
    pub const fn line(&self) -> u64 {
        self.line
    }

    fn error(&mut self, kind: ReadErrorKind) -> ReadError {
        self.summary.bad_lines += 1;
        ReadError {
            line: self.line,
            kind,
        }
    }

    /// The header line, which is in the buffer.
    fn header(&self) -> Result<Header, ReadErrorKind> {
        let any: AnyHeader = serde_json::from_slice(&self.buffer).map_err(not_a_ledger)?;
        if any.lineage.schema > u64::from(SCHEMA) {
            let writer = match any.lineage.writer {
                name if name.is_empty() => "an unnamed writer".to_owned(),
                name => name.chars().take(MAX_KIND_CHARS).collect(),
            };
            return Err(ReadErrorKind::NewerSchema {
                schema: any.lineage.schema,
                writer,
            });
        }
        if any.lineage.schema == 0 {
            return Err(ReadErrorKind::NotALedger {
                why: "schema 0 does not exist".to_owned(),
            });
        }
        match serde_json::from_slice(&self.buffer).map_err(not_a_ledger)? {
            LineIn::Lineage(header) => Ok(header),
            _ => Err(ReadErrorKind::NotALedger {
                why: "it is another line of a ledger".to_owned(),
            }),
        }
    }

    /// The line of the body that is in the buffer; `None` if it was skipped and counted.
    fn body(&mut self) -> Result<Option<Entry>, ReadErrorKind> {
        let text = std::str::from_utf8(&self.buffer).map_err(|_| ReadErrorKind::NotUtf8)?;
        let line = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(error) => {
                let error = error.to_string();
                return match unknown_variant(&error) {
                    Some(kind) => {
                        self.summary.skip(kind);
                        Ok(None)
                    }
                    None => Err(ReadErrorKind::Malformed(at_column(&error))),
                };
            }
        };
        let read = &mut self.summary.read;
        Ok(Some(match line {
            LineIn::Lineage(_) => return Err(ReadErrorKind::SecondHeader),
            LineIn::Observation(observation) => {
                read.observations += 1;
                Entry::Observation(observation)
            }
            LineIn::Row(row) => {
                read.rows += 1;
                Entry::Row(row)
            }
            LineIn::Fault(fault) => {
                read.faults += 1;
                Entry::Fault(fault)
            }
            LineIn::End(said) => {
                self.state = State::Ended;
                self.summary.ended = true;
                self.summary.not_written = said.not_written;
                let all = |counts: Counts| {
                    [counts.observations, counts.rows, counts.faults]
                        .into_iter()
                        .fold(0_u64, u64::saturating_add)
                };
                let found = *read;
                // What was not understood may be among what the end line counts, or of a kind that
                // it does not count.
                let not_understood = self
                    .summary
                    .skipped()
                    .saturating_add(self.summary.bad_lines);
                let each_fits = found.observations <= said.observations
                    && found.rows <= said.rows
                    && found.faults <= said.faults;
                if !each_fits || all(said) - all(found) > not_understood {
                    return Err(ReadErrorKind::CountsDiffer { said, found });
                }
                Entry::End(said)
            }
        }))
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Entry, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.state != State::Over {
            let read = read_line(
                &mut self.inner,
                &mut self.buffer,
                MAX_LINE_BYTES,
                &mut self.summary.bytes,
            );
            self.line += 1;
            let first = self.state == State::Header;
            let ended = match read {
                Ok(Line::Whole { ended }) => ended,
                Ok(Line::EndOfFile) => {
                    self.state = State::Over;
                    return first.then(|| Err(self.error(ReadErrorKind::Empty)));
                }
                Ok(Line::TooLong) if first => {
                    self.state = State::Over;
                    let why = "it is longer than any header".to_owned();
                    return Some(Err(self.error(ReadErrorKind::NotALedger { why })));
                }
                Ok(Line::TooLong) => return Some(Err(self.error(ReadErrorKind::TooLong))),
                Err(error) => {
                    self.state = State::Over;
                    return Some(Err(self.error(ReadErrorKind::Io(error))));
                }
            };
            if first {
                return Some(match self.header() {
                    Ok(header) => {
                        self.state = State::Body;
                        Ok(Entry::Header(header))
                    }
                    Err(kind) => {
                        self.state = State::Over;
                        Err(self.error(kind))
                    }
                });
            }
            if self.buffer.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if self.state == State::Ended {
                self.state = State::Over;
                return Some(Err(self.error(ReadErrorKind::AfterEnd)));
            }
            match self.body() {
                Ok(Some(entry)) => return Some(Ok(entry)),
                Ok(None) => {}
                Err(ReadErrorKind::Malformed(_) | ReadErrorKind::NotUtf8) if !ended => {
                    self.summary.last_line_truncated = true;
                }
                Err(kind) => return Some(Err(self.error(kind))),
            }
        }
        None
    }
}

fn not_a_ledger(error: serde_json::Error) -> ReadErrorKind {
    ReadErrorKind::NotALedger {
        why: at_column(&error.to_string()),
    }
}

/// serde_json says "at line 1 column 7" of every one of our lines: the column is what helps.
fn at_column(message: &str) -> String {
    message.replace("at line 1 column", "at column")
}

/// Name of an enumeration's value that this build does not know, by serde's message for it.
fn unknown_variant(message: &str) -> Option<&str> {
    message
        .strip_prefix("unknown variant `")?
        .split('`')
        .next()
        .filter(|name| !name.is_empty())
}
