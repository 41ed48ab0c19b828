//! TLS settings of a request: trusted authorities, and the client certificate.

use std::sync::Arc;

use monoform_sdk::Diagnostic;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use trust::Verifier;

/// The TLS arguments of a configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trust<'a> {
    /// Trusted authorities as PEM text, instead of those of the system.
    pub authorities: Option<&'a str>,
    /// True if the certificates of servers are not verified.
    pub insecure: bool,
    /// Client certificate and private key as PEM text.
    pub client: Option<(&'a str, &'a str)>,
}

impl Trust<'_> {
    /// Builds the configuration for the TLS library.
    pub fn configuration(&self) -> Result<ClientConfig, Diagnostic> {
        let verifier = match self.authorities {
            Some(pem) => Verifier::of_pem(pem)
                .map_err(|e| tls_error(e.to_string()))?
                .ok_or_else(no_authority)?,
            None if self.insecure => Verifier::insecure(),
            None => Verifier::system(),
        };
        let builder = trust::configuration(Arc::new(verifier)).map_err(|e| tls_error(e.to_string()))?;
        let Some((certificate, key)) = self.client else {
            return Ok(builder.with_no_client_auth());
        };
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
        let certificates = certificates.map_err(|e| pair_error(&format!("client_cert_pem cannot be read: {e}")))?;
        let Some(first) = certificates.first() else {
            return Err(pair_error("client_cert_pem holds no certificate in PEM format"));
        };
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|e| {
            pair_error(&format!(
                "client_key_pem holds no private key in PEM format that can be read: {e}"
            ))
        })?;
        let key = trust::PROVIDER
            .key_provider
            .load_private_key(key)
            .map_err(|e| pair_error(&e.to_string()))?;
        // Checked here, because the check of the TLS library cannot read certificates of version 1, which `openssl x509 -req` creates by
        // default.
        let (_, parsed) = x509_parser::parse_x509_certificate(first)
            .map_err(|e| pair_error(&format!("client_cert_pem cannot be read: {e}")))?;
        if key
            .public_key()
            .is_some_and(|public| *public != *parsed.public_key().raw)
        {
            return Err(pair_error(
                "client_key_pem is not the key of the certificate in client_cert_pem",
            ));
        }
        let pair = SingleCertAndKey::from(CertifiedKey::new(certificates, key));
        Ok(builder.with_client_cert_resolver(Arc::new(pair)))
    }
}

fn no_authority() -> Diagnostic {
    let detail = "ca_cert_pem holds no certificate that can be read. Only certificates in PEM format are supported, which begin with \
                  a line \"-----BEGIN CERTIFICATE-----\".";
    tls_error(detail.to_owned()).at_attribute("ca_cert_pem")
}

fn tls_error(detail: String) -> Diagnostic {
    Diagnostic::error("Error configuring TLS client", detail)
}

fn pair_error(reason: &str) -> Diagnostic {
    Diagnostic::error(
        "error creating x509 key pair",
        format!("The client's certificate and key cannot be used: {reason}."),
    )
    .at_attribute("client_cert_pem")
}
