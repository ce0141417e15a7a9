//! The members of one JSON object or array, as slices of its text.
//!
//! Nothing is copied and nothing is decoded until it is asked for. Beyond JSON, the words that
//! Python and C++ write for numbers that are none (`NaN`, `-Infinity`, `inf`) are values too.

use std::borrow::Cow;

use crate::scan::{Skipper, quote_or_backslash};

/// The text is no JSON, at this byte of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A string as it stands between its quotes, escapes not undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'t> {
    bytes: &'t [u8],
    has_escapes: bool,
}

impl<'t> Text<'t> {
    /// The string that is this text, its quotes included.
    pub(crate) fn of_quoted(quoted: &'t [u8]) -> Self {
        let bytes = quoted.strip_prefix(b"\"").unwrap_or(quoted);
        Self::of_raw(bytes.strip_suffix(b"\"").unwrap_or(bytes))
    }

    /// The string between quotes that is this text.
    pub(crate) fn of_raw(bytes: &'t [u8]) -> Self {
        Self {
            bytes,
            has_escapes: bytes.contains(&b'\\'),
        }
    }

    /// The bytes between the quotes.
    pub(crate) const fn raw(self) -> &'t [u8] {
        self.bytes
    }

    /// What follows its last space; all of it, if there is none.
    pub(crate) fn after_last_space(self) -> Self {
        let start = self.bytes.iter().rposition(|&byte| byte == b' ');
        Self {
            bytes: &self.bytes[start.map_or(0, |space| space + 1)..],
            ..self
        }
    }

    /// What the string says. What is no UTF-8 or no escape is replaced, as no name is worth the
    /// loss of its record.
    pub(crate) fn decode(self) -> Cow<'t, str> {
        if self.has_escapes {
            return Cow::Owned(unescape(self.bytes));
        }
        match std::str::from_utf8(self.bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(self.bytes),
        }
    }

    /// What the string says, as bytes.
    pub(crate) fn decode_bytes(self) -> Cow<'t, [u8]> {
        if self.has_escapes {
            Cow::Owned(unescape(self.bytes).into_bytes())
        } else {
            Cow::Borrowed(self.bytes)
        }
    }
}

