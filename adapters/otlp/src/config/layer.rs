//! What is given for all signals, or for one of them.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{Compression, Protocol};

/// Something that was given, and where.
#[derive(Clone, Debug)]
pub(super) struct Given<T> {
    pub(super) name: String,
    pub(super) value: T,
}

/// Headers by name; a value is never shown.
#[derive(Clone, Default)]
pub(super) struct Headers(pub(super) Vec<(String, String)>);

impl fmt::Debug for Headers {
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
        f.write_str(&super::endpoint::without_user(&self.0))
    }
}

/// One signal's variables, or those for all. What is `None` was not given.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    pub(super) endpoint: Option<Given<Url>>,
    pub(super) protocol: Option<Given<Protocol>>,
    pub(super) headers: Option<Given<Headers>>,
    pub(super) timeout: Option<Duration>,
    pub(super) compression: Option<Given<Compression>>,
    pub(super) certificate: Option<Given<PathBuf>>,
    pub(super) client_certificate: Option<Given<PathBuf>>,
    pub(super) client_key: Option<Given<PathBuf>>,
    pub(super) insecure: Option<bool>,
}
