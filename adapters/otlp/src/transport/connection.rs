//! One connection to a collector.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
#[cfg(feature = "http")]
use hyper::client::conn::http1;
#[cfg(feature = "grpc")]
use hyper::client::conn::http2;
use hyper::{Request, Response};
#[cfg(feature = "grpc")]
use hyper_util::rt::TokioExecutor;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::Target;
use crate::config::Protocol;
use crate::pipeline::ProblemKind;
use crate::pipeline::problem::{Trouble, shown};

/// How long the task that drives a connection may take to say why the connection is gone.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Closes with the value.
pub(super) struct Connection {
    sending: Sending,
    driver: JoinHandle<hyper::Result<()>>,
}

enum Sending {
    #[cfg(feature = "http")]
    Http1(http1::SendRequest<Full<Bytes>>),
    #[cfg(feature = "grpc")]
    Http2(http2::SendRequest<Full<Bytes>>),
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Resolves, connects, agrees on TLS where the endpoint asks for it.
    pub(super) async fn open(target: &Target) -> Result<Self, Trouble> {
        let stream = connect(target).await?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &target.tls {
            let stream = super::tls::agree(tls, &target.destination.endpoint, stream).await?;
            return Self::over(stream, target).await;
        }
        Self::over(stream, target).await
    }

    async fn over<S>(stream: S, target: &Target) -> Result<Self, Trouble>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let stream = TokioIo::new(stream);
        match target.destination.protocol {
            #[cfg(feature = "http")]
            Protocol::HttpProtobuf => {
                let (sending, driver) = http1::handshake(stream)
                    .await
                    .map_err(|error| trouble(&error, false))?;
                Ok(Self {
                    sending: Sending::Http1(sending),
                    driver: tokio::spawn(driver),
                })
            }
            #[cfg(feature = "grpc")]
            Protocol::Grpc => {
                let (sending, driver) = http2::handshake(TokioExecutor::new(), stream)
                    .await
                    .map_err(|error| trouble(&error, false))?;
                Ok(Self {
                    sending: Sending::Http2(sending),
                    driver: tokio::spawn(driver),
                })
            }
            #[cfg(not(all(feature = "grpc", feature = "http")))]
            protocol => Err(Trouble::new(
                ProblemKind::NotOtlp,
                format!("{protocol} was not built in"),
            )),
        }
    }

    /// Whether another request can be sent on it.
    pub(super) async fn is_ready(&mut self) -> bool {
        match &mut self.sending {
            #[cfg(feature = "http")]
            Sending::Http1(sending) => sending.ready().await.is_ok(),
            #[cfg(feature = "grpc")]
            Sending::Http2(sending) => sending.ready().await.is_ok(),
        }
    }

    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<Response<Incoming>> {
        match &mut self.sending {
            #[cfg(feature = "http")]
            Sending::Http1(sending) => sending.send_request(request).await,
            #[cfg(feature = "grpc")]
            Sending::Http2(sending) => sending.send_request(request).await,
        }
    }
}

impl Connection {
    /// What an error of a request means. Where it is only that the connection is gone, the connection's own task knows why.
    pub(super) async fn trouble(&mut self, error: hyper::Error, answered: bool) -> Trouble {
        let is_told_elsewhere = error.is_canceled() || error.is_closed();
        if is_told_elsewhere {
            match tokio::time::timeout(LAST_WORDS, &mut self.driver).await {
                Ok(Ok(Err(reason))) => return trouble(&reason, answered),
                // Of HTTP/1 it ends so as well where the other side speaks first, and so speaks something else.
                #[cfg(feature = "grpc")]
                Ok(Ok(Ok(()))) if matches!(self.sending, Sending::Http2(_)) => {
                    return closed(answered);
                }
                _ => {}
            }
        }
        trouble(&error, answered)
    }
}

async fn connect(target: &Target) -> Result<TcpStream, Trouble> {
    let endpoint = &target.destination.endpoint;
    let unreachable = |what: String| Trouble::new(ProblemKind::Unreachable, what);
    let addresses = tokio::net::lookup_host((endpoint.host.as_str(), endpoint.port))
        .await
        .map_err(|why| {
            unreachable(format!(
                "the address of `{}` was not found ({why})",
                endpoint.host
            ))
        })?;
    let mut last = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // A request is written as a whole: nothing is gained by waiting for more.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(why) => last = Some(format!("no connection to {address} ({why})")),
        }
    }
    Err(unreachable(last.unwrap_or_else(|| {
        format!("`{}` has no address", endpoint.host)
    })))
}

