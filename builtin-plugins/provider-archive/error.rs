//! Reasons why an archive cannot be created.

use std::io;
use std::path::PathBuf;

use gotext::glob::PatternError;

/// Reason why an archive cannot be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[error("archive type not supported: {0}: it is either zip or tar.gz")]
    Type(String),
    #[error("could not archive missing file: {}", .0.display())]
    MissingFile(PathBuf),
    #[error("could not archive file that is a directory: {}. Use source_dir for directories.", .0.display())]
    FileIsDirectory(PathBuf),
    #[error("could not archive missing directory: {}", .0.display())]
    MissingDirectory(PathBuf),
    #[error("could not archive directory that is a file: {}", .0.display())]
    DirectoryIsFile(PathBuf),
    #[error("archive has not been created as it would be empty: {} has no files but those that are left out", .0.display())]
    Empty(PathBuf),
    #[error(
        "{} is a symbolic link to a directory around it, so reading it would never end. Leave it out with excludes, or set \
         exclude_symlink_directories.",
        .0.display()
    )]
    LinkCycle(PathBuf),
    #[error("error encountered during file walk: {}: {source}", path.display())]
    Walk { path: PathBuf, source: io::Error },
    #[error("error checking excludes matches: bad pattern {pattern:?}: {reason}")]
    Pattern { pattern: String, reason: PatternError },
    #[error("error parsing output_file_mode value: {0}: write the mode in octal with a leading 0, as in 0644")]
    Mode(String),
    #[error("error reading file for archival: {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("error reading file for archival: {} is neither a file nor a directory", .0.display())]
    SpecialFile(PathBuf),
    #[error("no temporary file: {0}")]
    TemporaryFile(io::Error),
    #[error("could not add {name}: {source}")]
    Add { name: String, source: io::Error },
    /// Failure to write the end of the archive to the temporary file.
    #[error(transparent)]
    Finish(io::Error),
    /// Failure to copy the archive to its path.
    #[error("{}: {source}", path.display())]
    Store { path: PathBuf, source: io::Error },
}
