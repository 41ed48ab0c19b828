//! Mutual TLS with one certificate on each side: each accepts exactly the other's, told beforehand, and nothing else.
//!
//! No chain is verified, because there is none: what stands for trust is that the program that started this plugin
//! gave its certificate through the environment, and reads ours from the first line of output. Our certificate
//! still has the form that Go's verifier wants to see (an authority named `localhost`).

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName as Subject, ServerConfig, SignatureScheme};

/// This plugin's side of the encryption.
pub(crate) struct Tls {
    /// What a listener needs.
    pub config: Arc<ServerConfig>,
    /// Our certificate, to be announced.
    pub certificate: Vec<u8>,
}

/// Why there can be no encrypted connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("PLUGIN_CLIENT_CERT is not a certificate: {0}")]
    ClientCertificate(rustls::pki_types::pem::Error),
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

impl Tls {
    /// Makes a key and a certificate for this process, and lets in the client with this certificate (PEM) only.
    pub fn new(client_certificate: &str) -> Result<Tls, TlsError> {
        let client =
            CertificateDer::from_pem_slice(client_certificate.as_bytes()).map_err(TlsError::ClientCertificate)?;
        // P-256: any client of today verifies it, and a key is made in well under a millisecond.
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let certificate = parameters()?.self_signed(&key)?.der().clone();

        let provider = aws_lc_rs::default_provider();
        let verifier = ExactClient {
            certificate: client,
            algorithms: provider.signature_verification_algorithms,
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(verifier))
            .with_single_cert(
                vec![certificate.clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Tls {
            config: Arc::new(config),
            certificate: certificate.to_vec(),
        })
    }
}

fn parameters() -> Result<CertificateParams, rcgen::Error> {
    use rcgen::KeyUsagePurpose::{DigitalSignature, KeyAgreement, KeyCertSign, KeyEncipherment};
    let mut parameters = CertificateParams::new(vec!["localhost".to_owned()])?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "localhost");
    parameters.distinguished_name.push(DnType::OrganizationName, "Monoform");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![DigitalSignature, KeyEncipherment, KeyAgreement, KeyCertSign];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    Ok(parameters)
}

/// Lets in exactly one certificate, whatever it says about itself.
#[derive(Debug)]
struct ExactClient {
    certificate: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for ExactClient {
    fn root_hint_subjects(&self) -> &[Subject] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        if *end_entity == self.certificate {
            Ok(ClientCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