const DRAINING: &str =
    "trying again; it may be about to end, or limit for how long it keeps a connection";

#[cfg(feature = "grpc")]
const CLOSED_EARLY: &str = "trying again; the collector may be about to end, and if it is not: does the port expect this protocol (by \
     default 4317 for grpc, 4318 for http/protobuf), and does the endpoint begin with https:// where it expects TLS?";

const WHO_LISTENS: &str = "trying again; does the port expect this protocol (by default 4317 for grpc, 4318 for http/protobuf), and does \
     the endpoint begin with https:// where it expects TLS?";

/// What the other side of HTTP/2 told in a frame of its own, which shows that it speaks it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "grpc"),
    allow(dead_code, reason = "HTTP/1 has no frames")
)]
enum ToldByFrame {
    Nothing,
    /// It takes no more requests on this connection, or not this one, and another may be fine.
    GoElsewhere,
    /// An error that it found.
    Error,
}

#[cfg(feature = "grpc")]
fn told_by_frame(error: &(dyn Error + 'static)) -> ToldByFrame {
    match error.downcast_ref::<h2::Error>() {
        Some(error) if error.is_remote() => match error.reason() {
            Some(h2::Reason::NO_ERROR | h2::Reason::REFUSED_STREAM) => ToldByFrame::GoElsewhere,
            _ => ToldByFrame::Error,
        },
        _ => ToldByFrame::Nothing,
    }
}

#[cfg(not(feature = "grpc"))]
fn told_by_frame(_: &(dyn Error + 'static)) -> ToldByFrame {
    ToldByFrame::Nothing
}

/// Whether an error says that there is no connection any more, and nothing of why.
fn is_end(error: &hyper::Error) -> bool {
    let is_gone = error.is_closed() || error.is_canceled();
    error.is_incomplete_message() || is_gone && error.source().is_none()
}

/// A connection of HTTP/2 that ended without an error: by a goodbye before the request was written, or just so.
#[cfg(feature = "grpc")]
fn closed(answered: bool) -> Trouble {
    let what = "the connection was closed before it took a request";
    let trouble = Trouble::new(ProblemKind::Unreachable, what);
    match answered {
        true => trouble.with_advice(DRAINING),
        false => trouble.with_advice(CLOSED_EARLY),
    }
}

/// What an error of a connection means; `answered` where the other side has spoken the protocol before.
pub(super) fn trouble(error: &(dyn Error + 'static), answered: bool) -> Trouble {
    let mut text = error.to_string();
    let mut broken = false;
    let mut told = ToldByFrame::Nothing;
    let mut cause = Some(error);
    while let Some(error) = cause {
        #[cfg(feature = "tls")]
        if let Some(tls) = super::tls::cause_of(error) {
            return tls;
        }
        if told == ToldByFrame::Nothing {
            told = told_by_frame(error);
        }
        broken |= error.downcast_ref::<io::Error>().is_some();
        broken |= error.downcast_ref().is_some_and(is_end);
        cause = error.source();
        if let Some(cause) = cause {
            text = format!("{text}: {cause}");
        }
    }
    let text = shown(&text);
    if told == ToldByFrame::GoElsewhere {
        let what = format!("the collector closes its connections or takes no request ({text})");
        return Trouble::new(ProblemKind::Unavailable, what).with_advice(DRAINING);
    }
    let answered = answered || told != ToldByFrame::Nothing;
    let trouble = if broken || answered {
        let what = format!("the connection broke ({text})");
        Trouble::new(ProblemKind::Unreachable, what)
    } else {
        let what = format!("what answers does not speak the protocol ({text})");
        Trouble::new(ProblemKind::NotOtlp, what)
    };
    if answered {
        trouble
    } else {
        // Some close a connection when they are spoken to in another protocol.
        trouble.with_advice(WHO_LISTENS)
    }
}
