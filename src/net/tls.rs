//! Whom to trust: the machine's roots, or where the environment says (`SSL_CERT_FILE`, `SSL_CERT_DIR`); bundled ones where a
//! machine has none, as in an empty container.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

/// The configuration for all connections of a client.
pub(crate) fn configuration() -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for problem in &found.errors {
        tracing::warn!("a root certificate of this machine cannot be used: {problem}");
    }
    let (added, ignored) = roots.add_parsable_certificates(found.certs);
    tracing::debug!(added, ignored, "root certificates of this machine");
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
