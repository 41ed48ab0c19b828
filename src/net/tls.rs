//! Connections to servers that the machine trusts.

use std::sync::Arc;

use rustls::ClientConfig;

/// The configuration for all connections of a client.
pub(crate) fn configuration() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(trust::roots(&trust::machine()))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
