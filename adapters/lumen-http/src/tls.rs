//! TLS, set up when the first connection needs it: reading the platform's certificates takes longer than all else at
//! the start.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::Error;
use crate::error::chain;

/// The certificates that a server's must lead to: those of the platform, and further ones.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    further: Vec<CertificateDer<'static>>,
}

impl Roots {
    /// Adds those of a PEM file.
    ///
    /// # Errors
    /// It cannot be read, or holds no certificate.
    pub fn with_file(mut self, path: &Path) -> Result<Self, Error> {
        let fail = |why: String| Error::Certificates { path: path.to_owned(), why };
        let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let found = found.map_err(|error| fail(chain(&error)))?;
        if found.is_empty() {
            return Err(fail("it holds no certificate in PEM form".to_owned()));
        }
        let mut store = RootCertStore::empty();
        for certificate in &found {
            store.add(certificate.clone()).map_err(|error| fail(error.to_string()))?;
        }
        self.further.extend(found);
        Ok(self)
    }
}

/// Makes connections secure.
#[derive(Debug)]
pub(crate) struct Tls {
    roots: Roots,
    made: OnceLock<Result<Made, String>>,
}

/// What the first connection sets up.
#[derive(Clone)]
struct Made(TlsConnector);

impl std::fmt::Debug for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Made")
    }
}

impl Tls {
    pub(crate) const fn new(roots: Roots) -> Self {
        Self { roots, made: OnceLock::new() }
    }

    /// Makes a connection secure; says in words why that cannot be.
    pub(crate) async fn connect(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> Result<TlsStream<TcpStream>, String> {
        let made = self.made.get_or_init(|| self.make()).clone()?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        made.0.connect(name, stream).await.map_err(|error| chain(&error))
    }

    fn make(&self) -> Result<Made, String> {
        let mut store = RootCertStore::empty();
        let platform = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(platform.certs);
        store.add_parsable_certificates(self.roots.further.iter().cloned());
        if store.is_empty() {
            let why = platform.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
            return Err(format!("this machine has no root certificates{why}"));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let mut config = config.with_root_certificates(store).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Made(TlsConnector::from(Arc::new(config))))
    }
}
