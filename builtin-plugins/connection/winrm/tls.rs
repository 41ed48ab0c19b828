//! The TLS configuration of a connection to WinRM.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use trust::Verifier;

use super::Settings;
use crate::{Error, Result};

/// Verifies servers by the certificates of the connection block, which may be a server's own, or by those of the system; or not at
/// all.
pub fn configuration(settings: &Settings) -> Result<ClientConfig> {
    let failed = |error: &dyn std::fmt::Display| Error::fatal(error.to_string());
    let verifier = match &settings.cacert {
        _ if settings.insecure => Verifier::insecure(),
        Some(pem) => {
            let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes()).flatten().collect();
            let (usable, _) = RootCertStore::empty().add_parsable_certificates(certificates.iter().cloned());
            if usable == 0 {
                return Err(Error::fatal(
                    "cacert holds no certificate that can be read. Certificates in PEM format begin with a line -----BEGIN \
                     CERTIFICATE-----.",
                ));
            }
            Verifier::custom(certificates).map_err(|e| failed(&e))?
        }
        None => Verifier::system(),
    };
    Ok(ClientConfig::builder_with_provider(trust::PROVIDER.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| failed(&e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth())
}
