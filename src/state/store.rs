//! A state in a local file.
//!
//! Whenever a write is interrupted, the next command must find a complete snapshot, either the old or the new one. The usual way is to
//! rename a new file over the old one. But the lock of a state is a lock on its file (see [`crate::lock`]), and a Terraform that waits for
//! the lock has already opened that file: it would continue to read and write the old file, which has no name any more. So a write has two
//! steps:
//! 1. The snapshot is written to `.NAME.pending` beside the state: under a temporary name first, renamed when it is on the disk. If this
//!    fails, the state is unchanged.
//! 2. The state file is emptied, written in place and brought to the disk; then the pending file is removed. If the file system supports
//!    it, space is reserved beforehand, so that a full disk is detected while the old snapshot still exists.
//!
//! If the second step is interrupted, the pending file is complete. The next reader of the state decides by lineage and serial which of the
//! two files is the state (see [`crate::pending`]). A reader that holds the lock also completes the step. Links, owner and mode of the
//! state file do not change, because it remains the same file.
//!
//! A state may also be a pipe or a device (`-state-out=/dev/stdout`). Every snapshot is written to it directly, and it is neither locked
//! nor read back.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use files::is_replaceable;

use crate::LockInfo;
use crate::beside::{beside, replace_file};
use crate::codec::Codec;
use crate::document::encode;
use crate::journal::{Base, JournalLocation, JournalReport, JournaledStore, Keeper, Writer};
use crate::lock::FileLock;
use crate::pending::{self, Recovery, RecoveryAction, Verdict, stamped_backup};
use crate::snapshots::Written;
use crate::state_file::{FoundFile, read_file, remove_pending, version_of, write_in_place};
use crate::{SnapshotStore, State, StateError};

/// A state in a local file, together with its backup and its lock.
#[derive(Debug)]
pub struct LocalStore {
    read_path: PathBuf,
    path: PathBuf,
    backup: Option<PathBuf>,
    lock: Option<FileLock>,
    /// State that was last read or written. `None` before the first read; `Some(None)` if there was no state.
    known: Option<Option<State>>,
    backed_up: bool,
    /// Set if the known state comes from a pending file, and the state file itself may not be readable.
    pending: bool,
    /// Set if results of a journal are in the known state but not in the state file.
    replayed: bool,
    /// Set if the state is not stored in the current form, see [`crate::codec::Decoded`].
    outdated: bool,
    recovery: Option<Recovery>,
    keeper: Keeper,
    codec: Codec,
}

