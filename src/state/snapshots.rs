//! What keeps the snapshots of one state, wherever that is.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::journal::{JournalReport, Writer};
use crate::{LockInfo, Recovery, State, StateError, Written};

/// One state in a store: its snapshots, and its lock. [`crate::LocalStore`] keeps it in a file.
pub trait SnapshotStore: Send {
    /// Locks the state. While somebody else holds the lock, it tries again for as long as `timeout`, and asks `cancelled` often
    /// whether to give up. What was read before is forgotten, since others may have changed it.
    ///
    /// # Errors
    /// The lock could not be had.
    fn lock(&mut self, info: &LockInfo, timeout: Duration, cancelled: &dyn Fn() -> bool) -> Result<(), StateError>;

    /// Releases the lock, if it is held.
    ///
    /// # Errors
    /// The lock cannot be released.
    fn unlock(&mut self) -> Result<(), StateError>;

    /// Reads the newest snapshot; `None` if there is no state yet.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&mut self) -> Result<Option<State>, StateError>;

    /// Writes a state as the next snapshot, if its content is new: sets the serial, and a lineage if it has none yet, and names
    /// the version of the writer in it.
    ///
    /// # Errors
    /// It cannot be written.
    fn write(&mut self, state: &State, terraform_version: &str) -> Result<Written, StateError>;

    /// Writes a snapshot with the number, lineage and version that it has: one that comes from elsewhere.
    ///
    /// # Errors
    /// It cannot be written.
    fn write_snapshot(&mut self, snapshot: State) -> Result<Written, StateError>;

    /// Whether every snapshot that is written goes to a pipe or a device.
    fn is_stream(&self) -> bool {
        false
    }

    /// What was done about a write that was cut short, since the last call.
    fn take_recovery(&mut self) -> Option<Recovery> {
        None
    }

    /// What the journal of an earlier run meant for the state that was read, if there was one.
    fn journal_report(&self) -> Option<&JournalReport> {
        None
    }

    /// Removes the journal of an earlier run, once its contents are in the state and have been reported.
    ///
    /// # Errors
    /// It cannot be removed.
    fn forget_journal(&mut self) -> Result<(), StateError> {
        Ok(())
    }

    /// Begins the journal of a run that changes what exists; `None` where the store has no journals.
    ///
    /// # Errors
    /// It cannot be created.
    fn begin_journal(&mut self, _operation: &str, _terraform_version: &str) -> Result<Option<Writer>, StateError> {
        Ok(None)
    }

    /// The newest snapshot has all outcomes up to a number: a journal that has become large is made smaller.
    fn compact_journal(&self, _included: u64) {}

    /// Ends the journal: the newest snapshot has all of it.
    ///
    /// # Errors
    /// It cannot be removed.
    fn end_journal(&mut self) -> Result<(), StateError> {
        Ok(())
    }

    /// A snapshot that the store could not take is about to be elsewhere, and may become the state from there: the journal is to
    /// know it.
    ///
    /// # Errors
    /// It has a value that cannot be stored.
    fn announce_copy(&self, _snapshot: &State) -> Result<(), StateError> {
        Ok(())
    }

    /// This snapshot is to take the place of what the store has, see [`SnapshotStore::write_snapshot`]: what a journal has is not
    /// put into the state first if the snapshot has it.
    ///
    /// # Errors
    /// It has a value that cannot be stored.
    fn expect_snapshot(&mut self, _snapshot: &State) -> Result<(), StateError> {
        Ok(())
    }
}

/// A store that several threads write to.
pub type SharedStore = Arc<Mutex<dyn SnapshotStore>>;

/// The lock of a state that is not in a file is held by somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLocked {
    /// What the store says.
    pub message: String,
    /// Who holds it, if that is known.
    pub holder: Option<LockInfo>,
    /// How long it was waited for.
    pub waited: Duration,
}

impl fmt::Display for StoreLocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message.trim_end().trim_end_matches('.');
        write!(f, "{message}.")?;
        if self.waited >= Duration::from_secs(1) {
            write!(f, " It was not released within {} seconds.", self.waited.as_secs())?;
        }
        let id = match &self.holder {
            Some(holder) => {
                write!(f, "\n\n{}", holder.details())?;
                &*holder.id
            }
            None => "ID",
        };
        write!(
            f,
            "\n\nThe lock keeps two operations from writing the state at the same time. Wait for the other one to end, or let this \
             one wait for it with -lock-timeout=5m. If the program that took it is gone for certain, \"force-unlock {id}\" frees \
             the lock. Most commands can do without a lock (-lock=false), but then nothing protects the state."
        )
    }
}
