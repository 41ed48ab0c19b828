//! The TLS configuration of connections to servers.

use std::sync::Arc;

use rustls::{ClientConfig, Error};

/// The configuration for all connections of a client.
pub(crate) fn configuration() -> Result<ClientConfig, Error> {
    let mut config = ClientConfig::builder_with_provider(trust::PROVIDER.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust::Verifier::system()))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
