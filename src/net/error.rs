//! Why requests come to nothing, in words.

use reqwest::StatusCode;
use url::Url;

use crate::client::{CONNECT_TIMEOUT, SILENCE};

/// Why a request came to nothing. Each is a sentence without its full stop.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// No connection, or it broke.
    #[error("the request to {url} failed: {reason}")]
    Connection {
        /// What was asked for, as it may be shown.
        url: String,
        /// Why.
        reason: String,
    },
    /// No answer in time.
    #[error("{url} did not answer within {seconds} seconds")]
    Timeout {
        /// What was asked for, as it may be shown.
        url: String,
        /// How long we waited.
        seconds: u64,
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
    },
    /// More than anybody should send.
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
    /// A credentials helper failed.
    #[error("the credentials helper \"{helper}\" has no answer for {host}: {what}")]
    Helper {
        /// The helper's name.
        helper: String,
        /// The host in question.
        host: String,
        /// What went wrong.
        what: String,
    },
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

    pub(crate) fn worth_another_try(&self) -> bool {
        matches!(self, Error::Connection { .. } | Error::Timeout { .. })
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

/// What broke a connection, in words.
pub(crate) fn connection(url: &Url, error: &reqwest::Error) -> Error {
    let url = shown(url);
    if error.is_timeout() {
        return Error::Timeout {
            url,
            seconds: if error.is_connect() { CONNECT_TIMEOUT } else { SILENCE }.as_secs(),
        };
    }
    let mut reason = error.source_text();
    if reason.contains("UnknownIssuer") {
        reason.push_str(
            ". The certificate is not signed by anybody this machine trusts; the environment variable SSL_CERT_FILE can name a \
             file with more certificates to trust",
        );
    }
    Error::Connection { url, reason }
}

trait SourceText {
    fn source_text(&self) -> String;
}

impl SourceText for reqwest::Error {
    /// The causes only: the error itself names the address with all its parts.
    fn source_text(&self) -> String {
        std::error::Error::source(self).map_or_else(|| "the connection broke".to_owned(), chain)
    }
}

/// An error with its causes. Layers that say only that something below failed are left out.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if let Some(last) = texts.last_mut()
            && (last.starts_with("client error (") || last.ends_with(&text) || last == "tls handshake eof")
        {
            if !last.ends_with(&text) {
                *last = text;
            }
        } else {
            texts.push(text);
        }
        next = error.source();
    }
    texts.join(": ")
}
