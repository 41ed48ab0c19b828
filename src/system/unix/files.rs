//! Files.

use std::fs::File;
use std::io;

/// Reserves space for the first `len` bytes of a file, where the file system can. The file's length stays.
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

/// Reserves nothing: macOS and FreeBSD cannot without a change of the file's length.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn reserve(_file: &File, _len: u64) -> io::Result<()> {
    Ok(())
}
