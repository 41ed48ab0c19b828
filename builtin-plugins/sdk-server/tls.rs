//! Mutual TLS in which each side accepts exactly one certificate of the other side, exchanged beforehand.
//!
//! No certificate chain is verified, because there is none. The connection is trusted because the host passes its certificate in the
//! environment of the plugin, and reads the plugin's certificate from the first line of its output. The plugin's certificate still has the
//! form that Go's verifier requires: a CA certificate for the name `localhost`.
//!
//! *ring* does everything that needs random numbers (keys, signatures, key exchange), because it takes them from the operating system.
//! AWS-LC does the rest, including the verification of client signatures, whose P-521 keys *ring* does not support. The random numbers of
//! AWS-LC are not used: it first collects entropy for them, which would add 30 ms to every start of a plugin. An environment variable can
//! switch that off only when AWS-LC is built, which a library cannot control.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{agreement, signature};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup,
    WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::{CertifiedKey, Signer, SigningKey, SingleCertAndKey};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName as Subject, NamedGroup, PeerMisbehaved, ServerConfig,
    SignatureAlgorithm, SignatureScheme,
};

/// TLS settings and certificate of the plugin.
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
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

impl Tls {
    /// Creates a key and a certificate for this process. Only the client with the given certificate (PEM) is accepted.
    pub fn new(client_certificate: &str) -> Result<Tls, TlsError> {
        let client =
            CertificateDer::from_pem_slice(client_certificate.as_bytes()).map_err(TlsError::ClientCertificate)?;
        let key = ServerKey::generate().ok_or(TlsError::Key)?;
        let certificate = parameters()?.self_signed(&key)?.der().clone();

        let provider = crypto_provider();
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

fn parameters() -> Result<CertificateParams, rcgen::Error> {
    use rcgen::KeyUsagePurpose::{DigitalSignature, KeyAgreement, KeyCertSign, KeyEncipherment};
    // go-plugin uses this certificate as the only root, and `localhost` as the server name. So it must be a CA certificate with that name.
    let mut parameters = CertificateParams::new(vec!["localhost".to_owned()])?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "localhost");
    parameters.distinguished_name.push(DnType::OrganizationName, "Monoform");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![DigitalSignature, KeyEncipherment, KeyAgreement, KeyCertSign];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    Ok(parameters)
}

fn crypto_provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: vec![&X25519, &P256],
        secure_random: &OperatingSystem,
        ..aws_lc_rs::default_provider()
    }
}

/// Random numbers from the operating system.
#[derive(Debug)]
struct OperatingSystem;

impl SecureRandom for OperatingSystem {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
        SystemRandom::new().fill(buffer).map_err(|_| GetRandomFailed)
    }
}

/// Key exchange group.
#[derive(Debug)]
struct Group {
    name: NamedGroup,
    algorithm: &'static agreement::Algorithm,
}

static X25519: Group = Group {
    name: NamedGroup::X25519,
    algorithm: &agreement::X25519,
};

static P256: Group = Group {
    name: NamedGroup::secp256r1,
    algorithm: &agreement::ECDH_P256,
};

impl SupportedKxGroup for Group {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        let failed = |_| rustls::Error::from(GetRandomFailed);
        let key = agreement::EphemeralPrivateKey::generate(self.algorithm, &SystemRandom::new()).map_err(failed)?;
        let public = key.compute_public_key().map_err(failed)?;
        Ok(Box::new(Exchange {
            name: self.name,
            algorithm: self.algorithm,
            key,
            public,
        }))
    }

    fn name(&self) -> NamedGroup {
        self.name
    }
}

/// A key exchange in progress.
struct Exchange {
    name: NamedGroup,
    algorithm: &'static agreement::Algorithm,
    key: agreement::EphemeralPrivateKey,
    public: agreement::PublicKey,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, rustls::Error> {
        let peer = agreement::UnparsedPublicKey::new(self.algorithm, peer);
        agreement::agree_ephemeral(self.key, &peer, |secret| SharedSecret::from(secret))
            .map_err(|_| PeerMisbehaved::InvalidKeyShare.into())
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_ref()
    }

    fn group(&self) -> NamedGroup {
        self.name
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

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let signature = self.0.sign(&SystemRandom::new(), message).ok()?;
        Some(signature.as_ref().to_vec())
    }
}

impl rcgen::PublicKeyData for ServerKey {
    fn der_bytes(&self) -> &[u8] {
        signature::KeyPair::public_key(&*self.0).as_ref()
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

impl rcgen::SigningKey for ServerKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        ServerKey::sign(self, message).ok_or(rcgen::Error::RemoteKeyError)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// AWS-LC would spend 30 ms on random numbers at every start of a plugin; see the module documentation.
    #[test]
    fn no_random_numbers_come_from_aws_lc() {
        let ours = crypto_provider();
        assert_eq!(format!("{:?}", ours.secure_random), "OperatingSystem");
        let groups: Vec<String> = ours.kx_groups.iter().map(|group| format!("{group:?}")).collect();
        assert!(groups.iter().all(|group| group.starts_with("Group {")), "{groups:?}");
    }
}
