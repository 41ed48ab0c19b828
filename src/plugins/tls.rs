//! Mutual TLS by exact certificate.
//!
//! Each side generates a certificate for this one run and gives it to the other: the core in the environment, the
//! plugin in its handshake line. Names, authorities and dates are not checked. A connection is accepted if the peer
//! presents *that* certificate and proves to hold its key. The usual path validation would even fail, because
//! go-plugin's certificate is that of an authority, which is not allowed at the end of a path.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};

/// Certificate and key of the core for one plugin's connection.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
    pem: String,
}

/// Error of setting up TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("A certificate for the connection to the plugin could not be made: {0}.")]
    Make(#[from] rcgen::Error),
    #[error("The secure connection to the plugin could not be set up: {0}.")]
    Setup(#[from] rustls::Error),
}

impl Identity {
    /// Generates a key and a certificate for it, in the form that go-plugin expects.
    pub fn generate() -> Result<Identity, TlsError> {
        // The curve is P-256 and not go-plugin's P-521, because every server accepts it, and generating its keys takes little time.
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, "localhost");
        name.push(DnType::OrganizationName, "Monoform");
        params.distinguished_name = name;
        // The certificate is its own authority, because older servers require one.
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
            KeyUsagePurpose::KeyAgreement,
            KeyUsagePurpose::KeyCertSign,
        ];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.self_signed(&key)?;
        Ok(Identity {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            key: PrivatePkcs8KeyDer::from(key.serialize_der()),
        })
    }

    /// Returns the certificate in PEM form, for the environment.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the TLS configuration for the peer that holds exactly this certificate.
    pub fn client_config(&self, connection: Vec<u8>) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = ExactServer {
            certificate: connection.into(),
            algorithms: algorithms(&provider),
        };
        // rustls calls every custom verifier dangerous. This one accepts a single certificate, which is stricter than
        // the default.
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(
                vec![self.certificate.clone()],
                PrivateKeyDer::Pkcs8(self.key.clone_key()),
            )?;
        // gRPC servers refuse a connection that does not negotiate HTTP/2.
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }
}

fn algorithms(provider: &CryptoProvider) -> WebPkiSupportedAlgorithms {
    provider.signature_verification_algorithms
}

/// Verifier that accepts exactly one certificate, from a peer that proves to hold its key.
#[derive(Debug)]
struct ExactServer {
    certificate: CertificateDer<'static>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for ExactServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if *end_entity == self.certificate {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(rustls::Error::InvalidCertificate(
                rustls::CertificateError::ApplicationVerificationFailure,
            ))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        // Certificates are public, so only the signature proves that the peer has the key.
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{PKCS_ECDSA_P521_SHA512, SignatureAlgorithm};
    use rustls::ServerConfig;
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;

    /// Generates a certificate as go-plugin does: P-521, an authority's, self-signed.
    fn go_plugin_certificate(
        algorithm: &'static SignatureAlgorithm,
    ) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        (
            certificate.der().clone(),
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
    }

    async fn connect(identity: &Identity, announced: Vec<u8>, server: ServerConfig) -> std::io::Result<()> {
        let (near, far) = tokio::io::duplex(1 << 16);
        let accept = tokio::spawn(TlsAcceptor::from(Arc::new(server)).accept(far));
        let name = ServerName::try_from("localhost").unwrap();
        let connector = TlsConnector::from(identity.client_config(announced).unwrap());
        let client = connector.connect(name, near).await;
        let accepted = accept.await.unwrap();
        client.and(accepted.map(|_| ()))
    }

    fn server(
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> ServerConfig {
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap()
    }

    #[tokio::test]
    async fn the_announced_certificate_is_accepted_whatever_its_curve() {
        let identity = Identity::generate().unwrap();
        for algorithm in [&PKCS_ECDSA_P521_SHA512, &PKCS_ECDSA_P256_SHA256] {
            for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
                let (certificate, key) = go_plugin_certificate(algorithm);
                let announced = certificate.to_vec();
                connect(&identity, announced, server(certificate, key, &[version]))
                    .await
                    .unwrap();
            }
        }
    }

    #[tokio::test]
    async fn any_other_certificate_is_refused() {
        let identity = Identity::generate().unwrap();
        let (announced, _) = go_plugin_certificate(&PKCS_ECDSA_P521_SHA512);
        let (other, key) = go_plugin_certificate(&PKCS_ECDSA_P521_SHA512);
        let config = server(other, key, rustls::ALL_VERSIONS);
        let error = connect(&identity, announced.to_vec(), config).await.unwrap_err();
        assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    }

    #[tokio::test]
    async fn the_announced_certificate_without_its_key_is_refused() {
        let identity = Identity::generate().unwrap();
        let (announced, _) = go_plugin_certificate(&PKCS_ECDSA_P521_SHA512);
        let (_, other_key) = go_plugin_certificate(&PKCS_ECDSA_P521_SHA512);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let signer = provider.key_provider.load_private_key(other_key).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(rustls::ALL_VERSIONS)
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(
                rustls::sign::CertifiedKey::new(vec![announced.clone()], signer),
            )));
        let error = connect(&identity, announced.to_vec(), config).await.unwrap_err();
        assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    }
}
