//! Verification of server certificates.

use std::sync::{Arc, LazyLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::{roots, system_certificates, verify_pinned_certificate};

/// Cryptography provider of rustls for all connections to servers.
pub static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));

/// The trust anchors of the system. Reading them takes time, so it is done once, on first use.
static SYSTEM: LazyLock<Result<Anchors, VerifierBuilderError>> = LazyLock::new(|| Anchors::new(system_certificates()));

/// Trusted certificates and their path verifier.
#[derive(Debug)]
struct Anchors {
    paths: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Anchors {
    fn new(certificates: Vec<CertificateDer<'static>>) -> Result<Anchors, VerifierBuilderError> {
        let roots = Arc::new(roots(&certificates));
        Ok(Anchors {
            paths: WebPkiServerVerifier::builder_with_provider(roots, PROVIDER.clone()).build()?,
            certificates,
        })
    }
}

#[derive(Debug)]
enum Mode {
    System,
    Custom(Anchors),
    Insecure,
}

/// Verifies server certificates. Accepts a path to a trust anchor, and a certificate that is itself a trust anchor.
#[derive(Debug)]
pub struct Verifier(Mode);

impl Verifier {
    /// Trusts the system's certificates, which are read when the first certificate is verified.
    #[must_use]
    pub fn system() -> Verifier {
        Verifier(Mode::System)
    }

    /// Trusts these certificates only.
    ///
    /// # Errors
    ///
    /// Returns an error if none of them is usable.
    pub fn custom(certificates: Vec<CertificateDer<'static>>) -> Result<Verifier, VerifierBuilderError> {
        Ok(Verifier(Mode::Custom(Anchors::new(certificates)?)))
    }

    /// Trusts the certificates in a PEM text only; `None` if none of them is usable.
    ///
    /// # Errors
    /// Returns an error if the TLS library rejects them.
    pub fn of_pem(pem: &str) -> Result<Option<Verifier>, VerifierBuilderError> {
        let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes()).flatten().collect();
        let (usable, _) = RootCertStore::empty().add_parsable_certificates(certificates.iter().cloned());
        (usable > 0).then(|| Verifier::custom(certificates)).transpose()
    }

    /// Accepts every certificate, without verification.
    #[must_use]
    pub fn insecure() -> Verifier {
        Verifier(Mode::Insecure)
    }

    fn anchors(&self) -> Result<Option<&Anchors>, Error> {
        match &self.0 {
            Mode::Insecure => Ok(None),
            Mode::Custom(anchors) => Ok(Some(anchors)),
            Mode::System => match &*SYSTEM {
                Ok(anchors) => Ok(Some(anchors)),
                Err(error) => Err(Error::General(error.to_string())),
            },
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.anchors()? {
            None => Ok(ServerCertVerified::assertion()),
            // Self-signed certificates of servers are usually marked as those of certificate authorities, which rustls
            // alone would reject.
            Some(anchors) if anchors.certificates.contains(end_entity) => {
                verify_pinned_certificate(end_entity, server_name, now)
            }
            Some(anchors) => {
                let paths = &anchors.paths;
                paths.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // For some certificates, such as those of version 1, signatures cannot be verified here.
        if matches!(self.0, Mode::Insecure) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let algorithms = &PROVIDER.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if matches!(self.0, Mode::Insecure) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let algorithms = &PROVIDER.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        PROVIDER.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn certificate_of_an_authority_that_is_an_anchor_is_accepted_for_its_own_name() {
        let certificate = |name: &str| {
            let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            params
                .self_signed(&rcgen::KeyPair::generate().unwrap())
                .unwrap()
                .der()
                .clone()
        };
        let (known, other) = (certificate("here.example"), certificate("here.example"));
        let verify = |verifier: &Verifier, certificate: &CertificateDer<'_>, name: &'static str| {
            let name = ServerName::try_from(name).unwrap();
            verifier
                .verify_server_cert(certificate, &[], &name, &[], UnixTime::now())
                .is_ok()
        };
        let verifier = Verifier::custom(vec![known.clone()]).unwrap();
        assert!(verify(&verifier, &known, "here.example"));
        assert!(!verify(&verifier, &known, "there.example"));
        assert!(!verify(&verifier, &other, "here.example"));
        assert!(verify(&Verifier::insecure(), &other, "there.example"));
        assert!(!verify(&Verifier::system(), &other, "here.example"));
    }
}
