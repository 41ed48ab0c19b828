//! Errors of requests to OCI registries.

use std::io;
use std::path::PathBuf;

use files::io_reason;

use crate::unfit::UnfitManifest;

/// The reason that an artifact cannot be fetched from an OCI registry. The text is a clause without a
/// full stop.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OciError {
    /// An address is not valid.
    #[error("\"{address}\" is not valid as an address in an OCI registry: {reason}")]
    Address { address: String, reason: &'static str },
    /// The repository does not exist, or has no such artifact.
    #[error("the OCI repository {repository} {what}")]
    NotFound {
        repository: String,
        /// Description of the missing part, as a predicate.
        what: String,
    },
    /// The registry refuses the request, with credentials or without.
    #[error("the OCI registry refuses the request for {repository} ({status}): {credentials}")]
    Refused {
        repository: String,
        status: u16,
        /// Description of the credentials that were used, and of the settings that choose other credentials.
        credentials: String,
    },
    /// The registry requests a login that is not possible.
    #[error("the OCI registry asks for a login to {repository} that cannot be made: {reason}")]
    Login { repository: String, reason: String },
    /// A response does not follow the specification.
    #[error("the response of the OCI registry to {address} cannot be used: {reason}")]
    Response { address: String, reason: String },
    /// An artifact is not of the expected kind.
    #[error("{artifact} in the OCI registry cannot be used: {reason}")]
    Artifact {
        /// The repository with its tag or digest.
        artifact: String,
        reason: UnfitManifest,
    },
    /// The size or digest of downloaded bytes is wrong.
    #[error("{artifact} is not what its digest says: it was damaged on its way, or was exchanged")]
    Digest {
        /// The repository with the digest.
        artifact: String,
    },
    /// The size of a blob exceeds the limit.
    #[error("{artifact} has {size} bytes, which is more than the limit of {limit}")]
    TooLarge {
        /// The repository with the digest.
        artifact: String,
        size: u64,
        limit: u64,
    },
    /// A credentials file cannot be used.
    #[error("the credentials in {} cannot be used: {reason}", path.display())]
    CredentialsFile { path: PathBuf, reason: String },
    /// A credentials helper failed.
    #[error("the program docker-credential-{name} has no credentials for {host}: {reason}")]
    Helper { name: String, host: String, reason: String },
    /// A download cannot be written.
    #[error("{} cannot be written: {reason}", path.display())]
    Write { path: PathBuf, reason: String },
    /// A request failed.
    #[error(transparent)]
    Request(#[from] net::Error),
}

impl OciError {
    /// Returns true if the registry could not be reached: there may be no network.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, OciError::Request(error) if error.is_unreachable())
    }

    pub(crate) fn write(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> OciError {
        let path = path.into();
        move |error| OciError::Write {
            path,
            reason: io_reason(&error),
        }
    }
}
