//! Requests of the core to a state store in another process.

use std::sync::Arc;

use async_trait::async_trait;
use cty::Value;
use schema::Schema;
use syntax::Diagnostics;

use crate::answer::Answer;

/// The workspaces that a store supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceSupport {
    /// A single state.
    Single,
    /// Any number of workspaces; the default workspace exists if it is listed.
    #[default]
    Named,
    /// Any number of workspaces; the default workspace always exists.
    NamedAndDefault,
    /// Any number of workspaces; the default workspace always exists. A workspace without a state gets an empty state
    /// when it is opened.
    NamedByState,
    /// Any number of workspaces, none of them named `default`. A workspace may exist without a state. Writing an empty state creates the
    /// workspace; it does not replace an existing state.
    NamedWithoutDefault,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockRequest {
    /// The purpose, such as `OperationTypeApply`.
    pub operation: String,
    /// Lock info as JSON, in the form in which stores keep it.
    pub info: String,
}

#[derive(Clone, Debug)]
pub enum LockFailure {
    /// Another holder has the lock.
    Held {
        /// Lock info of the current holder as JSON, if known.
        holder: Option<String>,
        /// Diagnostics of the store.
        problems: Diagnostics,
    },
    Failed(Diagnostics),
}

/// A state store: one state, as bytes, for each workspace.
#[async_trait]
pub trait StateStore: Send + Sync {
    /// Returns the schema of the store's configuration.
    async fn schema(&self) -> Result<Arc<Schema>, Diagnostics>;

    /// Returns the schema of the configuration of the store's provider.
    async fn provider_schema(&self) -> Result<Arc<Schema>, Diagnostics>;

    /// Checks the configuration of the store's provider and sends it, before the configuration of the store.
    async fn configure_provider(&self, config: Value) -> Result<Answer<()>, Diagnostics>;

    /// Checks the configuration of the store. Environment variables may provide arguments that it lacks.
    async fn validate(&self, config: Value) -> Result<Answer<()>, Diagnostics>;

    /// Sends the configuration of the store, before all requests that follow.
    async fn configure(&self, config: Value) -> Result<Answer<WorkspaceSupport>, Diagnostics>;

    /// Returns true if the configured store keeps each object of a state as a separate record with its history, and answers queries about
    /// it.
    fn keeps_objects(&self) -> bool;

    /// Queries the history of a workspace's state, which only stores that keep objects have. Query and answer are JSON, except that an
    /// earlier state is returned as its document.
    async fn inquire(&self, workspace: &str, question: &str) -> Result<Vec<u8>, Diagnostics>;

    /// Sends a store that keeps objects a request about single objects, in JSON: `proto::STATE_REQUEST` lists them.
    async fn request(&self, workspace: &str, request: &str) -> Result<(), Diagnostics>;

    async fn workspaces(&self) -> Result<Vec<String>, Diagnostics>;

    /// Returns the state of a workspace; empty if there is none.
    async fn read(&self, workspace: &str) -> Result<Vec<u8>, Diagnostics>;

    async fn write(&self, workspace: &str, state: Vec<u8>) -> Result<(), Diagnostics>;

    /// Deletes a workspace with its state.
    async fn delete(&self, workspace: &str) -> Result<(), Diagnostics>;

    /// Tries once to lock a workspace. Returns the lock's name; empty if the store has no locks.
    async fn lock(&self, workspace: &str, request: &LockRequest) -> Result<String, LockFailure>;

    async fn unlock(&self, workspace: &str, id: &str) -> Result<(), Diagnostics>;

    /// Ends the store's plugin.
    async fn close(&self);
}
