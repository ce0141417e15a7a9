//! A destination made ready: certificates read, headers put together.

use bytes::Bytes;
#[cfg(any(feature = "grpc", feature = "http"))]
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};

use crate::config::{Compression, Destination, Protocol};
use crate::pipeline::FRAME;

/// A destination that cannot be sent to with this build or these files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The protocol was not built in.
    #[error("lineage-otlp was built without the feature `{feature}`, which {protocol} needs")]
    NotBuilt {
        /// `grpc` or `http`.
        feature: &'static str,
        /// The protocol that was asked for.
        protocol: Protocol,
    },
    /// An `https` endpoint, and TLS was not built in.
    #[error("lineage-otlp was built without the feature `tls`, which {endpoint} needs")]
    NoTls {
        /// Where it was to be sent.
        endpoint: String,
    },
    /// Certificates or a key cannot be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] super::tls::TlsError),
}

pub(crate) struct Target {
    pub(crate) destination: Destination,
    #[cfg(any(feature = "grpc", feature = "http"))]
    pub(super) headers: HeaderMap,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<tokio_rustls::TlsConnector>,
}

/// A request's body, as often as it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(super) body: Bytes,
}

impl Target {
    pub(crate) fn new(destination: Destination) -> Result<Self, TargetError> {
        let protocol = destination.protocol;
        let (built, feature) = match protocol {
            Protocol::Grpc => (cfg!(feature = "grpc"), "grpc"),
            Protocol::HttpProtobuf => (cfg!(feature = "http"), "http"),
        };
        if !built {
            return Err(TargetError::NotBuilt { feature, protocol });
        }
        #[cfg(not(feature = "tls"))]
        if destination.endpoint.secure {
            let endpoint = destination.endpoint.to_string();
            return Err(TargetError::NoTls { endpoint });
        }
        Ok(Self {
            #[cfg(any(feature = "grpc", feature = "http"))]
            headers: headers(&destination),
            #[cfg(feature = "tls")]
            tls: match destination.endpoint.secure {
                true => Some(super::tls::connector(&destination.tls, protocol)?),
                false => None,
            },
            destination,
        })
    }

    /// Compresses a message, if that is asked for. It comes after the [`FRAME`] of gRPC, and HTTP does without that.
    pub(crate) fn prepare(&self, body: Bytes) -> Prepared {
        #[cfg(test)]
        {
            let mut parts = body.windows(super::PANIC.len());
            assert!(!parts.any(|part| part == super::PANIC), "as the test asked");
        }
        let body = match self.destination.compression {
            Compression::None => body,
            Compression::Gzip => gzip(&body[FRAME..]).unwrap_or(body),
        };
        Prepared {
            body: match self.destination.protocol {
                Protocol::Grpc => body,
                Protocol::HttpProtobuf => body.slice(FRAME..),
            },
        }
    }
}

/// A message compressed, after a frame of gRPC that says so.
#[cfg(feature = "gzip")]
fn gzip(message: &[u8]) -> Option<Bytes> {
    use std::io::Write as _;

    let room = vec![0; FRAME];
    let mut encoder = flate2::write::GzEncoder::new(room, flate2::Compression::fast());
    encoder.write_all(message).ok()?;
    let mut body = encoder.finish().ok()?;
    let length = u32::try_from(body.len() - FRAME).ok()?;
    body[0] = 1;
    body[1..FRAME].copy_from_slice(&length.to_be_bytes());
    Some(Bytes::from(body))
}

/// Nobody can ask for it then.
#[cfg(not(feature = "gzip"))]
fn gzip(_: &[u8]) -> Option<Bytes> {
    None
}

/// The user's first, so that none of them stands in for one of the protocol's.
#[cfg(any(feature = "grpc", feature = "http"))]
fn headers(destination: &Destination) -> HeaderMap {
    let mut headers = destination.headers.clone();
    let agent = concat!("lineage-otlp/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    let gzip = destination.compression == Compression::Gzip;
    headers.remove(CONTENT_ENCODING);
    match destination.protocol {
        Protocol::Grpc => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
            headers.insert("te", HeaderValue::from_static("trailers"));
            if gzip {
                headers.insert("grpc-encoding", HeaderValue::from_static("gzip"));
                headers.insert("grpc-accept-encoding", HeaderValue::from_static("gzip"));
            }
        }
        Protocol::HttpProtobuf => {
            let protobuf = HeaderValue::from_static("application/x-protobuf");
            headers.insert(CONTENT_TYPE, protobuf);
            if gzip {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
        }
    }
    headers
}
