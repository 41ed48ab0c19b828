//! Directories of this machine, by absolute path.

use std::path::{Path, PathBuf};

use net::Url;
use system::Os;

use super::{FetchError, file_error};

pub(super) fn path(url: &Url) -> Result<PathBuf, FetchError> {
    url.to_file_path().map_err(|()| FetchError::NotLocal(url.clone()))
}

/// Creates a link to a directory, so that changes in it take effect at once, as those of a local module do.
pub(super) fn directory(url: &Url, to: &Path) -> Result<(), FetchError> {
    let path = path(url)?;
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(FetchError::NotADirectory(path)),
        Err(e) => return Err(file_error("reading", &path)(e)),
    }
    let linked = match system::files::symlink(&path, to) {
        // On Windows, creating a link requires a privilege. Without it, the directory is copied.
        Err(_) if Os::CURRENT == Os::Windows => crate::tree::copy(&path, to),
        linked => linked,
    };
    linked.map_err(file_error("creating a link", to))
}
