//! Mutual TLS with one certificate on each side: each accepts exactly the other's, announced beforehand, and nothing else.
//!
//! No chain is verified, because there is none. The connection is trusted because the program that started this plugin gave its
//! certificate through the environment, and reads ours from the first line of output. Our certificate still has the form that
//! Go's verifier wants to see (an authority named `localhost`).
//!
//! Whatever needs random numbers, which is keys, signatures and the exchange of keys, comes from *ring*, which asks the
//! operating system for them. AWS-LC does the rest: among it the signatures of clients, whose keys are P-521, which *ring* does
//! not have. Its own random numbers are not used, since it collects entropy for them first, for 30 ms of every start, unless an
//! environment variable was set when it was built: a library cannot see to that.

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

/// Server side of the encryption.
pub(crate) struct Tls {
    /// The configuration for a listener.
    pub config: Arc<ServerConfig>,
    /// Certificate of this plugin, which the handshake announces.
    pub certificate: Vec<u8>,
}

/// Reason why there can be no encrypted connection.
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
    /// Makes a key and a certificate for this process, and accepts only the client with this certificate (PEM).
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
    // go-plugin makes this certificate the only root of the connection and asks for the
    // server name `localhost`: it must be an authority, and have that name.
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

/// This process's key: P-256, which all current clients support.
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

/// Verifier that accepts exactly one certificate, whatever its content.
#[derive(Debug)]
struct ExactClient {
    certificate: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for ExactClient {
    fn root_hint_subjects(&self) -> &[Subject] {
        // No authorities are named, so that a client sends the certificate that it has.
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        // Certificates are public, so no constant time is needed: the signature below proves the key.
        // Dates are not compared, so that a wrong clock keeps no plugin from starting.
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

    /// The random numbers of AWS-LC cost every plugin 30 ms at its start; see the head of this file.
    #[test]
    fn no_random_numbers_come_from_aws_lc() {
        let ours = crypto_provider();
        assert_eq!(format!("{:?}", ours.secure_random), "OperatingSystem");
        let groups: Vec<String> = ours.kx_groups.iter().map(|group| format!("{group:?}")).collect();
        assert!(groups.iter().all(|group| group.starts_with("Group {")), "{groups:?}");
    }
}
