//! The request that a range was made for, where a server wrote its id into its text.
//!
//! There is no convention that all servers share. What is taken for an id: the value of a member
//! `request_id`, `req_id` or `rid` of an event's `args`; and in a name the words that follow
//! `request_id`, `req_id` or `rid` and a sign between them (`request_id=7f3a`, `rid: 12`), or
//! `request` and a number (`request 123`, `request #123`).

/// Whether a member of `args` with this name holds a request's id.
pub fn is_request_key(key: &[u8]) -> bool {
    [
        &b"request_id"[..],
        b"req_id",
        b"rid",
        b"request id",
        b"requestid",
    ]
    .iter()
    .any(|name| key.eq_ignore_ascii_case(name))
}

/// The request's id in a range's text.
pub fn request_in(name: &str) -> Option<&str> {
    let bytes = name.as_bytes();
    let mut from = 0;
    while let Some(length) = word_length(&bytes[from..]) {
        let word = &bytes[from..from + length];
        let after = &name[from + length..];
        let id = if is_request_key(word) {
            after
                .trim_start()
                .strip_prefix(['=', ':', '#'])
                .and_then(identifier)
        } else if word.eq_ignore_ascii_case(b"request") || word.eq_ignore_ascii_case(b"req") {
            let after = after.trim_start().trim_start_matches(['=', ':', '#']);
            identifier(after).filter(|id| id.starts_with(|first: char| first.is_ascii_digit()))
        } else {
            None
        };
        if id.is_some() {
            return id;
        }
        from += length;
        from += bytes[from..]
            .iter()
            .take_while(|&&byte| !is_word(byte))
            .count();
    }
    None
}

/// The length of the word that `bytes` starts with, 0 if it starts with something else; `None` at
/// the end.
fn word_length(bytes: &[u8]) -> Option<usize> {
    (!bytes.is_empty()).then(|| bytes.iter().take_while(|&&byte| is_word(byte)).count())
}

/// Bytes beyond ASCII count as word, so that no character is cut.
const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// The identifier that `text` starts with, after spaces and quotes: letters, digits, `-`, `_`, `.`.
fn identifier(text: &str) -> Option<&str> {
    let text = text.trim_start().trim_start_matches(['"', '\'']);
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(text.len());
    (end > 0).then(|| text[..end].trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_is_found_where_a_server_wrote_one() {
        for (name, id) in [
            ("request_id=7f3a-01", Some("7f3a-01")),
            ("decode request_id: cmpl-9e1.", Some("cmpl-9e1")),
            ("prefill(req_id='a1', tokens=5)", Some("a1")),
            ("step rid=12 bs=4", Some("12")),
            ("Request #123", Some("123")),
            ("request 42: decode", Some("42")),
            ("generate_request 42", None),
            ("request handling", None),
            ("request", None),
            ("request_id", None),
            ("grid=3", None),
            ("ProfilerStep#6", None),
            ("execute_32_context_0(sq0sk0sqsq0sqsk0)", None),
            ("é request 5 é", Some("5")),
            ("requête 5", None),
            ("", None),
        ] {
            assert_eq!(request_in(name), id, "{name}");
        }
    }

    #[test]
    fn keys_of_args_are_known_in_any_case() {
        assert!(is_request_key(b"request_id"));
        assert!(is_request_key(b"Request ID"));
        assert!(!is_request_key(b"External id"));
    }
}
