//! Fetches the certificate chain that a TLS server presents.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, Method, Redirects, Request, Settings, Transport};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use trust::Verifier;
use url::{Host, Url};

use crate::Proxying;
use crate::proxying::UnusableProxy;

/// Time limit for connecting, and for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of redirects.
const REDIRECTS: usize = 10;

/// Certificates of a server, with its own first.
pub(crate) type Fetched = Result<Vec<Vec<u8>>, FetchError>;

/// Reason why there are no certificates, as a sentence without its full stop.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// The host of the URL is invalid.
    #[error("{host:?} is no name of a host: {source}")]
    HostName {
        host: String,
        source: rustls::pki_types::InvalidDnsNameError,
    },
    /// The URL has no host.
    #[error("it names no host")]
    NoHost,
    /// The host name cannot be resolved.
    #[error("the host {host} is not known: {reason}")]
    UnknownHost { host: String, reason: String },
    /// The host name has no IP address.
    #[error("there is no host {0}")]
    NoAddress(String),
    /// No address of the host accepts a connection. `address` is the last one that was tried.
    #[error("{address}: {source}")]
    Connect { address: SocketAddr, source: io::Error },
    /// The connection broke in the TLS handshake.
    #[error(transparent)]
    Handshake(io::Error),
    /// The TLS handshake failed, and the text explains why.
    #[error("{0}")]
    Refused(String),
    /// The connection took too long.
    #[error("there was no connection within {} seconds", TIMEOUT.as_secs())]
    Timeout,
    /// The proxy cannot be used.
    #[error(transparent)]
    Proxy(#[from] UnusableProxy),
    #[error("{}", .0.reason())]
    Request(#[from] http::Error),
    /// The server redirects to a URL without TLS.
    #[error("the server redirects to {0}, where there are no certificates")]
    Redirected(String),
    #[error("it was stopped on request")]
    Stopped,
}

/// Certificate verifier that records the certificates of servers.
#[derive(Debug)]
struct Observer {
    verifier: Verifier,
    /// The last certificates of each server, by host name.
    seen: Mutex<BTreeMap<String, Vec<Vec<u8>>>>,
}

impl Observer {
    fn new(verify: bool) -> Arc<Observer> {
        Arc::new(Observer {
            verifier: if verify {
                Verifier::system()
            } else {
                Verifier::insecure()
            },
            seen: Mutex::default(),
        })
    }

    fn config(self: &Arc<Observer>) -> Result<ClientConfig, FetchError> {
        Ok(trust::configuration(self.clone())?.with_no_client_auth())
    }

    fn seen(&self, name: &str) -> Option<Vec<Vec<u8>>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(name).cloned()
    }
}

