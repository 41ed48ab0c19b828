//! Why a pack cannot be read or made.

use std::io;
use std::path::{Path, PathBuf};

use files::io_reason;

/// Why a pack cannot be read or made. The text is a clause without a full stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// A file cannot be read.
    #[error("{} cannot be read: {}", path.display(), io_reason(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file or directory cannot be written.
    #[error("{} cannot be written: {}", path.display(), io_reason(source))]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A part of a pack is not what it was when the pack was made.
    #[error("the pack {} is damaged: {part}; copy it again, or make it anew", path.display())]
    Damaged {
        /// The pack.
        path: PathBuf,
        /// The damaged part, as a clause.
        part: String,
    },
    /// The pack is of a later format.
    #[error("the pack {} has the format {format}, which this release does not know: use the release that made it", path.display())]
    Format {
        /// The pack.
        path: PathBuf,
        format: u32,
    },
    /// There is no pack in a file.
    #[error("{} carries no pack", .0.display())]
    NoPack(PathBuf),
    /// A file is not an executable of this program.
    #[error("{} is not an executable of Monoform", .0.display())]
    NotMonoform(PathBuf),
    /// The executable to pack with is a pack already.
    #[error(
        "{} is a pack already, and there is no pack of packs: name an executable without one, and take over what the pack carries with -from",
        .0.display()
    )]
    PackOfPacks(PathBuf),
    /// A file to be packed is neither a file nor a directory, or a link that leads elsewhere.
    #[error("{} cannot be packed: {reason}", path.display())]
    NotPackable {
        /// The file.
        path: PathBuf,
        /// The reason, as a clause.
        reason: String,
    },
    /// A key file is not usable.
    #[error("the key file {} cannot be used: {reason}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The reason, as a clause.
        reason: String,
    },
    /// A pack has no signature, or one by another key.
    #[error("the pack {} is not trusted: {reason}", path.display())]
    NotTrusted {
        /// The pack.
        path: PathBuf,
        /// The reason, as a clause.
        reason: String,
    },
    /// What a pack carries exceeds a limit.
    #[error("what the pack {} carries is too large: {reason}", path.display())]
    TooLarge {
        /// The pack.
        path: PathBuf,
        /// The limit, as a clause.
        reason: String,
    },
    /// An environment variable with a limit is invalid.
    #[error(transparent)]
    Limit(archive::InvalidLimit),
    /// A difference does not belong to a pack.
    #[error("the difference {} does not fit {}: {reason}", difference.display(), to.display())]
    OtherPack {
        difference: PathBuf,
        /// The pack it was used with.
        to: PathBuf,
        /// What does not fit, as a clause.
        reason: String,
    },
    /// The compression library failed.
    #[error("{} cannot be compressed: {}", path.display(), io_reason(source))]
    Compress {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// A read error at a path.
pub(crate) fn read_error(path: &Path) -> impl Fn(io::Error) -> PackError + Copy + '_ {
    move |source| PackError::Read {
        path: path.to_owned(),
        source,
    }
}

/// A write error at a path.
pub(crate) fn write_error(path: &Path) -> impl Fn(io::Error) -> PackError + Copy + '_ {
    move |source| PackError::Write {
        path: path.to_owned(),
        source,
    }
}

/// Says that a part of the pack at this path is wrong.
pub(crate) fn damaged(path: &Path) -> impl Fn(String) -> PackError + Copy + '_ {
    move |part| PackError::Damaged {
        path: path.to_owned(),
        part,
    }
}
