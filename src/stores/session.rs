//! A state during a command: opening, locking, reading, writing, and rescue if it cannot be written.
//!
//! All commands use this module, for states in files and in stores.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use addrs::program::core_version;
use state::pending::stamped_backup;
use state::store::{LocalStore, write_copy};
use state::{Claims, Codec, LockInfo, SharedStore, SnapshotStore, State};
use syntax::{Diagnostic, Diagnostics};

use crate::backend::{Snapshots, Source};
pub use crate::problem::{ERRORED_STATE, problem};
use crate::{Context, journal};

/// File for a copy of the state before its first write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backup {
    /// `NAME.backup`.
    Beside,
    None,
    /// File named by a flag.
    File(PathBuf),
    Stamped,
}

impl Backup {
    /// Returns the backup of a command whose flag may turn it off with `-`.
    #[must_use]
    pub fn optional(flag: Option<&str>) -> Backup {
        match flag {
            None => Backup::Beside,
            Some("-") => Backup::None,
            Some(path) => Backup::File(path.into()),
        }
    }

    /// Returns the backup of a command that always makes one.
    #[must_use]
    pub fn required(flag: Option<&str>) -> Backup {
        match flag {
            None | Some("-" | "") => Backup::Stamped,
            Some(path) => Backup::File(path.into()),
        }
    }
}

pub struct Opening<'a> {
    pub source: Source,
    /// File that is written, if it differs from the one that is read. Ignored for a state in a store.
    pub out: Option<PathBuf>,
    /// Backup before the first write. Ignored for a state in a store.
    pub backup: Backup,
    /// Operation that the lock names.
    pub operation: &'a str,
    /// Timeout for the lock; `None` for no lock.
    pub lock: Option<Duration>,
    /// Cancellation callback, which is called while waiting for the lock.
    pub cancelled: &'a dyn Fn() -> bool,
    /// Snapshot that the command will write in place of the state.
    pub replacement: Option<&'a State>,
}

impl<'a> Opening<'a> {
    /// Returns the options with the default backup.
    #[must_use]
    pub fn new(source: Source, operation: &'a str, lock: Option<Duration>) -> Opening<'a> {
        Opening {
            source,
            out: None,
            backup: Backup::Beside,
            operation,
            lock,
            cancelled: &|| false,
            replacement: None,
        }
    }
}

pub struct StateSession<'s> {
    context: Context<'s>,
    store: SharedStore,
    /// Form in which the state and its copies are stored.
    codec: Codec,
    /// Set if the state is a file, which the user can replace manually.
    is_file: bool,
    /// State that was read; `None` if there is none.
    pub state: Option<State>,
    /// Lineage and serial of the state that was read.
    origin: (String, u64),
    operation: String,
    /// State that was read, for a command that edits the state without a plan.
    before: State,
}