/// A value as it stands in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'t> {
    /// A string.
    Text(Text<'t>),
    /// A number, or a word: `true`, `null`, `NaN`.
    Bare(&'t [u8]),
    /// An object with its braces.
    Object(&'t [u8]),
    /// An array with its brackets.
    Array(&'t [u8]),
}

/// Steps through the members of an object, or the elements of an array.
///
/// The text may go on behind the object's end: [`length`](Self::length) says where that is.
#[derive(Debug)]
pub(crate) struct Members<'t> {
    text: &'t [u8],
    position: usize,
    close: u8,
    first: bool,
    /// How many objects and arrays a member lies in.
    depth: u32,
}

impl<'t> Members<'t> {
    /// The members of the object that this text starts with.
    pub(crate) const fn of_object(text: &'t [u8]) -> Self {
        Self {
            text,
            position: 1,
            close: b'}',
            first: true,
            depth: 1,
        }
    }

    /// The elements of the array that this text starts with.
    pub(crate) const fn of_array(text: &'t [u8]) -> Self {
        Self {
            close: b']',
            ..Self::of_object(text)
        }
    }

    /// The name of the next member, escapes undone, or `None` after the last. Its
    /// [value](Self::value) comes next.
    pub(crate) fn next_key(&mut self) -> Result<Option<Cow<'t, [u8]>>, Malformed> {
        if !self.step()? {
            return Ok(None);
        }
        if self.text.get(self.position) != Some(&b'"') {
            return Err(Malformed);
        }
        let key = self.string()?;
        self.skip_space();
        if self.text.get(self.position) != Some(&b':') {
            return Err(Malformed);
        }
        self.position += 1;
        self.skip_space();
        Ok(Some(key.decode_bytes()))
    }

    /// The next element, or `None` after the last.
    pub(crate) fn next_element(&mut self) -> Result<Option<Value<'t>>, Malformed> {
        if self.step()? {
            self.value().map(Some)
        } else {
            Ok(None)
        }
    }

    /// The value of the member whose key was read.
    pub(crate) fn value(&mut self) -> Result<Value<'t>, Malformed> {
        let rest = &self.text[self.position..];
        match rest.first() {
            Some(b'"') => self.string().map(Value::Text),
            Some(open @ (b'{' | b'[')) => {
                let mut skipper = Skipper::inside(self.depth);
                let length = skipper.skip(rest).ok_or(Malformed)?;
                if skipper.too_deep() {
                    return Err(Malformed);
                }
                self.position += length;
                Ok(match open {
                    b'{' => Value::Object(&rest[..length]),
                    _ => Value::Array(&rest[..length]),
                })
            }
            _ => {
                let length = bare_length(rest);
                if length == 0 {
                    return Err(Malformed);
                }
                self.position += length;
                Ok(Value::Bare(&rest[..length]))
            }
        }
    }

    /// The members of the value of the member whose key was read, if that is an object. Once they
    /// are read, [`leave`](Self::leave) it.
    pub(crate) fn enter(&self) -> Option<Self> {
        let is_object = self.text.get(self.position) == Some(&b'{');
        is_object.then(|| Self {
            depth: self.depth + 1,
            ..Self::of_object(&self.text[self.position..])
        })
    }

    /// Goes on behind an object that was [entered](Self::enter) and read to its end.
    pub(crate) const fn leave(&mut self, inner: &Self) {
        self.position += inner.length();
    }

    /// The length of the object's text, once its members were read.
    pub(crate) const fn length(&self) -> usize {
        self.position + 1
    }

    /// The length of the text of an object that is in no other, wherever in it reading has come to
    /// a member's end.
    pub(crate) fn skip_rest(&self) -> Result<usize, Malformed> {
        let mut skipper = Skipper::rest_of_object();
        let rest = skipper.skip(&self.text[self.position..]).ok_or(Malformed)?;
        if skipper.too_deep() {
            return Err(Malformed);
        }
        Ok(self.position + rest)
    }

    /// Goes to the next member or element: whether there is one.
    fn step(&mut self) -> Result<bool, Malformed> {
        self.skip_space();
        let byte = *self.text.get(self.position).ok_or(Malformed)?;
        if byte == self.close {
            return Ok(false);
        }
        if std::mem::take(&mut self.first) {
            return Ok(true);
        }
        if byte != b',' {
            return Err(Malformed);
        }
        self.position += 1;
        self.skip_space();
        Ok(true)
    }

    /// The string whose quote comes next.
    fn string(&mut self) -> Result<Text<'t>, Malformed> {
        let start = self.position + 1;
        let mut end = start;
        let mut has_escapes = false;
        loop {
            end += self
                .text
                .get(end..)
                .and_then(quote_or_backslash)
                .ok_or(Malformed)?;
            if self.text[end] == b'"' {
                self.position = end + 1;
                return Ok(Text {
                    bytes: &self.text[start..end],
                    has_escapes,
                });
            }
            has_escapes = true;
            end += 2;
        }
    }

    fn skip_space(&mut self) {
        while self.text.get(self.position).copied().is_some_and(is_space) {
            self.position += 1;
        }
    }
}

/// Whether JSON allows the byte between values.
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

/// The length of the number or word that `text` starts with; 0 if it starts with neither.
pub(crate) fn bare_length(text: &[u8]) -> usize {
    text.iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        .count()
}

/// Undoes the escapes of a JSON string (RFC 8259, section 7). An escape that is none, or half of
/// a surrogate pair, becomes U+FFFD.
fn unescape(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        let (character, length) = escape(&rest[at..]);
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[at + length..];
    }
    out.extend_from_slice(rest);
    String::from_utf8(out)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The character of the escape that `text` starts with, and the escape's length.
