//! Errors of fetching, verifying and installing a package.

use std::io;
use std::path::{Path, PathBuf};

use archive::{InvalidLimit, Limits};
use files::io_reason;

use crate::metadata::Location;

/// Reason why a package is not usable or cannot be stored. The text is a clause without a full stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum PackageError {
    #[error("{} cannot be read: {}", path.display(), io_reason(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("{} cannot be written: {}", path.display(), io_reason(source))]
    Write { path: PathBuf, source: io::Error },
    #[error("a temporary directory for the package cannot be created: {}", io_reason(.0))]
    Temporary(#[source] io::Error),
    /// Writing the download failed.
    #[error("the package cannot be written to the disk: {}", io_reason(.0))]
    Store(#[source] io::Error),
    #[error("the checksum of the package cannot be computed: {}", io_reason(.0))]
    Hash(#[source] io::Error),
    #[error("the package cannot be unpacked: {0}")]
    Unpack(#[from] archive::Error),
    #[error("the package from {location}: {source}")]
    Archive {
        location: Box<Location>,
        source: archive::Error,
    },
    /// Invalid limit in an environment variable.
    #[error(transparent)]
    Limit(#[from] InvalidLimit),
    #[error(transparent)]
    Request(#[from] net::Error),
    #[error("what {address} sends {}", limits.too_long())]
    TooLarge { address: String, limits: Limits },
    /// A download ended early after the last retry.
    #[error("{0}")]
    Interrupted(String),
    /// The checksum of an archive differs from that in the package metadata.
    #[error(
        "the package from {location} has the checksum zh:{actual}, and {expected} was expected: it was damaged on its way, or is \
         not what its authors have published"
    )]
    Checksum {
        location: Box<Location>,
        actual: String,
        expected: String,
    },
    /// No checksum of the package is in the lock file.
    #[error(
        "the package from {0} has none of the checksums that the dependency lock file records for this version. They may be of \
         packages for other platforms only; then \"providers lock\" adds those for this one. Otherwise it is not the package \
         that was chosen"
    )]
    NotLocked(Location),
    /// The lock file has checksums of archives for this version, but none of this package.
    #[error(
        "the lock file has checksums of this version's archives, and none of them is that of this package: it is not what was \
         locked"
    )]
    NotLockedArchive,
    #[error("the package has no file terraform-provider-{0} at its top")]
    NoExecutable(String),
    #[error(
        "the plugin cache directory {} does not exist: create it, or change the setting plugin_cache_dir or the environment \
         variable TF_PLUGIN_CACHE_DIR", .0.display()
    )]
    NoCache(PathBuf),
    /// An index of a mirror is not JSON of the expected form.
    #[error("{} is invalid: {}", path.display(), files::json_reason(source))]
    Index { path: PathBuf, source: serde_json::Error },
    /// The package was not obtained from a source, or its files cannot be listed. The text is the reason.
    #[error("{0}")]
    NotFetched(String),
    /// The background task panicked or was canceled.
    #[error("the installation was interrupted")]
    Task,
}

/// Returns a conversion to a read error at a path.
pub(crate) fn read_error(path: &Path) -> impl Fn(io::Error) -> PackageError + Copy + '_ {
    move |source| PackageError::Read {
        path: path.to_owned(),
        source,
    }
}

/// Returns a conversion to a write error at a path.
pub(crate) fn write_error(path: &Path) -> impl Fn(io::Error) -> PackageError + Copy + '_ {
    move |source| PackageError::Write {
        path: path.to_owned(),
        source,
    }
}
