//! A state from its opening to its closing: where it is, its lock, reading, writing, and where it goes when it cannot be written.
//!
//! Everything that a command does with a state goes through this module, wherever the state is kept.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use state::pending::stamped_backup;
use state::store::{LocalStore, write_copy};
use state::{LockInfo, SharedStore, SnapshotStore, State};
use syntax::{Diagnostic, Diagnostics, SourceMap};
use views::program;

use crate::TERRAFORM_VERSION;
use crate::args::groups::{LockFlags, StateFlags};
use crate::backend::{self, Place, Source};
use crate::journal;
use crate::outcome::{Failure, Outcome, Within as _};
use crate::session::{Session, Surroundings};
use crate::workdir::{self, Project, StatePlace};

/// The summary of the error for a configuration that requires another version.
const VERSION_REFUSED: &str = "Unsupported Terraform Core version";

/// The file in the working directory for a state that cannot be written to its store.
pub const ERRORED_STATE: &str = "errored.tfstate";

/// The file that a copy of the state goes to before it is written for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backup {
    /// `NAME.backup`.
    Beside,
    /// No copy.
    None,
    /// The file named by a flag.
    File(PathBuf),
    /// A file with the time in its name.
    Stamped,
}

impl Backup {
    /// The backup of a command whose flag may turn it off with `-`.
    #[must_use]
    pub fn optional(flag: Option<&str>) -> Backup {
        match flag {
            None => Backup::Beside,
            Some("-") => Backup::None,
            Some(path) => Backup::File(path.into()),
        }
    }

    /// The backup of a command that always makes one.
    #[must_use]
    pub fn required(flag: Option<&str>) -> Backup {
        match flag {
            None | Some("-" | "") => Backup::Stamped,
            Some(path) => Backup::File(path.into()),
        }
    }
}

/// How to open a state.
pub struct Opening<'a> {
    /// The state to read.
    pub source: Source,
    /// The file to write, if it is another; not for a state in a store.
    pub out: Option<PathBuf>,
    /// Where the copy of the state goes before it is written; not for a state in a store, which has none.
    pub backup: Backup,
    /// The operation that the lock names.
    pub operation: &'a str,
    /// How long to try for the lock; `None` for no lock.
    pub lock: Option<Duration>,
    /// Asked while the lock is tried for: whether to give up.
    pub cancelled: &'a dyn Fn() -> bool,
    /// A snapshot that is to take the place of the state.
    pub replacement: Option<&'a State>,
}

impl<'a> Opening<'a> {
    /// A state, with the usual backup.
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

    /// The state at a place, or where flags say.
    #[must_use]
    pub fn at(place: &StatePlace, files: &StateFlags, operation: &'a str, lock: Option<Duration>) -> Opening<'a> {
        Opening {
            out: files.out.as_deref().map(PathBuf::from),
            backup: Backup::optional(files.backup.as_deref()),
            ..Opening::new(source(place, files.state.as_deref()), operation, lock)
        }
    }
}

/// An opened state.
pub struct StateSession<'s> {
    session: &'s Session,
    store: SharedStore,
    /// Whether it is a file that a person can replace.
    is_file: bool,
    /// The state as it was read; `None` if there is none.
    pub state: Option<State>,
    /// The lineage and serial that were read.
    origin: (String, u64),
    /// The operation, as the lock names it.
    operation: String,
    /// The state as it was read, for a command that changes it without planning.
    before: State,
}

