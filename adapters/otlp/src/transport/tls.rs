//! Certificates: whom we trust, what we show, and what went wrong.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{
    self, AlertDescription, CertificateError, ClientConfig, InvalidMessage, RootCertStore,
};

use crate::config::{Endpoint, Protocol, TlsFiles};
use crate::pipeline::ProblemKind;
use crate::pipeline::problem::Trouble;

/// Certificates or a key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{} cannot be read: {why}", file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// Why.
        #[source]
        why: io::Error,
    },
    /// A file holds nothing of what it is to hold.
    #[error("{} holds no {what} as PEM: {why}", file.display())]
    NotPem {
        /// Which.
        file: PathBuf,
        /// A certificate or a private key.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A certificate or a key that TLS cannot work with, or the two do not belong together.
    #[error("{} cannot be used: {why}", file.display())]
    Unusable {
        /// Which.
        file: PathBuf,
        /// Why.
        #[source]
        why: rustls::Error,
    },
    /// The system trusts nobody.
    #[error(
        "no certificate authority is known on this system{why}: name a file of them in OTEL_EXPORTER_OTLP_CERTIFICATE"
    )]
    NoAuthorities {
        /// What went wrong while they were looked for.
        why: String,
    },
    /// The versions of TLS that are asked for are not there.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[source] rustls::Error),
}

pub(super) fn connector(files: &TlsFiles, protocol: Protocol) -> Result<TlsConnector, TlsError> {
    let roots = match &files.authorities {
        Some(file) => authorities_of(file)?,
        None => authorities_of_the_system()?,
    };
    // The application may have set a provider of its own for the process: this one is ours alone.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?
        .with_root_certificates(roots);
    let mut config = match &files.client {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let read = PrivateKeyDer::from_pem_slice(&read(key)?);
            let key_read = read.map_err(|why| not_pem(key, "private key", &why))?;
            config
                .with_client_auth_cert(chain, key_read)
                .map_err(|why| unusable(certificate, why))?
        }
    };
    config.alpn_protocols = vec![match protocol {
        Protocol::Grpc => b"h2".to_vec(),
        Protocol::HttpProtobuf => b"http/1.1".to_vec(),
    }];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn authorities_of(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|why| unusable(file, why))?;
    }
    Ok(roots)
}

fn authorities_of_the_system() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        let why: String = found.errors.iter().map(|why| format!(" ({why})")).collect();
        return Err(TlsError::NoAuthorities { why });
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(file)?;
    let all: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    let all = all.map_err(|why| not_pem(file, "certificate", &why))?;
    if all.is_empty() {
        return Err(not_pem(file, "certificate", &pem::Error::NoItemsFound));
    }
    Ok(all)
}

fn read(file: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(file).map_err(|why| TlsError::Unreadable {
        file: file.to_owned(),
        why,
    })
}

fn not_pem(file: &Path, what: &'static str, why: &pem::Error) -> TlsError {
    TlsError::NotPem {
        file: file.to_owned(),
        what,
        why: why.to_string(),
    }
}

fn unusable(file: &Path, why: rustls::Error) -> TlsError {
    TlsError::Unusable {
        file: file.to_owned(),
        why,
    }
}

pub(super) async fn agree(
    tls: &TlsConnector,
    endpoint: &Endpoint,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, Trouble> {
    let name = ServerName::try_from(endpoint.host.clone()).map_err(|_| {
        let what = format!(
            "`{}` is no name that a certificate could have",
            endpoint.host
        );
        Trouble::new(ProblemKind::Tls, what)
    })?;
    tls.connect(name, stream).await.map_err(|why| {
        let cause = why.get_ref().and_then(|why| cause_of(why));
        cause.unwrap_or_else(|| {
            let what = format!("the connection broke while TLS was agreed on ({why})");
            Trouble::new(ProblemKind::Unreachable, what)
        })
    })
}

/// What an error says, if it is one of TLS.
pub(super) fn cause_of(error: &(dyn Error + 'static)) -> Option<Trouble> {
    if let Some(error) = error.downcast_ref() {
        return Some(trouble(error));
    }
    // An `io::Error` names as its source that of the error within, not that error.
    let error = error.downcast_ref::<io::Error>()?;
    if let Some(within) = error.get_ref().and_then(|within| within.downcast_ref()) {
        return Some(trouble(within));
    }
    // HTTP/2 keeps no more than an error's text, and this one comes when TLS has been agreed on, from its side.
    let unnamed = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
    (error.to_string() == unnamed.to_string()).then(|| trouble(&unnamed))
}

fn trouble(error: &rustls::Error) -> Trouble {
    use rustls::Error as Tls;
    let advice = match error {
        Tls::InvalidCertificate(why) => match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "trying again; the collector's certificate has to be renewed, if this machine's clock is right"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "trying again; is this machine's clock right?"
            }
            CertificateError::UnknownIssuer => {
                "trying again; name the certificate authority of the collector in OTEL_EXPORTER_OTLP_CERTIFICATE"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "trying again; the endpoint's host has to be one that the collector's certificate names"
            }
            _ => "trying again; the collector's certificate has to be mended",
        },
        Tls::AlertReceived(AlertDescription::CertificateRequired) => {
            "trying again; the collector asks who we are: set OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and \
             OTEL_EXPORTER_OTLP_CLIENT_KEY"
        }
        Tls::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "trying again; the port speaks TLS and not this protocol: by default grpc is at 4317, http/protobuf at 4318"
        }
        Tls::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "trying again; the port speaks no TLS, so the endpoint has to begin with http://"
        }
        _ => "trying again",
    };
    let what = format!("no agreement on TLS ({error})");
    Trouble::new(ProblemKind::Tls, what).with_advice(advice)
}
