//! Why requests come to nothing, in words.

use reqwest::StatusCode;
use url::Url;

use std::time::Duration;

use files::plain;

use crate::reason::{Broken, connection_reason};
use crate::rules::SILENCE;

/// Why a request came to nothing. Each is a sentence without its full stop.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// The host is not there, or accepts no connection.
    #[error("{reason} (the request was for {url})")]
    Unreachable {
        /// What was asked for, as it may be shown.
        url: String,
        /// What the host did, and what to check.
        reason: String,
    },
    /// The server's certificate is not trusted, or it does not speak TLS.
    #[error("the request to {url} failed: {reason}")]
    Tls {
        /// What was asked for, as it may be shown.
        url: String,
        /// Why.
        reason: String,
        /// What both sides do not agree on.
        problem: TlsProblem,
    },
    /// A connection broke.
    #[error("the request to {url} failed: {reason}")]
    Connection {
        /// What was asked for, as it may be shown.
        url: String,
        /// Why.
        reason: String,
    },
    /// No answer in time, or no more of it.
    #[error("{url} {phase} {seconds} seconds")]
    Timeout {
        /// What was asked for, as it may be shown.
        url: String,
        /// How long we waited.
        seconds: u64,
        /// What we waited for.
        phase: Phase,
    },
    /// An answer that is not a success.
    #[error("{url} answered with status {status}")]
    Status {
        /// What was asked for, as it may be shown.
        url: String,
        /// The status: `404 Not Found`.
        status: StatusCode,
    },
    /// Redirects without an end.
    #[error("{url} redirects more than {limit} times")]
    TooManyRedirects {
        /// What was asked for, as it may be shown.
        url: String,
        /// How many would have been followed.
        limit: usize,
    },
    /// A redirect that leads nowhere.
    #[error("{url} redirects to an address that cannot be used")]
    BadRedirect {
        /// Who redirects.
        url: String,
        /// The scheme of the address, if that is the problem.
        scheme: Option<String>,
    },
    /// A response larger than the limit.
    #[error("the answer of {url} is larger than the {limit} bytes that are accepted")]
    TooLarge {
        /// What was asked for, as it may be shown.
        url: String,
        /// How much is accepted.
        limit: u64,
    },
    /// The answer is not what was asked for.
    #[error("the answer of {url} cannot be used: {reason}")]
    BadAnswer {
        /// What was asked for, as it may be shown.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The machine does not let us make connections.
    #[error("connections cannot be prepared: {0}")]
    NoClient(String),
    /// A value cannot be sent in a header.
    #[error("{what} cannot be sent: it contains {character}")]
    Header {
        /// What it is and where it comes from.
        what: String,
        /// The character that no header can have.
        character: &'static str,
    },
    /// There are no credentials for the request.
    #[error("{0}")]
    Credentials(String),
}

/// What client and server do not agree on in TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsProblem {
    /// The server's certificate is signed by an authority that is not trusted.
    UnknownIssuer,
    /// The server's certificate cannot be used: it has expired, or is for other names.
    Certificate,
    /// The protocol, or the certificate of the client.
    Protocol,
}

/// What a request waited for when its time was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Connection,
    Head,
    Body,
    /// The response as a whole, as a caller limits it.
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
    /// The status of the answer, if that was the problem.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Error::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether no connection was made, or nothing came over it: perhaps there is no network.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Error::Unreachable { .. } | Error::Timeout { .. })
    }

    /// Returns true if another try may succeed. A host that accepts a connection and is silent has had its time.
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

    /// The error without the address of the request, for texts that name the request themselves.
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

/// An address as people may see it: without a password, and without the query, which may hold signatures and keys.
#[must_use]
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Of an address that cannot have these parts, there is nothing to remove.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// What broke a connection, in words. `proxy` is the proxy that requests to this address go by.
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
    // The error itself names the address with all its parts: only its causes are told.
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
