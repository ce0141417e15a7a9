//! What the export is set to, from code and from the standard variables of the environment.
#![cfg_attr(
    not(any(feature = "grpc", feature = "http")),
    allow(dead_code, reason = "for transports that were not built")
)]

mod endpoint;
mod environment;
mod error;
mod layer;
mod resolved;
mod sampler;
mod text;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "tls")]
pub(crate) use endpoint::Endpoint;
#[cfg(feature = "http")]
pub(crate) use endpoint::without_secrets;
pub use error::SettingsError;
use layer::{File, Given, Layer, Pairs, Url};
pub(crate) use resolved::Destination;
#[cfg(feature = "tls")]
pub(crate) use resolved::TlsFiles;
pub use sampler::Sampler;

use crate::pipeline::problem::{Hook, Problem};
use crate::pipeline::{Backoff, Signal};

/// How OTLP is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// `grpc`, by default to port 4317. Needs the feature `grpc`.
    Grpc,
    /// `http/protobuf`, by default to port 4318. Needs the feature `http`.
    HttpProtobuf,
}

impl Protocol {
    const EXPECTED: &str = "grpc or http/protobuf is expected (OTLP as JSON is not written)";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "grpc" => Some(Self::Grpc),
            "http/protobuf" => Some(Self::HttpProtobuf),
            _ => None,
        }
    }
}

/// As the variable `OTEL_EXPORTER_OTLP_PROTOCOL` has it.
impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grpc => "grpc",
            Self::HttpProtobuf => "http/protobuf",
        })
    }
}

/// `http/protobuf`, which the standard asks for, where the feature `http` is on; else `grpc`.
impl Default for Protocol {
    fn default() -> Self {
        if cfg!(feature = "http") || !cfg!(feature = "grpc") {
            Self::HttpProtobuf
        } else {
            Self::Grpc
        }
    }
}

/// What requests are compressed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compression {
    /// Nothing.
    #[default]
    None,
    /// gzip. Needs the feature `gzip`.
    Gzip,
}

impl Compression {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Self::None),
            "gzip" => Some(Self::Gzip),
            _ => None,
        }
    }
}

/// When a batch is sealed, and for how long it is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batching {
    pub(crate) items: u64,
    pub(crate) delay: Duration,
    pub(crate) give_up_after: Duration,
    /// A bound for the queue by number beside that by bytes.
    pub(crate) queue_items: Option<u64>,
}

impl Default for Batching {
    fn default() -> Self {
        Self {
            items: 8192,
            delay: Duration::from_secs(1),
            give_up_after: Duration::from_secs(300),
            queue_items: None,
        }
    }
}

/// All settings of the export, not looked at yet: what cannot be used together is told when the export starts.
///
/// What is set in code comes before what the environment says, and a signal's own variable before the one for all.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(crate) disabled: bool,
    /// Signals that are not exported.
    pub(crate) switched_off: [bool; 3],
    general: Layer,
    signals: [Layer; 3],
    /// Set in code, for all signals.
    headers: Pairs,
    pub(crate) batching: [Batching; 3],
    pub(crate) batch_bytes: usize,
    pub(crate) queue_bytes: usize,
    pub(crate) backoff: Backoff,
    pub(crate) metric_interval: Duration,
    pub(crate) sampler: Option<Sampler>,
    pub(crate) service_name: Option<String>,
    pub(crate) resource_attributes: Pairs,
    /// What was given and is not followed, said once the export has begun.
    pub(crate) warnings: Vec<String>,
    pub(crate) on_problem: Hook,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            disabled: false,
            switched_off: [false; 3],
            general: Layer::default(),
            signals: Default::default(),
            headers: Pairs::default(),
            batching: [Batching::default(); 3],
            batch_bytes: 1 << 20,
            queue_bytes: 64 << 20,
            backoff: Backoff::default(),
            metric_interval: Duration::from_secs(60),
            sampler: None,
            service_name: None,
            resource_attributes: Pairs::default(),
            warnings: Vec::new(),
            on_problem: Hook::default(),
        }
    }
}

impl Settings {
    /// As the process's environment says.
    ///
    /// # Errors
    ///
    /// If a variable has a value that cannot be used.
    pub fn from_env() -> Result<Self, SettingsError> {
        Self::from_os_variables(|name| std::env::var_os(name))
    }

    /// As variables from anywhere say.
    ///
    /// # Errors
    ///
    /// If a variable has a value that cannot be used.
    pub fn from_variables(
        variables: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        Self::from_os_variables(|name| variables(name).map(OsString::from))
    }

    /// The same of variables that need not be text.
    ///
    /// # Errors
    ///
    /// If a variable has a value that cannot be used, which one that is not UTF-8 never can.
    pub fn from_os_variables(
        variables: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        environment::read(&mut settings, &variables)?;
        Ok(settings)
    }

