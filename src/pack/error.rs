//! Errors of reading and making packs.

use std::io;
use std::path::{Path, PathBuf};

use files::io_reason;

/// Reason why a pack cannot be read or made. The text is a clause without a full stop, and so are the fields `part` and `reason`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    #[error("{} cannot be read: {}", path.display(), io_reason(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("{} cannot be written: {}", path.display(), io_reason(source))]
    Write { path: PathBuf, source: io::Error },
    #[error("the pack {} is damaged: {part}; copy it again, or make it anew", path.display())]
    Damaged { path: PathBuf, part: String },
    #[error("the pack {} has the format {format}, which this release does not know: use the release that made it", path.display())]
    Format { path: PathBuf, format: u32 },
    #[error("{} carries no pack", .0.display())]
    NoPack(PathBuf),
    #[error("{} is not an executable of Monoform", .0.display())]
    NotMonoform(PathBuf),
    /// The executable for a new pack is itself a pack.
    #[error(
        "{} is a pack already, and there is no pack of packs: name an executable without one, and take over what the pack carries with -from",
        .0.display()
    )]
    PackOfPacks(PathBuf),
    /// A path to be packed is neither a file nor a directory, or is a link that leads out of the package.
    #[error("{} cannot be packed: {reason}", path.display())]
    NotPackable { path: PathBuf, reason: String },
    #[error("the key file {} cannot be used: {reason}", path.display())]
    Key { path: PathBuf, reason: String },
    /// A pack is not signed, or is signed with another key.
    #[error("the pack {} is not trusted: {reason}", path.display())]
    NotTrusted { path: PathBuf, reason: String },
    #[error("what the pack {} carries is too large: {reason}", path.display())]
    TooLarge { path: PathBuf, reason: String },
    /// An environment variable with a limit is invalid.
    #[error(transparent)]
    Limit(archive::InvalidLimit),
    #[error("the difference {} does not fit {}: {reason}", difference.display(), to.display())]
    OtherPack {
        difference: PathBuf,
        /// Pack that the difference was used with.
        to: PathBuf,
        reason: String,
    },
    #[error("{} cannot be compressed: {}", path.display(), io_reason(source))]
    Compress { path: PathBuf, source: io::Error },
}

pub(crate) fn read_error(path: &Path) -> impl Fn(io::Error) -> PackError + Copy + '_ {
    move |source| PackError::Read {
        path: path.to_owned(),
        source,
    }
}

pub(crate) fn write_error(path: &Path) -> impl Fn(io::Error) -> PackError + Copy + '_ {
    move |source| PackError::Write {
        path: path.to_owned(),
        source,
    }
}

/// Returns a function that makes the error about a damaged part of the pack at this path.
pub(crate) fn damaged(path: &Path) -> impl Fn(String) -> PackError + Copy + '_ {
    move |part| PackError::Damaged {
        path: path.to_owned(),
        part,
    }
}
