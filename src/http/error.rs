//! Errors of requests, with texts for users.

use reqwest::StatusCode;
use url::Url;

use std::time::Duration;

use files::plain;

use crate::reason::{Broken, TlsProblem, connection_reason};
use crate::rules::SILENCE;

/// The reason that a request failed, as a sentence without a full stop. `url` is the URL without user name, password
/// and query ([`shown`]).
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The host does not exist or accepts no connection.
    #[error("{reason} (the request was for {url})")]
    Unreachable {
        url: String,
        /// The behaviour of the host, and advice.
        reason: String,
    },
    /// The server's certificate is not trusted, or the server does not speak TLS.
    #[error("the request to {url} failed: {reason}")]
    Tls {
        url: String,
        reason: String,
        problem: TlsProblem,
    },
    /// A connection broke.
    #[error("the request to {url} failed: {reason}")]
    Connection { url: String, reason: String },
    /// The response did not begin within the time limit, or its next part did not arrive within it.
    #[error("{url} {phase} {seconds} seconds")]
    Timeout {
        url: String,
        /// The time limit.
        seconds: u64,
        /// The part of the response that did not arrive.
        phase: Phase,
    },
    /// The status is not a success.
    #[error("{url} answered with status {status}")]
    Status {
        url: String,
        /// The status, such as `404 Not Found`.
        status: StatusCode,
    },
    /// More redirects than the limit.
    #[error("{url} redirects more than {limit} times")]
    TooManyRedirects { url: String, limit: usize },
    /// The target of a redirect cannot be used.
    #[error("{url} redirects to an address that cannot be used")]
    BadRedirect {
        /// The URL that redirects.
        url: String,
        /// The scheme of the target, if that is the problem.
        scheme: Option<String>,
    },
    /// The body of the response is larger than the limit.
    #[error("the answer of {url} is larger than the {limit} bytes that are accepted")]
    TooLarge {
        url: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The content of the response cannot be used.
    #[error("the answer of {url} cannot be used: {reason}")]
    BadAnswer { url: String, reason: String },
    /// The HTTP client cannot be created on this machine.
    #[error("connections cannot be prepared: {0}")]
    NoClient(String),
    /// A header cannot have this value.
    #[error("{what} cannot be sent: it contains {character}")]
    Header {
        /// Description of the value and its source.
        what: String,
        /// Description of the forbidden character.
        character: &'static str,
    },
    /// The credentials for the request are not available.
    #[error("{0}")]
    Credentials(String),
}

/// Part of the response that a client was waiting for when a request timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Connection,
    Head,
    Body,
    /// The whole response, within a caller's limit.
    Whole,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Phase::Connection | Phase::Head | Phase::Whole => "did not answer within",
            Phase::Body => "sent nothing more for",
        })
    }
}

impl Error {
    /// Returns the HTTP status if the error is [`Error::Status`].
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Error::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns true if no connection was made or a request timed out: there may be no network.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Error::Unreachable { .. } | Error::Timeout { .. })
    }

    /// Returns true if another try may succeed: no connection was made, or the connection broke. A host that accepts a connection and then
    /// sends nothing is not tried again.
    #[must_use]
    pub fn worth_another_try(&self) -> bool {
        matches!(
            self,
            Error::Unreachable { .. }
                | Error::Connection { .. }
                | Error::Timeout {
                    phase: Phase::Connection,
                    ..
                }
        )
    }

    /// Returns the text of the error without the URL of the request, for messages that contain the URL already.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Error::Unreachable { reason, .. } | Error::Tls { reason, .. } | Error::Connection { reason, .. } => {
                reason.clone()
            }
            error => error.to_string(),
        }
    }
}

/// Returns a URL for messages: without user name and password, and without the query, which may have signatures and
/// keys.
#[must_use]
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Fails for URLs that cannot have a user name and password, so nothing has to be removed.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// Describes the error of a connection. `proxy` is the proxy of requests to this URL.
pub(crate) fn connection(url: &Url, error: &reqwest::Error, proxy: Option<&str>, connect_timeout: Duration) -> Error {
    let shown = shown(url);
    if error.is_timeout() {
        let (limit, phase) = match error.is_connect() {
            true => (connect_timeout, Phase::Connection),
            false => (SILENCE, Phase::Head),
        };
        return Error::Timeout {
            url: shown,
            seconds: limit.as_secs(),
            phase,
        };
    }
    // The error itself contains the whole URL with its secrets, so only its causes are used.
    let Some(cause) = std::error::Error::source(error) else {
        return Error::Connection {
            url: shown,
            reason: "the connection broke".to_owned(),
        };
    };
    match connection_reason(url, cause, proxy) {
        Broken::Unreachable(reason) => Error::Unreachable { url: shown, reason },
        Broken::Refused(reason, problem) => Error::Tls {
            url: shown,
            reason,
            problem,
        },
        Broken::Failed(reason) => Error::Connection {
            url: shown,
            reason: plain(&reason),
        },
    }
}
