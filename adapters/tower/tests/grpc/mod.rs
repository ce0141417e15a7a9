//! A gRPC service without generated code: its messages are numbers.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, BufMut as _};
use http::uri::PathAndQuery;
use tokio_stream::{Stream, StreamExt as _};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::NamedService;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, body::Body};

use crate::common::current;

pub(crate) const UNARY: &str = "/test.Numbers/Unary";
pub(crate) const STREAM: &str = "/test.Numbers/Stream";

/// What a call asks for: not a number of messages.
pub(crate) const TO_FAIL: u64 = u64::MAX;
pub(crate) const TO_WAIT: u64 = u64::MAX - 1;

/// The epoch that is current, as a message.
fn epoch_here() -> u64 {
    current().map_or(0, |epoch| epoch.pack().bits())
}

/// Answers with the epoch that it saw, at first and after it has waited.
async fn unary(request: Request<u64>) -> Result<Response<u64>, Status> {
    let at_first = epoch_here();
    tokio::task::yield_now().await;
    match request.into_inner() {
        TO_FAIL => Err(Status::invalid_argument("on purpose")),
        TO_WAIT => std::future::pending().await,
        _ if epoch_here() == at_first => Ok(Response::new(at_first)),
        _ => Err(Status::internal("another epoch after an await")),
    }
}

type Messages = Pin<Box<dyn Stream<Item = Result<u64, Status>> + Send>>;

/// Answers with so many messages, each the epoch that is current when it is made.
async fn stream(request: Request<u64>) -> Result<Response<Messages>, Status> {
    let count = request.into_inner();
    let (whole, fails) = match count {
        TO_FAIL => (3, true),
        count => (count, false),
    };
    let messages = tokio_stream::iter(0..whole).then(|_| async {
        tokio::task::yield_now().await;
        Ok(epoch_here())
    });
    let failure = fails.then(|| Err(Status::internal("on purpose")));
    Ok(Response::new(Box::pin(
        messages.chain(tokio_stream::iter(failure)),
    )))
}

/// The service, for tonic's server.
#[derive(Clone)]
pub(crate) struct Numbers;

impl NamedService for Numbers {
    const NAME: &'static str = "test.Numbers";
}

impl tower::Service<http::Request<Body>> for Numbers {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(AsNumbers);
            Ok(match request.uri().path() {
                UNARY => grpc.unary(tower::service_fn(unary), request).await,
                STREAM => {
                    let service = tower::service_fn(stream);
                    grpc.server_streaming(service, request).await
                }
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

/// A client of the service.
#[derive(Clone)]
pub(crate) struct Client(tonic::client::Grpc<Channel>);

impl Client {
    pub(crate) fn new(channel: Channel) -> Self {
        Self(tonic::client::Grpc::new(channel))
    }

    pub(crate) async fn unary(&mut self, number: u64) -> Result<u64, Status> {
        self.0.ready().await.expect("it is connected");
        let path = PathAndQuery::from_static(UNARY);
        let answer = self.0.unary(Request::new(number), path, AsNumbers).await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn stream(&mut self, number: u64) -> Result<tonic::Streaming<u64>, Status> {
        self.0.ready().await.expect("it is connected");
        let path = PathAndQuery::from_static(STREAM);
        let answer = self
            .0
            .server_streaming(Request::new(number), path, AsNumbers)
            .await?;
        Ok(answer.into_inner())
    }
}

/// A number is a message of eight bytes.
struct AsNumbers;

impl Codec for AsNumbers {
    type Encode = u64;
    type Decode = u64;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for AsNumbers {
    type Item = u64;
    type Error = Status;

    fn encode(&mut self, number: u64, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_u64(number);
        Ok(())
    }
}

impl Decoder for AsNumbers {
    type Item = u64;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<u64>, Status> {
        Ok((from.remaining() >= 8).then(|| from.get_u64()))
    }
}
