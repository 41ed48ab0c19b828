//! Errors of archives.

use std::io;
use std::path::PathBuf;

use files::io_reason;

use crate::Limits;

/// The error of an archive that cannot be read or is rejected. The text is a clause about the archive ("it …"), without
/// a full stop.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("it cannot be read: {}", io_reason(.0))]
    Read(#[source] io::Error),
    /// The target directory cannot be created.
    #[error("{} cannot be created: {}", path.display(), io_reason(source))]
    Target { path: PathBuf, source: io::Error },
    /// The file has no zip directory at its end.
    #[error("it is not a zip archive that can be read: {0}")]
    NotZip(String),
    /// An entry of a zip archive cannot be decoded.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// The archive has no file.
    #[error("it is empty")]
    Empty,
    /// The size of the files exceeds the limit.
    #[error("{}", .0.too_large())]
    TooLarge(Limits),
    /// The number of entries exceeds the limit.
    #[error("{}", .0.too_many())]
    TooMany(Limits),
    /// The path of an entry is outside the target directory.
    #[error("its entry \"{0}\" would be written outside of its directory")]
    Outside(String),
    /// An entry has no name.
    #[error("its entry \"{0}\" has no name")]
    NoName(String),
    /// An entry is a device or another special file, or a link where [`Entries`](crate::Entries) allows only files and
    /// directories.
    #[error("its entry \"{0}\" is a link or a special file")]
    Special(String),
    /// An entry cannot be written.
    #[error("its entry \"{name}\" cannot be unpacked: {}", io_reason(source))]
    Entry { name: String, source: io::Error },
    /// A path is a symbolic link in one entry and a directory in another.
    #[error("its entry \"{0}\" is both a link and a directory")]
    LinkAndDirectory(String),
    /// The target of a symbolic link is not inside the target directory.
    #[error("its link \"{name}\" leads out of its directory, to \"{target}\"")]
    LinkOutside { name: String, target: String },
    /// The target of a symbolic link exceeds the limit.
    #[error("its link \"{0}\" has a target of more than 4096 bytes")]
    LinkTooLong(String),
    /// The target of a hard link is not a file.
    #[error("its entry \"{name}\" is a link to \"{target}\", which is not a file")]
    LinkToNoFile { name: String, target: String },
    /// A parent of a symbolic link is not a directory.
    #[error("its link \"{0}\" is below an entry that is not a directory")]
    LinkBelowNoDirectory(String),
    /// Symbolic links are not supported by this operating system.
    #[error("its link \"{0}\" cannot be created on this system")]
    LinkNotSupported(String),
    /// The name is reserved by the operating system, or not valid for a file.
    #[error("its entry \"{0}\" has a name that files cannot have on this system")]
    Reserved(String),
}
