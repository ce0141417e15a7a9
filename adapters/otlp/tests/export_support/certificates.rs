//! Certificates made for one test.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd,
};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tonic::transport::{Identity, ServerTlsConfig};

/// Of all that needs a name of its own.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// An authority of the test's own.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = format!("authority {}", COUNT.fetch_add(1, Relaxed));
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate: Certificate = params.self_signed(&key).expect("a certificate");
        Self {
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// For these names, from 2000 until the end of a year.
    pub(crate) fn issue(&self, names: &[&str], until: i32) -> Pair {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until, 12, 31);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl Pair {
    pub(crate) fn rustls(&self) -> ServerConfig {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes());
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes());
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.expect("PEM")], key.expect("PEM"))
            .expect("a certificate with its key");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    }

    pub(crate) fn server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new().identity(Identity::from_pem(&self.certificate, &self.key))
    }
}

/// A file with this text, removed with the value.
pub(crate) struct File(pub(crate) PathBuf);

impl File {
    pub(crate) fn new(text: &str) -> Self {
        let name = format!(
            "lineage-otlp-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("a temporary file");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
