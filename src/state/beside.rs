//! Paths of files beside a state, and functions that write them.

use std::fs;
use std::path::{Path, PathBuf};

use files::Policy;

use crate::StateError;

/// Returns the path of a file in the same directory as `path`. Its name is that of `path` with the prefix and the suffix added.
pub(crate) fn beside(path: &Path, prefix: &str, suffix: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(prefix);
    name.push(path.file_name().unwrap_or_default());
    name.push(suffix);
    path.with_file_name(name)
}

/// Returns the directory of a file; `.` for a bare name.
pub(crate) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Replaces a file durably through [`files::Output`], so that it is complete at every instant. Creates the directory if it is missing.
pub(crate) fn replace_file(path: &Path, text: &[u8]) -> Result<(), StateError> {
    replace_with(path, text, Policy::STATE)
}

/// Replaces a file without waiting for the disk, for files that need not survive a crash of the machine.
pub(crate) fn replace_passing_file(path: &Path, text: &[u8]) -> Result<(), StateError> {
    let policy = Policy {
        durable: false,
        ..Policy::STATE
    };
    replace_with(path, text, policy)
}

/// Returns true if a file belongs to another user.
pub(crate) fn is_of_others(found: &fs::Metadata) -> bool {
    !system::files::is_own(found)
}

fn replace_with(path: &Path, text: &[u8], policy: Policy) -> Result<(), StateError> {
    let dir = directory(path);
    fs::create_dir_all(dir).map_err(|e| StateError::io("cannot create the directory", dir, e))?;
    // The symlink of another user is not followed: in a shared directory, it could make this program overwrite a file that the other user
    // cannot write. The user's own symlinks are followed.
    let follows = match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => !is_of_others(&found),
        Ok(found) => !found.is_file(),
        Err(_) => false,
    };
    let replace = if follows { files::replace } else { files::replace_here };
    replace(path, text, policy).map_err(|e| StateError::io("cannot write", path, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{lchown, symlink};

    #[test]
    fn links_of_others_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("s.tfstate.backup"));
        let text = || fs::read_to_string(&target).unwrap();
        symlink("target", &link).unwrap();
        replace_file(&link, b"own").unwrap();
        assert_eq!(text(), "own", "a link of this user");
        if !rustix::process::geteuid().is_root() {
            return;
        }
        for write in [replace_file, replace_passing_file] {
            fs::remove_file(&link).unwrap();
            symlink("target", &link).unwrap();
            lchown(&link, Some(65534), Some(65534)).unwrap();
            write(&link, b"others").unwrap();
            assert_eq!(text(), "own");
            assert_eq!(fs::read_to_string(&link).unwrap(), "others");
            assert!(fs::symlink_metadata(&link).unwrap().is_file());
        }
    }
}
