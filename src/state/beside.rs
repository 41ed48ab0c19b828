//! Files beside a state: their names, and how they are written.

use std::fs;
use std::path::{Path, PathBuf};

use files::Policy;

use crate::StateError;

/// The path of the file with the name of this one between a prefix and a suffix.
pub(crate) fn beside(path: &Path, prefix: &str, suffix: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(prefix);
    name.push(path.file_name().unwrap_or_default());
    name.push(suffix);
    path.with_file_name(name)
}

/// The directory of a file.
pub(crate) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Writes a whole file, by way of [`files::Output`]; its directory is created if there is none.
pub(crate) fn replace_file(path: &Path, text: &[u8]) -> Result<(), StateError> {
    replace_with(path, text, Policy::STATE)
}

/// The same for a file that need not survive a crash of the machine: without syncing to disk.
pub(crate) fn replace_passing_file(path: &Path, text: &[u8]) -> Result<(), StateError> {
    let policy = Policy {
        durable: false,
        ..Policy::STATE
    };
    replace_with(path, text, policy)
}

fn replace_with(path: &Path, text: &[u8], policy: Policy) -> Result<(), StateError> {
    let dir = directory(path);
    fs::create_dir_all(dir).map_err(|e| StateError::io("cannot create the directory", dir, e))?;
    files::replace(path, text, policy).map_err(|e| StateError::io("cannot write", path, e))
}
