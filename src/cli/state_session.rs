//! Opening and closing the states of commands, by flags and configuration.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use state::State;
use stores::backend::store::Store;
use stores::backend::{self, Source, StateBackend, StateLocation};
use stores::session::{Backup, Opening, StateSession, read_source};
use syntax::{Diagnostic, Diagnostics};

use crate::args::groups::{LockFlags, StateFlags};
use crate::outcome::{Failure, Outcome, Within as _};
use crate::session::{Session, Surroundings};
use crate::workdir::{self, Project};

/// Summaries of the errors for a configuration that requires another version.
const VERSION_REFUSED: [&str; 2] = ["Unsupported Terraform Core version", "Incompatible module"];

/// Opens a state for a command that changes it without planning.
///
/// # Errors
/// The configuration refuses this version, or the state cannot be locked or read.
pub fn open_for_edit<'s>(
    session: &'s Session,
    files: &StateFlags,
    lock: LockFlags,
    operation: &str,
    backup: Backup,
) -> Result<StateSession<'s>, Failure> {
    let location = location(session)?;
    let opening = Opening {
        backup,
        ..opening(&location, files, operation, lock.timeout)
    };
    Ok(StateSession::open_for_edit(session.stores(), &opening)?)
}

/// Opens a state that `state push` replaces by a snapshot.
///
/// # Errors
/// The configuration refuses this version, or the state cannot be locked or read.
pub fn open_for_push<'s>(session: &'s Session, lock: LockFlags, snapshot: &State) -> Result<StateSession<'s>, Failure> {
    let location = location(session)?;
    let opening = Opening {
        replacement: Some(snapshot),
        ..opening(&location, &StateFlags::default(), "state-push", lock.timeout)
    };
    Ok(StateSession::open(session.stores(), &opening)?)
}

/// Returns the options for opening the state of a location, or of the files in the flags.
#[must_use]
fn opening<'a>(
    location: &StateLocation,
    files: &StateFlags,
    operation: &'a str,
    lock: Option<Duration>,
) -> Opening<'a> {
    Opening {
        out: files.out.as_deref().map(PathBuf::from),
        backup: Backup::optional(files.backup.as_deref()),
        ..Opening::new(source(location, files.state.as_deref()), operation, lock)
    }
}

/// Returns the options for opening the state of an operation.
#[must_use]
pub fn opening_of_operation<'a>(
    location: &StateLocation,
    files: &StateFlags,
    operation: &'a str,
    lock: Option<Duration>,
) -> Opening<'a> {
    match &location.backend {
        StateBackend::Local(_) => opening(location, files, operation, lock),
        // -state, -state-out and -backup are flags of the local backend.
        StateBackend::Store(_) => Opening::new(location.source(), operation, lock),
    }
}

/// End of a command's work with a state.
pub trait Closing {
    /// Releases the lock. If that fails, the command fails, whatever its result is.
    fn close(self, result: Result<Outcome, Failure>) -> Result<Outcome, Failure>;

    /// Releases the lock of a command that fails.
    fn fail(self, failure: Failure) -> Failure;
}

impl Closing for StateSession<'_> {
    fn close(self, result: Result<Outcome, Failure>) -> Result<Outcome, Failure> {
        match (self.unlock(), result) {
            (Ok(()), result) => result,
            (Err(problems), Ok(outcome)) => Ok(outcome.and_unplaced(problems)),
            (Err(problems), Err(failure)) => Err(failure.and(problems.into())),
        }
    }

    fn fail(self, failure: Failure) -> Failure {
        match self.unlock() {
            Ok(()) => failure,
            Err(problems) => failure.and(problems.into()),
        }
    }
}

/// Returns the source to read the state from: the file that the flag names, or else the backend location.
fn source(location: &StateLocation, flag: Option<&str>) -> Source {
    flag.map_or_else(|| location.source(), |path| Source::File(path.into()))
}

/// Reads the state of the selected workspace, or of the file in the flag, without a lock; `None` if there is no
/// state.
///
/// # Errors
/// The backend or the workspace cannot be determined, or the state cannot be read.
pub fn read(session: &Session, flag: Option<&str>) -> Result<Option<State>, Failure> {
    // Other errors of the configuration do not affect the location of the state.
    let (project, problems) = workdir::read(session);
    accept(session, &project, problems)?;
    read_of(session, &project, flag).within(&project.sources)
}

