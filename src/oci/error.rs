//! Errors of requests to OCI registries.

use std::io;
use std::path::PathBuf;

use files::io_reason;

use crate::unfit::UnfitManifest;

/// Why an OCI registry does not give what is asked for. The text is a clause without a full stop.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OciError {
    /// An address is not valid.
    #[error("\"{address}\" is not valid as an address in an OCI registry: {reason}")]
    Address {
        address: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The registry does not have it.
    #[error("the OCI repository {repository} {what}")]
    NotFound {
        repository: String,
        /// What it does not have, as a predicate.
        what: String,
    },
    /// The registry refuses the request, with the credentials that there are or without any.
    #[error("the OCI registry refuses the request for {repository} ({status}): {credentials}")]
    Refused {
        repository: String,
        /// The status of the response.
        status: u16,
        /// Which credentials were used, and where others are set.
        credentials: String,
    },
    /// The registry asks for a login that cannot be made.
    #[error("the OCI registry asks for a login to {repository} that cannot be made: {reason}")]
    Login { repository: String, reason: String },
    /// A response is not as the specification says.
    #[error("the response of the OCI registry to {address} cannot be used: {reason}")]
    Response { address: String, reason: String },
    /// An artifact is not of the expected kind.
    #[error("{artifact} in the OCI registry cannot be used: {reason}")]
    Artifact {
        /// The repository with its tag or digest.
        artifact: String,
        reason: UnfitManifest,
    },
    /// Bytes do not have the digest or the size that names them.
    #[error("{artifact} is not what its digest says: it was damaged on its way, or was exchanged")]
    Digest {
        /// The repository with the digest.
        artifact: String,
    },
    /// A blob is larger than what is accepted.
    #[error("{artifact} has {size} bytes, which is more than the limit of {limit}")]
    TooLarge {
        /// The repository with the digest.
        artifact: String,
        /// The size in bytes.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A file with credentials cannot be used.
    #[error("the credentials in {} cannot be used: {reason}", path.display())]
    CredentialsFile {
        /// The file.
        path: PathBuf,
        reason: String,
    },
    /// A credentials helper failed.
    #[error("the program docker-credential-{name} has no credentials for {host}: {reason}")]
    Helper {
        /// The name of the helper.
        name: String,
        host: String,
        reason: String,
    },
    /// What was downloaded cannot be written.
    #[error("{} cannot be written: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        reason: String,
    },
    /// A request failed.
    #[error(transparent)]
    Request(#[from] net::Error),
}

impl OciError {
    /// Whether the registry could not be reached: perhaps there is no network.
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
