//! Locks of state files that both Terraform and this program respect.
//!
//! The lock is an exclusive record lock on the state file itself, so it ends with the process that holds it, even after a crash. A file
//! beside it, `.NAME.lock.info`, tells others the holder and its operation. Without the lock, that file has no meaning.
//!
//! Terraform's record locks belong to the process, and end when the process closes *any* descriptor of the file: evaluating
//! `file("terraform.tfstate")` is enough. The locks of this program belong to the open file ([`system::locks`]). They exclude Terraform's
//! locks and a second lock in this process, but are not lost in that way.
//!
//! A program that waits for a lock may have opened the file long before it gets the lock, and Terraform continues to use
//! that open file. So the file of a locked state must stay the same file: [`crate::store`] writes it in place and does not
//! rename another over it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use locks::LockInfo;
use system::files::{Identity, OpenOptionsExt as _};
use system::locks::{is_free, try_lock, unlock};

use crate::StateError;
use crate::beside::is_of_others;
use crate::held::LockHeld;

/// A lock that is held. Dropping it releases it; [`FileLock::release`] also returns errors.
#[derive(Debug)]
pub struct FileLock {
    file: Option<File>,
    path: PathBuf,
    info: LockInfo,
    created: bool,
}

impl FileLock {
    /// Locks a state file, which is created if there is none. If another process holds the lock, the attempt is repeated until `timeout`
    /// has passed, at intervals that grow from 125 milliseconds to a second. Meanwhile `cancelled` is called ten times a second, and the
    /// attempts end if it returns true.
    pub fn acquire(
        path: &Path,
        info: &LockInfo,
        timeout: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<FileLock, StateError> {
        let begin = Instant::now();
        let mut delay = Duration::from_millis(125);
        loop {
            if let Some((file, created)) = attempt(path, &Identity::of)? {
                let info = LockInfo {
                    path: path.display().to_string(),
                    ..info.clone()
                };
                let lock = FileLock {
                    file: Some(file),
                    path: path.to_owned(),
                    info,
                    created,
                };
                lock.write_info()?;
                return Ok(lock);
            }
            let waited = begin.elapsed();
            let left = timeout.saturating_sub(waited);
            if left.is_zero() || !sleep(delay.min(left), cancelled) {
                return Err(StateError::Locked(Box::new(LockHeld {
                    path: path.to_owned(),
                    info: read_info(path),
                    waited,
                })));
            }
            delay = (delay * 2).min(Duration::from_secs(1));
        }
    }

    /// Returns the record of this lock.
    #[must_use]
    pub fn info(&self) -> &LockInfo {
        &self.info
    }

    /// Releases the lock. A state file that was created for it and is still empty is removed.
    pub fn release(mut self) -> Result<(), StateError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), StateError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        // All files are removed while the lock is held, because the next holder creates files of the same names. The information file is
        // removed last, right before the unlock, because a Terraform that waits gives up if it finds the lock without that file.
        let mut result = Ok(());
        if self.created
            && file.metadata().is_ok_and(|m| m.len() == 0)
            && Identity::of(&file).is_ok_and(|own| is_at(own, &self.path))
            && let Err(e) = fs::remove_file(&self.path)
        {
            result = Err(StateError::io("cannot remove", &self.path, e));
        }
        let info = info_path(&self.path);
        // A directory or device with that name existed before, and has made the locking fail. It must not be removed.
        let removed = match fs::metadata(&info) {
            Ok(found) if !found.is_file() => Ok(()),
            _ => fs::remove_file(&info),
        };
        unlock(&file);
        match removed {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(StateError::io("cannot remove", info, e)),
            _ => result,
        }
    }

    fn write_info(&self) -> Result<(), StateError> {
        let path = info_path(&self.path);
        if fs::symlink_metadata(&path).is_ok_and(|found| !found.is_file() && !found.is_symlink()) {
            let why = io::Error::other("it is not a regular file; remove it, and run the command again");
            return Err(StateError::io("cannot write the lock information to", path, why));
        }
        crate::beside::replace_passing_file(&path, self.info.to_json().as_bytes())
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!("{error}");
        }
    }
}

