//! One request and its answer, within one time limit and one limit for the answer's size.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, Version};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;

use super::connection::{Connection, trouble};
use super::{Prepared, Target, Verdict};
use crate::config::Protocol;
use crate::pipeline::ProblemKind;
use crate::pipeline::problem::Trouble;

/// An acknowledgement takes some bytes, an error some hundred.
pub(super) const MOST_OF_AN_ANSWER: usize = 64 << 10;

/// A collector that asks for a certificate does so after TLS has been agreed on, and may be gone before that is read.
const WHO_ARE_WE: &str = "trying again; does the collector ask who we are (then set OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and \
     OTEL_EXPORTER_OTLP_CLIENT_KEY), or expect another protocol at this port?";

/// Sends requests one after the other over a connection that it keeps.
pub(crate) struct Client {
    target: Arc<Target>,
    connection: Option<Connection>,
    /// Whether the other side of the connection has answered a request on it.
    answered: bool,
    /// Empty while no request is under way.
    stage: &'static str,
}

/// What came back.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// No more than [`MOST_OF_AN_ANSWER`].
    pub(super) body: Bytes,
    /// There was more.
    pub(super) is_cut: bool,
    #[cfg_attr(
        not(feature = "grpc"),
        allow(dead_code, reason = "HTTP says nothing there")
    )]
    pub(super) trailers: HeaderMap,
}

impl Client {
    pub(crate) fn new(target: Arc<Target>) -> Self {
        Self {
            target,
            connection: None,
            answered: false,
            stage: "",
        }
    }

    /// What a request that is under way waits for, as of the last time that [`send`](Self::send) was polled.
    pub(crate) fn under_way(&self) -> Option<&'static str> {
        (!self.stage.is_empty()).then_some(self.stage)
    }

    pub(crate) async fn send(&mut self, prepared: &Prepared) -> Verdict {
        let verdict = self.send_within_its_time(prepared).await;
        self.stage = "";
        verdict
    }

    async fn send_within_its_time(&mut self, prepared: &Prepared) -> Verdict {
        let target = Arc::clone(&self.target);
        let limit = target.destination.timeout;
        let trouble = match tokio::time::timeout(limit, self.exchange(prepared)).await {
            Ok(Ok(answer)) => return judge(&target, &answer),
            Ok(Err(trouble)) => trouble,
            Err(_) => Trouble::new(
                ProblemKind::TimedOut,
                format!("not done after {} ms, {}", limit.as_millis(), self.stage),
            ),
        };
        self.connection = None;
        Verdict::Again {
            trouble,
            after: None,
        }
    }

    async fn exchange(&mut self, prepared: &Prepared) -> Result<Answer, Trouble> {
        self.stage = "while waiting to send";
        let reused = match &mut self.connection {
            Some(connection) => connection.is_ready().await,
            None => false,
        };
        if reused {
            match self.ask(prepared).await {
                Ok(answer) => return Ok(answer),
                // The other side had closed it, and nothing of the request was written: no failure of anyone's.
                Err(Failed::BeforeAnswer(error)) if error.is_canceled() => {}
                Err(failed) => return Err(self.trouble(failed).await),
            }
        }
        self.connection = None;
        self.answered = false;
        self.stage = "while connecting";
        self.connection = Some(Connection::open(&self.target).await?);
        match self.ask(prepared).await {
            Ok(answer) => Ok(answer),
            Err(failed) => Err(self.trouble(failed).await),
        }
    }

    async fn trouble(&mut self, failed: Failed) -> Trouble {
        let secure = self.target.destination.endpoint.secure;
        let trouble = self.trouble_of_connection(failed).await;
        if secure && !self.answered && trouble.kind == ProblemKind::Unreachable {
            return trouble.with_advice(WHO_ARE_WE);
        }
        trouble
    }

    async fn trouble_of_connection(&mut self, failed: Failed) -> Trouble {
        match (failed, &mut self.connection) {
            (Failed::BeforeAnswer(error), Some(connection)) => {
                connection.trouble(error, self.answered).await
            }
            (Failed::BeforeAnswer(error), None) => trouble(&error, self.answered),
            (Failed::Within(error), _) => trouble(&error, true),
            (Failed::NotMade(trouble), _) => trouble,
        }
    }

    async fn ask(&mut self, prepared: &Prepared) -> Result<Answer, Failed> {
        let request = request(&self.target, prepared).map_err(Failed::NotMade)?;
        let Some(connection) = &mut self.connection else {
            let what = "the connection is gone";
            return Err(Failed::NotMade(Trouble::new(
                ProblemKind::Unreachable,
                what,
            )));
        };
        self.stage = "while sending, or waiting for the answer to begin";
        let sent = connection.send(request).await;
        let response = sent.map_err(Failed::BeforeAnswer)?;
        self.answered = true;
        self.stage = "while waiting for the answer to end";
        let (head, body) = response.into_parts();
        let (body, trailers, is_cut) = read(body).await.map_err(Failed::Within)?;
        if is_cut {
            self.connection = None;
        }
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
            is_cut,
            trailers,
        })
    }
}

