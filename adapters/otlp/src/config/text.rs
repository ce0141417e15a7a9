//! The forms in which the standard variables hold lists.

/// `key=value,key=value`, as in `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_EXPORTER_OTLP_HEADERS`: both sides percent-encoded where
/// they need it (<https://opentelemetry.io/docs/specs/otel/resource/sdk/#specifying-resource-information-via-an-environment-variable>).
/// The error says what is wrong without showing any of it.
pub(crate) fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    for (index, pair) in text.split(',').enumerate() {
        if pair.trim().is_empty() {
            continue;
        }
        let Some((key, value)) = pair.split_once('=') else {
            return Err(format!("entry {} has no `=`", index + 1));
        };
        let decoded = |text: &str| {
            percent_decoded(text.trim())
                .ok_or_else(|| format!("entry {} is not percent-encoded UTF-8", index + 1))
        };
        let (key, value) = (decoded(key)?, decoded(value)?);
        if key.is_empty() {
            return Err(format!("entry {} has no key", index + 1));
        }
        pairs.push((key, value));
    }
    Ok(pairs)
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            _ => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_are_decoded_and_a_value_may_hold_an_equals_sign() {
        let read = pairs("a=b, key%20two = x%2Cy%3D%C3%A9 ,,auth=Basic dTpw==").expect("pairs");
        let expected = [("a", "b"), ("key two", "x,y=é"), ("auth", "Basic dTpw==")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(read, expected);
        assert_eq!(pairs(""), Ok(Vec::new()));
    }

    #[test]
    fn what_is_wrong_is_told_by_its_place_and_not_by_its_text() {
        for text in [
            "a=1,secret",
            "a=1,secret=%4",
            "a=1,secret=%zz",
            "a=1,=secret",
            "a=1,secret=%ff",
        ] {
            let why = pairs(text).expect_err(text);
            assert!(why.contains("entry 2") && !why.contains("secret"), "{why}");
        }
    }
}
