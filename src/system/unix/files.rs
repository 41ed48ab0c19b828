//! Files: modes, owners, identities, links, durability.

use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::path::Path;

use std::os::unix::fs::PermissionsExt as _;
pub use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};

/// Returns the permissions for a new file with this mode; `None` on systems without modes.
#[must_use]
pub fn permissions(mode: u32) -> Option<Permissions> {
    Some(Permissions::from_mode(mode))
}

/// Sets the mode of the file or directory at a path.
///
/// # Errors
/// It cannot be changed.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Sets the mode of an open file.
///
/// # Errors
/// It cannot be changed.
pub fn set_mode_of(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))
}

/// Sets the owner and the group of an open file to those of another one.
///
/// # Errors
/// They cannot be changed: only root may give files away.
pub fn take_owner(file: &File, other: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (other.uid(), other.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(other.uid()), Some(other.gid()))
}

/// Returns true if the file belongs to the effective user of this process.
#[must_use]
pub fn is_own(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}

/// Returns the bits of the mode for the group and others.
#[must_use]
pub fn rights_of_others(found: &Metadata) -> u32 {
    found.mode() & 0o077
}

/// Returns true if the file at a path can be run as a program.
#[must_use]
pub fn is_program(_path: &Path, found: &Metadata) -> bool {
    found.mode() & 0o111 != 0
}

/// Makes opening fail if the path is a link.
pub fn no_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
}

/// Makes opening fail if the path is a link, and return at once for a pipe.
pub fn no_follow_and_no_wait(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed())
}

/// Opens a directory as a file, to lock it.
///
/// # Errors
/// It cannot be opened.
pub fn open_directory(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Opens a directory that may be in use, to test its lock before it is removed.
///
/// # Errors
/// It cannot be opened.
pub fn open_for_removal(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Resolves the links of an existing path.
///
/// # Errors
/// Nothing exists at the path, or it cannot be examined.
pub fn canonicalize(path: &Path) -> io::Result<std::path::PathBuf> {
    std::fs::canonicalize(path)
}

/// Creates a symbolic link.
///
/// # Errors
/// It cannot be created.
pub fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

/// Returns true if there is a link to a program, which [`link_program`] may replace.
#[must_use]
pub fn is_program_link(path: &Path) -> bool {
    path.is_symlink()
}

/// Makes a program available under another path, which must not exist.
///
/// # Errors
/// The link cannot be created.
pub fn link_program(target: &Path, path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

/// The identity of a file: equal for all paths to one file and all handles of it, as long as it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    /// Returns the identity of the file that a path leads to.
    ///
    /// # Errors
    /// There is none, or it cannot be examined.
    pub fn at(path: &Path) -> io::Result<Identity> {
        std::fs::metadata(path).map(|found| Identity::from(&found))
    }

    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// It cannot be examined.
    pub fn of(file: &File) -> io::Result<Identity> {
        file.metadata().map(|found| Identity::from(&found))
    }
}

impl From<&Metadata> for Identity {
    fn from(found: &Metadata) -> Identity {
        Identity {
            device: found.dev(),
            number: found.ino(),
        }
    }
}

/// Returns true if files can be created in a directory, by its permissions.
#[must_use]
pub fn can_create_in(dir: &Path) -> bool {
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    dir.is_dir() && rustix::fs::access(dir, access).is_ok()
}

/// Syncs the names in a directory to the disk.
///
/// # Errors
/// The file system does not support that, or the disk fails.
pub fn sync_directory(dir: &Path) -> io::Result<()> {
    File::open(dir).and_then(|dir| dir.sync_all())
}

/// Returns the bytes of a name.
#[must_use]
pub fn bytes_of(name: &OsStr) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(name)
}

/// Returns the name with these bytes.
#[must_use]
pub fn name_of(bytes: Vec<u8>) -> std::ffi::OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

/// Reserves space for the first `len` bytes of a file, if the file system can. The file's length does not
/// change.
///
/// # Errors
/// There is not as much space. Without support for reservations there is no error.
#[cfg(target_os = "linux")]
pub fn reserve(file: &File, len: u64) -> io::Result<()> {
    use rustix::io::Errno;
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, len) {
        Err(e @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(e.into()),
        _ => Ok(()),
    }
}

/// Reserves nothing: macOS and FreeBSD could only do so by changing the file's length.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn reserve(_file: &File, _len: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_of_a_file_have_one_identity_and_two_files_have_two() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let file = File::create(at("a")).unwrap();
        std::fs::hard_link(at("a"), at("b")).unwrap();
        symlink("b", at("c")).unwrap();
        File::create(at("d")).unwrap();
        let own = Identity::of(&file).unwrap();
        assert_eq!(Identity::at(&at("b")).unwrap(), own);
        assert_eq!(Identity::at(&at("c")).unwrap(), own);
        assert_ne!(Identity::at(&at("d")).unwrap(), own);
    }
}
