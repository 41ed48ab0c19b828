//! TLS settings of a client: trusted authorities, and the client certificate.

use std::sync::Arc;

use rustls::client::VerifierBuilderError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use trust::Verifier;

/// Reason why TLS settings cannot be used: an authority, the server name, or the client certificate or its key is invalid.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error(transparent)]
    Authorities(#[from] VerifierBuilderError),
    #[error(
        "the certificates of authorities hold none that can be read: they must be PEM text, which begins with a line \
         \"-----BEGIN CERTIFICATE-----\""
    )]
    NoAuthority,
    #[error("{0:?} is not the name of a server")]
    ServerName(String),
    #[error("the client certificate cannot be read as PEM text: {0}")]
    Certificate(pem::Error),
    #[error("the private key of the client cannot be read as PEM text: {0}")]
    Key(pem::Error),
    #[error("the client certificate and its key cannot be used: {0}")]
    Pair(Error),
    #[error(transparent)]
    Library(#[from] Error),
}

/// TLS settings from the configuration of a store.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Trusted authorities as PEM text, instead of those of the system.
    pub authorities: Option<String>,
    /// True if certificates of servers are not verified.
    pub insecure: bool,
    /// Client certificate and private key as PEM text.
    pub client: Option<(String, String)>,
    /// True if the name in the server's certificate is not checked.
    pub any_name: bool,
    /// Name that the server's certificate must have, instead of the host name in the URL.
    pub server_name: Option<String>,
}

impl Tls {
    /// Builds the configuration for the TLS library.
    ///
    /// # Errors
    /// A certificate, a key or the server name cannot be used.
    pub fn configuration(&self) -> Result<ClientConfig, TlsError> {
        let verifier = match &self.authorities {
            _ if self.insecure => Verifier::insecure(),
            Some(pem) => Verifier::of_pem(pem)?.ok_or(TlsError::NoAuthority)?,
            None => Verifier::system(),
        };
        let server_name = match &self.server_name {
            Some(name) => Some(ServerName::try_from(name.clone()).map_err(|_| TlsError::ServerName(name.clone()))?),
            None => None,
        };
        let builder = trust::configuration(Arc::new(NameVerifier {
            verifier,
            any_name: self.any_name,
            server_name,
        }))?;
        Ok(match &self.client {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect();
                let certificates = certificates.map_err(TlsError::Certificate)?;
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(TlsError::Key)?;
                builder
                    .with_client_auth_cert(certificates, key)
                    .map_err(TlsError::Pair)?
            }
        })
    }
}

/// Verifies certificates with a different check of the name: any name is accepted, or another name than that in the URL is required.
#[derive(Debug)]
struct NameVerifier {
    verifier: Verifier,
    any_name: bool,
    server_name: Option<ServerName<'static>>,
}

impl ServerCertVerifier for NameVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let server_name = self.server_name.as_ref().unwrap_or(server_name);
        let verified = self
            .verifier
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The verifier checks the name last, so this error means that chain and validity period are correct.
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
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