/// Reads the state; `None` if there is none. Errors of the configuration that do not concern the backend are ignored.
///
/// # Errors
/// The backend or the workspace cannot be determined, or the state cannot be read.
pub fn read_leniently(session: &Session, flag: Option<&str>) -> Result<Option<State>, Diagnostics> {
    let (project, _) = workdir::read(session);
    read_of(session, &project, flag)
}

fn read_of(session: &Session, project: &Project, flag: Option<&str>) -> Result<Option<State>, Diagnostics> {
    let context = session.stores();
    backend::selected(&context, Some(&project.config))
        .and_then(|location| read_source(&context, &source(&location, flag)))
}

/// Returns the location of the selected workspace's state, for a configuration that accepts this version.
///
/// # Errors
/// The configuration refuses this version, or the backend or the workspace cannot be determined.
pub fn location(session: &Session) -> Result<StateLocation, Failure> {
    let (project, problems) = workdir::read(session);
    accept_version(&project, &problems)?;
    accept(session, &project, problems)?;
    backend::selected(&session.stores(), Some(&project.config)).within(&project.sources)
}

/// Returns the store and the workspace of the selected state, which must have a history.
///
/// # Errors
/// The location cannot be determined, or the state has no history there.
pub fn with_history(session: &Session) -> Result<(Arc<Store>, String), Failure> {
    let location = location(session)?;
    match location.source() {
        Source::Workspace(store, workspace) if store.keeps_objects() => Ok((store, workspace)),
        _ => Err(Failure::new(
            "No history of this state",
            format!(
                "The backend \"{}\" keeps the current state only. The backend \"pg\" with layout = \"objects\" keeps the history, \
                 too: see \"{} help postgres\".",
                location.backend.ty(),
                session.ui.program.command
            ),
        )),
    }
}

/// Parses the number of a run.
///
/// # Errors
/// The text is no number.
pub fn run_number(text: &str) -> Result<i64, Failure> {
    text.parse().map_err(|_| {
        Failure::usage(
            "Invalid number of a run",
            format!("\"{text}\" is not the number of a run. \"state history\" lists the runs."),
        )
    })
}

/// Returns the errors of the configuration if variables are set on the command line. Without variables, commands that only use the state
/// ignore these errors.
///
/// # Errors
/// The configuration has errors, and variables are set.
pub fn accept(session: &Session, project: &Project, problems: Diagnostics) -> Result<(), Failure> {
    let errors: Diagnostics = problems.into_iter().filter(Diagnostic::is_error).collect();
    if session.invocation.variables.is_empty() || errors.is_empty() {
        return Ok(());
    }
    Err(Failure::within(errors, &project.sources))
}

/// Returns the backend with the states of all workspaces, even if the selected workspace has an invalid name.
///
/// # Errors
/// The configuration refuses this version, or the backend cannot be determined.
pub fn backend_of_all(session: &Session) -> Result<StateBackend, Failure> {
    let (project, problems) = workdir::read(session);
    accept_version(&project, &problems)?;
    accept(session, &project, problems)?;
    backend::current(&session.stores(), Some(&project.config)).within(&project.sources)
}

/// Returns true if a diagnostic reports that the configuration refuses this version.
#[must_use]
pub fn is_refusal(problem: &Diagnostic) -> bool {
    problem.is_error() && VERSION_REFUSED.iter().any(|summary| problem.summary == *summary)
}

fn accept_version(project: &Project, problems: &Diagnostics) -> Result<(), Failure> {
    let refusals: Diagnostics = problems.iter().filter(|d| is_refusal(d)).cloned().collect();
    match refusals.is_empty() {
        true => Ok(()),
        false => Err(Failure::within(refusals, &project.sources)),
    }
}

pub fn warn_of_state_flag(surroundings: &Surroundings, files: &StateFlags) {
    if files.state.is_some() {
        let warning = Diagnostic::warning(
            "Deprecated flag: -state",
            "Use the \"path\" argument of the \"local\" backend instead: then every command knows where the state is.",
        );
        surroundings.warn_now(warning);
    }
}
