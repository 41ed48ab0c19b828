//! The journal of an operation, and what is told about one that an earlier run has left: see [`state::journal`].

use std::sync::{Arc, Mutex, PoisonError};

use engine::plan::Plan;
use state::journal::Writer;
use state::store::LocalStore;
use syntax::{Diagnostic, Diagnostics, SourceMap};

use crate::TERRAFORM_VERSION;
use crate::session::Session;
use crate::state_session::problem;

/// Tells what the journal of an earlier run meant for the state that was just read, and removes it after that.
pub fn tell(session: &Session, store: &mut LocalStore) -> Result<(), Diagnostics> {
    let Some(report) = store.journal_report() else {
        return Ok(());
    };
    if report.matters() {
        let warning = Diagnostic::warning(report.summary(), report.to_string());
        session.show(&warning.into(), &SourceMap::default());
        session.ui.flush();
    }
    store.forget_journal().map_err(|e| problem(&e))
}

/// Begins the journal for a plan that changes something. Where it cannot be created, the operation goes on with a warning.
pub fn begin(plan: &Plan, store: &Arc<Mutex<LocalStore>>, operation: &str) -> (Option<Writer>, Diagnostics) {
    if plan.graph.operations() == 0 {
        return (None, Diagnostics::new());
    }
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    match store.begin_journal(operation, TERRAFORM_VERSION) {
        Ok(journal) => (journal, Diagnostics::new()),
        Err(e) => {
            let warning = Diagnostic::warning(
                "No journal",
                format!(
                    "{e}. The operation goes on without: results are saved at intervals only, and those of the last moment \
                     are lost if this program is killed."
                ),
            );
            (None, warning.into())
        }
    }
}

/// Ends the journal of an operation whose results have been saved.
pub fn end(store: &Arc<Mutex<LocalStore>>) -> Diagnostics {
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