impl<'s> StateSession<'s> {
    /// Locks and reads a state. A warning about an interrupted write that was recovered is shown.
    ///
    /// # Errors
    /// The lock is held by another process, or the state cannot be read.
    pub fn open(session: &'s Session, opening: &Opening<'_>) -> Result<StateSession<'s>, Diagnostics> {
        match &opening.source {
            Source::File(path) => StateSession::of_store(session, opening, local(path, opening), true),
            Source::Workspace(store, workspace) => {
                backend::remote::check(session, store, workspace)?;
                StateSession::of_store(session, opening, store.open(workspace)?, false)
            }
        }
    }

    fn of_store(
        session: &'s Session,
        opening: &Opening<'_>,
        mut store: impl SnapshotStore + 'static,
        is_file: bool,
    ) -> Result<StateSession<'s>, Diagnostics> {
        if let Some(timeout) = opening.lock {
            let info = LockInfo::new(opening.operation, TERRAFORM_VERSION);
            session.ui.flush();
            let waiting = workdir::while_locking(session, opening.cancelled);
            store.lock(&info, timeout, &waiting).map_err(|e| problem(&e))?;
        }
        if let Some(snapshot) = opening.replacement {
            store.expect_snapshot(snapshot).map_err(|e| problem(&e))?;
        }
        let state = store.read().map_err(|e| problem(&e))?;
        if let Some(recovery) = store.take_recovery() {
            let warning = Diagnostic::warning(recovery.summary(), recovery.to_string());
            session.warn_now(warning);
        }
        journal::report(session, &mut store, state.as_ref())?;
        if opening.replacement.is_none() {
            journal::report_copies(session, state.as_ref(), is_file);
        }
        let origin = state.as_ref().map(|state| (state.lineage.clone(), state.serial));
        Ok(StateSession {
            session,
            store: Arc::new(Mutex::new(store)),
            is_file,
            state,
            origin: origin.unwrap_or_default(),
            operation: opening.operation.to_owned(),
            before: State::new(),
        })
    }

    /// Opens a state for a command that changes it without planning.
    ///
    /// # Errors
    /// The configuration refuses this version, or the state cannot be locked or read.
    pub fn open_for_edit(
        session: &'s Session,
        files: &StateFlags,
        lock: LockFlags,
        operation: &str,
        backup: Backup,
    ) -> Result<StateSession<'s>, Failure> {
        let place = place(session)?;
        let opening = Opening {
            backup,
            ..Opening::at(&place, files, operation, lock.timeout)
        };
        let mut opened = StateSession::open(session, &opening)?;
        opened.before = opened.state.clone().unwrap_or_default();
        Ok(opened)
    }

    /// Opens a state whose place is to be taken by a snapshot from elsewhere.
    ///
    /// # Errors
    /// The configuration refuses this version, or the state cannot be locked or read.
    pub fn open_for_push(
        session: &'s Session,
        lock: LockFlags,
        snapshot: &'s State,
    ) -> Result<StateSession<'s>, Failure> {
        let place = place(session)?;
        let opening = Opening {
            replacement: Some(snapshot),
            ..Opening::at(&place, &StateFlags::default(), "state-push", lock.timeout)
        };
        Ok(StateSession::open(session, &opening)?)
    }

    /// The store, for those that write while the operation runs.
    #[must_use]
    pub fn store(&self) -> &SharedStore {
        &self.store
    }

    /// Writes the next snapshot if its content differs. If the write is cut short, the next command makes up for it.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn write(&mut self, state: &State) -> Result<(), Failure> {
        journal::begin_edit(&self.store, &self.operation, &self.before, state);
        let result = self.lock_store().write(state, TERRAFORM_VERSION);
        // What could not be written was not changed; the next command does not do it by itself.
        let ended = journal::end(&self.store);
        match result {
            Ok(_) => {
                self.session.show_now(&ended, &SourceMap::default());
                Ok(())
            }
            Err(e) if ended.is_empty() => Err(not_written(&e)),
            Err(e) => Err(Failure::from(ended).and(not_written(&e))),
        }
    }

    /// Writes a snapshot with the serial it has.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn write_snapshot(&mut self, snapshot: State) -> Result<(), state::StateError> {
        self.lock_store().write_snapshot(snapshot).map(drop)
    }

    /// Writes the next snapshot to the store or, where that fails, to `errored.tfstate`, or else to standard output.
    pub fn write_or_rescue(&self, state: &State) -> Diagnostics {
        let Err(error) = self.lock_store().write(state, TERRAFORM_VERSION) else {
            return Diagnostics::new();
        };
        let mut problems: Diagnostics = Diagnostic::error("Failed to save state", format!("{error}")).into();
        let (lineage, serial) = &self.origin;
        let snapshot = State {
            terraform_version: TERRAFORM_VERSION.into(),
            serial: serial.saturating_add(1),
            lineage: if lineage.is_empty() {
                uuid::Uuid::new_v4().to_string()
            } else {
                lineage.clone()
            },
            ..state.clone()
        };
        if let Err(e) = self.lock_store().announce_copy(&snapshot) {
            tracing::warn!("{e}");
        }
        problems.extend(self.rescue(&snapshot));
        problems
    }

    /// Keeps a state that cannot be written where it belongs: in the working directory, in that for temporary files, or else on
    /// standard output.
    fn rescue(&self, snapshot: &State) -> Diagnostics {
        let copy = PathBuf::from(ERRORED_STATE);
        if copy.is_file() {
            // It may be the only record of what an earlier run created.
            let renamed = stamped_backup(&copy);
            if let Err(e) = std::fs::rename(&copy, &renamed) {
                tracing::warn!("{} cannot be moved to {}: {e}", copy.display(), renamed.display());
            }
        }
        let first = match write_copy(&copy, snapshot) {
            Ok(()) => return self.rescued(ERRORED_STATE, "of the working directory").into(),
            Err(e) => e,
        };
        let elsewhere = std::env::temp_dir().join(format!("{}.{ERRORED_STATE}", uuid::Uuid::new_v4()));
        match write_copy(&elsewhere, snapshot) {
            Ok(()) => self
                .rescued(
                    &elsewhere.display().to_string(),
                    "of the directory for temporary files, which may be emptied soon",
                )
                .into(),
            Err(e) => {
                if let Ok(text) = state::document::encode(snapshot) {
                    self.session.ui.exact_line(String::from_utf8_lossy(&text));
                }
                Diagnostic::error(
                    "Failed to create local state file",
                    format!(
                        "The state could not be written to \"{ERRORED_STATE}\": {first}. It could not be written to the directory for \
                         temporary files either: {e}. It is printed on standard output: save that, or the objects in it are \
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
                "The state could not be written where it belongs. To keep the objects that exist from being forgotten, it is in \
                 the file \"{copy}\" {directory}. When the problem is solved, {}.",
                match self.is_file {
                    true => "copy that file over the state file".to_owned(),
                    false => format!("run \"{} state push {copy}\"", program::command()),
                }
            ),
        )
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// The lock cannot be released.
    pub fn unlock(&self) -> Result<(), Diagnostics> {
        self.lock_store().unlock().map_err(|e| problem(&e))
    }

    /// Releases the lock. If that fails, so does the command, whatever its result is.
    pub fn close(self, result: Result<Outcome, Failure>) -> Result<Outcome, Failure> {
        match (self.unlock(), result) {
            (Ok(()), result) => result,
            (Err(problems), Ok(outcome)) => Ok(outcome.and_unplaced(problems)),
            (Err(problems), Err(failure)) => Err(failure.and(problems.into())),
        }
    }

    /// Releases the lock.
    pub fn release(self) -> Result<(), Failure> {
        Ok(self.unlock()?)
    }

    /// Releases the lock of a command that fails.
    pub fn fail(self, failure: Failure) -> Failure {
        match self.unlock() {
            Ok(()) => failure,
            Err(problems) => failure.and(problems.into()),
        }
    }

    fn lock_store(&self) -> MutexGuard<'_, dyn SnapshotStore + 'static> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The failure of a command whose state was not written.
pub fn not_written(error: &state::StateError) -> Failure {
    Failure::new("Failed to save the state", error.to_string())
}

/// A problem with a state as a diagnostic.
#[must_use]
pub fn problem(error: &state::StateError) -> Diagnostics {
    Diagnostic::error(error.summary(), error.to_string()).into()
}

/// The state of a place, or in the file that a flag names.
fn source(place: &StatePlace, flag: Option<&str>) -> Source {
    flag.map_or_else(|| place.source(), |path| Source::File(path.into()))
}

/// A file with the backup that is wanted.
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
/// It cannot be read.
pub fn read_source(source: &Source) -> Result<Option<State>, Diagnostics> {
    match source {
        Source::File(path) => LocalStore::new(path).read(),
        Source::Workspace(store, workspace) => store.open(workspace)?.read(),
    }
    .map_err(|e| problem(&e))
}

/// The state of the selected workspace without a lock, or that of the file a flag names; `None` if there is none.
///
/// # Errors
/// The backend or the workspace cannot be determined, or the state cannot be read.
pub fn read(session: &Session, flag: Option<&str>) -> Result<Option<State>, Failure> {
    // Other problems of the configuration do not matter for the place of the state.
    let (project, problems) = workdir::read(session);
    accept(session, &project, problems)?;
    read_of(session, &project, flag).within(&project.sources)
}

/// The same, whatever else is wrong with the configuration.
///
/// # Errors
/// The same.
pub fn read_leniently(session: &Session, flag: Option<&str>) -> Result<Option<State>, Diagnostics> {
    let (project, _) = workdir::read(session);
    read_of(session, &project, flag)
}

fn read_of(surroundings: &Surroundings, project: &Project, flag: Option<&str>) -> Result<Option<State>, Diagnostics> {
    workdir::state_place(surroundings, Some(&project.config)).and_then(|place| read_source(&source(&place, flag)))
}

/// Where the state of the selected workspace is, for a configuration that accepts this version.
///
/// # Errors
/// The configuration refuses this version, or the backend or the workspace cannot be determined.
pub fn place(session: &Session) -> Result<StatePlace, Failure> {
    let (project, problems) = workdir::read(session);
    accept_version(&project, &problems)?;
    accept(session, &project, problems)?;
    workdir::state_place(session, Some(&project.config)).within(&project.sources)
}

/// Refuses a configuration with errors where variables are set on the command line: only then do they matter.
fn accept(session: &Session, project: &Project, problems: Diagnostics) -> Result<(), Failure> {
    let errors: Diagnostics = problems.into_iter().filter(Diagnostic::is_error).collect();
    if session.invocation.variables.is_empty() || errors.is_empty() {
        return Ok(());
    }
    Err(Failure::within(errors, &project.sources))
}

/// Where the states of all workspaces are, even if the selected one cannot exist.
///
/// # Errors
/// The configuration refuses this version, or the backend cannot be determined.
pub fn place_of_all(session: &Session) -> Result<Place, Failure> {
    let (project, problems) = workdir::read(session);
    accept_version(&project, &problems)?;
    backend::current(session, Some(&project.config)).within(&project.sources)
}

/// Whether a problem is that the configuration refuses this version.
#[must_use]
pub fn is_refusal(problem: &Diagnostic) -> bool {
    problem.is_error() && problem.summary == VERSION_REFUSED
}

fn accept_version(project: &Project, problems: &Diagnostics) -> Result<(), Failure> {
    let refusals: Diagnostics = problems.iter().filter(|d| is_refusal(d)).cloned().collect();
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(Failure::within(refusals, &project.sources)),
    }
}
