//! What one signal's export is set to, with nothing left to decide.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::endpoint::{Endpoint, For, without_secrets};
use super::layer::{File, Given, Layer, Pairs};
use super::{Compression, Protocol, Settings, SettingsError};
use crate::pipeline::Signal;

const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) signal: Signal,
    pub(crate) endpoint: Endpoint,
    pub(crate) protocol: Protocol,
    /// Marked as sensitive, so their values are not shown.
    pub(crate) headers: HeaderMap,
    pub(crate) timeout: Duration,
    pub(crate) compression: Compression,
    #[cfg_attr(
        not(feature = "tls"),
        allow(dead_code, reason = "an endpoint with TLS is refused then")
    )]
    pub(crate) tls: TlsFiles,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) authorities: Option<PathBuf>,
    /// Certificate and key.
    pub(crate) client: Option<(PathBuf, PathBuf)>,
}

impl Settings {
    pub(crate) fn destination(&self, signal: Signal) -> Result<Destination, SettingsError> {
        let (own, general) = (&self.signals[signal.index()], &self.general);
        let protocol = own.protocol.as_ref().or(general.protocol.as_ref());
        let protocol = protocol.map_or_else(Protocol::default, |given| given.value);
        let compression = own.compression.as_ref().or(general.compression.as_ref());
        if let Some(given) = compression
            && given.value == Compression::Gzip
            && !cfg!(feature = "gzip")
        {
            let expected = "lineage-otlp was built without the feature `gzip`";
            return Err(SettingsError::new(&given.name, "gzip", expected));
        }
        Ok(Destination {
            signal,
            endpoint: endpoint(own, general, protocol, signal)?,
            protocol,
            headers: self.headers_of(own)?,
            timeout: own.timeout.or(general.timeout).unwrap_or(TIMEOUT),
            compression: compression.map_or(Compression::None, |given| given.value),
            tls: tls(own, general)?,
        })
    }

    fn headers_of(&self, own: &Layer) -> Result<HeaderMap, SettingsError> {
        let mut headers = HeaderMap::new();
        if let Some(given) = own.headers.as_ref().or(self.general.headers.as_ref()) {
            put(&mut headers, &given.name, &given.value)?;
        }
        put(&mut headers, "a header given in code", &self.headers)?;
        Ok(headers)
    }
}

fn endpoint(
    own: &Layer,
    general: &Layer,
    protocol: Protocol,
    signal: Signal,
) -> Result<Endpoint, SettingsError> {
    let (given, given_for) = match (&own.endpoint, &general.endpoint) {
        (Some(own), _) => (Some(own), For::One),
        (None, general) => (general.as_ref(), For::All),
    };
    let default = match protocol {
        Protocol::Grpc => "http://localhost:4317",
        Protocol::HttpProtobuf => "http://localhost:4318",
    };
    let (name, text) = given.map_or(("", default), |it| (&*it.name, &*it.value.0));
    let insecure = own.insecure.or(general.insecure).unwrap_or(false);
    Endpoint::parse(text, protocol, given_for, signal, insecure)
        .map_err(|expected| SettingsError::new(name, &without_secrets(text), expected))
}

/// Headers that say how a request is framed, sent and read: they are the transport's own.
const OF_THE_TRANSPORT: [&str; 12] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

fn put(headers: &mut HeaderMap, name: &str, given: &Pairs) -> Result<(), SettingsError> {
    for (index, (key, value)) in given.0.iter().enumerate() {
        let nth = index + 1;
        let key = HeaderName::try_from(key.as_str()).map_err(|_| {
            SettingsError::secret(name, format!("the name of header {nth} is not one of HTTP"))
        })?;
        if OF_THE_TRANSPORT.contains(&key.as_str()) || key.as_str().starts_with("grpc-") {
            let expected = format!("`{key}` is set by the exporter itself: leave it out");
            return Err(SettingsError::secret(name, expected));
        }
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| {
            SettingsError::secret(name, format!("the value of `{key}` is not one of HTTP"))
        })?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(())
}

fn tls(own: &Layer, general: &Layer) -> Result<TlsFiles, SettingsError> {
    let authorities = own.certificate.as_ref().or(general.certificate.as_ref());
    let certificate = own.client_certificate.as_ref();
    let certificate = certificate.or(general.client_certificate.as_ref());
    let key = own.client_key.as_ref().or(general.client_key.as_ref());
    for given in [authorities, certificate, key].into_iter().flatten() {
        if given.value.is_content() {
            let expected = "the name of a file is expected, and not what is to be in it";
            return Err(SettingsError::secret(&given.name, expected));
        }
    }
    let path = |given: &Given<File>| given.value.0.clone();
    let client = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((path(certificate), path(key))),
        (None, None) => None,
        (Some(alone), None) | (None, Some(alone)) => {
            let expected = "a client's certificate and its key are needed together";
            let value = alone.value.0.to_string_lossy();
            return Err(SettingsError::new(&alone.name, &value, expected));
        }
    };
    Ok(TlsFiles {
        authorities: authorities.map(path),
        client,
    })
}
