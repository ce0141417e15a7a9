//! From a batch's bytes to the collector's answer, one request at a time.
//!
//! Both protocols are a POST of one body over a connection that is kept, and differ in how the body is framed, in the headers,
//! and in where the answer says what became of it. So [`connection`] and [`exchange`] serve both; [`grpc`] and [`over_http`] judge.
//! gRPC needs no more than that for a single unary call whose message is already encoded.
#![cfg_attr(
    not(any(feature = "grpc", feature = "http")),
    allow(dead_code, reason = "for transports that were not built")
)]

#[cfg(any(feature = "grpc", feature = "http"))]
mod connection;
#[cfg(any(feature = "grpc", feature = "http"))]
mod exchange;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "http")]
mod over_http;
mod target;
#[cfg(feature = "tls")]
mod tls;
mod verdict;

#[cfg(any(feature = "grpc", feature = "http"))]
pub(crate) use exchange::Client;
pub use target::TargetError;
pub(crate) use target::{Prepared, Target};
#[cfg(feature = "tls")]
pub use tls::TlsError;
pub(crate) use verdict::Verdict;

/// A test's item with this content makes its sender panic.
#[cfg(test)]
pub(crate) const PANIC: &[u8] = b"let the sender panic";

/// In a build without any protocol no target can be made, so nothing reaches this.
#[cfg(not(any(feature = "grpc", feature = "http")))]
pub(crate) struct Client(std::sync::Arc<Target>);

#[cfg(not(any(feature = "grpc", feature = "http")))]
impl Client {
    pub(crate) fn new(target: std::sync::Arc<Target>) -> Self {
        Self(target)
    }

    pub(crate) fn under_way(&self) -> Option<&'static str> {
        None
    }

    pub(crate) async fn send(&mut self, _: &Prepared) -> Verdict {
        Verdict::Refused(crate::pipeline::problem::Trouble::new(
            crate::pipeline::ProblemKind::NotOtlp,
            format!("no protocol was built for {}", self.0.destination.endpoint),
        ))
    }
}
