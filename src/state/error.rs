//! What can go wrong with a state.

use std::io;
use std::path::PathBuf;

use crate::lock::LockHeld;
use crate::snapshots::StoreLocked;

/// Why a state could not be read, written or locked.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The operating system refused.
    #[error("{operation} {}: {}", path.display(), files::io_reason(source))]
    Io {
        /// What was being done, such as `cannot read`.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The refusal.
        source: io::Error,
    },
    /// The text is not a state.
    #[error("{0}")]
    Format(#[from] FormatError),
    /// The text of a file is not a state.
    #[error(
        "The state file {} cannot be read: {source}. Nothing was changed.{}",
        path.display(),
        backup.as_ref().map(|b| format!(
            " An earlier snapshot is in {}: to go back to it, copy it over the state file.", b.display()
        )).unwrap_or_else(|| " Restore the file from a copy of yours; there is no backup file beside it.".into())
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The backup beside it, if there is one.
        backup: Option<PathBuf>,
        /// What is wrong with it.
        source: FormatError,
    },
    /// Another process holds the lock.
    #[error("{0}")]
    Locked(Box<LockHeld>),
    /// Another program holds the lock of a state that is not in a file.
    #[error("{0}")]
    StoreLocked(Box<StoreLocked>),
    /// A store that is not a file reports an error.
    #[error("{detail}")]
    Store {
        /// What is wrong, in one line.
        summary: String,
        /// More about it.
        detail: String,
    },
    /// A value cannot be stored.
    #[error("{what} cannot be stored in the state: {message}")]
    Value {
        /// Which value.
        what: String,
        /// Why not.
        message: String,
    },
    /// The lock that should be released is not there, or is another one.
    #[error("{0}")]
    Unlock(String),
}

/// Why text is not a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// It is not JSON, or does not have the form of a state.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// The text is JSON, but there is no version of the format in it.
    #[error("it does not say which version of the state format it has, so it is not a state file")]
    NoVersion,
    /// The version of the format is unknown here.
    #[error(
        "it has version {version} of the state format{}; this program reads versions up to 4. \
         Use the program that wrote it, or a newer release of this one",
        terraform_version.as_ref().map(|v| format!(" and was written by version {v} of Terraform")).unwrap_or_default()
    )]
    UnsupportedVersion {
        /// The version.
        version: String,
        /// The version of Terraform that wrote it, if it is recorded.
        terraform_version: Option<String>,
    },
    /// Its form is right, but something in it makes no sense.
    #[error("{place}: {message}")]
    Content {
        /// Where, as an address.
        place: String,
        /// What is wrong there.
        message: String,
    },
}

impl StateError {
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> StateError {
        StateError::Io {
            operation,
            path: path.into(),
            source,
        }
    }

    /// One line that names the kind of problem, for the head of a diagnostic; the error's text is the detail.
    #[must_use]
    pub fn summary(&self) -> &str {
        match self {
            StateError::Store { summary, .. } => summary,
            StateError::StoreLocked(_) => "Error acquiring the state lock",
            StateError::Io { .. } => "Cannot use the state file",
            StateError::Format(_) | StateError::File { .. } => "Cannot read the state",
            StateError::Locked(_) => "Error acquiring the state lock",
            StateError::Value { .. } => "Cannot store a value",
            StateError::Unlock(_) => "Cannot release the state lock",
        }
    }
}
