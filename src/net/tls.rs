//! Connections to servers that the machine trusts.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

/// The configuration for all connections of a client.
pub(crate) fn configuration() -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let trusted = trust::system_certificates();
    let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(trust::roots(&trusted)), provider.clone());
    let authorities = authorities.build().map_err(|e| Error::General(e.to_string()))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { authorities, trusted }))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Believes what the trusted authorities sign, and a certificate that is itself trusted: those that people make for a server of
/// their own usually call themselves an authority, too, which the library would refuse.
#[derive(Debug)]
struct Verifier {
    authorities: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
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
        if self.trusted.contains(end_entity) {
            return trust::verify_pinned_certificate(end_entity, server_name, now);
        }
        self.authorities
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trusted_certificate_that_calls_itself_an_authority_is_its_server_s_own() {
        let certificate = |name: &str| {
            let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            params
                .self_signed(&rcgen::KeyPair::generate().unwrap())
                .unwrap()
                .der()
                .clone()
        };
        let (known, stranger) = (certificate("here.example"), certificate("here.example"));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let roots = Arc::new(trust::roots(std::slice::from_ref(&known)));
        let verifier = Verifier {
            authorities: WebPkiServerVerifier::builder_with_provider(roots, provider)
                .build()
                .unwrap(),
            trusted: vec![known.clone()],
        };
        let verify = |certificate: &CertificateDer<'_>, name: &'static str| {
            let name = ServerName::try_from(name).unwrap();
            verifier
                .verify_server_cert(certificate, &[], &name, &[], UnixTime::now())
                .is_ok()
        };
        assert!(verify(&known, "here.example"));
        assert!(!verify(&known, "there.example"));
        assert!(!verify(&stranger, "here.example"));
    }
}
