//! Which servers are believed, and what they are shown.

use std::sync::{Arc, LazyLock};

use monoform_sdk::Diagnostic;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// What a configuration says about certificates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trust<'a> {
    /// PEM text of the authorities that are trusted in place of the machine's.
    pub authorities: Option<&'a str>,
    /// Whether every server is believed.
    pub insecure: bool,
    /// The client's certificate and its key, as PEM text.
    pub client: Option<(&'a str, &'a str)>,
}

static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));

/// Who believes what the machine believes. Reading that takes time, and most requests of a run need it or none does: it is
/// read with the first certificate that must be looked at.
static SYSTEM: LazyLock<Result<Arc<WebPkiServerVerifier>, VerifierBuilderError>> =
    LazyLock::new(|| verifier(trust::roots(&trust::system_certificates())));

fn verifier(roots: RootCertStore) -> Result<Arc<WebPkiServerVerifier>, VerifierBuilderError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), PROVIDER.clone()).build()
}

impl Trust<'_> {
    /// The same for the TLS library.
    pub fn configuration(&self) -> Result<ClientConfig, Diagnostic> {
        let anchors = match self.authorities {
            Some(pem) => custom(pem)?,
            None if self.insecure => TrustAnchors::None,
            None => TrustAnchors::System,
        };
        let builder = ClientConfig::builder_with_provider(PROVIDER.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| tls_error(e.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier(anchors)));
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
        let key = PROVIDER
            .key_provider
            .load_private_key(key)
            .map_err(|e| pair_error(&e.to_string()))?;
        // Not the check of the library, which does not read certificates of version 1, and those are what `openssl x509 -req`
        // makes if nothing else is asked of it.
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

fn custom(pem: &str) -> Result<TrustAnchors, Diagnostic> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes()).flatten().collect();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(certificates.iter().cloned());
    if added == 0 {
        return Err(tls_error(
            "ca_cert_pem holds no certificate that can be read. Only certificates in PEM format are supported, which begin with \
             a line \"-----BEGIN CERTIFICATE-----\"."
                .to_owned(),
        )
        .at_attribute("ca_cert_pem"));
    }
    Ok(TrustAnchors::Custom {
        authorities: verifier(roots).map_err(|e| tls_error(e.to_string()))?,
        certificates,
    })
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

#[derive(Debug)]
struct Verifier(TrustAnchors);

#[derive(Debug)]
enum TrustAnchors {
    /// No verification.
    None,
    /// The trust anchors of the system.
    System,
    /// Those of the configuration.
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
        let authorities = match &self.0 {
            TrustAnchors::None => return Ok(ServerCertVerified::assertion()),
            TrustAnchors::System => SYSTEM.as_ref().map_err(|e| Error::General(e.to_string()))?,
            // A server's own certificate may be given in place of an authority's.
            TrustAnchors::Custom { certificates, .. } if certificates.contains(end_entity) => {
                return trust::verify_pinned_certificate(end_entity, server_name, now);
            }
            TrustAnchors::Custom { authorities, .. } => authorities,
        };
        authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // A signature of nobody known says nothing.
        if matches!(self.0, TrustAnchors::None) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        rustls::crypto::verify_tls12_signature(message, cert, dss, &PROVIDER.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if matches!(self.0, TrustAnchors::None) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        rustls::crypto::verify_tls13_signature(message, cert, dss, &PROVIDER.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        PROVIDER.signature_verification_algorithms.supported_schemes()
    }
}
