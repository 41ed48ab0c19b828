//! File locks that exclude both Terraform and other processes of this program.
//!
//! Terraform locks the bytes from 0 to 2⁶⁴ − 2³² (`LockFileEx`). Locks of Windows are mandatory: locked bytes can be read
//! and written through the handle with the lock only, not through another handle of the same program. So locks here are of
//! one byte far behind the end of any file. It is one of Terraform's bytes, so each of both locks excludes the other, and
//! the content stays readable: for this program, which opens the file again to write it, and for commands that need no lock.

use std::fs::File;
use std::io;
use std::os::windows::io::AsRawHandle as _;

use windows_sys::Win32::Foundation::ERROR_LOCK_VIOLATION;
use windows_sys::Win32::Storage::FileSystem::{
    LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

use super::checked;

/// The locked byte. Below 2⁶³, because file servers treat larger offsets as negative.
const BYTE: u64 = 1 << 62;

fn place() -> OVERLAPPED {
    let mut place = OVERLAPPED::default();
    place.Anonymous.Anonymous.Offset = BYTE as u32;
    place.Anonymous.Anonymous.OffsetHigh = (BYTE >> 32) as u32;
    place
}

/// Locks an open file; returns false if another process has locked it.
///
/// # Errors
/// The file system has no locks.
pub fn try_lock(file: &File) -> io::Result<bool> {
    let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    // SAFETY: the handle is open, and the `OVERLAPPED` value lives until the call returns, which it does at once.
    let locked = checked(unsafe { LockFileEx(file.as_raw_handle(), flags, 0, 1, 0, &mut place()) });
    match locked {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == i32::try_from(ERROR_LOCK_VIOLATION).ok() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Releases the lock of an open file.
pub fn unlock(file: &File) {
    // SAFETY: as for the lock. A failure means that there was no lock; it would also end with the last handle.
    unsafe { UnlockFileEx(file.as_raw_handle(), 0, 1, 0, &mut place()) };
}

/// Returns true if no process holds the lock of an open file.
///
/// # Errors
/// The file system has no locks.
pub fn is_free(file: &File) -> io::Result<bool> {
    // Windows cannot test a lock, so the lock is taken for an instant.
    let free = try_lock(file)?;
    if free {
        unlock(file);
    }
    Ok(free)
}

/// Marks a temporary file as being in use, as long as it is open. Returns false if another process has marked it.
pub fn try_mark(file: &File) -> bool {
    // A directory has no bytes to lock, but its open handle keeps it from being removed (see `open_directory`).
    let is_directory = file.metadata().is_ok_and(|found| found.is_dir());
    is_directory || try_lock(file).unwrap_or_default()
}
