//! Mutual TLS in which each side accepts exactly one certificate of the other side, exchanged beforehand.
//!
//! No certificate chain is verified, because there is none. The connection is trusted because the host passes its certificate in the
//! environment of the plugin, and reads the plugin's certificate from the first line of its output. The plugin's certificate still has the
//! form that Go's verifier requires: a CA certificate for the name `localhost`.
//!
//! All of it is *ring*'s, which needs no time to collect entropy when a plugin starts. go-plugin's clients have keys of P-521,
//! which *ring* does not have: their signatures are verified by the crate `p521`.

use std::sync::Arc;

use ::ring::rand::{SecureRandom as _, SystemRandom};
use ::ring::signature;
use p521::ecdsa::signature::Verifier as _;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    GetRandomFailed, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{
    AlgorithmIdentifier, CertificateDer, InvalidSignature, SignatureVerificationAlgorithm, UnixTime, alg_id,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::{CertifiedKey, Signer, SigningKey, SingleCertAndKey};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName as Subject, ServerConfig, SignatureAlgorithm,
    SignatureScheme,
};

use crate::certificate::self_signed;

/// Server side of the encryption.
pub(crate) struct Tls {
    /// The configuration for a listener.
    pub config: Arc<ServerConfig>,
    /// Certificate of this plugin, which the handshake announces.
    pub certificate: Vec<u8>,
}

/// Reason why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("PLUGIN_CLIENT_CERT is not a certificate: {0}")]
    ClientCertificate(rustls::pki_types::pem::Error),
    #[error("cannot make a key: the operating system gives no random numbers")]
    Key,
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

impl Tls {
    /// Creates a key and a certificate for this process. Only the client with the given certificate (PEM) is accepted.
    pub fn new(client_certificate: &str) -> Result<Tls, TlsError> {
        let client =
            CertificateDer::from_pem_slice(client_certificate.as_bytes()).map_err(TlsError::ClientCertificate)?;
        let key = ServerKey::generate().ok_or(TlsError::Key)?;
        let certificate = key.certificate().map(CertificateDer::from).ok_or(TlsError::Key)?;

        let provider = ring::default_provider();
        let verifier = ExactClient {
            certificate: client,
            algorithms: provider.signature_verification_algorithms,
        };
        let identity = CertifiedKey::new(vec![certificate.clone()], Arc::new(key));
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(verifier))
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity)));
        // gRPC in Go (since 1.67) closes connections for which HTTP/2 was not negotiated.
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Tls {
            config: Arc::new(config),
            certificate: certificate.to_vec(),
        })
    }
}

/// Algorithms of signatures that *ring* does not have.
const OF_GO: WebPkiSupportedAlgorithms = WebPkiSupportedAlgorithms {
    all: &[&P521],
    mapping: &[(SignatureScheme::ECDSA_NISTP521_SHA512, &[&P521])],
};

/// ECDSA with P-521 and SHA-512.
#[derive(Debug)]
struct P521;

impl SignatureVerificationAlgorithm for P521 {
    fn verify_signature(&self, key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), InvalidSignature> {
        let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(key).map_err(|_| InvalidSignature)?;
        let signature = p521::ecdsa::Signature::from_der(signature).map_err(|_| InvalidSignature)?;
        key.verify(message, &signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_P521
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_SHA512
    }
}

/// Private key of this process. The curve is P-256, which all current clients support.
#[derive(Clone, Debug)]
struct ServerKey(Arc<signature::EcdsaKeyPair>);

impl ServerKey {
    fn generate() -> Option<ServerKey> {
        let (algorithm, random) = (&signature::ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
        let document = signature::EcdsaKeyPair::generate_pkcs8(algorithm, &random).ok()?;
        let pair = signature::EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).ok()?;
        Some(ServerKey(Arc::new(pair)))
    }

    /// Makes a certificate for the key.
    fn certificate(&self) -> Option<Vec<u8>> {
        let mut serial = [0; 16];
        SystemRandom::new().fill(&mut serial).ok()?;
        let public_key = signature::KeyPair::public_key(&*self.0);
        self_signed(public_key.as_ref(), serial, |content| self.sign(content))
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let signature = self.0.sign(&SystemRandom::new(), message).ok()?;
        Some(signature.as_ref().to_vec())
    }
}

impl SigningKey for ServerKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let own = SignatureScheme::ECDSA_NISTP256_SHA256;
        offered
            .contains(&own)
            .then(|| Box::new(self.clone()) as Box<dyn Signer>)
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }
}

impl Signer for ServerKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        ServerKey::sign(self, message).ok_or_else(|| GetRandomFailed.into())
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ECDSA_NISTP256_SHA256
    }
}

/// Verifier that accepts exactly one certificate, and does not check its content.
#[derive(Debug)]
struct ExactClient {
    certificate: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ExactClient {
    /// Returns the algorithms among which the one of a signature is.
    fn algorithms_for(&self, signature: &DigitallySignedStruct) -> &WebPkiSupportedAlgorithms {
        match signature.scheme {
            SignatureScheme::ECDSA_NISTP521_SHA512 => &OF_GO,
            _ => &self.algorithms,
        }
    }
}

impl ClientCertVerifier for ExactClient {
    fn root_hint_subjects(&self) -> &[Subject] {
        // Empty, so that a client sends its certificate whatever its issuer is.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        // Certificates are public, so the comparison need not take constant time; the signature checked below proves the key. Dates are not
        // checked, so that a wrong clock does not keep plugins from starting.
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
        verify_tls12_signature(message, certificate, signature, self.algorithms_for(signature))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, self.algorithms_for(signature))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        [OF_GO.supported_schemes(), self.algorithms.supported_schemes()].concat()
    }
}
