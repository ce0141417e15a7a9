//! The request's epoch, for handlers and other layers.

use lineage_core::id::LaunchEpoch;
use lineage_core::{Epoch, HasEpoch};

/// The epoch of a request: an extension of the request and of its response.
///
/// With the feature `axum` it is an extractor. It never rejects: without the layer it is what is
/// current, or inert.
///
/// It is current in the handler anyway; take it where the work goes on elsewhere, as on an upgraded
/// connection, or to mark moments of it.
#[derive(Debug, Clone, Default)]
pub struct RequestEpoch(pub Epoch);

impl HasEpoch for RequestEpoch {
    fn epoch(&self) -> Option<LaunchEpoch> {
        self.0.id()
    }
}

#[cfg(feature = "axum")]
impl<S: Sync> axum::extract::FromRequestParts<S> for RequestEpoch {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        _state: &S,
    ) -> Result<Self, Self::Rejection> {
        let attached = parts.extensions.get::<Self>().cloned();
        Ok(attached.unwrap_or_else(|| Self(Epoch::current())))
    }
}
