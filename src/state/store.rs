//! A state in a local file.
//!
//! A write must leave, at every moment, a complete snapshot that the next command finds: before it the old one, after it
//! the new one. Usually that is done by renaming a new file over the old. But the lock of a state is a lock on its file
//! (see [`crate::lock`]), and a Terraform that waits for it has opened that file already: it would go on to read and write
//! the old one, which has no name any more. So a write has two steps:
//! 1. The snapshot goes to `.NAME.pending` beside the state: under a temporary name first, renamed when it is safely on
//!    the disk. If this fails, nothing has happened.
//! 2. The state file is emptied, written in place and brought to the disk; then the pending file is removed. Space is
//!    reserved beforehand where the file system can do that.
//!
//! If the second step is cut short, the pending file is still there and complete, and whoever reads the state next takes
//! it instead of a state file that is older or not readable; with the lock held, the step is also made up for. A state
//! file that is readable and newer was written by another program since, and counts. Links, owner and mode of the state
//! file stay as they are, since it stays the same file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::document::{decode, encode};
use crate::lock::{FileLock, LockInfo};
use crate::{FormatError, State, StateError, io_reason};

/// A state in a local file, together with its backup and its lock.
#[derive(Debug)]
pub struct LocalStore {
    read_path: PathBuf,
    path: PathBuf,
    backup: Option<PathBuf>,
    lock: Option<FileLock>,
    /// What was read or written last; `None` before the first reading, and `Some(None)` if there was no state.
    known: Option<Option<State>>,
    backed_up: bool,
    /// Whether what is known comes from a pending file, and the state file itself may not be readable.
    pending: bool,
    recovered: bool,
}

/// What came of writing a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// The file says the same already, and was left alone.
    Unchanged,
    /// A snapshot with this number was written.
    Snapshot(u64),
}

impl LocalStore {
    /// The state in the file at `path`, with the backup beside it in `NAME.backup`.
    pub fn new(path: impl Into<PathBuf>) -> LocalStore {
        let path = path.into();
        LocalStore {
            read_path: path.clone(),
            backup: Some(beside(&path, "", ".backup")),
            path,
            lock: None,
            known: None,
            backed_up: false,
            pending: false,
            recovered: false,
        }
    }

    /// This store, writing to another file than it first reads (`-state-out`). The backup goes beside that one.
    #[must_use]
    pub fn writing_to(self, path: impl Into<PathBuf>) -> LocalStore {
        let path = path.into();
        LocalStore {
            backup: Some(beside(&path, "", ".backup")),
            path,
            ..self
        }
    }

    /// This store with its backup elsewhere, or with none.
    #[must_use]
    pub fn with_backup(self, backup: Option<PathBuf>) -> LocalStore {
        LocalStore { backup, ..self }
    }

    /// The file that is written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Locks the state; see [`FileLock::acquire`]. What was read before is forgotten, since others may have changed it.
    pub fn lock(&mut self, info: &LockInfo, timeout: Duration, cancelled: &dyn Fn() -> bool) -> Result<(), StateError> {
        if self.lock.is_none() {
            self.lock = Some(FileLock::acquire(&self.path, info, timeout, cancelled)?);
            self.known = None;
        }
        Ok(())
    }

    /// Releases the lock, if it is held.
    pub fn unlock(&mut self) -> Result<(), StateError> {
        self.lock.take().map_or(Ok(()), FileLock::release)
    }

    /// Whether a write that was cut short has been made up for.
    #[must_use]
    pub fn recovered(&self) -> bool {
        self.recovered
    }

    /// Reads the file; `None` if there is no state yet.
    pub fn read(&mut self) -> Result<Option<State>, StateError> {
        let locked = self.lock.is_some() && self.read_path == self.path;
        let found = read_file(&self.read_path, locked)?;
        self.pending = found.pending && !locked;
        if found.pending && locked {
            tracing::warn!("a write of {} was cut short; it is completed now", self.path.display());
            write_in_place(&self.path, &found.text)?;
            self.recovered = true;
        } else if locked {
            // One that does not count must not come back to life when somebody restores an older state.
            remove_pending(&pending_path(&self.path));
        }
        self.known = Some(found.state.clone());
        Ok(found.state)
    }

    /// Writes a state as the next snapshot, if it says anything new: numbers it, gives it a lineage if it has none yet,
    /// and names the version of the writer in it. Before the first write, the previous state goes to the backup file.
    pub fn write(&mut self, state: &State, terraform_version: &str) -> Result<Written, StateError> {
        if self.known.is_none() {
            self.read()?;
        }
        let known = self.known.as_ref().and_then(Option::as_ref);
        let same = known.is_some_and(|known| known.same_content(state));
        if same && self.read_path == self.path {
            return Ok(Written::Unchanged);
        }
        let (serial, lineage) = known.map_or((0, ""), |known| (known.serial, &*known.lineage));
        let snapshot = State {
            terraform_version: terraform_version.to_owned(),
            serial: if same { serial } else { serial.saturating_add(1) },
            lineage: if lineage.is_empty() {
                uuid::Uuid::new_v4().to_string()
            } else {
                lineage.to_owned()
            },
            ..state.clone()
        };
        self.write_snapshot(snapshot)
    }

