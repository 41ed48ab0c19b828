//! Temporary files and directories. Leftovers of killed processes are recognized and removed.
//!
//! Their names have the form `.monoform-XXXXXX.tmp`, and the process holds a lock (`flock`) on each. The lock ends with the process, even
//! if that is killed. Unlike a process ID, it also has a meaning in other containers.

#![expect(clippy::disallowed_methods, reason = "leftovers are recognized by their age")]

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use system::files::{is_own, no_follow, open_directory, open_for_removal, permissions, set_mode};
use system::locks::try_mark;
use tempfile::{Builder, NamedTempFile, TempDir};

const PREFIX: &str = ".monoform-";
const SUFFIX: &str = ".tmp";

/// Minimum age of a file that counts as a leftover.
// A younger file may not have its lock yet: creation and lock are two steps.
const AGE: Duration = Duration::from_secs(60);

/// A directory that only this user can use, whatever the umask is. It is removed when dropped.
#[derive(Debug)]
pub struct PrivateDirectory {
    // Fields are dropped in order, so the lock comes before the directory: on Windows, a directory with an open file cannot be removed.
    _lock: Option<File>,
    dir: TempDir,
}

impl PrivateDirectory {
    /// Creates a directory in `parent`, and removes leftovers from `parent`.
    ///
    /// # Errors
    /// Returns an error if no directory can be created there.
    pub fn create_in(parent: &Path) -> io::Result<PrivateDirectory> {
        sweep_once(parent);
        let dir = named(&mut Builder::new(), 0o700).tempdir_in(parent)?;
        // The umask may have removed permissions of the owner, so the mode is set again.
        set_mode(dir.path(), 0o700)?;
        let lock = open_directory(dir.path()).ok().filter(try_mark);
        Ok(PrivateDirectory { _lock: lock, dir })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Creates a temporary file in the directory of its final path, and removes leftovers from the directory.
pub(crate) fn file(dir: &Path, mode: u32) -> io::Result<NamedTempFile> {
    sweep_once(dir);
    let file = named(&mut Builder::new(), mode).tempfile_in(dir)?;
    // If the file system does not support locks, leftovers are not removed.
    try_mark(file.as_file());
    Ok(file)
}

/// Sets the name pattern and the mode.
fn named<'a>(builder: &'a mut Builder<'static, 'static>, mode: u32) -> &'a mut Builder<'static, 'static> {
    builder.prefix(PREFIX).suffix(SUFFIX);
    if let Some(permissions) = permissions(mode) {
        builder.permissions(permissions);
    }
    builder
}

/// Removes the leftovers in a directory, once in a process.
fn sweep_once(dir: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let first = SWEPT
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned()));
    if first {
        sweep(dir);
    }
}

/// Removes the leftovers of ended processes in a directory.
pub fn sweep(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        if !name.to_str().is_some_and(is_ours) {
            continue;
        }
        let path = entry.path();
        match remove_leftover(&path) {
            Ok(true) => tracing::debug!("{}, which a program that is gone has left, was removed", path.display()),
            Ok(false) => {}
            Err(e) => tracing::debug!("{} cannot be removed: {e}", path.display()),
        }
    }
}

fn is_ours(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX))
        .is_some_and(|random| !random.is_empty() && random.chars().all(|c| c.is_ascii_alphanumeric()))
}

fn remove_leftover(path: &Path) -> io::Result<bool> {
    let found = fs::symlink_metadata(path)?;
    let old = found
        .modified()
        .ok()
        .and_then(|modified| SystemTime::now().duration_since(modified).ok())
        .is_some_and(|age| age >= AGE);
    // In a shared directory, another user may have created an entry with such a name, for example a link, so its kind is checked.
    let kind = found.file_type();
    if !old || !is_own(&found) || !(kind.is_file() || kind.is_dir()) {
        return Ok(false);
    }
    // The entry may have been replaced by a link after the check, so links are not followed.
    let file = match kind.is_dir() {
        true => open_for_removal(path)?,
        false => no_follow(OpenOptions::new().read(true)).open(path)?,
    };
    // A running process holds the lock, perhaps in another container.
    if !try_mark(&file) {
        return Ok(false);
    }
    if kind.is_dir() {
        fs::remove_dir_all(path)?;
    } else {
        fs::remove_file(path)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use system::files::MetadataExt as _;

    use super::*;

    fn age(path: &Path) {
        let old = SystemTime::now() - 2 * AGE;
        File::open(path).unwrap().set_modified(old).unwrap();
    }

    #[test]
    fn only_old_unused_files_of_this_program_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        let used_dir = PrivateDirectory::create_in(parent.path()).unwrap();
        let used_file = file(parent.path(), 0o600).unwrap();
        fs::create_dir(at(".monoform-dead01.tmp")).unwrap();
        fs::write(at(".monoform-dead01.tmp/socket"), "").unwrap();
        for name in [
            ".monoform-dead02.tmp",
            ".monoform-version",
            ".monoform-a b.tmp",
            "other.tmp",
        ] {
            fs::write(at(name), "").unwrap();
        }
        fs::write(at(".monoform-young1.tmp"), "").unwrap();
        std::os::unix::fs::symlink("other.tmp", at(".monoform-link01.tmp")).unwrap();
        for name in [
            ".monoform-dead01.tmp",
            ".monoform-dead02.tmp",
            ".monoform-version",
            ".monoform-a b.tmp",
            "other.tmp",
        ] {
            age(&at(name));
        }
        age(used_dir.path());
        age(used_file.path());
        sweep(parent.path());
        let left = |name: &str| at(name).symlink_metadata().is_ok();
        assert!(used_dir.path().exists() && used_file.path().exists());
        assert!(!left(".monoform-dead01.tmp") && !left(".monoform-dead02.tmp"));
        for name in [
            ".monoform-version",
            ".monoform-a b.tmp",
            "other.tmp",
            ".monoform-young1.tmp",
            ".monoform-link01.tmp",
        ] {
            assert!(left(name), "{name}");
        }
    }

    #[test]
    fn a_private_directory_is_gone_when_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let dir = PrivateDirectory::create_in(parent.path()).unwrap();
        let path = dir.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        drop(dir);
        assert!(!path.exists());
    }
}