enum Failed {
    BeforeAnswer(hyper::Error),
    Within(hyper::Error),
    NotMade(Trouble),
}

fn request(target: &Target, prepared: &Prepared) -> Result<Request<Full<Bytes>>, Trouble> {
    let endpoint = &target.destination.endpoint;
    let mut request = Request::new(Full::new(prepared.body.clone()));
    *request.method_mut() = Method::POST;
    *request.headers_mut() = target.headers.clone();
    let unusable = |what: String| Trouble::new(ProblemKind::NotOtlp, what);
    match target.destination.protocol {
        Protocol::HttpProtobuf => {
            *request.uri_mut() = Uri::from(endpoint.path.clone());
            let host = HeaderValue::try_from(endpoint.authority.as_str());
            let host = host.map_err(|why| unusable(format!("its host is no header ({why})")))?;
            request.headers_mut().insert(HOST, host);
        }
        Protocol::Grpc => {
            let scheme = if endpoint.secure { "https" } else { "http" };
            let uri = Uri::builder()
                .scheme(scheme)
                .authority(endpoint.authority.clone())
                .path_and_query(path(target))
                .build();
            *request.uri_mut() = uri.map_err(|why| unusable(format!("its URL ({why})")))?;
            *request.version_mut() = Version::HTTP_2;
        }
    }
    Ok(request)
}

fn path(target: &Target) -> &'static str {
    use crate::pipeline::Signal;
    match target.destination.signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    }
}

/// The body up to a limit, its trailers, and whether there was more.
async fn read(mut body: Incoming) -> hyper::Result<(Bytes, HeaderMap, bool)> {
    let mut read = BytesMut::new();
    let mut trailers = HeaderMap::new();
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) => {
                let room = MOST_OF_AN_ANSWER - read.len();
                if data.len() > room {
                    read.extend_from_slice(&data[..room]);
                    return Ok((read.freeze(), trailers, true));
                }
                read.extend_from_slice(&data);
            }
            Err(frame) => {
                if let Ok(last) = frame.into_trailers() {
                    trailers = last;
                }
            }
        }
    }
    Ok((read.freeze(), trailers, false))
}

fn judge(target: &Target, answer: &Answer) -> Verdict {
    match target.destination.protocol {
        #[cfg(feature = "grpc")]
        Protocol::Grpc => super::grpc::judge(answer),
        #[cfg(feature = "http")]
        Protocol::HttpProtobuf => super::over_http::judge(answer),
        #[cfg(not(all(feature = "grpc", feature = "http")))]
        protocol => Verdict::Refused(Trouble::new(
            ProblemKind::NotOtlp,
            format!("{protocol} was not built in"),
        )),
    }
}