    /// Where all signals are sent. Paths of OTLP over HTTP are put after it.
    pub fn endpoint(&mut self, url: impl Into<String>) -> &mut Self {
        self.signals.iter_mut().for_each(|it| it.endpoint = None);
        self.general.endpoint = in_code("endpoint", Url(url.into()));
        self
    }

    /// Where one signal is sent: this very URL.
    pub fn endpoint_of(&mut self, signal: Signal, url: impl Into<String>) -> &mut Self {
        self.signals[signal.index()].endpoint = in_code("endpoint", Url(url.into()));
        self
    }

    /// Does not export one signal.
    pub fn without(&mut self, signal: Signal) -> &mut Self {
        self.switched_off[signal.index()] = true;
        self
    }

    /// Whether one signal is not exported.
    pub fn is_switched_off(&self, signal: Signal) -> bool {
        self.switched_off[signal.index()]
    }

    /// How OTLP is spoken.
    pub fn protocol(&mut self, protocol: Protocol) -> &mut Self {
        self.for_all(|layer| layer.protocol = None);
        self.general.protocol = in_code("protocol", protocol);
        self
    }

    /// Adds a header to every request. Its value is never shown.
    pub fn header(&mut self, name: impl Into<String>, value: impl Into<String>) -> &mut Self {
        self.headers.0.push((name.into(), value.into()));
        self
    }

    /// How long one request may take, from connecting to the answer's last byte. By default 10 s.
    pub fn timeout(&mut self, timeout: Duration) -> &mut Self {
        self.for_all(|layer| layer.timeout = None);
        self.general.timeout = Some(timeout.max(Duration::from_millis(1)));
        self
    }

    /// What requests are compressed with. By default nothing.
    pub fn compression(&mut self, compression: Compression) -> &mut Self {
        self.for_all(|layer| layer.compression = None);
        self.general.compression = in_code("compression", compression);
        self
    }

    /// The authorities, as PEM, that the collector's certificate may come from, in place of those that the system trusts.
    pub fn certificate_authorities(&mut self, file: impl Into<PathBuf>) -> &mut Self {
        self.for_all(|layer| layer.certificate = None);
        self.general.certificate = in_code("certificate authorities", File(file.into()));
        self
    }

    /// The certificate, with its chain, and the key that the collector is shown, both as PEM.
    pub fn client_certificate(
        &mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> &mut Self {
        self.for_all(|layer| {
            layer.client_certificate = None;
            layer.client_key = None;
        });
        self.general.client_certificate = in_code("client certificate", File(certificate.into()));
        self.general.client_key = in_code("client key", File(key.into()));
        self
    }

    /// How many bytes may wait or be on their way, all signals together. By default 64 MiB, of which metrics and log records
    /// have a sixteenth each for themselves.
    pub fn queue_bytes(&mut self, bytes: usize) -> &mut Self {
        self.queue_bytes = bytes;
        self
    }

    /// When a batch is full, by bytes. By default 1 MiB.
    pub fn batch_bytes(&mut self, bytes: usize) -> &mut Self {
        self.batch_bytes = bytes;
        self
    }

    /// When a batch is full, by number. By default 8192.
    pub fn batch_items(&mut self, items: u64) -> &mut Self {
        self.batching
            .iter_mut()
            .for_each(|it| it.items = items.max(1));
        self
    }

    /// How long a batch that is not full waits for more. By default 1 s.
    pub fn batch_delay(&mut self, delay: Duration) -> &mut Self {
        self.batching.iter_mut().for_each(|it| it.delay = delay);
        self
    }

    /// For how long a batch is tried from its first attempt on. By default 5 minutes. However long a collector wishes to be left
    /// alone, one attempt more is made within it.
    pub fn give_up_after(&mut self, time: Duration) -> &mut Self {
        self.batching
            .iter_mut()
            .for_each(|it| it.give_up_after = time);
        self
    }

    /// How long the exporter waits after a first failed attempt, and at most; between them it doubles. By default 200 ms and
    /// 10 s.
    pub fn backoff(&mut self, first: Duration, most: Duration) -> &mut Self {
        self.backoff.first = first;
        self.backoff.most = most.max(first);
        self
    }

    /// Who is told what goes wrong, on the exporter's thread, at most once a minute per kind. By default it is a line to
    /// standard error.
    pub fn on_problem(&mut self, hook: impl Fn(&Problem) + Send + Sync + 'static) -> &mut Self {
        self.on_problem = Hook::new(hook);
        self
    }

    fn for_all(&mut self, change: impl FnMut(&mut Layer)) {
        self.signals.iter_mut().for_each(change);
    }
}

fn in_code<T>(name: &str, value: T) -> Option<Given<T>> {
    Some(Given {
        name: format!("the {name} given in code"),
        value,
    })
}