    /// Writes a snapshot with the number, lineage and version that it has: one that comes from elsewhere.
    pub fn write_snapshot(&mut self, snapshot: State) -> Result<Written, StateError> {
        if self.known.is_none() {
            self.read()?;
        }
        let text = encode(&snapshot)?;
        self.back_up(&snapshot)?;
        write_in_place(&self.path, &text)?;
        let serial = snapshot.serial;
        // From now on the state is where it was written, and that is what the next snapshot is compared with.
        self.known = Some(Some(snapshot));
        self.read_path.clone_from(&self.path);
        self.pending = false;
        Ok(Written::Snapshot(serial))
    }

    /// Saves what was there before the first write that changes it; there is nothing to save if this run began it.
    fn back_up(&mut self, snapshot: &State) -> Result<(), StateError> {
        let Some(backup) = self.backup.clone().filter(|_| !self.backed_up) else {
            return Ok(());
        };
        if self.read_path != self.path {
            // What is lost is in the file that is written, not in the one that was read.
            let found = read_file(&self.path, self.lock.is_some())?;
            if found.state.is_some_and(|previous| !previous.same_content(snapshot)) {
                replace_file(&backup, &found.text)?;
            }
            self.backed_up = true;
            return Ok(());
        }
        let Some(previous) = self.known.as_ref().and_then(Option::as_ref) else {
            self.backed_up = true;
            return Ok(());
        };
        if !previous.same_content(snapshot) {
            let text = match self.pending {
                true => encode(previous)?,
                false => fs::read(&self.read_path).map_err(|e| StateError::io("cannot read", &self.read_path, e))?,
            };
            replace_file(&backup, &text)?;
            self.backed_up = true;
        }
        Ok(())
    }
}

/// Writes a state to a file of its own, as it is: a copy to keep when a state cannot go where it belongs.
pub fn write_copy(path: &Path, state: &State) -> Result<(), StateError> {
    replace_file(path, &encode(state)?)
}

/// Reads the state in a file that is not locked; `None` if there is no state.
pub fn read_copy(path: &Path) -> Result<Option<State>, StateError> {
    Ok(read_file(path, false)?.state)
}

struct Found {
    state: Option<State>,
    text: Vec<u8>,
    /// Whether this comes from the pending file.
    pending: bool,
}

fn read_file(path: &Path, locked: bool) -> Result<Found, StateError> {
    // Without the lock, the file may be written while it is read; with it, the first look is good.
    let mut attempts = if locked { 1 } else { 20 };
    loop {
        attempts -= 1;
        let before = version_of(path);
        let text = read_if_there(path)?;
        let state = text.as_deref().map_or(Ok(None), decode);
        // Looked at after the state file: what is pending there is at least as new.
        let pending = pending_instead(path, text.as_deref(), &state)?;
        if attempts > 0 && version_of(path) != before {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        return match pending {
            Some((text, state)) => Ok(Found {
                state: Some(state),
                text,
                pending: true,
            }),
            None => {
                let state = state.map_err(|source| unreadable(path, source))?;
                Ok(Found {
                    state,
                    text: text.unwrap_or_default(),
                    pending: false,
                })
            }
        };
    }
}

/// What changes when a file is written.
fn version_of(path: &Path) -> Option<(u64, u64, SystemTime)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.ino(), metadata.len(), metadata.modified().ok()?))
}

fn unreadable(path: &Path, source: FormatError) -> StateError {
    let backup = Some(beside(path, "", ".backup")).filter(|b| b.exists());
    StateError::File {
        path: path.to_owned(),
        backup,
        source,
    }
}

/// The pending snapshot, if it is to be taken instead of the state file.
fn pending_instead(
    path: &Path,
    text: Option<&[u8]>,
    state: &Result<Option<State>, FormatError>,
) -> Result<Option<(Vec<u8>, State)>, StateError> {
    let pending = pending_path(path);
    let Some(pending_text) = read_if_there(&pending)? else {
        return Ok(None);
    };
    if Some(&*pending_text) == text {
        return Ok(None);
    }
    // The beginning of what is pending is a write cut short, even if only the line break at the end is missing. Anything
    // else that is readable and newer was written by another program.
    let cut_short = text.is_some_and(|text| pending_text.starts_with(text));
    if !cut_short && matches!(state, Ok(Some(_))) && modified(path) > modified(&pending) {
        return Ok(None);
    }
    match decode(&pending_text) {
        Ok(Some(pending)) => Ok(Some((pending_text, pending))),
        _ => Ok(None),
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|m| m.modified()).ok()
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StateError> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(StateError::io("cannot read", path, e)),
    }
}