/// Sleeps. Returns false if `cancelled` returned true meanwhile.
fn sleep(time: Duration, cancelled: &dyn Fn() -> bool) -> bool {
    let end = Instant::now() + time;
    loop {
        if cancelled() {
            return false;
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        // The sleep is split into short steps, so that an interrupt takes effect soon.
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}

/// Maximum number of attempts to open a file that is replaced again and again between opening and locking.
const REOPENED: usize = 100;

/// Makes one attempt. Returns the locked file, and true if it was created; `None` if another process holds the lock. A file that is
/// replaced again and again counts as locked, so that the caller's timeout and cancellation apply.
fn attempt(path: &Path, identify: &dyn Fn(&File) -> io::Result<Identity>) -> Result<Option<(File, bool)>, StateError> {
    for _ in 0..REOPENED {
        let created = !path.exists();
        if created && let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(|e| StateError::io("cannot create the directory", dir, e))?;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(|e| StateError::io("cannot open", path, e))?;
        if !try_lock(&file).map_err(|e| StateError::io("cannot lock", path, e))? {
            return Ok(None);
        }
        // The previous holder may have removed the file after it was opened here and before it was locked. An NFS
        // server reports that as ESTALE; any other error would recur.
        let same = identify(&file).and_then(|found| Ok(found == Identity::at(path)?));
        match same {
            Ok(true) => return Ok(Some((file, created))),
            Ok(false) => {}
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle
                ) => {}
            Err(e) => return Err(StateError::io("cannot read", path, e)),
        }
    }
    Ok(None)
}

fn is_at(own: Identity, path: &Path) -> bool {
    Identity::at(path).is_ok_and(|there| own == there)
}

/// Returns the path of the lock information: `.NAME.lock.info`.
fn info_path(path: &Path) -> PathBuf {
    crate::beside::beside(path, ".", ".lock.info")
}

/// Reads the information about the holder; `None` if it is missing or malformed.
#[must_use]
pub fn read_info(path: &Path) -> Option<LockInfo> {
    let path = info_path(path);
    // Reading a pipe could block forever. The symlink of another user could make this program show a file that the other user must not
    // read.
    let foreign = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink() && is_of_others(&found));
    if foreign || !fs::metadata(&path).ok()?.is_file() {
        return None;
    }
    LockInfo::from_json(&fs::read(path).ok()?)
}

/// Removes the lock information with this ID that a dead program has left. The lock of a running program cannot be broken: the system does
/// not allow that, and the program would continue to write.
pub fn force_unlock(path: &Path, id: &str) -> Result<LockInfo, StateError> {
    let refuse = |message: String| Err(StateError::Unlock(message));
    let Some(info) = read_info(path) else {
        return refuse(format!("The state file {} is not locked.", path.display()));
    };
    if info.id != id {
        return refuse(format!(
            "The lock of the state file {} has another ID than \"{id}\".\n{}",
            path.display(),
            info.details()
        ));
    }
    let held = match File::options().read(true).write(true).open(path) {
        Ok(file) => !is_free(&file).map_err(|e| StateError::io("cannot read the lock of", path, e))?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        Err(e) => return Err(StateError::io("cannot open", path, e)),
    };
    if held {
        return refuse(format!(
            "The program that holds the lock of the state file {} is still running. The lock of a local file ends with \
             that program: wait for it, or end it.\n{}",
            path.display(),
            info.details()
        ));
    }
    let beside = info_path(path);
    fs::remove_file(&beside).map_err(|e| StateError::io("cannot remove", beside, e))?;
    Ok(info)
}

#[cfg(test)]
mod tests {
    use nix::libc;

    use super::*;

