//! The certificate and the key of a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use files::io_reason;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    #[error("{} cannot be read: {}", path.display(), io_reason(source))]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} has no certificate in PEM form", .0.display())]
    NoCertificate(PathBuf),
    #[error("{} has no private key in PEM form without a password", .0.display())]
    NoKey(PathBuf),
    /// The certificate and the key do not belong together, or TLS does not support their kind.
    #[error("the certificate in {} and the key in {} cannot be used together: {reason}", certificate.display(), key.display())]
    Refused {
        certificate: PathBuf,
        key: PathBuf,
        reason: String,
    },
}

/// Returns the TLS settings of a server, from a file with its certificate chain (its own certificate first) and a file with its
/// private key.
///
/// # Errors
/// A file cannot be read or used.
pub fn server_config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|source| TlsError::Read {
            path: path.to_owned(),
            source,
        })
    };
    let text = read(certificate)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&text).flatten().collect();
    if chain.is_empty() {
        return Err(TlsError::NoCertificate(certificate.to_owned()));
    }
    let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| TlsError::NoKey(key.to_owned()))?;
    let refused = |error: rustls::Error| TlsError::Refused {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        reason: error.to_string(),
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(refused)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(refused)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
