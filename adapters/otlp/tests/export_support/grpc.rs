//! A collector that speaks gRPC, by tonic.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::logs::v1::logs_service_server::{
    LogsService, LogsServiceServer,
};
use opentelemetry_proto::tonic::collector::logs::v1::{
    ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Server, ServerTlsConfig};
use tonic::{Request, Response, Status};

type Answer = Result<ExportTraceServiceResponse, Status>;
type Script = dyn Fn(usize, &ExportTraceServiceRequest) -> Answer + Send + Sync;

/// Ends with the value.
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    pub(crate) seen: Arc<Seen>,
    runtime: Option<tokio::runtime::Runtime>,
}

#[derive(Default)]
pub(crate) struct Seen {
    /// Requests with spans that were answered, whatever with, and what came with each.
    pub(crate) requests: Mutex<Vec<(ExportTraceServiceRequest, MetadataMap)>>,
    pub(crate) metrics: Mutex<Vec<ExportMetricsServiceRequest>>,
    pub(crate) logs: Mutex<Vec<ExportLogsServiceRequest>>,
}

impl Seen {
    /// The numbers of all spans, in the order in which they came.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let requests = self.requests.lock().expect("no test panicked");
        requests
            .iter()
            .flat_map(|(request, _)| numbers(request))
            .collect()
    }
}

pub(crate) fn numbers(request: &ExportTraceServiceRequest) -> Vec<u64> {
    let scopes = request.resource_spans.iter().flat_map(|it| &it.scope_spans);
    let spans = scopes.flat_map(|scope| &scope.spans);
    let number = |id: &[u8]| u64::from_be_bytes(id.try_into().expect("8 bytes"));
    spans.map(|span| number(&span.span_id)).collect()
}

pub(crate) fn taken() -> Answer {
    Ok(ExportTraceServiceResponse::default())
}

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) address: Option<SocketAddr>,
    pub(crate) tls: Option<ServerTlsConfig>,
    /// How many bytes a message may have; tonic's own limit if it is not given.
    pub(crate) most_bytes: Option<usize>,
    /// How long each answer takes.
    pub(crate) delay: Duration,
}

struct Service {
    seen: Arc<Seen>,
    script: Box<Script>,
    delay: Duration,
}

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        tokio::time::sleep(self.delay).await;
        let (metadata, _, request) = request.into_parts();
        let mut requests = self.seen.requests.lock().expect("no test panicked");
        let answer = (self.script)(requests.len(), &request);
        requests.push((request, metadata));
        answer.map(Response::new)
    }
}

struct Others(Arc<Seen>);

#[tonic::async_trait]
impl MetricsService for Others {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.0
            .metrics
            .lock()
            .expect("no test panicked")
            .push(request.into_inner());
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl LogsService for Others {
    async fn export(
        &self,
        request: Request<ExportLogsServiceRequest>,
    ) -> Result<Response<ExportLogsServiceResponse>, Status> {
        self.0
            .logs
            .lock()
            .expect("no test panicked")
            .push(request.into_inner());
        Ok(Response::new(Default::default()))
    }
}

impl Collector {
    /// Answers each request with spans as the script says, which is given how many came before.
    pub(crate) fn start(
        options: Options,
        script: impl Fn(usize, &ExportTraceServiceRequest) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let seen = Arc::new(Seen::default());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let wanted = options
            .address
            .unwrap_or_else(|| ([127, 0, 0, 1], 0).into());
        let incoming = {
            let _within = runtime.enter();
            TcpIncoming::bind(wanted).expect("a port")
        };
        let address = incoming.local_addr().expect("an address");
        let service = Service {
            seen: Arc::clone(&seen),
            script: Box::new(script),
            delay: options.delay,
        };
        let mut traces = TraceServiceServer::new(service)
            .accept_compressed(CompressionEncoding::Gzip)
            .send_compressed(CompressionEncoding::Gzip);
        if let Some(most) = options.most_bytes {
            traces = traces.max_decoding_message_size(most);
        }
        let mut server = Server::builder();
        if let Some(tls) = options.tls {
            server = server.tls_config(tls).expect("usable certificates");
        }
        let server = server
            .add_service(traces)
            .add_service(MetricsServiceServer::new(Others(Arc::clone(&seen))))
            .add_service(LogsServiceServer::new(Others(Arc::clone(&seen))));
        runtime.spawn(server.serve_with_incoming(incoming));
        Self {
            address,
            seen,
            runtime: Some(runtime),
        }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_millis(200));
        }
    }
}
