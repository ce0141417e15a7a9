//! What there is to know of a request before its body.

use http::{Extensions, HeaderMap, Method, Request, Uri};

/// A request without its body, for names and filters.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target. Never use it as a name: clients choose it.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// What layers and routers before this one have attached.
    pub extensions: &'a Extensions,
}

impl<'a> RequestHead<'a> {
    pub(crate) fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    /// The template of the route that matched, as `/generate/{model}`: with the feature `axum`, and
    /// in a layer that lies inside axum's router.
    pub fn route(&self) -> Option<&'a str> {
        #[cfg(feature = "axum")]
        return self
            .extensions
            .get::<axum::extract::MatchedPath>()
            .map(axum::extract::MatchedPath::as_str);
        #[cfg(not(feature = "axum"))]
        None
    }
}
