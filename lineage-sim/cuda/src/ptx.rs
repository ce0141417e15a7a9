//! What the simulator reads of a module's PTX text: the entries and their parameters.

use crate::abi::RawParameter;

/// One `.entry` of a module.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) parameters: Vec<RawParameter>,
    /// Size of the parameter block.
    pub(crate) bytes: u32,
}

/// The text is not PTX.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotPtx;

/// Reads the entries of a module.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>, NotPtx> {
    let tokens = tokens(text);
    if !tokens.contains(&".version") || !tokens.contains(&".target") {
        return Err(NotPtx);
    }
    let mut entries = Vec::new();
    let mut rest = tokens.as_slice();
    while let Some(at) = rest.iter().position(|token| *token == ".entry") {
        rest = &rest[at + 1..];
        let (name, after) = rest.split_first().ok_or(NotPtx)?;
        if !is_identifier(name) {
            return Err(NotPtx);
        }
        rest = after;
        let mut parameters = Vec::new();
        let mut bytes = 0;
        if rest.first() == Some(&"(") {
            let end = rest.iter().position(|token| *token == ")").ok_or(NotPtx)?;
            for declaration in rest[1..end].split(|token| *token == ",") {
                if declaration.is_empty() && end == 1 {
                    continue;
                }
                parameters.push(parameter(declaration, &mut bytes)?);
            }
            rest = &rest[end + 1..];
        }
        entries.push(Entry {
            name: (*name).to_owned(),
            parameters,
            bytes,
        });
    }
    Ok(entries)
}

/// `.param .align 8 .b8 name[24]`, `.param .u64 .ptr .global .align 1 name`, `.param .f32 name`.
fn parameter(declaration: &[&str], end: &mut u32) -> Result<RawParameter, NotPtx> {
    let mut words = declaration.iter().copied();
    if words.next() != Some(".param") {
        return Err(NotPtx);
    }
    let mut size = None;
    let mut alignment = None;
    // The alignment after `.ptr` is that of the memory pointed to.
    let mut pointee = false;
    let mut count = 1_u32;
    while let Some(word) = words.next() {
        match word {
            ".align" => {
                let value = number(words.next())?;
                if !pointee {
                    alignment = Some(value);
                }
            }
            ".ptr" => pointee = true,
            "[" => count = number(words.next())?,
            _ => size = size.or_else(|| size_of_type(word)),
        }
    }
    let element = size.ok_or(NotPtx)?;
    let alignment = alignment.unwrap_or(element).max(1);
    if !alignment.is_power_of_two() {
        return Err(NotPtx);
    }
    let size = element.checked_mul(count).ok_or(NotPtx)?;
    let offset = end.checked_next_multiple_of(alignment).ok_or(NotPtx)?;
    *end = offset.checked_add(size).ok_or(NotPtx)?;
    Ok(RawParameter { offset, size })
}

fn number(word: Option<&str>) -> Result<u32, NotPtx> {
    word.and_then(|word| word.parse().ok()).ok_or(NotPtx)
}

fn size_of_type(word: &str) -> Option<u32> {
    Some(match word {
        ".u8" | ".s8" | ".b8" => 1,
        ".u16" | ".s16" | ".b16" | ".f16" | ".bf16" => 2,
        ".u32" | ".s32" | ".b32" | ".f32" | ".f16x2" => 4,
        ".u64" | ".s64" | ".b64" | ".f64" | ".texref" | ".samplerref" | ".surfref" => 8,
        ".b128" => 16,
        _ => return None,
    })
}

fn is_identifier(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '$' | '%'))
}

/// Words and single marks, without comments and strings.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(inner) = rest.strip_prefix('"') {
            inner.find('"').map_or(rest.len(), |end| end + 2)
        } else {
            let word = |byte: &u8| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'%')
            };
            let length = bytes[at..].iter().take_while(|byte| word(byte)).count();
            if length > 0 {
                tokens.push(&rest[..length]);
                length
            } else {
                let mark = rest.chars().next().map_or(1, char::len_utf8);
                if !rest[..mark].trim().is_empty() {
                    tokens.push(&rest[..mark]);
                }
                mark
            }
        };
        at += length;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    fn one(text: &str) -> Entry {
        parse(&format!("{HEAD}{text}"))
            .expect("it is ptx")
            .remove(0)
    }

    fn layout(entry: &Entry) -> Vec<(u32, u32)> {
        entry
            .parameters
            .iter()
            .map(|parameter| (parameter.offset, parameter.size))
            .collect()
    }

    #[test]
    fn parameters_are_aligned_as_their_types() {
        let entry = one(
            ".visible .entry scale(\n .param .u32 scale_param_0,\n .param .u64 scale_param_1, .param .f32 c , .param .u8 d, .param .f64 e)\n{ ret; }",
        );
        assert_eq!(entry.name, "scale");
        assert_eq!(layout(&entry), [(0, 4), (8, 8), (16, 4), (20, 1), (24, 8)]);
        assert_eq!(entry.bytes, 32);
    }

    #[test]
    fn structures_and_annotated_pointers_are_read() {
        let entry = one(
            ".entry k(.param .u8 a, .param .align 8 .b8 s[20], .param .u64 .ptr .global .align 1 p) { }",
        );
        assert_eq!(layout(&entry), [(0, 1), (8, 20), (32, 8)]);
        assert_eq!(entry.bytes, 40);
    }

    #[test]
    fn entries_without_parameters_and_comments_are_read() {
        let entries = parse(&format!("{HEAD} // .entry no(\n/* .entry no2 */ .entry a() {{ }} .entry b {{ }} .entry c\n(\n) .maxntid 1 {{ }}")).unwrap();
        let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(
            entries
                .iter()
                .all(|entry| entry.parameters.is_empty() && entry.bytes == 0)
        );
    }

    #[test]
    fn other_text_is_refused() {
        assert_eq!(parse("hello"), Err(NotPtx));
        assert_eq!(parse(".entry a()"), Err(NotPtx));
        assert_eq!(parse(&format!("{HEAD}.entry k(.param .u64")), Err(NotPtx));
        assert_eq!(
            parse(&format!("{HEAD}.entry k(.param .what x)")),
            Err(NotPtx)
        );
        assert_eq!(
            parse(&format!("{HEAD}.entry k(.param .align 3 .b8 x[4])")),
            Err(NotPtx)
        );
    }
}
