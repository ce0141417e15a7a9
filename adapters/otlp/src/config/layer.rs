//! What is given for all signals, or for one of them.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use super::{Compression, Protocol};

/// Something that was given, and where.
#[derive(Clone, Debug)]
pub(super) struct Given<T> {
    pub(super) name: String,
    pub(super) value: T,
}

/// Names and values, as of headers and of attributes; a value is never shown.
#[derive(Clone, Default)]
pub(crate) struct Pairs(pub(super) Vec<(String, String)>);

impl Deref for Pairs {
    type Target = [(String, String)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(name, _)| name);
        f.debug_list().entries(names).finish()
    }
}

/// The part of an endpoint that is fit to be shown.
#[derive(Clone)]
pub(super) struct Url(pub(super) String);

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::endpoint::without_secrets(&self.0))
    }
}

/// The name of a file, or what was given in place of one: often what is to be in it.
#[derive(Clone)]
pub(super) struct File(pub(super) PathBuf);

impl File {
    /// Whether it is a file's content, and so perhaps a key. Files may be called almost anything, but not this.
    pub(super) fn is_content(&self) -> bool {
        let text = self.0.to_string_lossy();
        text.contains("-----BEGIN") || text.contains(['\n', '\r'])
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_content() {
            true => f.write_str("…"),
            false => self.0.fmt(f),
        }
    }
}

/// One signal's variables, or those for all. What is `None` was not given.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    pub(super) endpoint: Option<Given<Url>>,
    pub(super) protocol: Option<Given<Protocol>>,
    pub(super) headers: Option<Given<Pairs>>,
    pub(super) timeout: Option<Duration>,
    pub(super) compression: Option<Given<Compression>>,
    pub(super) certificate: Option<Given<File>>,
    pub(super) client_certificate: Option<Given<File>>,
    pub(super) client_key: Option<Given<File>>,
    pub(super) insecure: Option<bool>,
}
