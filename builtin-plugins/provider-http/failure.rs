//! Reasons for failed attempts. Each says whether another attempt may succeed.

use http::{Error, TlsProblem};

/// Failure of one attempt.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Reason, as the end of a sentence.
    pub reason: String,
    /// Decides whether the request is repeated.
    pub kind: Kind,
}

/// Kind of a failure. The request is repeated unless the failure is permanent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Transient: another attempt may succeed.
    Transient,
    /// Time limit exceeded.
    Timeout,
    /// Permanent: another attempt fails the same way.
    Permanent,
}

impl Failure {
    /// Creates a permanent failure.
    pub fn permanent(reason: impl Into<String>) -> Failure {
        Failure {
            reason: reason.into(),
            kind: Kind::Permanent,
        }
    }

    /// Creates the failure for a URL whose scheme is neither http nor https.
    pub fn scheme(scheme: &str) -> Failure {
        Failure::permanent(format!("unsupported protocol scheme \"{scheme}\": it is http or https"))
    }
}

/// Classifies the error of a request. As in the official provider, a certificate that is not accepted is permanent, and other problems of a
/// connection are transient.
pub(crate) fn failure(error: &Error) -> Failure {
    match error {
        Error::Timeout { .. } => Failure {
            reason: error.reason(),
            kind: Kind::Timeout,
        },
        Error::Tls { problem, .. } if *problem == TlsProblem::UnknownIssuer => Failure::permanent(
            "the server's certificate is not trusted: it is signed by an unknown authority; if that is as it should be, ca_cert_pem \
             can name an authority that vouches for it",
        ),
        Error::Tls { problem, .. } if *problem == TlsProblem::Certificate => {
            Failure::permanent(format!("the server's certificate is not trusted: {}", error.reason()))
        }
        // In TLS 1.3, a server that refuses the client certificate closes the connection after the handshake.
        Error::Connection { url, reason } if url.starts_with("https:") => Failure {
            reason: format!(
                "{reason}; a server that wants a certificate of its clients does so when there is none or a wrong one in \
                 client_cert_pem"
            ),
            kind: Kind::Transient,
        },
        Error::Unreachable { .. } | Error::Connection { .. } | Error::Tls { .. } => Failure {
            reason: error.reason(),
            kind: Kind::Transient,
        },
        // The number includes the first request, as in Go's client.
        Error::TooManyRedirects { limit, .. } => Failure::permanent(format!("stopped after {} redirects", limit + 1)),
        Error::BadRedirect {
            scheme: Some(scheme), ..
        } => Failure::scheme(scheme),
        _ => Failure::permanent(error.to_string()),
    }
}