fn escape(text: &[u8]) -> (char, usize) {
    let character = match text.get(1) {
        None => return (char::REPLACEMENT_CHARACTER, 1),
        Some(b'u') => return unicode_escape(text),
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(&byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
        Some(_) => char::REPLACEMENT_CHARACTER,
    };
    (character, 2)
}

fn unicode_escape(text: &[u8]) -> (char, usize) {
    let Some(first) = hexadecimal(text) else {
        return (char::REPLACEMENT_CHARACTER, 2);
    };
    if let Some(character) = char::from_u32(first) {
        return (character, 6);
    }
    // Half of a pair, and the other half, if it is there.
    let second = text.get(6..).and_then(hexadecimal);
    match (first, second) {
        (0xd800..=0xdbff, Some(second @ 0xdc00..=0xdfff)) => {
            let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            (
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
                12,
            )
        }
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

/// The number of the `\uXXXX` that `text` starts with.
fn hexadecimal(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |number, &digit| {
        Some(number * 16 + char::from(digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Result<Vec<(String, String)>, Malformed> {
        let mut members = Members::of_object(text.as_bytes());
        let mut all = Vec::new();
        while let Some(key) = members.next_key()? {
            let value = match members.value()? {
                Value::Text(text) => format!("text {}", text.decode()),
                Value::Bare(bytes) => format!("bare {}", String::from_utf8_lossy(bytes)),
                Value::Object(bytes) => format!("object {}", String::from_utf8_lossy(bytes)),
                Value::Array(bytes) => format!("array {}", String::from_utf8_lossy(bytes)),
            };
            all.push((String::from_utf8_lossy(&key).into_owned(), value));
        }
        Ok(all)
    }

    #[test]
    fn every_kind_of_value_is_told_apart() {
        let text = r#"{ "a" : "b c","n":-1.5e3 , "x": NaN, "i": -Infinity,
            "o": {"p": [1, 2]}, "l": [], "t": true, "": null}"#;
        let expected = [
            ("a", "text b c"),
            ("n", "bare -1.5e3"),
            ("x", "bare NaN"),
            ("i", "bare -Infinity"),
            ("o", "object {\"p\": [1, 2]}"),
            ("l", "array []"),
            ("t", "bare true"),
            ("", "bare null"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(fields(text).as_deref(), Ok(&expected[..]));
        assert_eq!(fields("{}").as_deref(), Ok(&[][..]));
    }

    #[test]
    fn an_escaped_key_is_the_key_it_says() {
        let all = fields(r#"{"\u0063at": "kernel", "a\"b": 1}"#);
        let keys: Vec<_> = all.into_iter().flatten().map(|(key, _)| key).collect();
        assert_eq!(keys, ["cat", "a\"b"]);
    }

    #[test]
    fn escapes_are_undone() {
        for (raw, said) in [
            (r"plain", "plain"),
            (r#"a\"b\\c\/d"#, "a\"b\\c/d"),
            (r"\n\t\r\b\f", "\n\t\r\u{8}\u{c}"),
            (r"\u00e9\u4e16", "\u{e9}\u{4e16}"),
            (r"\ud83d\ude00!", "\u{1f600}!"),
            (r"\ud83d!", "\u{fffd}!"),
            (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
            (r"\u12", "\u{fffd}12"),
            (r"\q", "\u{fffd}"),
        ] {
            assert_eq!(Text::of_raw(raw.as_bytes()).decode(), said, "{raw}");
        }
        assert_eq!(Text::of_raw(b"caf\xe9").decode(), "caf\u{fffd}");
    }

    #[test]
    fn what_is_no_json_is_said_to_be_none() {
        for text in [
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\" 1}",
            "{a: 1}",
            "{\"a\": }",
            "{\"a\": 1,}",
            "{,\"a\": 1}",
            "{\"a\": 1 \"b\": 2}",
            "{\"a\": \"b}",
            "{1: 2}",
            "{\"a\": \"\\",
            "{\"a\": [1}",
        ] {
            assert_eq!(fields(text), Err(Malformed), "{text}");
        }
    }

    #[test]
    fn what_follows_an_object_is_not_part_of_it() {
        let text = br#"{"a": {"b": [1, "}"]}, "c": "\"}"}, {"d": 2}"#;
        let end = text.len() - b", {\"d\": 2}".len();
        let mut members = Members::of_object(text);
        assert_eq!(members.next_key(), Ok(Some(Cow::Borrowed(&b"a"[..]))));
        assert_eq!(members.skip_rest(), Ok(end));
        let mut inner = members.enter().expect("an object");
        assert_eq!(inner.next_key(), Ok(Some(Cow::Borrowed(&b"b"[..]))));
        assert_eq!(inner.value(), Ok(Value::Array(br#"[1, "}"]"#)));
        assert_eq!(inner.next_key(), Ok(None));
        members.leave(&inner);
        assert_eq!(members.next_key(), Ok(Some(Cow::Borrowed(&b"c"[..]))));
        assert!(members.enter().is_none());
        assert!(members.value().is_ok());
        assert_eq!(members.next_key(), Ok(None));
        assert_eq!(members.length(), end);
    }

    #[test]
    fn elements_of_an_array_come_in_order() {
        let mut members = Members::of_array(b"[ 1 ,\"2\", [3]]");
        let mut all = Vec::new();
        while let Ok(Some(value)) = members.next_element() {
            all.push(value);
        }
        let expected = [
            Value::Bare(b"1"),
            Value::Text(Text::of_quoted(b"\"2\"")),
            Value::Array(b"[3]"),
        ];
        assert_eq!(all, expected);
    }
}
