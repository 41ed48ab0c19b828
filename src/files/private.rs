//! Files and directories that only this user can have written, such as caches of credentials.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

use system::files::{DirBuilderExt as _, is_own, no_follow_and_no_wait, rights_of_others};

/// Returns true if a file or directory belongs to this user and is not writable by others.
fn is_ours(meta: &fs::Metadata) -> bool {
    is_own(meta) && rights_of_others(meta) & 0o022 == 0
}

/// Creates a directory that only this user can use, and its missing parents. If the directory exists, it must be private.
///
/// # Errors
/// The directory cannot be created; [`io::ErrorKind::PermissionDenied`] if others can write to it.
pub fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    if is_ours(&fs::metadata(path)?) {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Opens a regular file of this user for reading. Links are not followed.
///
/// # Errors
/// The file cannot be opened; [`io::ErrorKind::PermissionDenied`] if it belongs to another user, is writable by others, or is not a regular
/// file.
pub fn open_private(path: &Path) -> io::Result<File> {
    // The flags make opening a pipe with this name return at once instead of blocking.
    let file = no_follow_and_no_wait(OpenOptions::new().read(true)).open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() && is_ours(&meta) {
        Ok(file)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn directory_is_created_for_the_user_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        private_directory(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o770)).unwrap();
        let refused = private_directory(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn only_regular_files_that_others_cannot_write_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        open_private(&file).unwrap();
        symlink(&file, &link).unwrap();
        open_private(&link).unwrap_err();
        open_private(dir.path()).unwrap_err();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o620)).unwrap();
        let refused = open_private(&file).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }
}
