//! Names, kept once each, in bounded room.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Bytes of one name that are kept.
const LONGEST: usize = 16 << 10;

/// Bytes of all names that are kept.
const ALL: usize = 64 << 20;

/// A name that was given to a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub(crate) u32);

#[derive(Debug, Default)]
pub(crate) struct Names {
    ids: FxHashMap<Arc<str>, NameId>,
    texts: Vec<Arc<str>>,
    bytes: usize,
}

impl Names {
    /// The id of a text, and whether all of it was kept.
    pub(crate) fn id(&mut self, text: &str) -> (NameId, bool) {
        if let Some(&id) = self.ids.get(text) {
            return (id, true);
        }
        let mut kept = text;
        if text.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|&end| text.is_char_boundary(end));
            kept = &text[..end.unwrap_or(0)];
        }
        if self.bytes + kept.len() > ALL {
            kept = "(a name that was not kept)";
        }
        if kept.len() != text.len() || kept != text {
            return match self.ids.get(kept) {
                Some(&id) => (id, false),
                None => (self.insert(kept), false),
            };
        }
        (self.insert(text), true)
    }

    fn insert(&mut self, text: &str) -> NameId {
        let id = NameId(u32::try_from(self.texts.len()).unwrap_or(u32::MAX));
        let text: Arc<str> = text.into();
        self.bytes += text.len();
        self.texts.push(text.clone());
        self.ids.insert(text, id);
        id
    }

    pub(crate) fn text(&self, id: NameId) -> Arc<str> {
        match self.texts.get(id.0 as usize) {
            Some(text) => text.clone(),
            None => Arc::from(""),
        }
    }

    /// For reading alone.
    pub(crate) fn into_texts(self) -> Vec<Arc<str>> {
        self.texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_a_long_one_is_cut_between_characters() {
        let mut names = Names::default();
        let (first, whole) = names.id("gemm");
        assert!(whole);
        assert_eq!(names.id("gemm"), (first, true));
        let long = format!("a{}", "é".repeat(LONGEST));
        let (id, whole) = names.id(&long);
        assert!(!whole);
        assert_eq!(names.text(id).len(), LONGEST - 1);
        assert_eq!(names.id(&long), (id, false));
    }
}
