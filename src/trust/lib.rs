//! Trust anchors of TLS connections, and the verification of server certificates.
//!
//! The anchors are those of the system, or of the files in environment variables (`SSL_CERT_FILE`, `SSL_CERT_DIR`);
//! or bundled ones on a machine without anchors, such as an empty container. All clients use them: registries and
//! mirrors (`net`), and the providers `http` and `tls`. Connections to plugins are verified elsewhere, since they
//! trust one certificate whatever its name and dates.
//!
//! Start with [`Verifier`]; [`configuration`] builds a client's TLS configuration with it.

mod verifier;

use std::sync::Arc;
use std::time::Duration;

pub use rustls::Error;
pub use rustls::client::VerifierBuilderError;
pub use verifier::{PROVIDER, Verifier};

use rustls::client::danger::ServerCertVerified;
use rustls::client::verify_server_name;
use rustls::client::{WantsClientCert, danger::ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, ConfigBuilder, RootCertStore};

/// Builds the TLS configuration of connections to servers. The caller adds the client's certificate.
///
/// # Errors
/// Returns an error if the cryptography provider supports none of the protocol versions that rustls considers
/// safe.
pub fn configuration(
    verifier: Arc<dyn ServerCertVerifier>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Error> {
    let builder = ClientConfig::builder_with_provider(PROVIDER.clone()).with_safe_default_protocol_versions()?;
    // rustls offers custom verifiers only through its `dangerous` interface.
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier))
}

/// Returns the certificates that this machine trusts, which takes some time. Unreadable certificates are logged.
pub(crate) fn system_certificates() -> Vec<CertificateDer<'static>> {
    let found = rustls_native_certs::load_native_certs();
    for problem in &found.errors {
        tracing::warn!("a root certificate of this machine cannot be used: {problem}");
    }
    found.certs
}

/// Builds the root store of trusted certificates, or of bundled ones if there are none.
pub(crate) fn roots(trusted: &[CertificateDer<'static>]) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let (added, ignored) = roots.add_parsable_certificates(trusted.iter().cloned());
    tracing::debug!(added, ignored, "root certificates of this machine");
    // An empty container has no certificates.
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

/// Verifies the name and the validity period of a server certificate that is itself a trust anchor.
///
/// Fails if the certificate is of another server, cannot be read, or is not valid now.
pub(crate) fn verify_pinned_certificate(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<ServerCertVerified, Error> {
    // rustls rejects such a certificate if it is marked as that of a certificate authority, as self-signed ones usually
    // are. So only its name and, below, its validity period are checked.
    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
    // rustls has no check of the validity period alone.
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let time = |time: x509_parser::time::ASN1Time| {
        UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time.timestamp()).unwrap_or_default()))
    };
    let validity = parsed.validity();
    let (not_before, not_after) = (time(validity.not_before), time(validity.not_after));
    if now < not_before {
        return Err(CertificateError::NotValidYetContext { time: now, not_before }.into());
    }
    if now > not_after {
        return Err(CertificateError::ExpiredContext { time: now, not_after }.into());
    }
    Ok(ServerCertVerified::assertion())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn certificate() -> CertificateDer<'static> {
        let made = rcgen::generate_simple_self_signed(vec!["here.example".to_owned()]).unwrap();
        made.cert.der().clone()
    }

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn bundled_roots_replace_an_empty_list() {
        assert_eq!(roots(&[]).len(), webpki_roots::TLS_SERVER_ROOTS.len());
        assert_eq!(roots(&[certificate()]).len(), 1);
    }

    #[test]
    fn pinned_certificate_is_valid_for_its_name_and_period() {
        let certificate = certificate();
        let name = |text: &str| ServerName::try_from(text.to_owned()).unwrap();
        let in_2030 = 1_900_000_000;
        assert!(verify_pinned_certificate(&certificate, &name("here.example"), at(in_2030)).is_ok());
        assert!(verify_pinned_certificate(&certificate, &name("there.example"), at(in_2030)).is_err());
        assert!(verify_pinned_certificate(&certificate, &name("here.example"), at(1)).is_err());
        assert!(verify_pinned_certificate(&certificate, &name("here.example"), at(90_000_000_000)).is_err());
    }
}
