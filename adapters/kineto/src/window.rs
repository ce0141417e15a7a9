//! The part of the text that is looked at: it slides over the file and holds one value at a time.

use crate::fields::{bare_length, is_space};
use crate::input::{Blocks, End};
use crate::scan::Skipper;

/// A number or a word may have this many bytes.
const LONGEST_BARE: usize = 4096;

/// A value that was stepped over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Passed {
    /// It is whole, and lies here in [`Window::text`] until the window moves on.
    Whole(std::ops::Range<usize>),
    /// It was longer than allowed, and was not kept.
    TooLong,
    /// It was nested too deeply.
    TooDeep,
}

/// Why a value could not be stepped over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// The text ends in it.
    AtTheEnd,
    /// There is no value here.
    NoValue,
}

/// A window over the blocks of a file.
pub(crate) struct Window<'scope> {
    blocks: Blocks<'scope>,
    text: Vec<u8>,
    position: usize,
    /// Bytes of text before those held.
    passed: u64,
    blocks_taken: u64,
}

impl<'scope> Window<'scope> {
    /// A window at the start of these blocks.
    pub(crate) const fn new(blocks: Blocks<'scope>) -> Self {
        Self {
            blocks,
            text: Vec::new(),
            position: 0,
            passed: 0,
            blocks_taken: 0,
        }
    }

    /// The text held.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Bytes of text before the window's position.
    pub(crate) const fn offset(&self) -> u64 {
        self.passed + self.position as u64
    }

    /// Blocks taken so far: a change of it is an occasion to report progress.
    pub(crate) const fn blocks_taken(&self) -> u64 {
        self.blocks_taken
    }

    /// Bytes of the file read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.blocks.bytes_read()
    }

    /// Why the text ended.
    pub(crate) fn take_end(&mut self) -> End {
        self.blocks.take_end()
    }

    /// The next byte that is no space, without stepping over it; `None` at the end.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text[self.position..]
                .iter()
                .position(|&byte| !is_space(byte))
            {
                Some(spaces) => {
                    self.position += spaces;
                    return Some(self.text[self.position]);
                }
                None => {
                    self.position = self.text.len();
                    if !self.fill() {
                        return None;
                    }
                }
            }
        }
    }

    /// The text held from the position on.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.text[self.position..]
    }

    /// Steps over so many bytes, which must be held.
    pub(crate) const fn step(&mut self, bytes: usize) {
        self.position += bytes;
    }

    /// Steps over a byte-order mark, if the text starts with one.
    pub(crate) fn skip_byte_order_mark(&mut self) {
        const MARK: &[u8] = "\u{feff}".as_bytes();
        while self.text.len() < MARK.len() && self.fill() {}
        if self.text.starts_with(MARK) {
            self.position += MARK.len();
        }
    }

    /// Steps over the value that starts at the next byte that is no space, keeping it if it has
    /// at most `longest` bytes.
    pub(crate) fn value(&mut self, longest: usize) -> Result<Passed, Stopped> {
        match self.peek().ok_or(Stopped::AtTheEnd)? {
            b'{' | b'[' | b'"' => self.nested(longest),
            _ => self.bare(),
        }
    }

    fn nested(&mut self, longest: usize) -> Result<Passed, Stopped> {
        let mut skipper = Skipper::default();
        let mut scanned = 0;
        let mut too_long = false;
        loop {
            if let Some(length) = skipper.skip(&self.text[self.position + scanned..]) {
                let start = self.position;
                self.position += scanned + length;
                return Ok(if skipper.too_deep() {
                    Passed::TooDeep
                } else if too_long || self.position - start > longest {
                    Passed::TooLong
                } else {
                    Passed::Whole(start..self.position)
                });
            }
            scanned = self.text.len() - self.position;
            if too_long || scanned > longest || skipper.too_deep() {
                too_long = true;
                self.position = self.text.len();
                scanned = 0;
            }
            if !self.fill() {
                return Err(Stopped::AtTheEnd);
            }
        }
    }

    fn bare(&mut self) -> Result<Passed, Stopped> {
        loop {
            let held = &self.text[self.position..];
            let length = bare_length(held);
            if length == 0 || length > LONGEST_BARE {
                return Err(Stopped::NoValue);
            }
            if length < held.len() {
                let start = self.position;
                self.position += length;
                return Ok(Passed::Whole(start..self.position));
            }
            if !self.fill() {
                return Err(Stopped::AtTheEnd);
            }
        }
    }

    /// Takes one more block, and forgets what lies before the position. `false` at the end.
    fn fill(&mut self) -> bool {
        self.passed += self.position as u64;
        self.text.drain(..self.position);
        self.position = 0;
        let more = self.blocks.append_to(&mut self.text) > 0;
        self.blocks_taken += u64::from(more);
        more
    }
}
