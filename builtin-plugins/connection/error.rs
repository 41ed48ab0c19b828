//! Errors of connections. Each says whether another attempt may succeed.

use std::fmt;

/// Failure of a connection or of an operation over it, as text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    text: String,
    /// True if another attempt cannot help.
    fatal: bool,
}

impl Error {
    /// Creates an error that may be temporary, such as a machine that is still starting or an interrupted network.
    pub fn new(text: impl Into<String>) -> Error {
        Error {
            text: text.into(),
            fatal: false,
        }
    }

    /// Creates an error that another attempt cannot avoid.
    pub fn fatal(text: impl Into<String>) -> Error {
        Error {
            text: text.into(),
            fatal: true,
        }
    }

    /// Returns true if another attempt cannot help.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.fatal
    }

    /// Adds the failed operation at the beginning of the text.
    #[must_use]
    pub fn context(self, what: impl fmt::Display) -> Error {
        Error {
            text: format!("{what}: {}", self.text),
            ..self
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::new(error.to_string())
    }
}

impl From<russh::Error> for Error {
    fn from(error: russh::Error) -> Error {
        Error::new(match error {
            russh::Error::IO(error) => error.to_string(),
            russh::Error::HUP | russh::Error::Disconnect | russh::Error::SendError | russh::Error::RecvError => {
                "the connection was closed by the other side".to_owned()
            }
            // With `host_key`, only algorithms for its type are offered. A server without such a key already fails in the negotiation,
            // before its key is verified.
            russh::Error::NoCommonAlgo {
                kind: russh::AlgorithmKind::Key,
                ours,
                theirs,
            } => format!(
                "ssh: handshake failed: knownhosts: key mismatch: the server has no host key of the type that host_key has (it has {}; \
                 wanted is {})",
                theirs.join(", "),
                ours.join(", ")
            ),
            russh::Error::KeepaliveTimeout => "no reply from ssh server".to_owned(),
            other => other.to_string(),
        })
    }
}

impl From<russh::SendError> for Error {
    fn from(_: russh::SendError) -> Error {
        russh::Error::SendError.into()
    }
}

/// Result of an operation over a connection.
pub type Result<T> = std::result::Result<T, Error>;
