//! Text on its way out: redacted if the user says so, without control characters, and not too long.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// The longest text that is exported, in bytes: mangled names of kernels can be longer.
pub const MAX_TEXT_BYTES: usize = 1_024;

/// Texts that are remembered in the form in which they go out.
const REMEMBERED: usize = 16_384;

/// What a text is, for a [redaction](crate::OtlpBuilder::redact).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TextKind {
    /// The name of an epoch, as a route's template.
    EpochName,
    /// The name of a kernel.
    KernelName,
    /// The name of a thread.
    ThreadName,
    /// A place in the source: file, line and column.
    CallSite,
    /// What a fault says.
    FaultDetail,
}

/// A user's redaction.
pub(crate) type Redact = dyn Fn(TextKind, &str) -> Option<Cow<'static, str>> + Send;

/// Texts as they go out.
pub(crate) struct Texts {
    redact: Option<Box<Redact>>,
    known: FxHashMap<(TextKind, Arc<str>), Arc<str>>,
}

impl Texts {
    pub(crate) fn new(redact: Option<Box<Redact>>) -> Self {
        Self {
            redact,
            known: FxHashMap::default(),
        }
    }

    /// A text that comes often, as names do.
    pub(crate) fn name(&mut self, kind: TextKind, text: &Arc<str>) -> Arc<str> {
        let key = (kind, Arc::clone(text));
        if let Some(known) = self.known.get(&key) {
            return Arc::clone(known);
        }
        let clean: Arc<str> = match self.clean(kind, text) {
            Cow::Borrowed(same) if same.len() == text.len() => Arc::clone(text),
            other => other.into(),
        };
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        self.known.insert(key, Arc::clone(&clean));
        clean
    }

    /// A text that comes once.
    pub(crate) fn clean<'a>(&self, kind: TextKind, text: &'a str) -> Cow<'a, str> {
        let redacted = self.redact.as_ref().and_then(|redact| redact(kind, text));
        let mut text = redacted.map_or(Cow::Borrowed(text), |other| Cow::Owned(other.into_owned()));
        if text.len() > MAX_TEXT_BYTES {
            let mut end = MAX_TEXT_BYTES - '…'.len_utf8();
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text = Cow::Owned(format!("{}…", &text[..end]));
        }
        if text.chars().any(char::is_control) {
            let clean = |c: char| {
                if c.is_control() {
                    char::REPLACEMENT_CHARACTER
                } else {
                    c
                }
            };
            text = Cow::Owned(text.chars().map(clean).collect());
        }
        text
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Texts")
            .field("redacts", &self.redact.is_some())
            .field("known", &self.known.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_unprintable_is_mended() {
        let texts = Texts::new(None);
        assert_eq!(texts.clean(TextKind::KernelName, "gemv"), "gemv");
        assert_eq!(
            texts.clean(TextKind::KernelName, "a\u{1b}[31mb\nc"),
            "a\u{fffd}[31mb\u{fffd}c"
        );
        let long = "é".repeat(800);
        let clean = texts.clean(TextKind::KernelName, &long);
        assert_eq!(clean.len(), 1_023, "510 times two bytes, and three");
        assert!(clean.ends_with("é…"));
    }

    #[test]
    fn a_redaction_sees_what_it_is_given_and_is_cleaned_itself() {
        let mut texts = Texts::new(Some(Box::new(|kind, text| {
            (kind == TextKind::ThreadName).then(|| format!("<{}>\t", text.len()).into())
        })));
        assert_eq!(
            &*texts.name(TextKind::ThreadName, &"secret".into()),
            "<6>\u{fffd}"
        );
        assert_eq!(
            &*texts.name(TextKind::EpochName, &"secret".into()),
            "secret"
        );
    }
}
