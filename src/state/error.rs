//! Errors of reading, writing and locking states.

use std::io;
use std::path::PathBuf;

use crate::cipher::CipherError;
use crate::held::{LockHeld, StoreLocked};

/// Error of an operation on a state.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A system call failed.
    #[error("{operation} {}: {}", path.display(), files::io_reason(source))]
    Io {
        /// Failed operation, as the message begins: `cannot read`.
        operation: &'static str,
        path: PathBuf,
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
        path: PathBuf,
        /// The backup beside the state file, if it exists.
        backup: Option<PathBuf>,
        source: Box<FormatError>,
    },
    /// The encryption of a state or journal in a file prevents reading it: the text cannot be decrypted, or must be encrypted and is not.
    #[error("The file {} cannot be read: {source}. Nothing was changed.", path.display())]
    Sealed { path: PathBuf, source: Box<FormatError> },
    /// A text cannot be encrypted.
    #[error("The state cannot be encrypted: {0}. It was not written.")]
    Cipher(CipherError),
    /// Another process holds the lock.
    #[error("{0}")]
    Locked(Box<LockHeld>),
    /// Another program holds the lock of a state in a store.
    #[error("{0}")]
    StoreLocked(Box<StoreLocked>),
    /// A state store reports an error.
    #[error("{detail}")]
    Store {
        /// Kind of the error, in one line.
        summary: String,
        detail: String,
    },
    /// A value cannot be stored.
    #[error("{what} cannot be stored in the state: {message}")]
    Value {
        /// Subject of the message, such as `The output "x"`.
        what: String,
        message: String,
    },
    /// There is no lock to release, or it has another ID.
    #[error("{0}")]
    Unlock(String),
}

/// Reason why a text cannot be read as a state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The text is not JSON, or does not have the form of a state.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// Line number, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
        message: String,
    },
    /// The text is JSON, but has no version of the format.
    #[error("it does not say which version of the state format it has, so it is not a state file")]
    NoVersion,
    /// The version of the format is unknown to this program.
    #[error(
        "it has version {version} of the state format{}; this program reads versions up to 4. \
         Use the program that wrote it, or a newer release of this one",
        terraform_version.as_ref().map(|v| format!(" and was written by version {v} of Terraform")).unwrap_or_default()
    )]
    UnsupportedVersion {
        version: String,
        /// Version of Terraform that wrote the text, if it is recorded.
        terraform_version: Option<String>,
    },
    /// The text is encrypted, and no encryption is configured.
    #[error(
        "the state is encrypted and can not be read without an encryption configuration. Add the \"encryption\" block that it \
         was written with to the \"terraform\" block, or set TF_ENCRYPTION"
    )]
    Encrypted,
    /// The text cannot be decrypted, or must be encrypted and is not.
    #[error("{0}")]
    Cipher(CipherError),
    /// The form is valid, but the content is contradictory.
    #[error("{place}: {error}")]
    Content {
        /// Address of the faulty part.
        place: String,
        error: ContentError,
    },
}

/// Invalid content of a state. The text is a clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The text of an object in a journal is not JSON of the expected form.
    #[error("{0}")]
    Json(String),
    /// An output has no type.
    #[error("it has no type")]
    NoType,
    /// The text of an output's type cannot be parsed.
    #[error("its type is not valid: {0}")]
    Type(String),
    /// The value of an output is not JSON.
    #[error("its value is not valid: {0}")]
    Value(String),
    /// The value of an output is not of its type.
    #[error("its value does not have its type: {0}")]
    TypeMismatch(String),
    /// The value of an output in a state of version 2 or 3 cannot be converted to a Terraform value.
    #[error("{0}")]
    OldValue(String),
    /// A module has no valid address.
    #[error("{0}")]
    Module(String),
    /// A resource is neither managed nor a data source.
    #[error("\"{0}\" is not a mode of resources")]
    Mode(String),
    /// A type or a name of a resource is not an identifier.
    #[error("\"{0}\" is not a valid name")]
    Name(String),
    /// A provider configuration has no valid address.
    #[error(transparent)]
    Provider(#[from] addrs::parse::ParseError),
    /// Neither a resource nor its objects have a provider configuration.
    #[error("it has no provider configuration")]
    NoProvider,
    /// The objects of one resource have provider configurations of different blocks.
    #[error("its provider configuration {address} is not one of {other}, as other objects of the resource have")]
    ProviderConflict { address: String, other: String },
    /// A provider configuration of an old state has no valid address.
    #[error("\"{address}\" of type {ty} is not the address of a provider configuration")]
    OldProvider { address: String, ty: String },
    /// The key of a deposed object does not have eight characters.
    #[error("\"{0}\" is not a key of a deposed object")]
    DeposedKey(String),
    /// Two objects have the same address and key.
    #[error("it appears more than once")]
    Duplicate,
    /// A number is not an instance key, because it is negative, has a fraction or is too large.
    #[error("the instance key {0} is not a whole number")]
    FractionalKey(String),
    /// An instance key is neither a number nor a string.
    #[error("the instance key {0} is neither a number nor a string")]
    InstanceKey(String),
    /// Attributes are nested deeper than is accepted.
    #[error("its attributes are nested too deeply")]
    TooDeep,
    /// The status of an object is unknown.
    #[error("it has the status \"{0}\", which does not exist")]
    Status(String),
    /// The private data of an object are not base64.
    #[error("its private data is not valid base64: {0}")]
    Private(#[from] base64::DecodeError),
    /// A dependency is not the address of a resource.
    #[error("its dependency \"{address}\" is not the address of a resource: {reason}")]
    Dependency { address: String, reason: String },
    /// A step of the path to a sensitive attribute is not valid.
    #[error("a path to a sensitive attribute is not valid: {0}")]
    SensitivePath(String),
    /// The path of a module in an old state does not begin at the root.
    #[error("the path {0:?} does not begin at the root")]
    ModulePath(Vec<String>),
    /// The key of a resource in an old state is not an address.
    #[error("this is not a resource type, a dot and a resource name")]
    ResourceKey,
    /// The schema version of an object in an old state is not a whole number.
    #[error("its schema version {0} is not a whole number")]
    SchemaVersion(String),
}

impl StateError {
    pub(crate) fn io(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> StateError {
        StateError::Io {
            operation,
            path: path.into(),
            source,
        }
    }

    /// Returns the kind of the problem in one line, as the summary of a diagnostic. The text of the error is the detail.
    #[must_use]
    pub fn summary(&self) -> &str {
        match self {
            StateError::Store { summary, .. } => summary,
            StateError::StoreLocked(_) => "Error acquiring the state lock",
            StateError::Io { .. } => "Cannot use the state file",
            StateError::Format(source) => source.summary(),
            StateError::File { source, .. } | StateError::Sealed { source, .. } => source.summary(),
            StateError::Cipher(_) => "Encryption failed",
            StateError::Locked(_) => "Error acquiring the state lock",
            StateError::Value { .. } => "Cannot store a value",
            StateError::Unlock(_) => "Cannot release the state lock",
        }
    }
}

impl FormatError {
    /// Returns true if the text may be intact, and only a key or the encryption configuration is missing.
    #[must_use]
    pub fn is_of_encryption(&self) -> bool {
        matches!(self, FormatError::Encrypted | FormatError::Cipher(_))
    }

    /// Returns the kind of the problem in one line.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        match self {
            FormatError::Encrypted => "Unsupported state file format",
            FormatError::Cipher(_) => "Failed to decrypt state",
            _ => "Cannot read the state",
        }
    }
}
