//! Which servers are trusted, and what they are shown.

use std::sync::{Arc, LazyLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// What a configuration says about certificates.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// PEM text of the authorities that are trusted in place of the machine's.
    pub authorities: Option<String>,
    /// Whether every server is trusted.
    pub insecure: bool,
    /// The client's certificate and its key, as PEM text.
    pub client: Option<(String, String)>,
    /// Whether the server's certificate may have any name.
    pub any_name: bool,
    /// The name that the server's certificate must have, where it is not the one in the address.
    pub server_name: Option<String>,
}

static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));

/// Trusts what the machine trusts. Reading that takes time, so it is done with the first certificate that must be looked at.
static SYSTEM: LazyLock<Result<Arc<WebPkiServerVerifier>, String>> =
    LazyLock::new(|| verifier(trust::roots(&trust::system_certificates())));

fn verifier(roots: RootCertStore) -> Result<Arc<WebPkiServerVerifier>, String> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), PROVIDER.clone())
        .build()
        .map_err(|e| e.to_string())
}

impl Tls {
    /// The same for the TLS library.
    ///
    /// # Errors
    /// A certificate or a key cannot be used.
    pub fn configuration(&self) -> Result<ClientConfig, String> {
        let anchors = match &self.authorities {
            _ if self.insecure => Anchors::None,
            Some(pem) => custom(pem)?,
            None => Anchors::System,
        };
        let server_name = match &self.server_name {
            Some(name) => {
                Some(ServerName::try_from(name.clone()).map_err(|_| format!("{name:?} is not the name of a server"))?)
            }
            None => None,
        };
        let builder = ClientConfig::builder_with_provider(PROVIDER.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier {
                anchors,
                any_name: self.any_name,
                server_name,
            }));
        let mut config = match &self.client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
                let certificates =
                    certificates.map_err(|e| format!("the client certificate cannot be read as PEM text: {e}"))?;
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
                    .map_err(|e| format!("the private key of the client cannot be read as PEM text: {e}"))?;
                builder
                    .with_client_auth_cert(certificates, key)
                    .map_err(|e| format!("the client certificate and its key cannot be used: {e}"))?
            }
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn custom(pem: &str) -> Result<Anchors, String> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes()).flatten().collect();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates.iter().cloned());
    if added == 0 {
        return Err(
            "the certificates of authorities hold none that can be read: they must be PEM text, which begins with a line \
             \"-----BEGIN CERTIFICATE-----\""
                .to_owned(),
        );
    }
    Ok(Anchors::Custom {
        authorities: verifier(roots)?,
        certificates,
    })
}

#[derive(Debug)]
struct Verifier {
    anchors: Anchors,
    any_name: bool,
    server_name: Option<ServerName<'static>>,
}

#[derive(Debug)]
enum Anchors {
    /// No verification.
    None,
    /// What this machine trusts.
    System,
    /// What the configuration says.
    Custom {
        authorities: Arc<WebPkiServerVerifier>,
        certificates: Vec<CertificateDer<'static>>,
    },
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
        let server_name = self.server_name.as_ref().unwrap_or(server_name);
        let authorities = match &self.anchors {
            Anchors::None => return Ok(ServerCertVerified::assertion()),
            Anchors::System => SYSTEM.as_ref().map_err(|e| Error::General(e.clone()))?,
            // A server's own certificate may be given in place of an authority's.
            Anchors::Custom { certificates, .. } if certificates.contains(end_entity) => {
                return trust::verify_pinned_certificate(end_entity, server_name, now);
            }
            Anchors::Custom { authorities, .. } => authorities,
        };
        let verified = authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is looked at last.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &PROVIDER.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &PROVIDER.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        PROVIDER.signature_verification_algorithms.supported_schemes()
    }
}
