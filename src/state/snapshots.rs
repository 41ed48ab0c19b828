//! Stores for the snapshots of one state, in a file or elsewhere.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::journal::{JournalReport, Writer};
use crate::{Claims, LockInfo, Recovery, State, StateError};

/// Result of writing a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// The stored state had the same contents already, so nothing was written.
    Unchanged,
    /// A snapshot with this serial was written.
    Snapshot(u64),
}

/// One state in a store: its snapshots, and its lock. [`crate::LocalStore`] keeps it in a file.
pub trait SnapshotStore: Send {
    /// Locks the state. While another process holds the lock, the attempt is repeated until `timeout` has passed or `cancelled` returns
    /// true. A state that was read before the lock is discarded, because others may have changed it.
    ///
    /// # Errors
    /// The lock could not be acquired.
    fn lock(&mut self, info: &LockInfo, timeout: Duration, cancelled: &dyn Fn() -> bool) -> Result<(), StateError>;

    /// Returns true if the store stores each object separately, so that parts of the state can be locked.
    fn keeps_objects(&self) -> bool {
        false
    }

    /// Locks parts of the state, as [`SnapshotStore::lock`] locks all of it. Without a time limit nothing is locked, and the store is
    /// told only what the run changes.
    ///
    /// # Errors
    /// The lock could not be acquired.
    fn lock_objects(
        &mut self,
        _claims: &Claims,
        info: &LockInfo,
        timeout: Option<Duration>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), StateError> {
        match timeout {
            Some(timeout) => self.lock(info, timeout, cancelled),
            None => Ok(()),
        }
    }

    /// Returns the lineage that a first state gets, if the store decides it.
    fn first_lineage(&self) -> Option<String> {
        None
    }

    /// Releases the lock, if it is held.
    ///
    /// # Errors
    /// The lock cannot be released.
    fn unlock(&mut self) -> Result<(), StateError>;

    /// Reads the newest snapshot; `None` if there is no state yet.
    ///
    /// # Errors
    /// The snapshot cannot be read.
    fn read(&mut self) -> Result<Option<State>, StateError>;

    /// Writes a state as the next snapshot if its content has changed. The store sets the serial and the lineage, and records the version
    /// of the writer.
    ///
    /// # Errors
    /// The snapshot cannot be written.
    fn write(&mut self, state: &State, terraform_version: &str) -> Result<Written, StateError>;

    /// Writes a snapshot from another source, with its own serial, lineage and version.
    ///
    /// # Errors
    /// The snapshot cannot be written.
    fn write_snapshot(&mut self, snapshot: State) -> Result<Written, StateError>;

    /// Returns true if the state is a pipe or a device, which receives each snapshot and cannot be read back.
    fn is_stream(&self) -> bool {
        false
    }

    /// Takes the report on the recovery from an interrupted write, if there was one since the last call.
    fn take_recovery(&mut self) -> Option<Recovery> {
        None
    }

    /// Returns the report on the journal that an earlier run has left for this state; `None` if there is none.
    fn journal_report(&self) -> Option<&JournalReport> {
        None
    }

    /// Removes the journal of an earlier run, once its contents are in the state and have been reported.
    ///
    /// # Errors
    /// The journal cannot be removed.
    fn forget_journal(&mut self) -> Result<(), StateError> {
        Ok(())
    }

    /// Begins the journal of a run that changes objects; `None` if the store has no journals.
    ///
    /// # Errors
    /// The journal cannot be created.
    fn begin_journal(&mut self, _operation: &str, _terraform_version: &str) -> Result<Option<Writer>, StateError> {
        Ok(None)
    }

    /// Makes a large journal smaller: the newest snapshot has all outcomes up to the number `_included`.
    fn compact_journal(&self, _included: u64) {}

    /// Ends the journal, whose results are all in the newest snapshot.
    ///
    /// # Errors
    /// The journal cannot be removed.
    fn end_journal(&mut self) -> Result<(), StateError> {
        Ok(())
    }

    /// Announces to the journal a snapshot that the store could not write. It is about to be written to another file, which the user may
    /// put in the place of the state.
    ///
    /// # Errors
    /// The snapshot has a value that cannot be stored.
    fn announce_copy(&self, _snapshot: &State) -> Result<(), StateError> {
        Ok(())
    }

    /// Announces a snapshot that will replace the stored one, see [`SnapshotStore::write_snapshot`]: outcomes of a journal that the
    /// snapshot contains are then not applied to the stored state first.
    ///
    /// # Errors
    /// The snapshot has a value that cannot be stored.
    fn expect_snapshot(&mut self, _snapshot: &State) -> Result<(), StateError> {
        Ok(())
    }
}

/// A store that several threads write to.
pub type SharedStore = Arc<Mutex<dyn SnapshotStore>>;
