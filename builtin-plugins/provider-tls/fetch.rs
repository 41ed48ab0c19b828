//! Asking a server for its certificates.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use url::{Host, Url};

use crate::Proxying;

/// How long making a connection may take, and how long a server may think about its answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The certificates of a server, its own first, or why there are none.
pub(crate) type Fetched = Result<Vec<Vec<u8>>, String>;

/// Looks at the certificates that servers present, and perhaps verifies them.
#[derive(Debug)]
struct Onlooker {
    verifier: Option<Arc<WebPkiServerVerifier>>,
    /// The certificates that this machine trusts.
    trusted: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
    /// By the name under which a server was asked; the last ones of each.
    seen: Mutex<BTreeMap<String, Vec<Vec<u8>>>>,
}

impl Onlooker {
    fn new(verify: bool) -> Result<Arc<Onlooker>, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut verifier = None;
        let mut trusted = Vec::new();
        if verify {
            trusted = trust::system_certificates();
            let roots = Arc::new(trust::roots(&trusted));
            let builder = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
            verifier = Some(builder.build().map_err(|e| e.to_string())?);
        }
        Ok(Arc::new(Onlooker {
            verifier,
            trusted,
            provider,
            seen: Mutex::default(),
        }))
    }

    fn config(self: &Arc<Onlooker>) -> Result<ClientConfig, String> {
        let config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(self.clone())
            .with_no_client_auth();
        Ok(config)
    }

    /// A self-signed certificate that the machine trusts may be a server's own, although the library takes those of
    /// authorities for no server's.
    fn trusts(
        &self,
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if !self.trusted.iter().any(|trusted| trusted == certificate) {
            return Err(CertificateError::UnknownIssuer.into());
        }
        trust::verify_pinned_certificate(certificate, name, now)
    }

    fn seen(&self, name: &str) -> Option<Vec<Vec<u8>>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(name).cloned()
    }
}

impl ServerCertVerifier for Onlooker {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let chain = std::iter::once(end_entity).chain(intermediates);
        let chain = chain.map(|certificate| certificate.to_vec()).collect();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(server_name.to_str().into_owned(), chain);
        match &self.verifier {
            Some(verifier) => verifier
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
                .or_else(|error| self.trusts(end_entity, server_name, now).map_err(|_| error)),
            None => Ok(ServerCertVerified::assertion()),
        }
    }

    // Who asks for no verification wants to see what is there, whatever it is: certificates of version 1, for example, with
    // which no signature can be verified here. Nothing is sent to such a server but the question.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match &self.verifier {
            Some(verifier) => verifier.verify_tls12_signature(message, certificate, signature),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        match &self.verifier {
            Some(verifier) => verifier.verify_tls13_signature(message, certificate, signature),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Asks by making a connection, and no more.
pub(crate) async fn by_tls(host: Option<Host<&str>>, port: u16, verify: bool) -> Fetched {
    let (name, host) = match host {
        Some(Host::Ipv4(ip)) => (ServerName::from(std::net::IpAddr::from(ip)), ip.to_string()),
        Some(Host::Ipv6(ip)) => (ServerName::from(std::net::IpAddr::from(ip)), ip.to_string()),
        Some(Host::Domain(host)) => {
            // Outside the schemes of the web, the library does not look whether a host is an address.
            let name =
                ServerName::try_from(host.to_owned()).map_err(|e| format!("{host:?} is no name of a host: {e}"))?;
            (name, host.to_owned())
        }
        None => return Err("it names no host".into()),
    };
    let onlooker = Onlooker::new(verify)?;
    let connector = TlsConnector::from(Arc::new(onlooker.config()?));
    let connect = async {
        let socket = connect(&host, port).await?;
        let stream = connector.connect(name, socket).await.map_err(|e| e.to_string())?;
        let (_, connection) = stream.get_ref();
        let chain = connection.peer_certificates().unwrap_or_default();
        Ok(chain.iter().map(|certificate| certificate.to_vec()).collect())
    };
    match tokio::time::timeout(PATIENCE, connect).await {
        Ok(fetched) => fetched,
        Err(_) => Err(format!("there was no connection within {} seconds", PATIENCE.as_secs())),
    }
}

async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let mut problem = format!("there is no host {host}");
    for address in addresses(host, port).await? {
        match TcpStream::connect(address).await {
            Ok(socket) => return Ok(socket),
            Err(error) => problem = format!("{address}: {error}"),
        }
    }
    Err(problem)
}

#[cfg(not(target_feature = "crt-static"))]
async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let found = tokio::net::lookup_host((host, port)).await;
    Ok(found
        .map_err(|e| format!("the host {host} is not known: {e}"))?
        .collect())
}

/// A static executable cannot load the system's name services: it looks names up itself.
#[cfg(target_feature = "crt-static")]
async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let unknown = |e: &dyn std::fmt::Display| format!("the host {host} is not known: {e}");
    if let Ok(ip) = host.parse() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let resolver = hickory_resolver::TokioResolver::builder_tokio()
        .and_then(|builder| builder.build())
        .map_err(|e| unknown(&e))?;
    let found = resolver.lookup_ip(host).await.map_err(|e| unknown(&e))?;
    Ok(found.iter().map(|ip| SocketAddr::new(ip, port)).collect())
}

/// Asks by HTTP, and follows redirects: the certificates are those of the server that answers in the end.
pub(crate) async fn by_https(url: &Url, verify: bool, proxying: &Proxying) -> Fetched {
    let onlooker = Onlooker::new(verify)?;
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(onlooker.config()?)
        .connect_timeout(PATIENCE)
        .timeout(PATIENCE)
        .no_proxy();
    for proxy in proxying.proxies()? {
        builder = builder.proxy(proxy);
    }
    let client = builder.build().map_err(|e| chain(&e))?;
    // Most servers need not make up a page to answer this; a few never answer it.
    let mut answer = client.head(url.clone()).timeout(PATIENCE / 3).send().await;
    if answer.as_ref().map_or(true, |answer| answer.url().scheme() != "https") {
        answer = client.get(url.clone()).send().await;
    }
    let answer = answer.map_err(|e| chain(&e.without_url()))?;
    let host = answer.url().host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match onlooker.seen(host) {
        Some(certificates) if answer.url().scheme() == "https" => Ok(certificates),
        _ => Err(format!(
            "the server redirects to {}, where there are no certificates",
            answer.url().origin().ascii_serialization()
        )),
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