    fn lock(path: &Path, timeout: u64) -> Result<FileLock, StateError> {
        FileLock::acquire(
            path,
            &LockInfo::new("OperationTypeTest", "1.11.4"),
            Duration::from_millis(timeout),
            &|| false,
        )
    }

    #[test]
    fn lock_has_one_holder_and_leaves_no_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/s.tfstate");
        let held = lock(&path, 0).unwrap();
        let StateError::Locked(refusal) = lock(&path, 0).unwrap_err() else {
            panic!()
        };
        assert_eq!(refusal.info.as_ref(), Some(held.info()));
        assert_eq!(held.info().path, path.display().to_string());
        let text = refusal.to_string();
        assert!(
            text.contains(&format!("force-unlock {}", held.info().id)) && text.contains("OperationTypeTest"),
            "{text}"
        );
        held.release().unwrap();
        assert_eq!(fs::read_dir(dir.path().join("sub")).unwrap().count(), 0);
    }

    #[test]
    fn a_state_that_was_written_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.tfstate");
        let held = lock(&path, 0).unwrap();
        fs::write(&path, "x").unwrap();
        // Reading and closing the file elsewhere in the program does not release the lock.
        drop(fs::read(&path).unwrap());
        assert!(lock(&path, 0).is_err());
        drop(held);
        assert_eq!(fs::read(&path).unwrap(), b"x");
        assert!(!dir.path().join(".s.tfstate.lock.info").exists());
    }

    #[test]
    fn a_released_lock_is_free_even_if_another_process_has_the_open_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.tfstate");
        let held = lock(&path, 0).unwrap();
        // A child process inherits this descriptor until it executes its program.
        let inherited = held.file.as_ref().unwrap().try_clone().unwrap();
        fs::write(&path, "x").unwrap();
        held.release().unwrap();
        lock(&path, 0).unwrap().release().unwrap();
        drop(inherited);
    }

    #[test]
    fn waiting_ends_on_lock_timeout_or_cancellation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.tfstate");
        let held = lock(&path, 0).unwrap();
        let waiting = std::thread::spawn({
            let path = path.clone();
            move || lock(&path, 5000).map(|l| l.release())
        });
        assert!(lock(&path, 150).is_err());
        let info = LockInfo::new("x", "1");
        assert!(FileLock::acquire(&path, &info, Duration::from_secs(60), &|| true).is_err());
        held.release().unwrap();
        waiting.join().unwrap().unwrap().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn errors_of_the_file_system_do_not_make_locking_endless() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.tfstate");
        let failing = |code: i32| move |_: &File| Err(io::Error::from_raw_os_error(code));
        let error = attempt(&path, &failing(libc::EIO)).unwrap_err().to_string();
        assert!(error.contains("cannot read") && error.contains("s.tfstate"), "{error}");
        // A file that a server has replaced is opened again, but only a limited number of times.
        let count = std::cell::Cell::new(0);
        let stale = |_: &File| {
            count.set(count.get() + 1);
            Err(io::Error::from_raw_os_error(libc::ESTALE))
        };
        assert!(attempt(&path, &stale).unwrap().is_none());
        assert_eq!(count.get(), REOPENED);
        lock(&path, 0).unwrap().release().unwrap();
    }

    #[test]
    fn force_unlock_removes_leftover_locks_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.tfstate");
        let refusal = |id: &str| force_unlock(&path, id).unwrap_err().to_string();
        assert!(refusal("a").contains("is not locked"));
        let held = lock(&path, 0).unwrap();
        let id = held.info().id.clone();
        assert!(refusal("a").contains("has another ID"));
        assert!(refusal(&id).contains("still running"));
        let info = fs::read(dir.path().join(".s.tfstate.lock.info")).unwrap();
        drop(held);
        fs::write(dir.path().join(".s.tfstate.lock.info"), info).unwrap();
        assert_eq!(force_unlock(&path, &id).unwrap().id, id);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
