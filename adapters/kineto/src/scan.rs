//! Where a JSON value ends: the one loop that sees every byte of a file.
//!
//! Eight bytes are looked at in one step. Outside a string only a quote and the four brackets
//! matter, inside one only the quote and the backslash; all else is stepped over.

/// How deeply values may be nested. A recording's own nesting is below ten.
pub(crate) const DEEPEST: u32 = 128;

/// Finds the end of a value that starts with a quote or an opening bracket. It may be given the
/// value in parts.
///
/// Brackets are counted, not matched: whether a value is well-formed is for who reads it.
#[derive(Debug, Default)]
pub(crate) struct Skipper {
    depth: u32,
    /// The depth that the value lies at: coming back to it is its end.
    outside: u32,
    deepest: u32,
    in_string: bool,
    escaped: bool,
}

impl Skipper {
    /// For a value that lies in so many others.
    pub(crate) const fn inside(depth: u32) -> Self {
        Self {
            depth,
            outside: depth,
            deepest: depth,
            in_string: false,
            escaped: false,
        }
    }

    /// For the rest of an object that is itself in no other, after one of its members.
    pub(crate) const fn rest_of_object() -> Self {
        Self {
            outside: 0,
            ..Self::inside(1)
        }
    }

    /// Takes the next part: the number of its bytes up to and with the value's last, or `None`
    /// if the value goes on after it.
    pub(crate) fn skip(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut position = 0;
        loop {
            if self.in_string {
                position = self.leave_string(bytes, position)?;
                if self.depth == self.outside {
                    return Some(position);
                }
            }
            position += structural(bytes.get(position..)?)?;
            match bytes[position] {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.depth = self.depth.saturating_add(1);
                    self.deepest = self.deepest.max(self.depth);
                }
                _ => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth <= self.outside {
                        return Some(position + 1);
                    }
                }
            }
            position += 1;
        }
    }

    /// Whether the value was nested deeper than [`DEEPEST`], as far as it was seen.
    pub(crate) fn too_deep(&self) -> bool {
        self.deepest > DEEPEST
    }

    /// The position after the quote that ends the string, or `None` if it goes on.
    fn leave_string(&mut self, bytes: &[u8], mut position: usize) -> Option<usize> {
        if self.escaped {
            bytes.get(position)?;
            self.escaped = false;
            position += 1;
        }
        loop {
            position += quote_or_backslash(bytes.get(position..)?)?;
            if bytes[position] == b'"' {
                self.in_string = false;
                return Some(position + 1);
            }
            position += 2;
            if position > bytes.len() {
                self.escaped = true;
                return None;
            }
        }
    }
}

const LOW_BITS: u64 = u64::from_ne_bytes([0x01; 8]);
const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; 8]);

/// The high bit of each byte of `word` that is `byte`. Exact up to the first such byte, counted
/// from the low end; beyond it a borrow may have set others.
const fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (LOW_BITS * byte as u64);
    difference.wrapping_sub(LOW_BITS) & !difference & HIGH_BITS
}

/// The first byte of which `matches` sets the high bit, where `is` is the same test of one byte.
#[inline(always)]
fn find(bytes: &[u8], matches: impl Fn(u64) -> u64, is: impl Fn(u8) -> bool) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = matches(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(index * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let from = words.len() * 8;
    rest.iter()
        .position(|&byte| is(byte))
        .map(|index| from + index)
}

/// The first quote or bracket. Bit 5 is set first: it alone tells `[` from `{` and `]` from `}`.
#[inline(always)]
fn structural(bytes: &[u8]) -> Option<usize> {
    find(
        bytes,
        |word| {
            let folded = word | (LOW_BITS * 0x20);
            equal(word, b'"') | equal(folded, b'{') | equal(folded, b'}')
        },
        |byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'),
    )
}

/// The first quote or backslash.
#[inline(always)]
pub(crate) fn quote_or_backslash(bytes: &[u8]) -> Option<usize> {
    find(
        bytes,
        |word| equal(word, b'"') | equal(word, b'\\'),
        |byte| matches!(byte, b'"' | b'\\'),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(text: &str) -> Option<usize> {
        Skipper::default().skip(text.as_bytes())
    }

    #[test]
    fn a_value_ends_at_its_own_last_byte() {
        assert_eq!(end_of("{}, {}"), Some(2));
        assert_eq!(end_of("[1, [2, 3], {\"a\": []}], 4"), Some(22));
        assert_eq!(end_of("\"text\", 1"), Some(6));
        assert_eq!(end_of("{\"brackets in a string: ]}{[\": 1} "), Some(33));
    }

    #[test]
    fn an_escaped_quote_ends_no_string() {
        assert_eq!(end_of(r#""a\"b" "#), Some(6));
        assert_eq!(end_of(r#""a\\" ""#), Some(5));
        assert_eq!(end_of(r#"{"\\\"}": "}"}"#), Some(14));
    }

    #[test]
    fn what_is_cut_off_has_no_end() {
        for cut in ["{", "{\"a", "{\"a\\", "[[]", "\"", "\"\\", "\"\\\""] {
            assert_eq!(end_of(cut), None, "{cut}");
        }
    }

    #[test]
    fn a_value_may_come_in_parts_of_any_size() {
        let value = r#"{"name": "a\\\"b]", "list": [1, "x\\", {"y": [[]]}], "end": "\\"}"#;
        let text = format!("{value}, {value}");
        for size in 1..=text.len() {
            let mut skipper = Skipper::default();
            let mut seen = 0;
            let end = text.as_bytes().chunks(size).find_map(|part| {
                let end = skipper.skip(part).map(|end| seen + end);
                seen += part.len();
                end
            });
            assert_eq!(end, Some(value.len()), "parts of {size}");
        }
    }

    #[test]
    fn depth_is_counted_not_recursed_into() {
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for (depth, too_deep) in [(128, false), (129, true), (1_000_000, true)] {
            let mut skipper = Skipper::default();
            assert_eq!(skipper.skip(deep(depth).as_bytes()), Some(2 * depth));
            assert_eq!(skipper.too_deep(), too_deep, "{depth}");
        }
    }

    #[test]
    fn only_the_bytes_that_matter_are_found() {
        for byte in 0..=u8::MAX {
            for place in 0..20 {
                let mut bytes = [b' '; 20];
                bytes[place] = byte;
                let expected = b"\"{}[]".contains(&byte).then_some(place);
                assert_eq!(structural(&bytes), expected, "{byte} at {place}");
                let expected = b"\"\\".contains(&byte).then_some(place);
                assert_eq!(quote_or_backslash(&bytes), expected, "{byte} at {place}");
            }
        }
    }
}
