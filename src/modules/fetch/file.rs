//! Directories of this machine, by absolute path.

use std::path::{Path, PathBuf};

use files::io_reason;
use net::Url;

/// The path of a `file:` address.
pub(super) fn path(url: &Url) -> Result<PathBuf, String> {
    url.to_file_path()
        .map_err(|()| format!("\"{url}\" is not the address of a file of this machine"))
}

/// Puts a link to a directory in place: what changes there is seen at once, as with a relative path.
pub(super) fn directory(url: &Url, to: &Path) -> Result<(), String> {
    let path = path(url)?;
    match std::fs::metadata(&path) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            return Err(format!(
                "{} is a file. A module is a directory, or an archive whose name says of which kind it is",
                path.display()
            ));
        }
        Err(e) => return Err(format!("{} cannot be read: {}", path.display(), io_reason(&e))),
    }
    #[cfg(unix)]
    let linked = std::os::unix::fs::symlink(&path, to);
    #[cfg(not(unix))]
    let linked = crate::tree::copy(&path, to);
    linked.map_err(|e| format!("a link to {} cannot be made: {}", path.display(), io_reason(&e)))
}
