//! Files: modes, owners, identities, links, durability.
//!
//! Windows has access lists instead of modes. As in Go's library, a mode is made up from the attribute "read-only", and setting
//! one changes nothing but this attribute. New files get the access list of their directory: below the user's profile, that is
//! the user, administrators and the system.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, FileType, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::windows::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::windows::io::AsRawHandle as _;
use std::path::Path;

use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, DELETE, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT, FILE_SHARE_READ,
    FILE_SHARE_WRITE, GetFileInformationByHandle,
};

use super::checked;

/// Modes of new files.
pub trait OpenOptionsExt {
    /// Has no effect: the access list of the directory decides.
    fn mode(&mut self, mode: u32) -> &mut Self;
}

impl OpenOptionsExt for OpenOptions {
    fn mode(&mut self, _mode: u32) -> &mut OpenOptions {
        self
    }
}

/// Modes of new directories.
pub trait DirBuilderExt {
    /// Has no effect: the access list of the directory above decides.
    fn mode(&mut self, mode: u32) -> &mut Self;
}

impl DirBuilderExt for DirBuilder {
    fn mode(&mut self, _mode: u32) -> &mut DirBuilder {
        self
    }
}

/// Unix metadata of files.
pub trait MetadataExt {
    /// Mode, including the bits for the kind of file.
    fn mode(&self) -> u32;
    /// Zero: owners have no numeric IDs on Windows.
    fn uid(&self) -> u32;
    /// Zero: groups have no numeric IDs on Windows.
    fn gid(&self) -> u32;
    /// Time of modification in seconds since 1970.
    fn mtime(&self) -> i64;
    /// Nanoseconds of the time of modification.
    fn mtime_nsec(&self) -> i64;
}

/// Intervals of 100 ns between the years 1601 and 1970.
const SINCE_1601: i64 = 116_444_736_000_000_000;

/// Intervals of 100 ns in a second.
const SECOND: i64 = 10_000_000;

fn since_1970(found: &Metadata) -> i64 {
    i64::try_from(found.last_write_time()).unwrap_or_default() - SINCE_1601
}

impl MetadataExt for Metadata {
    fn mode(&self) -> u32 {
        let (kind, bits) = match self.file_type() {
            kind if kind.is_dir() => (0o040_000, 0o777),
            kind if kind.is_symlink() => (0o120_000, 0o777),
            _ => (0o100_000, 0o666),
        };
        // The read-only attribute of a directory does not prevent the creation of files in it.
        let read_only = self.permissions().readonly() && !self.is_dir();
        kind | if read_only { bits & 0o555 } else { bits }
    }

    fn uid(&self) -> u32 {
        0
    }

    fn gid(&self) -> u32 {
        0
    }

    fn mtime(&self) -> i64 {
        since_1970(self).div_euclid(SECOND)
    }

    fn mtime_nsec(&self) -> i64 {
        since_1970(self).rem_euclid(SECOND) * 100
    }
}

/// Kinds of files on Unix.
pub trait FileTypeExt {
    /// Returns false: devices are no directory entries.
    fn is_char_device(&self) -> bool;
    /// Returns false: devices are no directory entries.
    fn is_block_device(&self) -> bool;
}

impl FileTypeExt for FileType {
    fn is_char_device(&self) -> bool {
        false
    }

    fn is_block_device(&self) -> bool {
        false
    }
}

/// Reading at an offset.
pub trait FileExt {
    /// Reads bytes at an offset. The position of the file changes.
    ///
    /// # Errors
    /// The file cannot be read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills the buffer from an offset on.
    ///
    /// # Errors
    /// The file cannot be read, or ends before.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
}

impl FileExt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.seek_read(buffer, offset)
    }

    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.seek_read(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    buffer = buffer.get_mut(count..).unwrap_or_default();
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Returns the permissions for a new file with this mode; `None` on systems without modes.
#[must_use]
pub fn permissions(_mode: u32) -> Option<Permissions> {
    None
}

/// Makes the file at a path read-only if the mode has no write permission, otherwise writable. Directories are not changed.
///
/// # Errors
/// It cannot be changed.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let found = std::fs::metadata(path)?;
    match read_only(&found, mode) {
        Some(permissions) => std::fs::set_permissions(path, permissions),
        None => Ok(()),
    }
}

/// Makes an open file read-only if the mode has no write permission, otherwise writable.
///
/// # Errors
/// It cannot be changed.
pub fn set_mode_of(file: &File, mode: u32) -> io::Result<()> {
    match read_only(&file.metadata()?, mode) {
        Some(permissions) => file.set_permissions(permissions),
        None => Ok(()),
    }
}

