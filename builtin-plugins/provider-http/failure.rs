//! Why a try of a request failed, in words, and whether another one may succeed.

use std::error::Error;

/// Failure of one attempt.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Reason, as the end of a sentence.
    pub reason: String,
    /// Chance of another attempt.
    pub kind: Kind,
}

/// Chance of another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Transient: another attempt may succeed.
    Passing,
    /// Time limit exceeded.
    Timeout,
    /// Permanent: another attempt fails the same way.
    Lasting,
}

impl Failure {
    /// One that will not be different.
    pub fn lasting(reason: impl Into<String>) -> Failure {
        Failure {
            reason: reason.into(),
            kind: Kind::Lasting,
        }
    }
}

/// Classifies an error of the HTTP client.
pub(crate) fn failure(error: &reqwest::Error) -> Failure {
    let mut kind = if error.is_timeout() {
        Kind::Timeout
    } else {
        Kind::Passing
    };
    let mut reason = error.source().map_or_else(|| "the connection broke".to_owned(), chain);
    if error.is_builder() {
        kind = Kind::Lasting;
    }
    if reason.starts_with("operation was canceled") {
        reason =
            "the server closed the connection before it answered; one that wants a certificate of its clients does so \
                  when there is none or a wrong one in client_cert_pem"
                .to_owned();
    }
    if matches!(tls_error(error), Some(rustls::Error::InvalidMessage(_))) {
        reason = format!("what the server sent is not TLS, as if it spoke http and not https: {reason}");
    }
    if let Some(problem) = certificate_problem(error) {
        kind = Kind::Lasting;
        reason = format!("the server's certificate is not trusted: {problem}");
    }
    Failure { reason, kind }
}

/// The problem with the server's certificate that made a request fail; `None` if it failed for another reason.
fn certificate_problem(error: &reqwest::Error) -> Option<String> {
    let hint = "if that is as it should be, ca_cert_pem can name an authority that vouches for it";
    match tls_error(error)? {
        rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer) => {
            Some(format!("it is signed by an unknown authority; {hint}"))
        }
        rustls::Error::InvalidCertificate(problem) => Some(problem.to_string()),
        _ => None,
    }
}

/// The error of the TLS library below others, which may be wrapped in errors of input and output.
fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    let wrapped = || {
        error
            .downcast_ref::<std::io::Error>()?
            .get_ref()
            .and_then(|e| tls_error(e))
    };
    error
        .downcast_ref()
        .or_else(wrapped)
        .or_else(|| error.source().and_then(tls_error))
}

/// An error with its causes. Layers that say only that something below failed are left out.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if texts
            .last()
            .is_some_and(|last| last.starts_with("client error (") || text.starts_with(last.as_str()))
        {
            texts.pop();
        }
        if texts.last().is_none_or(|last| !last.ends_with(&text)) {
            texts.push(text);
        }
        next = error.source();
    }
    texts.join(": ")
}