impl LocalStore {
    /// Creates a store for the state in the file at `path`, with the backup beside it in `NAME.backup`.
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
            outdated: false,
            recovery: None,
            keeper: Keeper::default(),
            codec: Codec::PLAIN,
        }
    }

    /// Sets the form (plain or encrypted) in which the state, its backup and its journal are stored.
    #[must_use]
    pub fn stored_as(self, codec: Codec) -> LocalStore {
        LocalStore {
            keeper: Keeper::new(codec.clone()),
            codec,
            ..self
        }
    }

    /// Sets the file that is written, if it differs from the file that is read (`-state-out`). The backup is beside the written file.
    #[must_use]
    pub fn writing_to(self, path: impl Into<PathBuf>) -> LocalStore {
        let path = path.into();
        LocalStore {
            backup: Some(beside(&path, "", ".backup")),
            path,
            ..self
        }
    }

    /// Sets the file of the backup; `None` for no backup.
    #[must_use]
    pub fn with_backup(self, backup: Option<PathBuf>) -> LocalStore {
        LocalStore { backup, ..self }
    }

    /// Returns the path of the file that is written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Locks the state; see [`FileLock::acquire`]. A state that was read before is discarded, because others may have changed it. A pipe or
    /// a device cannot be locked and needs no lock.
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

    /// Returns true if the state is written to a pipe or a device, which receives every snapshot.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        !is_replaceable(&self.path)
    }

    /// Takes the report on the recovery from an interrupted write, if there was one since the last call.
    pub fn take_recovery(&mut self) -> Option<Recovery> {
        self.recovery.take()
    }

    /// Reads the file; `None` if there is no state yet. If an earlier run has left a journal, its results are included in the returned
    /// state and, with the lock, also saved in the file. Call [`LocalStore::forget_journal`] when they have been reported.
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
            let journal = match is_replaceable(&self.read_path) {
                true => self
                    .keeper
                    .find(&JournalLocation::Beside(self.read_path.clone()), state.as_ref())?,
                false => None,
            };
            // Without the lock, another run may have written the state between the reads of the state and of its journal. Then both are
            // read again.
            if attempts > 0 && version_of(&self.read_path) != before && !locked {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            self.known = Some(state);
            if let Some(journal) = journal {
                Keeper::replay(self, journal, locked)?;
            }
            return Ok(self.known.clone().flatten());
        }
    }

    /// Reads the state file and the pending snapshot beside it; `None` if there is no state.
    fn read_snapshot(&mut self, locked: bool) -> Result<Option<State>, StateError> {
        let found = read_file(&self.read_path, locked, &self.codec)?;
        self.pending = false;
        self.outdated = found.outdated;
        match &found.pending {
            None => {}
            Some(pending) if locked => self.settle(pending, &found)?,
            Some(Verdict::Completes(snapshot) | Verdict::Replaces(snapshot)) => {
                // Another process may be writing the state right now, which is no reason for a warning.
                tracing::info!("the snapshot with serial {} is pending, and used", snapshot.serial);
                self.pending = true;
            }
            Some(Verdict::Same | Verdict::Unused(_)) => {}
        }
        Ok(found.into_state())
    }

    /// Returns the report on the journal of an earlier run; `None` if there is none.
    #[must_use]
    pub fn journal_report(&self) -> Option<&JournalReport> {
        self.keeper.report()
    }

    /// Removes the journal of an earlier run, once its contents are in the state file and have been reported. Without the lock, nothing is
    /// removed.
    pub fn forget_journal(&mut self) -> Result<(), StateError> {
        self.keeper.forget(self.lock.is_some())
    }

    /// Begins the journal of a run that changes objects. Returns `None` for a pipe or a device: no later run could use its journal.
    pub fn begin_journal(&mut self, operation: &str, terraform_version: &str) -> Result<Option<Writer>, StateError> {
        if !is_replaceable(&self.path) {
            return Ok(None);
        }
        if self.known.is_none() {
            self.read()?;
        }
        // The new journal replaces an earlier one and continues the state file, so the results of the earlier journal must be in that file
        // first.
        if let Some(Some(known)) = self.known.clone() {
            if self.read_path != self.path {
                self.write_snapshot(known)?;
            } else if self.replayed {
                self.write(&known, terraform_version)?;
            }
        }
        self.keeper.forget(true)?;
        let base = Base::from_state(self.known.as_ref().and_then(Option::as_ref))?;
        let place = JournalLocation::Beside(self.path.clone());
        self.keeper.begin(&place, base, operation, terraform_version).map(Some)
    }

    /// Makes a large journal smaller. The state file must have all outcomes up to the number `included`.
    pub fn compact_journal(&self, included: u64) {
        self.keeper
            .compact(included, self.known.as_ref().and_then(Option::as_ref));
    }

    /// Ends the journal, whose results are all in the state file.
    pub fn end_journal(&mut self) -> Result<(), StateError> {
        self.keeper.end(self.known.as_ref().and_then(Option::as_ref))
    }

    /// Writes the chosen snapshot to the state file, and removes the pending one.
    fn settle(&mut self, pending: &Verdict, found: &FoundFile) -> Result<(), StateError> {
        // An unused pending snapshot must not remain: it would take effect if the user restores an older state.
        let pending_path = pending::path_of(&self.path);
        match pending {
            Verdict::Same => remove_pending(&pending_path),
            Verdict::Completes(snapshot) | Verdict::Replaces(snapshot) => {
                let kept = match pending {
                    // The state file may contain objects that neither the pending snapshot nor any other file has, so a copy is kept.
                    Verdict::Replaces(_) => Some(stamped_backup(&self.path)),
                    _ => None,
                };
                if let Some(kept) = &kept {
                    replace_file(kept, &found.text)?;
                }
                write_in_place(&self.path, &self.codec.encode(snapshot)?)?;
                self.report(RecoveryAction::Completed(snapshot.serial), kept);
            }
            Verdict::Unused(why) => {
                let kept = stamped_backup(&self.path);
                system::rename(&pending_path, &kept).map_err(|e| StateError::io("cannot move", pending_path, e))?;
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

    /// Writes a state as the next snapshot if its contents have changed: sets the serial and the lineage, and records the version of the
    /// writer. Before the first write, the previous state is copied to the backup file.
    pub fn write(&mut self, state: &State, terraform_version: &str) -> Result<Written, StateError> {
        // The stored snapshot is needed for its serial and lineage.
        if self.known.is_none() {
            self.read()?;
        }
        let known = self.known.as_ref().and_then(Option::as_ref);
        let same = known.is_some_and(|known| known.same_content(state));
        if same && self.read_path == self.path && !self.replayed && !self.outdated {
            return Ok(Written::Unchanged);
        }
        let changed = !same || self.replayed;
        let snapshot = state.next_snapshot(known, terraform_version, changed);
        self.write_snapshot(snapshot)
    }

    /// Writes a snapshot from another source, with its own serial, lineage and version.
    pub fn write_snapshot(&mut self, snapshot: State) -> Result<Written, StateError> {
        if self.known.is_none() {
            self.read()?;
        }
        let text = encode(&snapshot)?;
        self.back_up(&snapshot)?;
        // The snapshot is announced before the write, because at every instant the journal must know the
        // snapshot in the state file.
        if self.keeper.is_writing() {
            self.keeper.announce(Base::from_state_text(&snapshot, &text));
        }
        let stored = self.codec.seal(&snapshot, text)?;
        write_in_place(&self.path, &stored)?;
        let serial = snapshot.serial;
        // From now on the state is in the written file, with which the next snapshot is compared.
        self.known = Some(Some(snapshot));
        self.read_path.clone_from(&self.path);
        self.pending = false;
        self.replayed = false;
        self.outdated = false;
        self.keeper.replaced();
        Ok(Written::Snapshot(serial))
    }

    /// Saves the previous contents before the first write that changes them. A state that this run created has no previous
    /// contents.
    fn back_up(&mut self, snapshot: &State) -> Result<(), StateError> {
        let Some(backup) = self.backup.clone().filter(|_| !self.backed_up) else {
            return Ok(());
        };
        if self.read_path != self.path {
            // The write overwrites `path` and not the file that was read, so `path` is backed up. A pipe or a device is not overwritten.
            if is_replaceable(&self.path) {
                let found = read_file(&self.path, self.lock.is_some(), &self.codec)?;
                if found.counts().is_some_and(|previous| !previous.same_content(snapshot)) {
                    replace_file(&backup, &found.counting_text(&self.codec)?)?;
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
            // The bytes of the file are not copied if a pending snapshot was read, since the file may then be damaged, or if they may be
            // plain text from before encryption was configured.
            let text = match self.pending || self.outdated {
                true => self.codec.encode(previous)?,
                false => fs::read(&self.read_path).map_err(|e| StateError::io("cannot read", &self.read_path, e))?,
            };
            replace_file(&backup, &text)?;
            self.backed_up = true;
        }
        Ok(())
    }
}

impl JournaledStore for LocalStore {
    fn keeper(&mut self) -> &mut Keeper {
        &mut self.keeper
    }

    fn known(&self) -> Option<&State> {
        self.known.as_ref().and_then(Option::as_ref)
    }

    fn shown(&self) -> String {
        format!("the state {}", self.read_path.display())
    }

    fn save(&mut self, state: &State, version: &str) -> Result<(), StateError> {
        self.write(state, version).map(drop)
    }

    fn hold(&mut self, state: State) {
        self.replayed = true;
        self.known = Some(Some(state));
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

    fn announce_copy(&self, snapshot: &State) -> Result<(), StateError> {
        self.keeper.announce(Base::from_state(Some(snapshot))?);
        Ok(())
    }

    fn expect_snapshot(&mut self, snapshot: &State) -> Result<(), StateError> {
        self.keeper.expect(Base::from_state(Some(snapshot))?);
        Ok(())
    }
}

/// Writes a state that cannot be written to its store to a separate file.
pub fn write_copy(path: &Path, state: &State, codec: &Codec) -> Result<(), StateError> {
    replace_file(path, &codec.encode(state)?)
}

/// Reads the state in a file that is not locked; `None` if there is none.
pub fn read_copy(path: &Path, codec: &Codec) -> Result<Option<State>, StateError> {
    Ok(read_file(path, false, codec)?.into_state())
}
