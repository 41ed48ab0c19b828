//! Requests to a store that stores each object separately: locks on parts of a state, and unfinished operations.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use state::journal::format::InFlight;
use state::journal::{JournalReport, RecordSink, parts};
use state::sealed::Sealer;
use state::{Claims, ScopedResource, State, StateError};
use syntax::{Diagnostic, Diagnostics};

use super::store::{Store, error};

/// An operation of an earlier run that was started and has no result.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct UnfinishedOperation {
    operation: i64,
    /// Operation of the run, such as `OperationTypeApply`.
    run: String,
    started_at: String,
    pub intent: InFlight,
}

/// Operations of earlier runs without a result, and the report on them.
#[derive(Debug, Default)]
pub(super) struct Unfinished {
    found: Vec<UnfinishedOperation>,
    /// Numbers of the operations that have been reported to the user.
    told: BTreeSet<i64>,
    /// Report on the operations that have not been reported to the user.
    pub report: Option<JournalReport>,
}

impl Unfinished {
    /// Replaces the operations by newly found ones.
    pub fn replace(&mut self, found: Vec<UnfinishedOperation>, shown: String, state: Option<&State>) {
        let new: Vec<&UnfinishedOperation> = found.iter().filter(|o| !self.told.contains(&o.operation)).collect();
        let run = new.first().map(|first| (first.run.clone(), first.started_at.clone()));
        let in_flight: Vec<InFlight> = new.iter().map(|operation| operation.intent.clone()).collect();
        self.report = (!new.is_empty()).then(|| JournalReport::of_unfinished(shown, run, in_flight, state));
        self.found = found;
    }

    /// Takes the numbers of all operations, which from now on count as reported to the user.
    pub fn take(&mut self) -> Vec<i64> {
        self.report = None;
        let operations: Vec<i64> = self.found.drain(..).map(|found| found.operation).collect();
        self.told.extend(&operations);
        operations
    }
}

/// Sink that sends the records of a run to the store.
pub(super) struct Records {
    pub store: Arc<Store>,
    pub workspace: String,
    pub sealer: Arc<Sealer>,
}

impl RecordSink for Records {
    fn record(&mut self, records: &str) -> Result<(), StateError> {
        let request = format!("{{\"record\":{}}}", self.sealer.seal_records(records)?);
        self.store.request(&self.workspace, &request).map_err(error)
    }
}

fn scope(scope: &ScopedResource) -> Json {
    json!({
        "instance": scope.within.to_string(),
        "module": scope.resource.module.to_string(),
        "mode": scope.resource.resource.mode.as_str(),
        "type": &*scope.resource.resource.ty,
        "name": &*scope.resource.resource.name,
    })
}

impl Store {
    fn request(&self, workspace: &str, request: &str) -> Result<(), Diagnostics> {
        self.process().wait(self.process().plugin().request(workspace, request))
    }

    /// Announces what the lock with this ID will be on, or, without `locked`, what its run changes without a lock.
    pub(super) fn claim(&self, workspace: &str, lock: &str, claims: &Claims, locked: bool) -> Result<(), Diagnostics> {
        let request = json!({"claim": {
            "lock": lock,
            "locked": locked,
            "objects": claims.objects.iter().map(parts).collect::<Vec<_>>(),
            "outputs": claims.outputs.iter().map(|name| &**name).collect::<Vec<&str>>(),
            "within": claims.within().iter().map(scope).collect::<Vec<_>>(),
            "shared": claims.needed.iter().map(scope).collect::<Vec<_>>(),
        }});
        self.request(workspace, &request.to_string())
    }

    /// Lists the operations of earlier runs without a result.
    pub(super) fn unfinished(&self, workspace: &str) -> Result<Vec<UnfinishedOperation>, Diagnostics> {
        let question = json!({"unfinished": {}}).to_string();
        let text = self
            .process()
            .wait(self.process().plugin().inquire(workspace, &question))?;
        serde_json::from_slice(&text).map_err(|e| {
            let detail = format!(
                "The answer of the backend \"{}\" cannot be read: {}.",
                self.ty(),
                files::json_reason(e)
            );
            Diagnostic::error("Error reading the state", detail).into()
        })
    }

    /// Makes the store forget operations that have been reported to the user.
    pub(super) fn forget(&self, workspace: &str, operations: &[i64]) -> Result<(), Diagnostics> {
        self.request(workspace, &json!({"forget": {"operations": operations}}).to_string())
    }
}
