//! Descriptions of network errors: the reasons of failed connections and TLS negotiations.
//!
//! The texts of the operating system and of the libraries below have numbers and layers (`os error 111`, `client error (Connect)`) that
//! help no user; here they are replaced by a description with the host and advice.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};

use rustls::CertificateError;
use url::Url;

/// The result of a failed connection.
pub(crate) enum Broken {
    /// No connection: the host does not exist, or refuses it.
    Unreachable(String),
    /// The connection failed after it was made.
    Failed(String),
    /// TLS failed, and would fail again.
    Refused(String, TlsProblem),
}

/// Returns the reason that a connection to a URL failed. `proxy` is the proxy that should have made it.
pub(crate) fn connection_reason(url: &Url, error: &(dyn StdError + 'static), proxy: Option<&str>) -> Broken {
    let host = url.host_str().unwrap_or("the host");
    let peer = proxy.map_or_else(|| host.to_owned(), |proxy| format!("the proxy {proxy}"));
    let texts: Vec<String> = layers(error).map(ToString::to_string).collect();
    if let Some(tls) = find::<rustls::Error>(error) {
        let port = url.port_or_known_default().unwrap_or_default();
        return Broken::Refused(tls_reason(host, port, tls), tls_problem(tls));
    }
    // The library has no types for these errors: their texts are the only source.
    if texts
        .iter()
        .any(|t| t.contains("dns error") || t.contains("failed to lookup address"))
    {
        let name = proxy.map_or(host, |proxy| proxy);
        return Broken::Unreachable(format!(
            "the name {name} cannot be resolved: check how it is written, and whether this machine can reach a name server"
        ));
    }
    if texts.iter().any(|t| t.contains("tunnel") || t.contains("socks")) {
        return Broken::Unreachable(format!(
            "{peer} does not connect to {host}: check the environment variables HTTPS_PROXY and NO_PROXY"
        ));
    }
    let port = match proxy {
        None => url
            .port_or_known_default()
            .map_or_else(String::new, |port| format!(" at port {port}")),
        Some(_) => String::new(),
    };
    match find::<io::Error>(error).map(innermost).map(io::Error::kind) {
        Some(ErrorKind::ConnectionRefused) => Broken::Unreachable(format!(
            "{peer} refuses connections{port}: no server runs there, or a firewall keeps it from answering"
        )),
        Some(ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable | ErrorKind::NetworkDown) => {
            Broken::Unreachable(format!("there is no route from this machine to {peer}"))
        }
        Some(ErrorKind::TimedOut) => Broken::Unreachable(format!("{peer} does not answer")),
        Some(
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::NotConnected
            | ErrorKind::UnexpectedEof,
        ) => Broken::Failed(format!("{peer} closed the connection before its answer was complete")),
        _ if texts
            .iter()
            .any(|t| t.contains("connection closed") || t.contains("IncompleteMessage")) =>
        {
            Broken::Failed(format!("{peer} closed the connection before its answer was complete"))
        }
        _ => Broken::Failed(files::plain(&chain(error))),
    }
}

/// Kind of a failed TLS negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsProblem {
    /// The authority that signed the server's certificate is not trusted.
    UnknownIssuer,
    /// Another fault of the server's certificate: it has expired, for example, or is for other names.
    Certificate,
    /// Any other failure, such as a protocol version or client certificate that was refused.
    Protocol,
}

fn tls_problem(error: &rustls::Error) -> TlsProblem {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => TlsProblem::UnknownIssuer,
        rustls::Error::InvalidCertificate(_) => TlsProblem::Certificate,
        _ => TlsProblem::Protocol,
    }
}

/// Returns the reason that TLS to a host failed, as a sentence.
#[must_use]
pub fn tls_reason(host: &str, port: u16, error: &rustls::Error) -> String {
    let why = match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "is not signed by anybody this machine trusts; the environment variable SSL_CERT_FILE can name a file with more \
             certificates to trust"
        }
        rustls::Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "has expired; if that is not so, check the clock of this machine"
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        ) => "is not valid yet; check the clock of this machine",
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "is for other names; check how the host's name is written",
        rustls::Error::InvalidCertificate(CertificateError::Revoked) => "was revoked",
        // A trusted issuer has the same name but another key.
        rustls::Error::InvalidCertificate(CertificateError::BadSignature) => {
            "is not signed with the key of an issuer that this machine trusts"
        }
        rustls::Error::InvalidCertificate(CertificateError::Other(why)) => {
            return format!(
                "the certificate of {host} cannot be used: {}",
                files::plain(&why.to_string())
            );
        }
        rustls::Error::InvalidCertificate(other) => {
            return format!(
                "the certificate of {host} cannot be used: {}",
                files::plain(&other.to_string())
            );
        }
        rustls::Error::InvalidMessage(_) => {
            return format!("what answers at port {port} of {host} does not speak TLS, as https addresses need it");
        }
        rustls::Error::AlertReceived(alert) => {
            return format!("{host} refused the TLS connection (alert {alert:?})");
        }
        other => {
            return format!(
                "no TLS connection to {host} can be made: {}",
                files::plain(&other.to_string())
            );
        }
    };
    format!("the certificate of {host} {why}")
}

/// Iterates over an error and its causes.
fn layers<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| {
        let error: &'e (dyn StdError + 'static) = *error;
        error.source()
    })
}

/// Returns the first error of type `T` among the causes, including those inside I/O errors; `None` if there is none.
fn find<'e, T: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e T> {
    layers(error).find_map(|layer| {
        layer.downcast_ref::<T>().or_else(|| {
            // `source` of an I/O error skips the error inside it.
            let inner = innermost(layer.downcast_ref::<io::Error>()?).get_ref()?;
            let inner: &(dyn StdError + 'static) = inner;
            inner.downcast_ref::<T>()
        })
    })
}

/// Returns the innermost I/O error of nested ones.
fn innermost(error: &io::Error) -> &io::Error {
    let mut found = error;
    while let Some(inner) = found.get_ref().and_then(|inner| inner.downcast_ref::<io::Error>()) {
        found = inner;
    }
    found
}

/// Joins an error with its causes. Layers that only say that a lower one failed are left out.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        let idle = |text: &str| {
            text.starts_with("client error (") || text == "tls handshake eof" || text.starts_with("error ")
        };
        match texts.last_mut() {
            Some(last) if idle(last) => *last = text,
            Some(last) if last.ends_with(&text) => {}
            _ => texts.push(text),
        }
        next = error.source();
    }
    texts.join(": ")
}
