//! Placement of an installed package: a link, or a copy on systems without links.

use std::io;
use std::path::Path;

use system::files::symlink;

use crate::discovery::Package;

/// Makes a package available at `target`, as a link if possible. Returns false if
/// `target` is already a link to the package's directory.
pub(crate) fn place(package: &Package, target: &Path) -> io::Result<bool> {
    let source = std::path::absolute(package.path())?;
    if let Package::Directory(_) = package
        && std::fs::read_link(target).is_ok_and(|link| link == source)
    {
        return Ok(false);
    }
    // There may be a link to another package, or a copy of one.
    match std::fs::symlink_metadata(target) {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(target)?,
        Ok(_) => std::fs::remove_file(target)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match package {
        Package::Directory(_) => symlink(&source, target).or_else(|_| copy(&source, target))?,
        Package::File(_) => {
            std::fs::create_dir(target)?;
            let file = target.join(source.file_name().unwrap_or_default());
            symlink(&source, &file).or_else(|_| std::fs::copy(&source, &file).map(drop))?;
        }
    }
    Ok(true)
}

fn copy(source: &Path, target: &Path) -> io::Result<()> {
    std::fs::create_dir(target)?;
    for entry in std::fs::read_dir(source)? {
        let entry = entry?;
        let to = target.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