impl ServerCertVerifier for Observer {
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
        // Recorded before the verification, so that the certificates are available even if they are refused.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(server_name.to_str().into_owned(), chain);
        drop(seen);
        self.verifier
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Reads the certificates in a TLS handshake; no request is sent.
pub(crate) async fn by_tls(host: Option<Host<&str>>, port: u16, verify: bool) -> Fetched {
    let (name, host) = match host {
        Some(Host::Ipv4(ip)) => (ServerName::from(std::net::IpAddr::from(ip)), ip.to_string()),
        Some(Host::Ipv6(ip)) => (ServerName::from(std::net::IpAddr::from(ip)), ip.to_string()),
        Some(Host::Domain(host)) => {
            // `Url` recognizes IP addresses only in the schemes of the web, so the host of another scheme may still be an IP address.
            let name = ServerName::try_from(host.to_owned()).map_err(|source| FetchError::HostName {
                host: host.to_owned(),
                source,
            })?;
            (name, host.to_owned())
        }
        None => return Err(FetchError::NoHost),
    };
    let observer = Observer::new(verify);
    let connector = TlsConnector::from(Arc::new(observer.config()?));
    let connect = async {
        let socket = connect(&host, port).await?;
        let stream = connector.connect(name, socket).await;
        let stream = stream.map_err(|error| refused(&host, port, error))?;
        let (_, connection) = stream.get_ref();
        let chain = connection.peer_certificates().unwrap_or_default();
        Ok(chain.iter().map(|certificate| certificate.to_vec()).collect())
    };
    match tokio::time::timeout(TIMEOUT, connect).await {
        Ok(fetched) => fetched,
        Err(_) => Err(FetchError::Timeout),
    }
}

/// Converts the error of a handshake. If the certificate or the protocol is the reason, the text explains that.
fn refused(host: &str, port: u16, error: io::Error) -> FetchError {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match tls.map(|tls| http::tls_reason(host, port, tls)) {
        Some(reason) => FetchError::Refused(reason),
        None => FetchError::Handshake(error),
    }
}

async fn connect(host: &str, port: u16) -> Result<TcpStream, FetchError> {
    let mut problem = FetchError::NoAddress(host.to_owned());
    for address in addresses(host, port).await? {
        match TcpStream::connect(address).await {
            Ok(socket) => return Ok(socket),
            Err(source) => problem = FetchError::Connect { address, source },
        }
    }
    Err(problem)
}

fn unknown(host: &str, reason: &dyn std::fmt::Display) -> FetchError {
    FetchError::UnknownHost {
        host: host.to_owned(),
        reason: reason.to_string(),
    }
}

#[cfg(not(target_feature = "crt-static"))]
async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, FetchError> {
    let found = tokio::net::lookup_host((host, port)).await;
    Ok(found.map_err(|e| unknown(host, &e))?.collect())
}

/// Resolves a name by DNS, with the DNS settings of the system.
#[cfg(target_feature = "crt-static")]
async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, FetchError> {
    // The resolver of the system is not used, because a static executable cannot load the name services of glibc.
    if let Ok(ip) = host.parse() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let resolver = hickory_resolver::TokioResolver::builder_tokio()
        .and_then(|builder| builder.build())
        .map_err(|e| unknown(host, &e))?;
    let found = resolver.lookup_ip(host).await.map_err(|e| unknown(host, &e))?;
    Ok(found.iter().map(|ip| SocketAddr::new(ip, port)).collect())
}

/// Sends an HTTP request, follows redirects, and returns the certificates of the server that answers.
pub(crate) async fn by_https(url: &Url, verify: bool, proxying: &Proxying) -> Fetched {
    let observer = Observer::new(verify);
    let transport = Transport::new(Settings {
        tls: Some(observer.config()?),
        proxy: proxying.proxy()?,
        connect_timeout: TIMEOUT,
        ..Settings::default()
    });
    // HEAD is tried first, since most servers answer it with little work. A few never answer it, so GET follows.
    let answer = tokio::time::timeout(TIMEOUT / 3, ask(&transport, Method::HEAD, url)).await;
    let address = match answer {
        Ok(Ok(address)) if address.scheme() == "https" => address,
        _ => match tokio::time::timeout(TIMEOUT, ask(&transport, Method::GET, url)).await {
            Ok(address) => address?,
            Err(_) => return Err(FetchError::Timeout),
        },
    };
    let host = address.host_str().unwrap_or_default();
    // The observer records IPv6 addresses without brackets.
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match observer.seen(host) {
        Some(certificates) if address.scheme() == "https" => Ok(certificates),
        _ => Err(FetchError::Redirected(address.origin().ascii_serialization())),
    }
}

/// Sends a request to a URL. Returns the URL that answers after all redirects.
async fn ask(transport: &Transport, method: Method, url: &Url) -> Result<Url, http::Error> {
    let request = Request {
        method,
        url,
        headers: HeaderMap::new(),
        body: None,
        redirects: Redirects::within(REDIRECTS),
        login: None,
        waiting: &|_| {},
    };
    Ok(transport.send(request).await?.url)
}
