//! The TLS configuration of a connection to WinRM.

use std::sync::Arc;

use rustls::ClientConfig;
use trust::Verifier;

use super::settings::Settings;
use crate::{Error, Result};

/// Builds the TLS configuration. Servers are verified by the certificates of the connection block (authorities, or the server's own
/// certificate), by those of the system, or not at all.
pub fn configuration(settings: &Settings) -> Result<ClientConfig> {
    let failed = |error: &dyn std::fmt::Display| Error::fatal(error.to_string());
    let verifier = match &settings.cacert {
        _ if settings.insecure => Verifier::insecure(),
        Some(pem) => Verifier::of_pem(pem).map_err(|e| failed(&e))?.ok_or_else(|| {
            Error::fatal(
                "cacert holds no certificate that can be read. Certificates in PEM format begin with a line -----BEGIN \
                 CERTIFICATE-----.",
            )
        })?,
        None => Verifier::system(),
    };
    let builder = trust::configuration(Arc::new(verifier)).map_err(|e| failed(&e))?;
    Ok(builder.with_no_client_auth())
}
