//! Journal of an operation, and the report on the journal of an earlier run: see [`state::journal`].

use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use addrs::AbsResourceInstance;
use addrs::program::core_version;
use engine::plan::Plan;
use state::journal::{Intent, IntentAction, JournalError, Writer, changes};
use state::{Codec, SharedStore, SnapshotStore, State, StateError};
use syntax::{Diagnostic, Diagnostics};

use crate::Context;
use crate::problem::{ERRORED_STATE, problem};

/// Maximum number of addresses or files in a message.
const NAMED: usize = 20;

/// Reports the journal that an earlier run has left for the state that was just read, and then removes the journal.
pub fn report(context: &Context<'_>, store: &mut dyn SnapshotStore, state: Option<&State>) -> Result<(), Diagnostics> {
    if store.journal_report().is_none() {
        return Ok(());
    }
    let codec = context.encryption.states()?;
    if let Some(warning) = warning(&codec, store, state) {
        context.warn(warning);
        // The report must be on the screen before the journal is removed, because then it is the only record of the journal's contents.
        context.console.flush();
    }
    store.forget_journal().map_err(|e| problem(&e))
}

/// Returns the report on the journal of an earlier run, if the user must know of it. The journal is removed after it was shown.
pub fn warning(codec: &Codec, store: &dyn SnapshotStore, state: Option<&State>) -> Option<Diagnostic> {
    let left = store.journal_report().filter(|left| left.matters())?;
    let mut detail = left.to_string();
    if state.is_some_and(|state| is_needless(codec, Path::new(ERRORED_STATE), state)) {
        detail.push_str(&format!(
            "\nAll objects in the file {ERRORED_STATE} are in the state, so that file is not needed any more."
        ));
    }
    Some(Diagnostic::warning(left.summary(), detail))
}

/// Returns true if a state that could not be written to its store has objects, and all of them are in this one.
/// Lineages are not compared: the copy of a first state has a lineage of its own.
fn is_needless(codec: &Codec, copy: &Path, state: &State) -> bool {
    let Some(rescued) = read_copy(codec, copy) else {
        return false;
    };
    rescued.has_resources() && missing(state, &rescued).is_empty()
}

/// Reads a copy of a state, if it can be read.
fn read_copy(codec: &Codec, copy: &Path) -> Option<State> {
    state::store::read_copy(copy, codec).ok().flatten()
}

/// Returns the instances whose objects in the rescued copy are missing in the state, or differ.
fn missing(state: &State, rescued: &State) -> Vec<AbsResourceInstance> {
    changes(state, rescued)
        .into_iter()
        .filter(|outcome| outcome.objects.is_some())
        .map(|outcome| outcome.address)
        .collect()
}

/// Warns of copies of states that earlier runs could not write to their store, if a copy has objects that the stored state does not have.
/// Copies of other states are ignored, as are copies that are older than the stored state, because later runs have continued without them.
pub fn report_copies(context: &Context<'_>, state: Option<&State>, is_file: bool) {
    let empty = State::new();
    let state = state.unwrap_or(&empty);
    let Ok(codec) = context.encryption.states() else { return };
    for copy in copies() {
        let Some(rescued) = read_copy(&codec, &copy) else {
            continue;
        };
        let same = rescued.lineage == state.lineage && rescued.serial >= state.serial;
        // The first state of a directory has no lineage to compare with.
        let first = !state.has_resources() && state.lineage.is_empty() && copy == Path::new(ERRORED_STATE);
        let missing = missing(state, &rescued);
        if missing.is_empty() || !(same || first) {
            continue;
        }
        let shown = copy.display();
        let named: String = missing
            .iter()
            .take(NAMED)
            .map(|address| format!("\n  - {address}"))
            .collect();
        let more = match missing.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("\n  - and {more} more"),
        };
        let how = match is_file {
            true => "copy that file over the state file".to_owned(),
            false => format!("run \"{} state push {shown}\"", context.program.command),
        };
        let warning = Diagnostic::warning(
            "Results of an earlier run are not in the state",
            format!(
                "An earlier run could not save the state, and left it in the file {shown}. These objects are in that file and not in the state, \
                 or differ from it:{named}{more}\nTo take them over, {how}. Otherwise apply creates the missing ones again. If you do not \
                 need the file any more, remove it."
            ),
        );
        context.warn(warning);
        context.console.flush();
    }
}

/// Lists the copies of states that could not be saved: in the working directory, then in the directory for temporary
/// files.
fn copies() -> Vec<PathBuf> {
    let suffix = format!(".{ERRORED_STATE}");
    let temporary = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = temporary
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(&suffix))
        // The directory is shared, so other users may have put files with such names there.
        .filter(|entry| {
            let own = |found: std::fs::Metadata| found.is_file() && system::files::is_own(&found);
            entry.metadata().is_ok_and(own)
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.truncate(NAMED);
    found.insert(0, ERRORED_STATE.into());
    found.retain(|path| path.is_file());
    found
}

/// Begins the journal for a plan that changes objects in a state, or their recorded values; `None` for any other plan. If the journal
/// cannot be created, a warning is returned and the operation continues.
pub fn begin(before: &State, plan: &Plan, store: &SharedStore, operation: &str) -> (Option<Writer>, Diagnostics) {
    if plan.graph.operations() == 0 && changes(before, &plan.prior_state).is_empty() {
        return (None, Diagnostics::new());
    }
    match started(store, operation) {
        Ok(journal) => (journal, Diagnostics::new()),
        Err(e) => {
            let warning = Diagnostic::warning(
                "No journal",
                format!(
                    "{e}. The operation continues without it: results are saved at intervals only, and those since the last save \
                     are lost if this program is killed."
                ),
            );
            (None, warning.into())
        }
    }
}

fn started(store: &SharedStore, operation: &str) -> Result<Option<Writer>, StateError> {
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    store.begin_journal(operation, core_version())
}

/// Begins the journal of a command that edits only the state, and makes its result durable. If that fails, the command continues, because
/// only its own result could be lost.
pub fn begin_edit(store: &SharedStore, operation: &str, before: &State, after: &State) {
    let outcomes = changes(before, after);
    if outcomes.is_empty() {
        return;
    }
    let written = match started(store, operation) {
        Ok(Some(journal)) => {
            for outcome in outcomes {
                journal.outcome(outcome);
            }
            journal.sync().wait()
        }
        Ok(None) => Ok(()),
        Err(e) => Err(JournalError::from(e)),
    };
    if let Err(e) = written {
        tracing::warn!("no journal: {e}");
    }
}

/// Begins the journal of an import. If that fails, or the store has no journals, the result is `None` and the import continues, because it
/// changes only the state.
pub fn begin_import(store: &SharedStore, operation: &str, address: &AbsResourceInstance, by: String) -> Option<Writer> {
    let intent = Intent {
        address: address.to_string(),
        deposed: None,
        action: IntentAction::Import,
        by,
        planned: String::new(),
    };
    match started(store, operation) {
        Ok(journal) => {
            if let Some(Err(e)) = journal.as_ref().map(|journal| journal.begin(&intent).wait()) {
                tracing::warn!("no journal: {e}");
            }
            journal
        }
        Err(e) => {
            tracing::warn!("no journal: {e}");
            None
        }
    }
}

/// Ends the journal of an operation whose results have been saved.
pub fn end(store: &SharedStore) -> Diagnostics {
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    match store.end_journal() {
        Ok(()) => Diagnostics::new(),
        Err(e) => Diagnostic::warning(
            "Journal not removed",
            format!("{e}. The state has everything that is in it; the next command removes it."),
        )
        .into(),
    }
}