/// Returns the permissions for a mode, if they differ from those of the file.
fn read_only(found: &Metadata, mode: u32) -> Option<Permissions> {
    let mut permissions = found.permissions();
    let wanted = mode & 0o200 == 0;
    if found.is_dir() || permissions.readonly() == wanted {
        return None;
    }
    permissions.set_readonly(wanted);
    Some(permissions)
}

/// Does nothing: a new file belongs to its creator.
///
/// # Errors
/// None.
pub fn take_owner(_file: &File, _other: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Returns true: files of this program are in directories to which other users cannot write, by the access list.
#[must_use]
pub fn is_own(_found: &Metadata) -> bool {
    true
}

/// Returns 0: access lists are not examined.
#[must_use]
pub fn rights_of_others(_found: &Metadata) -> u32 {
    0
}

/// Returns true if the file at a path can be run as a program, by its extension.
#[must_use]
pub fn is_program(path: &Path, found: &Metadata) -> bool {
    let extension = path.extension().unwrap_or_default();
    let runs = ["exe", "com", "bat", "cmd"];
    found.is_file() && runs.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// Opens a link itself instead of its target.
pub fn no_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
}

/// Opens a link itself instead of its target. Opening a directory entry never blocks.
pub fn no_follow_and_no_wait(options: &mut OpenOptions) -> &mut OpenOptions {
    no_follow(options)
}

/// Opens a directory. While it is open, other processes cannot remove it.
///
/// # Errors
/// It cannot be opened.
pub fn open_directory(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
        .share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE)
        .open(path)
}

/// Opens a directory for removal, which fails while another process has it open by [`open_directory`].
///
/// # Errors
/// It cannot be opened, or is in use.
pub fn open_for_removal(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .access_mode(DELETE)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
        .open(path)
}

/// Resolves the links of an existing path. The result has no prefix `\\?\`, which many programs reject, unless the path would have another
/// meaning without it.
///
/// # Errors
/// Nothing exists at the path, or it cannot be examined.
pub fn canonicalize(path: &Path) -> io::Result<std::path::PathBuf> {
    dunce::canonicalize(path)
}

/// Creates a symbolic link, which needs a privilege, or the developer mode.
///
/// # Errors
/// It cannot be created.
pub fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) -> io::Result<()> {
    // On Windows, the kind of a link depends on its target: a file or a directory.
    let (target, link) = (target.as_ref(), link.as_ref());
    let there = link.parent().unwrap_or(Path::new("")).join(target);
    match there.is_dir() {
        true => std::os::windows::fs::symlink_dir(target, link),
        false => std::os::windows::fs::symlink_file(target, link),
    }?;
    // Wine reports success but creates nothing.
    std::fs::symlink_metadata(link).map(drop)
}

/// Returns true if there is a program of the same name, which [`link_program`] may replace.
#[must_use]
pub fn is_program_link(path: &Path) -> bool {
    path.is_file()
}

/// Makes a program available under another path, which must not exist: by a hard link, since symbolic links require a
/// privilege, or else by a copy.
///
/// # Errors
/// It cannot be created.
pub fn link_program(target: &Path, path: &Path) -> io::Result<()> {
    std::fs::hard_link(target, path).or_else(|_| std::fs::copy(target, path).map(drop))
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
        let mut options = OpenOptions::new();
        // The file is opened for neither reading nor writing, so that this succeeds for a file in use; directories
        // require the flag.
        Identity::of(
            &options
                .access_mode(0)
                .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
                .open(path)?,
        )
    }

    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// It cannot be examined.
    pub fn of(file: &File) -> io::Result<Identity> {
        let mut found = BY_HANDLE_FILE_INFORMATION::default();
        // SAFETY: the handle is open, and the system fills in the facts.
        checked(unsafe { GetFileInformationByHandle(file.as_raw_handle(), &mut found) })?;
        Ok(Identity {
            device: found.dwVolumeSerialNumber.into(),
            number: u64::from(found.nFileIndexHigh) << 32 | u64::from(found.nFileIndexLow),
        })
    }
}

/// Returns true if the directory exists: only an attempt shows whether its access list allows new files.
#[must_use]
pub fn can_create_in(dir: &Path) -> bool {
    dir.is_dir()
}

/// Does nothing: Windows cannot sync directories, and journals their changes by itself.
///
/// # Errors
/// None.
pub fn sync_directory(_dir: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns the bytes of a name: UTF-8, but for halves of surrogate pairs.
#[must_use]
pub fn bytes_of(name: &OsStr) -> &[u8] {
    name.as_encoded_bytes()
}

/// Returns the name with these bytes. Bytes that are not UTF-8 become replacement characters.
#[must_use]
pub fn name_of(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Does nothing: space is not reserved on Windows, so a full disk is reported by the write.
///
/// # Errors
/// Never fails; the function has the signature of its Unix form.
pub fn reserve(_file: &File, _len: u64) -> io::Result<()> {
    Ok(())
}
