//! Texts of a file: bounded, and never trusted to be UTF-8.

use crate::tables::Value;

/// The most that is read of a name. Less is kept: that the rest was cut is then counted.
pub(crate) const NAME_BYTES: usize = 32 << 10;
/// The most that is kept of a text that is only shown.
pub(crate) const NOTE_BYTES: usize = 400;

/// A text's first bytes, to a whole character.
pub(crate) fn of(value: Value<'_>, most_bytes: usize) -> Option<String> {
    let Value::Text(bytes) = value else {
        return None;
    };
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(most_bytes)]).into_owned();
    if bytes.len() > most_bytes {
        // The cut may have gone through a character, which is then a replacement character.
        text.truncate(text.trim_end_matches('\u{fffd}').len());
        text.push('…');
    }
    Some(text)
}

/// A text as one line of a note: control characters become spaces, and spaces in a row one.
pub(crate) fn note(value: Value<'_>) -> Option<String> {
    let text = of(value, NOTE_BYTES)?;
    let words: Vec<&str> = text
        .split(|character: char| character.is_whitespace() || character.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        assert_eq!(of(Value::Text("aé".as_bytes()), 2).as_deref(), Some("a…"));
        assert_eq!(of(Value::Text("aé".as_bytes()), 3).as_deref(), Some("aé"));
        assert_eq!(of(Value::Text(b"a\xffb"), 9).as_deref(), Some("a\u{fffd}b"));
        assert_eq!(of(Value::Integer(3), 9), None);
    }

    #[test]
    fn a_note_has_no_control_characters() {
        let hostile = b"first\n\x1b[31m second\t\x07 third\xc2\x9b";
        assert_eq!(
            note(Value::Text(hostile)).as_deref(),
            Some("first [31m second third")
        );
    }
}