/// The path of the file with the name of this one between a prefix and a suffix.
pub(crate) fn beside(path: &Path, prefix: &str, suffix: &str) -> PathBuf {
    let mut name = std::ffi::OsString::from(prefix);
    name.push(path.file_name().unwrap_or_default());
    name.push(suffix);
    path.with_file_name(name)
}

fn pending_path(path: &Path) -> PathBuf {
    beside(path, ".", ".pending")
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// Writes a state file in the two steps that the head of this file describes.
fn write_in_place(path: &Path, text: &[u8]) -> Result<(), StateError> {
    let dir = directory(path);
    fs::create_dir_all(dir).map_err(|e| StateError::io("cannot create the directory", dir, e))?;
    let pending = pending_path(path);
    replace_file(&pending, text)?;
    let file = match OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
    {
        Ok(file) => file,
        Err(e) => return Err(withdraw(&pending, StateError::io("cannot write", path, e))),
    };
    if let Err(e) = reserve(&file, text.len() as u64) {
        return Err(withdraw(&pending, StateError::io("cannot write", path, e)));
    }
    let write = || {
        // Emptied first: the beginning of a new snapshot before the end of an old one might pass for a state, but the
        // beginning alone never does.
        file.set_len(0)?;
        (&file).write_all(text)?;
        file.sync_all()
    };
    // From here on the pending file is needed until the state is whole again.
    write().map_err(|e| {
        let note = format!(
            "{} (the new snapshot is complete in {}, and will be used from there)",
            io_reason(&e),
            pending.display()
        );
        StateError::io("cannot write", path, io::Error::new(e.kind(), note))
    })?;
    remove_pending(&pending);
    sync_directory(dir);
    Ok(())
}

/// Takes the pending file back, since the state file is untouched.
fn withdraw(pending: &Path, error: StateError) -> StateError {
    remove_pending(pending);
    error
}

fn remove_pending(pending: &Path) {
    match fs::remove_file(pending) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => tracing::warn!("cannot remove {}: {e}", pending.display()),
        _ => {}
    }
}

/// Makes sure that there is room for this many bytes in a file, where the file system can tell.
fn reserve(file: &File, len: u64) -> io::Result<()> {
    use rustix::io::Errno;
    if file.metadata()?.len() >= len {
        return Ok(());
    }
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, len) {
        Err(e @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(e.into()),
        _ => Ok(()),
    }
}

/// Puts a complete new file in the place of another, or of none. An existing one keeps its mode, its owner as far as
/// that is allowed, and its place if it was reached by a link; a new one can be read by its owner only.
///
/// # Errors
/// The file cannot be written. What was there stays.
pub fn replace_file(path: &Path, text: &[u8]) -> Result<(), StateError> {
    let dir = replace(path, text, true)?;
    sync_directory(&dir);
    Ok(())
}

/// Does the same for a file that nobody misses after a crash of the machine, without waiting for the disk.
pub(crate) fn replace_passing_file(path: &Path, text: &[u8]) -> Result<(), StateError> {
    replace(path, text, false).map(drop)
}

fn replace(path: &Path, text: &[u8], durable: bool) -> Result<PathBuf, StateError> {
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let dir = directory(&place);
    let failed = |e: io::Error| StateError::io("cannot write", path, e);
    fs::create_dir_all(dir).map_err(|e| StateError::io("cannot create the directory", dir, e))?;
    let mut file = tempfile::Builder::new()
        .prefix(".")
        .suffix(".tmp")
        .tempfile_in(dir)
        .map_err(failed)?;
    if let Ok(old) = fs::metadata(&place) {
        let new = file.as_file().metadata().map_err(failed)?;
        if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
            // Only root may give files away; for others the new owner is who writes.
            let _ = std::os::unix::fs::fchown(file.as_file(), Some(old.uid()), Some(old.gid()));
        }
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))
            .map_err(failed)?;
    }
    file.write_all(text).map_err(failed)?;
    if durable {
        file.as_file().sync_all().map_err(failed)?;
    }
    file.persist(&place).map_err(|e| failed(e.error))?;
    Ok(dir.to_owned())
}

/// Brings the names in a directory to the disk. Not every file system can; none loses more than the last moment.
fn sync_directory(dir: &Path) {
    if let Err(e) = File::open(dir).and_then(|dir| dir.sync_all()) {
        tracing::debug!("cannot sync {}: {e}", dir.display());
    }
}
