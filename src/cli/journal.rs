//! The journal of an operation, and the report about one that an earlier run has left: see [`state::journal`].

use std::sync::PoisonError;

use engine::plan::Plan;
use state::journal::Writer;
use state::{SharedStore, SnapshotStore};
use syntax::{Diagnostic, Diagnostics, SourceMap};

use crate::TERRAFORM_VERSION;
use crate::session::Session;
use crate::state_session::problem;

/// Reports what the journal of an earlier run meant for the state that was just read, and removes it after that.
pub fn report(session: &Session, store: &mut dyn SnapshotStore) -> Result<(), Diagnostics> {
    let Some(left) = store.journal_report() else {
        return Ok(());
    };
    if left.matters() {
        let warning = Diagnostic::warning(left.summary(), left.to_string());
        session.show(&warning.into(), &SourceMap::default());
        session.ui.flush();
    }
    store.forget_journal().map_err(|e| problem(&e))
}

/// Begins the journal for a plan that changes something. Where it cannot be created, the operation continues, with a warning.
pub fn begin(plan: &Plan, store: &SharedStore, operation: &str) -> (Option<Writer>, Diagnostics) {
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
                    "{e}. The operation continues without it: results are saved at intervals only, and those of the last moment \
                     are lost if this program is killed."
                ),
            );
            (None, warning.into())
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
