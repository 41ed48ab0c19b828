//! Errors of reading an archive.

use std::io;
use std::path::PathBuf;

use files::io_reason;

use crate::Limits;

/// Why an archive cannot be read or is rejected. The text is a clause about the archive ("it …"), without a full stop.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The archive file cannot be read.
    #[error("it cannot be read: {}", io_reason(.0))]
    Read(#[source] io::Error),
    /// The target directory cannot be created.
    #[error("{} cannot be created: {}", path.display(), io_reason(source))]
    Target {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file has no directory of a zip archive at its end.
    #[error("it is not a zip archive that can be read: {0}")]
    NotZip(String),
    /// An entry of a zip archive cannot be decoded.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// It holds no file.
    #[error("it is empty")]
    Empty,
    /// The files are larger than the limit.
    #[error("{}", .0.too_large())]
    TooLarge(Limits),
    /// It has more entries than the limit.
    #[error("{}", .0.too_many())]
    TooMany(Limits),
    /// The path of an entry leads out of the target directory.
    #[error("its entry \"{0}\" would be written outside of its directory")]
    Outside(String),
    /// An entry has no name.
    #[error("its entry \"{0}\" has no name")]
    NoName(String),
    /// An entry is a link, and only files and directories are allowed; or it is a device or the like.
    #[error("its entry \"{0}\" is a link or a special file")]
    Special(String),
    /// An entry cannot be written.
    #[error("its entry \"{name}\" cannot be unpacked: {}", io_reason(source))]
    Entry {
        /// The entry.
        name: String,
        /// The reason.
        source: io::Error,
    },
    /// A path is a symbolic link by one entry and a directory by another.
    #[error("its entry \"{0}\" is both a link and a directory")]
    LinkAndDirectory(String),
    /// The target of a symbolic link is not inside the target directory.
    #[error("its link \"{name}\" leads out of its directory, to \"{target}\"")]
    LinkOutside {
        /// The link.
        name: String,
        target: String,
    },
    /// A hard link refers to something that is not a file.
    #[error("its entry \"{name}\" is a link to \"{target}\", which is not a file")]
    LinkToNoFile {
        /// The link.
        name: String,
        target: String,
    },
    /// A parent of a symbolic link is not a directory.
    #[error("its link \"{0}\" is below an entry that is not a directory")]
    LinkBelowNoDirectory(String),
    /// Symbolic links are not supported by this operating system.
    #[error("its link \"{0}\" cannot be created on this system")]
    LinkNotSupported(String),
}
