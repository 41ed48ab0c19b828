//! File locks that exclude both Terraform and other processes of this program.
//!
//! On every Unix, Terraform takes a POSIX record lock of the whole file (`fcntl(F_SETLK)`). Such a lock belongs to the process,
//! and vanishes when the process closes *any* descriptor of the file: to evaluate `file("terraform.tfstate")` would be enough.
//! So locks here belong to the open file, of a kind that excludes record locks, too:
//!
//! - Linux: a record lock of the open file description (`F_OFD_SETLK`). `flock` would not do, since Linux keeps record locks
//!   and `flock` apart.
//! - macOS and FreeBSD: `flock`. Their manuals of `fcntl(2)` say that both kinds are compatible: a request for one kind
//!   conflicts with a lock of the other. Record locks of open file descriptions do not exist there.

pub use own::{is_free, try_lock, unlock};

#[cfg(target_os = "linux")]
mod own {
    use std::fs::File;
    use std::io;

    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    use super::whole_file;

    /// Locks an open file; returns false if another process has locked it.
    ///
    /// # Errors
    /// The file system has no locks, or the file is not open for writing.
    pub fn try_lock(file: &File) -> io::Result<bool> {
        let whole = whole_file(libc::F_WRLCK);
        match fcntl(file, FcntlArg::F_OFD_SETLK(&whole)) {
            Ok(_) => Ok(true),
            // POSIX allows either error for a lock that is held.
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Releases the lock of an open file.
    pub fn unlock(file: &File) {
        // Closing the file would not be enough: a child that another thread starts shares the open file until it
        // executes its program, and would hold the lock until then.
        let whole = whole_file(libc::F_UNLCK);
        // If unlocking fails, the lock ends when the last such process closes the file.
        let _ = fcntl(file, FcntlArg::F_OFD_SETLK(&whole));
    }

    /// Returns true if no process holds the lock of an open file.
    ///
    /// # Errors
    /// The file system has no locks.
    pub fn is_free(file: &File) -> io::Result<bool> {
        let mut whole = whole_file(libc::F_WRLCK);
        fcntl(file, FcntlArg::F_OFD_GETLK(&mut whole))?;
        Ok(i32::from(whole.l_type) == libc::F_UNLCK)
    }
}

#[cfg(not(target_os = "linux"))]
mod own {
    use std::fs::{File, TryLockError};
    use std::io;

    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    use super::whole_file;

    /// Locks an open file; returns false if another process has locked it.
    ///
    /// # Errors
    /// The file system has no locks.
    pub fn try_lock(file: &File) -> io::Result<bool> {
        match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Releases the lock of an open file.
    pub fn unlock(file: &File) {
        // Closing the file would not be enough: a child that another thread starts shares the open file until it
        // executes its program. If unlocking fails, the lock ends when the last such process closes the file.
        let _ = file.unlock();
    }

    /// Returns true if no process holds the lock of an open file.
    ///
    /// # Errors
    /// The file system has no locks.
    pub fn is_free(file: &File) -> io::Result<bool> {
        // Tests for a record lock: unlike an attempt to lock, this takes no lock that could make another process fail.
        let mut whole = whole_file(libc::F_WRLCK.into());
        fcntl(file, FcntlArg::F_GETLK(&mut whole))?;
        Ok(whole.l_type == libc::F_UNLCK)
    }
}

/// Marks a temporary file or directory as being in use, as long as it is open. Returns false if another process has marked it,
/// or if the file system has no locks.
pub fn try_mark(file: &std::fs::File) -> bool {
    file.try_lock().is_ok()
}

/// Describes a record lock of this type (`F_WRLCK`, `F_UNLCK`) on a file from its beginning to its end.
fn whole_file(lock_type: nix::libc::c_int) -> nix::libc::flock {
    nix::libc::flock {
        l_type: lock_type as nix::libc::c_short,
        l_whence: nix::libc::SEEK_SET as nix::libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
        #[cfg(target_os = "freebsd")]
        l_sysid: 0,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    #[test]
    fn lock_is_held_against_another_opening_of_the_file_until_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let open = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            options.open(dir.path().join("file")).unwrap()
        };
        let (one, other) = (open(), open());
        assert!(is_free(&other).unwrap());
        assert!(try_lock(&one).unwrap());
        assert!(!try_lock(&other).unwrap() && !is_free(&other).unwrap());
        // A record lock would have been released by now.
        drop(open());
        assert!(!is_free(&other).unwrap());
        unlock(&one);
        assert!(is_free(&other).unwrap() && try_lock(&other).unwrap());
    }
}
