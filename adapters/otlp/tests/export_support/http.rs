//! What listens at a port, and what it does to whoever comes: a collector that speaks HTTP, or something else.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use tokio_rustls::rustls::{ServerConnection, StreamOwned};

use super::certificates::Pair;

/// A request as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// The first line.
    pub(crate) line: String,
    /// With names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter();
        let found = all.find(|(known, _)| known == name)?;
        Some(&found.1)
    }

    /// The numbers of its spans.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let request = ExportTraceServiceRequest::decode(&*self.body).expect("a request");
        super::grpc::numbers(&request)
    }
}

/// What is done with a request.
pub(crate) enum Do {
    /// These bytes are written.
    Answer(Vec<u8>),
    /// The same, one byte after another, each after so long.
    Drip(Vec<u8>, Duration),
    /// The first bytes are written, and these again and again until the other side goes.
    Endless(Vec<u8>, Vec<u8>),
    /// Nothing is written, and the connection stays.
    Silence,
    /// The connection is closed.
    Close,
}

/// Listens until it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) requests: Arc<Mutex<Vec<Request>>>,
    stopped: Arc<AtomicBool>,
}

type Script = dyn Fn(usize, &Request) -> Do + Send + Sync;

impl Server {
    /// Does as the script says, which is given how many requests came before.
    pub(crate) fn start(script: impl Fn(usize, &Request) -> Do + Send + Sync + 'static) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, script) = (Arc::clone(&requests), Arc::new(script));
        let mut server = Self::raw(move |stream| serve(stream, &seen, &*script));
        server.requests = requests;
        server
    }

    /// The same behind TLS, with this certificate.
    pub(crate) fn start_with_tls(
        pair: &Pair,
        script: impl Fn(usize, &Request) -> Do + Send + Sync + 'static,
    ) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, script) = (Arc::clone(&requests), Arc::new(script));
        let config = Arc::new(pair.rustls());
        let mut server = Self::raw(move |stream| {
            let connection = ServerConnection::new(Arc::clone(&config)).expect("a configuration");
            serve(StreamOwned::new(connection, stream), &seen, &*script);
        });
        server.requests = requests;
        server
    }

    /// Does this with each connection.
    pub(crate) fn raw(connection: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let stopped = Arc::new(AtomicBool::new(false));
        let (is_stopped, connection) = (Arc::clone(&stopped), Arc::new(connection));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(stream), connection) = (stream, Arc::clone(&connection)) else {
                    continue;
                };
                std::thread::spawn(move || connection(stream));
            }
        });
        Self {
            address,
            requests: Arc::default(),
            stopped,
        }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Request> {
        self.requests.lock().expect("no test panicked").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut stream: impl Read + Write, seen: &Mutex<Vec<Request>>, script: &Script) {
    while let Some(request) = read(&mut stream) {
        let action = {
            let mut seen = seen.lock().expect("no test panicked");
            let action = script(seen.len(), &request);
            seen.push(request);
            action
        };
        match action {
            Do::Answer(bytes) => {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
            Do::Drip(bytes, each) => {
                for byte in bytes {
                    if stream.write_all(&[byte]).is_err() {
                        return;
                    }
                    std::thread::sleep(each);
                }
            }
            Do::Endless(first, again) => {
                let mut written = stream.write_all(&first);
                while written.is_ok() {
                    written = stream.write_all(&again);
                }
                return;
            }
            Do::Silence => {
                let _ = stream.read(&mut [0]);
                return;
            }
            Do::Close => return,
        }
    }
}

fn read(stream: &mut impl Read) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => return None,
            Ok(_) => head.push(byte[0]),
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    let head = String::from_utf8(head).expect("a head of HTTP");
    let mut lines = head.lines();
    let mut request = Request {
        line: lines.next().unwrap_or_default().to_owned(),
        ..Request::default()
    };
    for line in lines {
        if let Some((name, value)) = line.split_once(": ") {
            let name = name.to_ascii_lowercase();
            request.headers.push((name, value.to_owned()));
        }
    }
    let length = request.header("content-length").unwrap_or("0");
    request.body = vec![0; length.parse().expect("a length")];
    stream.read_exact(&mut request.body).ok()?;
    Some(request)
}

/// An answer with this status line's end, headers, and body.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("content-length: {}\r\n\r\n", body.len());
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) fn taken() -> Do {
    Do::Answer(answer(
        "200 OK",
        &[("content-type", "application/x-protobuf")],
        b"",
    ))
}
