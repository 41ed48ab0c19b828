//! A state in a local file.
//!
//! A write must leave, at every instant, a complete snapshot that the next command finds: before it the old one, after it
//! the new one. Usually that is done by renaming a new file over the old. But the lock of a state is a lock on its file
//! (see [`crate::lock`]), and a Terraform that waits for it has opened that file already: it would go on to read and
//! write the old one, which has no name any more. So a write has two steps:
//! 1. The snapshot goes to `.NAME.pending` beside the state: under a temporary name first, renamed when it is safely on
//!    the disk. If this fails, nothing has happened.
//! 2. The state file is emptied, written in place and brought to the disk; then the pending file is removed. Space is
//!    reserved beforehand where the file system can do that.
//!
//! If the second step is cut short, the pending file is still there and complete; the next reader of the state decides by
//! lineage and serial which of the two counts (see [`crate::pending`]). With the lock held, the step is also made up for.
//! Links, owner and mode of the state file stay as they are, since it stays the same file.
//!
//! A state may also be a pipe or a device (`-state-out=/dev/stdout`). Such a one is neither locked nor read back, and
//! gets each snapshot as it is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use files::is_replaceable;

use crate::beside::{beside, directory, replace_file};
use crate::document::{decode, encode};
use crate::journal::replay::Verdict as JournalVerdict;
use crate::journal::{self, Base, JournalReport, Writer, recovery as journal_recovery};
use crate::lock::{FileLock, LockInfo};
use crate::pending::{self, Recovery, RecoveryAction, Verdict, stamped_backup};
use crate::{FormatError, SnapshotStore, State, StateError};
use files::io_reason;

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
    /// Whether what is known has results from a journal that the state file does not have.
    replayed: bool,
    recovery: Option<Recovery>,
    /// The journal of the run that has this store open.
    journal: Option<Writer>,
    /// What the journal of an earlier run meant, until it is told.
    left: Option<JournalReport>,
}

