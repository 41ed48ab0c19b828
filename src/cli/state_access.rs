//! A state that is opened to be changed by hand: outside of plan and apply, with no provider at work.

use std::path::PathBuf;
use std::time::Duration;

use state::pending::stamped_backup;
use state::store::LocalStore;
use state::{LockInfo, State};
use syntax::{Diagnostic, Diagnostics, SourceMap};

use crate::TERRAFORM_VERSION;
use crate::args::matches::Given;
use crate::session::{Session, Status};
use crate::workdir::{self, StatePlace};

/// What a configuration's refusal of this version is headed.
const VERSION_REFUSED: &str = "Unsupported Terraform Core version";

/// Where the state as it was is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backup {
    /// In `NAME.backup`, over the one before; `-backup=-` turns it off.
    Beside,
    /// In a file with the time in its name, always.
    Stamped,
}

/// A state that is opened to be changed.
pub struct Opened {
    store: LocalStore,
    /// What it says; `None` if there is no state.
    pub state: Option<State>,
}

/// Which state, and how it is opened.
pub struct How<'a> {
    /// What the lock says is done.
    pub operation: &'a str,
    /// The file, if it is not where the configuration says.
    pub path: Option<&'a str>,
    /// The file to write, if it is another.
    pub out: Option<&'a str>,
    /// The file for the backup, as a flag says it.
    pub backup: Option<&'a str>,
    /// What is done when no flag says it.
    pub rule: Backup,
}

impl Opened {
    /// Opens the state that flags and configuration say; problems have been shown when it fails.
    pub fn new(session: &Session, given: &Given, operation: &str, rule: Backup) -> Result<Opened, Status> {
        let how = How {
            operation,
            path: given.value("state"),
            out: given.value("state-out").filter(|_| rule == Backup::Beside),
            backup: given.value("backup"),
            rule,
        };
        Opened::with(session, given.lock(), &how)
    }

    /// The same, with everything said.
    pub fn with(session: &Session, lock: Option<Duration>, how: &How<'_>) -> Result<Opened, Status> {
        let place = place(session)?;
        let path = how.path.map_or(place.path, PathBuf::from);
        let mut store = LocalStore::new(path.clone());
        let mut written = path;
        if let Some(out) = how.out {
            written = PathBuf::from(out);
            store = store.writing_to(out);
        }
        store = match (how.rule, how.backup) {
            (Backup::Beside, None) => store,
            (Backup::Beside, Some("-")) => store.with_backup(None),
            (Backup::Stamped, None | Some("-" | "")) => store.with_backup(Some(stamped_backup(&written))),
            (_, Some(path)) => store.with_backup(Some(path.into())),
        };
        let shown = |e: state::StateError| {
            session.show(&workdir::state_problem(&e), &SourceMap::default());
            1
        };
        if let Some(timeout) = lock {
            let info = LockInfo::new(how.operation, TERRAFORM_VERSION);
            session.ui.flush();
            let waiting = workdir::while_locking(session, || false);
            store.lock(&info, timeout, &waiting).map_err(shown)?;
        }
        let state = store.read().map_err(shown)?;
        workdir::show_recovery(session, &mut store);
        Ok(Opened { store, state })
    }

    /// Writes the next snapshot, if it says anything new; problems have been shown when it fails.
    pub fn write(&mut self, session: &Session, state: &State) -> Result<(), Status> {
        self.store
            .write(state, TERRAFORM_VERSION)
            .map(drop)
            .map_err(|e| not_written(session, &e))
    }

    /// Writes a snapshot as it is; problems have been shown when it fails.
    pub fn write_snapshot(&mut self, session: &Session, snapshot: State) -> Result<(), Status> {
        self.store
            .write_snapshot(snapshot)
            .map(drop)
            .map_err(|e| not_written(session, &e))
    }

    /// Releases the lock, and tells if that fails.
    pub fn close(mut self, session: &Session, status: Status) -> Status {
        match self.store.unlock() {
            Ok(()) => status,
            Err(e) => {
                session.show(&workdir::state_problem(&e), &SourceMap::default());
                1
            }
        }
    }
}

fn not_written(session: &Session, error: &state::StateError) -> Status {
    session.fail("Failed to save the state", error.to_string())
}

/// Where the state of the selected workspace is, once it is sure that this version may touch it.
pub fn place(session: &Session) -> Result<StatePlace, Status> {
    let (project, problems) = workdir::read(session);
    // Only two things in the configuration are of interest: who may work with it, and where the state is.
    let wrong_version = |d: &Diagnostic| d.is_error() && d.summary == VERSION_REFUSED;
    let refusals: Diagnostics = problems.into_iter().filter(wrong_version).collect();
    if session.show(&refusals, &project.sources) {
        return Err(1);
    }
    workdir::state_place(session, Some(&project.config)).map_err(|problems| {
        session.show(&problems, &project.sources);
        1
    })
}