impl<'s> StateSession<'s> {
    /// Locks and reads a state. Shows a warning about the recovery from an interrupted write.
    ///
    /// # Errors
    /// The lock is held by another process, or the state cannot be read.
    pub fn open(context: Context<'s>, opening: &Opening<'_>) -> Result<StateSession<'s>, Diagnostics> {
        // The codec is determined first, because results that cannot be encrypted could not be saved.
        let codec = context.encryption.states()?;
        if codec.cipher().is_some() {
            context.encryption.prepare_states()?;
        }
        match &opening.source {
            Source::File(path) => {
                let store = local(path, opening).stored_as(codec.clone());
                StateSession::of_store(context, opening, store, codec, true)
            }
            Source::Workspace(store, workspace) => {
                context.cloud.check(&store.saved()?, workspace)?;
                let snapshots = Snapshots::open(store, workspace, codec.clone())?;
                StateSession::of_store(context, opening, snapshots, codec, false)
            }
        }
    }

    fn of_store(
        context: Context<'s>,
        opening: &Opening<'_>,
        mut store: impl SnapshotStore + 'static,
        codec: Codec,
        is_file: bool,
    ) -> Result<StateSession<'s>, Diagnostics> {
        if let Some(timeout) = opening.lock {
            let info = LockInfo::new(opening.operation, core_version());
            // Waiting for the lock may take long, and the user should see all earlier output meanwhile.
            context.console.flush();
            let waiting = while_locking(&context, opening.cancelled);
            store.lock(&info, timeout, &waiting).map_err(|e| problem(&e))?;
        }
        // The snapshot must be announced before the read, which would otherwise save the results of a journal in the state that is about to
        // be replaced.
        if let Some(snapshot) = opening.replacement {
            store.expect_snapshot(snapshot).map_err(|e| problem(&e))?;
        }
        let state = store.read().map_err(|e| problem(&e))?;
        if let Some(recovery) = store.take_recovery() {
            let warning = Diagnostic::warning(recovery.summary(), recovery.to_string());
            context.warn(warning);
        }
        journal::report(&context, &mut store, state.as_ref())?;
        // With `state push`, the replacement may be a copy of a state that could not be saved, so no warning about such copies is given.
        if opening.replacement.is_none() {
            journal::report_copies(&context, state.as_ref(), is_file);
        }
        let origin = state.as_ref().map(|state| (state.lineage.clone(), state.serial));
        Ok(StateSession {
            context,
            store: Arc::new(Mutex::new(store)),
            codec,
            is_file,
            state,
            origin: origin.unwrap_or_default(),
            operation: opening.operation.to_owned(),
            before: State::new(),
        })
    }

    /// Opens a state for a command that edits it without a plan.
    ///
    /// # Errors
    /// The lock is held by another process, or the state cannot be read.
    pub fn open_for_edit(context: Context<'s>, opening: &Opening<'_>) -> Result<StateSession<'s>, Diagnostics> {
        let mut opened = StateSession::open(context, opening)?;
        opened.before = opened.state.clone().unwrap_or_default();
        Ok(opened)
    }

    /// Returns the store, for writers during an operation.
    #[must_use]
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// Writes the next snapshot if the content has changed. If the write is interrupted, the next command completes it.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn write(&mut self, state: &State) -> Result<(), Diagnostics> {
        journal::begin_edit(&self.store, &self.operation, &self.before, state);
        let result = self.lock_store().write(state, core_version());
        // The journal is ended even after a failed write: the user is told that the edit was not made, so the next command must not make it
        // from the journal.
        let mut problems = journal::end(&self.store);
        match result {
            Ok(_) => {
                self.context.console.show(&problems);
                Ok(())
            }
            Err(e) => {
                problems.push(not_written(&e));
                Err(problems)
            }
        }
    }

    /// Writes a snapshot with the serial it has.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn write_snapshot(&mut self, snapshot: State) -> Result<(), state::StateError> {
        self.lock_store().write_snapshot(snapshot).map(drop)
    }

    /// Writes the next snapshot to the store or, if that fails, to `errored.tfstate`, or else to standard output.
    pub fn write_or_rescue(&self, state: &State) -> Diagnostics {
        let Err(error) = self.lock_store().write(state, core_version()) else {
            return Diagnostics::new();
        };
        let mut problems: Diagnostics = Diagnostic::error("Failed to save state", format!("{error}")).into();
        let (lineage, serial) = &self.origin;
        let lineage = Some(lineage.clone()).filter(|lineage| !lineage.is_empty());
        let lineage = lineage.or_else(|| self.lock_store().first_lineage());
        let snapshot = State {
            terraform_version: core_version().into(),
            serial: serial.saturating_add(1),
            lineage: lineage.unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
            ..state.clone()
        };
        // The user may copy the file over the state, so the journal must know the snapshot in it.
        if let Err(e) = self.lock_store().announce_copy(&snapshot) {
            tracing::warn!("{e}");
        }
        problems.extend(self.rescue(&snapshot));
        problems
    }

    /// Saves a state that cannot be written to its store: in the working directory, or in the directory for temporary files, or else on
    /// standard output.
    fn rescue(&self, snapshot: &State) -> Diagnostics {
        let copy = PathBuf::from(ERRORED_STATE);
        if copy.is_file() {
            // An existing copy may be the only record of the objects of an earlier run, so it is renamed.
            let renamed = stamped_backup(&copy);
            if let Err(e) = system::rename(&copy, &renamed) {
                tracing::warn!("{} cannot be moved to {}: {e}", copy.display(), renamed.display());
            }
        }
        let first = match write_copy(&copy, snapshot, &self.codec) {
            Ok(()) => return self.rescued(ERRORED_STATE, "of the working directory").into(),
            Err(e) => e,
        };
        // The name is random, because the directory is shared and another user could put a link at a known name.
        let temporary = std::env::temp_dir().join(format!("{}.{ERRORED_STATE}", uuid::Uuid::new_v4()));
        match write_copy(&temporary, snapshot, &self.codec) {
            Ok(()) => self
                .rescued(
                    &temporary.display().to_string(),
                    "of the directory for temporary files, which may be emptied soon",
                )
                .into(),
            Err(e) => {
                if let Ok(text) = self.codec.encode(snapshot) {
                    self.context.console.print(&String::from_utf8_lossy(&text));
                }
                Diagnostic::error(
                    "Failed to create local state file",
                    format!(
                        "The state could not be written to \"{ERRORED_STATE}\": {first}. It could not be written to the directory for \
                         temporary files either: {e}. The state is printed on standard output: save it, or its objects are \
                         forgotten."
                    ),
                )
                .into()
            }
        }
    }

    fn rescued(&self, copy: &str, directory: &str) -> Diagnostic {
        Diagnostic::error(
            "Failed to persist state to backend",
            format!(
                "The state could not be written to its backend. So that no object is forgotten, the state is in \
                 the file \"{copy}\" {directory}. When the problem is solved, {}.",
                match self.is_file {
                    true => "copy that file over the state file".to_owned(),
                    false => format!("run \"{} state push {copy}\"", self.context.program.command),
                }
            ),
        )
    }

    /// Locks the parts of the state that a run changes, and the parts that these depend on. Then reads the state again, and reports
    /// unfinished operations of earlier runs on these parts. Returns the state; `None` if there is none.
    ///
    /// # Errors
    /// The lock is held by another run, or the state cannot be read.
    pub fn lock_objects(
        &self,
        claims: &Claims,
        timeout: Option<Duration>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<State>, Diagnostics> {
        let info = LockInfo::new(&self.operation, core_version());
        self.context.console.flush();
        let waiting = while_locking(&self.context, cancelled);
        let mut store = self.lock_store();
        store
            .lock_objects(claims, &info, timeout, &waiting)
            .map_err(|e| problem(&e))?;
        let state = store.read().map_err(|e| problem(&e))?;
        journal::report(&self.context, &mut *store, state.as_ref())?;
        // This also covers operations that were reported before the lock was held.
        store.forget_journal().map_err(|e| problem(&e))?;
        Ok(state)
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// The lock cannot be released.
    pub fn unlock(&self) -> Result<(), Diagnostics> {
        self.lock_store().unlock().map_err(|e| problem(&e))
    }

    fn lock_store(&self) -> MutexGuard<'_, dyn SnapshotStore + 'static> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates the error of a command whose state was not written.
#[must_use]
pub fn not_written(error: &state::StateError) -> Diagnostic {
    Diagnostic::error("Failed to save the state", error.to_string())
}

/// Returns the cancellation callback for waiting for a lock. Once, after 400 ms, it reports that the command waits.
fn while_locking(context: &Context<'_>, cancelled: impl Fn() -> bool) -> impl Fn() -> bool {
    // The same delay as in Terraform. Most locks are acquired sooner, and need no message.
    const DELAY: Duration = Duration::from_millis(400);
    let began = Instant::now();
    let reported = Cell::new(false);
    move || {
        if began.elapsed() >= DELAY && !reported.replace(true) {
            context.console.waits_for_lock();
        }
        cancelled()
    }
}

/// Creates the store of a file with the requested backup.
fn local(path: &Path, opening: &Opening<'_>) -> LocalStore {
    let mut store = LocalStore::new(path);
    if let Some(out) = &opening.out {
        store = store.writing_to(out.clone());
    }
    match &opening.backup {
        Backup::Beside => store,
        Backup::None => store.with_backup(None),
        Backup::File(path) => store.with_backup(Some(path.clone())),
        Backup::Stamped => {
            let written = opening.out.as_deref().unwrap_or(path);
            store.with_backup(Some(stamped_backup(written)))
        }
    }
}

/// Reads a state without a lock; `None` if there is none.
///
/// # Errors
/// The state cannot be read.
pub fn read_source(context: &Context<'_>, source: &Source) -> Result<Option<State>, Diagnostics> {
    let codec = context.encryption.states()?;
    match source {
        Source::File(path) => LocalStore::new(path).stored_as(codec).read(),
        Source::Workspace(store, workspace) => Snapshots::open(store, workspace, codec)?.read(),
    }
    .map_err(|e| problem(&e))
}