/// What came of writing a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// The file has the same contents already, and was not written.
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
            replayed: false,
            recovery: None,
            journal: None,
            left: None,
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
    /// A pipe or a device cannot be locked, and need not be.
    pub fn lock(&mut self, info: &LockInfo, timeout: Duration, cancelled: &dyn Fn() -> bool) -> Result<(), StateError> {
        if self.lock.is_none() && is_replaceable(&self.path) {
            self.lock = Some(FileLock::acquire(&self.path, info, timeout, cancelled)?);
            self.known = None;
        }
        Ok(())
    }

    /// Releases the lock, if it is held.
    pub fn unlock(&mut self) -> Result<(), StateError> {
        self.lock.take().map_or(Ok(()), FileLock::release)
    }

    /// Whether the state is written to a pipe or a device, which gets every snapshot that is written.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        !is_replaceable(&self.path)
    }

    /// What was done about a write that was cut short, since the last call.
    pub fn take_recovery(&mut self) -> Option<Recovery> {
        self.recovery.take()
    }

    /// Reads the file; `None` if there is no state yet. What the journal of an earlier run has is in the state that is read
    /// and, with the lock, also in the file. Call [`LocalStore::forget_journal`] when it has been told.
    pub fn read(&mut self) -> Result<Option<State>, StateError> {
        let locked = self.lock.is_some() && self.read_path == self.path;
        let mut attempts = if locked || !is_replaceable(&self.read_path) {
            1
        } else {
            20
        };
        loop {
            attempts -= 1;
            let before = version_of(&self.read_path);
            let state = self.read_snapshot(locked)?;
            let journal = match is_replaceable(&self.read_path) && self.journal.is_none() {
                true => journal_recovery::find(&self.read_path)?,
                false => None,
            };
            // Without the lock, a run may have written the state between the two.
            if attempts > 0 && version_of(&self.read_path) != before && !locked {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            self.known = Some(state);
            if let Some(journal) = journal {
                self.replay(&journal, locked)?;
            }
            return Ok(self.known.clone().flatten());
        }
    }

    /// Reads the state file and what is pending beside it.
    fn read_snapshot(&mut self, locked: bool) -> Result<Option<State>, StateError> {
        let found = read_file(&self.read_path, locked)?;
        self.pending = false;
        match &found.pending {
            None => {}
            Some(pending) if locked => self.settle(pending, &found)?,
            Some(Verdict::Completes(snapshot) | Verdict::Replaces(snapshot)) => {
                // Another process may be writing now, so there is nothing to report.
                tracing::info!("the snapshot with serial {} is pending, and used", snapshot.serial);
                self.pending = true;
            }
            Some(Verdict::Same | Verdict::Unused(_)) => {}
        }
        Ok(found.into_state())
    }

    /// Takes what the journal of an earlier run has into the state.
    fn replay(&mut self, found: &journal_recovery::Found, locked: bool) -> Result<(), StateError> {
        if found.alive && locked {
            tracing::warn!(
                "the journal {} belongs to a program that is running without the lock",
                journal::path_of(&self.path).display()
            );
            return Ok(());
        }
        let known = self.known.as_ref().and_then(Option::as_ref);
        let verdict = found.contents.judge(known)?;
        let mut report = JournalReport::new(&self.read_path, &found.contents, &verdict, locked);
        match verdict {
            JournalVerdict::Continues { state, replayed } if !replayed.is_empty() => {
                if locked {
                    let version = found.contents.opened.as_ref().map(|o| o.terraform_version.clone());
                    self.write(&state, &version.unwrap_or_default())?;
                } else {
                    // What is written next must differ from the file, not from this.
                    self.replayed = true;
                    self.known = Some(Some(state));
                }
            }
            JournalVerdict::Foreign { .. } if locked => report.kept = Some(journal_recovery::set_aside(&self.path)?),
            _ => {}
        }
        if locked && report.kept.is_none() && !report.damage.is_empty() {
            report.kept = Some(journal_recovery::set_aside(&self.path)?);
        }
        tracing::info!("{report}");
        // A running program is about to tell its results itself.
        self.left = Some(report).filter(|_| !found.alive);
        Ok(())
    }

    /// What the journal of an earlier run meant, if there was one.
    #[must_use]
    pub fn journal_report(&self) -> Option<&JournalReport> {
        self.left.as_ref()
    }

    /// Removes the journal of an earlier run, once its contents are in the state file and have been told. Without the lock it
    /// stays.
    pub fn forget_journal(&mut self) -> Result<(), StateError> {
        match self.left.take() {
            Some(report) if self.lock.is_some() && report.kept.is_none() => journal_recovery::forget(&self.path),
            _ => Ok(()),
        }
    }

    /// Begins the journal of a run that changes what exists. A pipe or a device has none, as nobody would find it.
    pub fn begin_journal(&mut self, operation: &str, terraform_version: &str) -> Result<Option<Writer>, StateError> {
        if !is_replaceable(&self.path) {
            return Ok(None);
        }
        if self.known.is_none() {
            self.read()?;
        }
        if self.read_path != self.path
            && let Some(Some(known)) = self.known.clone()
        {
            // The journal continues the state that it is beside.
            self.write_snapshot(known)?;
        }
        let base = Base::of(self.known.as_ref().and_then(Option::as_ref))?;
        let journal = Writer::create(&journal::path_of(&self.path), base, operation, terraform_version)?;
        self.journal = Some(journal.clone());
        Ok(Some(journal))
    }

    /// The state file has all outcomes up to a number: a journal that has become large is made smaller.
    pub fn compact_journal(&self, included: u64) {
        if let Some(journal) = self.journal.as_ref().filter(|journal| journal.wants_compaction()) {
            match Base::of(self.known.as_ref().and_then(Option::as_ref)) {
                Ok(base) => journal.compact(included, base),
                Err(e) => tracing::warn!("the journal cannot be made smaller: {e}"),
            }
        }
    }

    /// Ends the journal: the state file has all of it, and what had not ended has been told.
    pub fn end_journal(&mut self) -> Result<(), StateError> {
        self.journal.take().map_or(Ok(()), Writer::remove)
    }

    /// Makes the state file say what counts, and removes the pending snapshot: it must not come back to life when
    /// somebody restores an older state.
    fn settle(&mut self, pending: &Verdict, found: &Found) -> Result<(), StateError> {
        let pending_path = pending::path_of(&self.path);
        match pending {
            Verdict::Same => remove_pending(&pending_path),
            Verdict::Completes(snapshot) | Verdict::Replaces(snapshot) => {
                let kept = match pending {
                    Verdict::Replaces(_) => Some(stamped_backup(&self.path)),
                    _ => None,
                };
                if let Some(kept) = &kept {
                    replace_file(kept, &found.text)?;
                }
                write_in_place(&self.path, &encode(snapshot)?)?;
                self.report(RecoveryAction::Completed(snapshot.serial), kept);
            }
            Verdict::Unused(why) => {
                let kept = stamped_backup(&self.path);
                fs::rename(&pending_path, &kept).map_err(|e| StateError::io("cannot move", pending_path, e))?;
                self.report(RecoveryAction::Unused(why.clone()), Some(kept));
            }
        }
        Ok(())
    }

    fn report(&mut self, action: RecoveryAction, kept: Option<PathBuf>) {
        let recovery = Recovery {
            path: self.read_path.clone(),
            action,
            kept,
        };
        tracing::warn!("{recovery}");
        self.recovery = Some(recovery);
    }

    /// Writes a state as the next snapshot, if its contents are new: sets the serial, and a lineage if it has none yet,
    /// and names the version of the writer in it. Before the first write, the previous state is copied to the backup
    /// file.
    pub fn write(&mut self, state: &State, terraform_version: &str) -> Result<Written, StateError> {
        if self.known.is_none() {
            self.read()?;
        }
        let known = self.known.as_ref().and_then(Option::as_ref);
        let same = known.is_some_and(|known| known.same_content(state));
        if same && self.read_path == self.path && !self.replayed {
            return Ok(Written::Unchanged);
        }
        let (serial, lineage) = known.map_or((0, ""), |known| (known.serial, &*known.lineage));
        let snapshot = State {
            terraform_version: terraform_version.to_owned(),
            serial: if same && !self.replayed {
                serial
            } else {
                serial.saturating_add(1)
            },
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
        if let Some(journal) = &self.journal
            && let Err(e) = journal.announce(Base::of_text(&snapshot, &text))
        {
            // The state file is to have what the journal cannot take; compaction begins a new one.
            tracing::warn!("the write of the state is not announced: {e}");
        }
        write_in_place(&self.path, &text)?;
        let serial = snapshot.serial;
        // From now on the state is where it was written, and that is what the next snapshot is compared with.
        self.known = Some(Some(snapshot));
        self.read_path.clone_from(&self.path);
        self.pending = false;
        self.replayed = false;
        Ok(Written::Snapshot(serial))
    }

    /// Saves what was there before the first write that changes it; there is nothing to save if this run began it.
    fn back_up(&mut self, snapshot: &State) -> Result<(), StateError> {
        let Some(backup) = self.backup.clone().filter(|_| !self.backed_up) else {
            return Ok(());
        };
        if self.read_path != self.path {
            // What is lost is in the file that is written, not in the one that was read. A pipe or a device loses
            // nothing.
            if is_replaceable(&self.path) {
                let found = read_file(&self.path, self.lock.is_some())?;
                if found.counts().is_some_and(|previous| !previous.same_content(snapshot)) {
                    replace_file(&backup, &found.counting_text()?)?;
                }
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

impl SnapshotStore for LocalStore {
    fn lock(&mut self, info: &LockInfo, timeout: Duration, cancelled: &dyn Fn() -> bool) -> Result<(), StateError> {
        LocalStore::lock(self, info, timeout, cancelled)
    }

    fn unlock(&mut self) -> Result<(), StateError> {
        LocalStore::unlock(self)
    }

    fn read(&mut self) -> Result<Option<State>, StateError> {
        LocalStore::read(self)
    }

    fn write(&mut self, state: &State, terraform_version: &str) -> Result<Written, StateError> {
        LocalStore::write(self, state, terraform_version)
    }

    fn write_snapshot(&mut self, snapshot: State) -> Result<Written, StateError> {
        LocalStore::write_snapshot(self, snapshot)
    }

    fn is_stream(&self) -> bool {
        LocalStore::is_stream(self)
    }

    fn take_recovery(&mut self) -> Option<Recovery> {
        LocalStore::take_recovery(self)
    }

    fn journal_report(&self) -> Option<&JournalReport> {
        LocalStore::journal_report(self)
    }

    fn forget_journal(&mut self) -> Result<(), StateError> {
        LocalStore::forget_journal(self)
    }

    fn begin_journal(&mut self, operation: &str, terraform_version: &str) -> Result<Option<Writer>, StateError> {
        LocalStore::begin_journal(self, operation, terraform_version)
    }

    fn compact_journal(&self, included: u64) {
        LocalStore::compact_journal(self, included);
    }

    fn end_journal(&mut self) -> Result<(), StateError> {
        LocalStore::end_journal(self)
    }
}

/// Writes a state to a file of its own, as it is: for a state that cannot be written to its store.
pub fn write_copy(path: &Path, state: &State) -> Result<(), StateError> {
    replace_file(path, &encode(state)?)
}

/// Reads the state in a file that is not locked; `None` if there is no state.
pub fn read_copy(path: &Path) -> Result<Option<State>, StateError> {
    Ok(read_file(path, false)?.into_state())
}

struct Found {
    /// The snapshot in the state file.
    state: Option<State>,
    text: Vec<u8>,
    /// What the pending snapshot beside it means, if there is one.
    pending: Option<Verdict>,
}

impl Found {
    /// The snapshot that counts.
    fn counts(&self) -> Option<&State> {
        match &self.pending {
            Some(Verdict::Completes(snapshot) | Verdict::Replaces(snapshot)) => Some(snapshot),
            _ => self.state.as_ref(),
        }
    }

    fn counting_text(&self) -> Result<Vec<u8>, StateError> {
        match &self.pending {
            Some(Verdict::Completes(snapshot) | Verdict::Replaces(snapshot)) => encode(snapshot),
            _ => Ok(self.text.clone()),
        }
    }

    fn into_state(self) -> Option<State> {
        match self.pending {
            Some(Verdict::Completes(snapshot) | Verdict::Replaces(snapshot)) => Some(snapshot),
            _ => self.state,
        }
    }
}

fn read_file(path: &Path, locked: bool) -> Result<Found, StateError> {
    if !is_replaceable(path) {
        return read_stream(path);
    }
    // Without the lock, the file may be written while it is read; with it, the first reading is good.
    let mut attempts = if locked { 1 } else { 20 };
    loop {
        attempts -= 1;
        let before = version_of(path);
        let text = read_if_there(path)?;
        let state = text.as_deref().map_or(Ok(None), decode);
        // Read after the state file: what is pending there is at least as new.
        let pending = read_if_there(&pending::path_of(path))?.map(|p| pending::judge(&p, text.as_deref(), &state));
        if attempts > 0 && version_of(path) != before {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        let state = match &pending {
            Some(Verdict::Completes(_) | Verdict::Replaces(_)) => state.ok().flatten(),
            _ => state.map_err(|source| unreadable(path, source))?,
        };
        return Ok(Found {
            state,
            text: text.unwrap_or_default(),
            pending,
        });
    }
}

/// What is no file of its own is read once: a pipe until its end; a device has no state.
fn read_stream(path: &Path) -> Result<Found, StateError> {
    let kind = fs::metadata(path)
        .map_err(|e| StateError::io("cannot read", path, e))?
        .file_type();
    let text = if kind.is_char_device() || kind.is_block_device() {
        Vec::new()
    } else {
        fs::read(path).map_err(|e| StateError::io("cannot read", path, e))?
    };
    Ok(Found {
        state: decode(&text).map_err(|source| unreadable(path, source))?,
        text,
        pending: None,
    })
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

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StateError> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(StateError::io("cannot read", path, e)),
    }
}

/// Writes a state file in the two steps that the head of this file describes.
fn write_in_place(path: &Path, text: &[u8]) -> Result<(), StateError> {
    if !is_replaceable(path) {
        return replace_file(path, text);
    }
    let pending = pending::path_of(path);
    // A link or a pipe of that name is none of ours.
    remove_unless_file(&pending)?;
    replace_file(&pending, text)?;
    let created = !path.exists();
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
    if created {
        // After a power cut, the name of a new file must be there when that of the pending one is not.
        sync_directory(path);
    }
    remove_pending(&pending);
    sync_directory(path);
    Ok(())
}

fn sync_directory(path: &Path) {
    if let Err(e) = File::open(directory(path)).and_then(|dir| dir.sync_all()) {
        // Not every file system can; without it, only the latest write can be lost.
        tracing::debug!("the directory of {} cannot be synced: {e}", path.display());
    }
}

fn remove_unless_file(path: &Path) -> Result<(), StateError> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            fs::remove_file(path).map_err(|e| StateError::io("cannot remove", path, e))
        }
        _ => Ok(()),
    }
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

/// Reserves space for this many bytes in a file, where the file system can.
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
