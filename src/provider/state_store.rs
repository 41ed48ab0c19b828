//! What the core calls on a state store that is not in its own process.

use std::sync::Arc;

use async_trait::async_trait;
use cty::Value;
use schema::Schema;
use syntax::Diagnostics;

use crate::contract::Answer;

/// Which workspaces a store can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceSupport {
    /// One state only.
    Single,
    /// Any number; the default one is there if it is listed.
    #[default]
    Named,
    /// Any number, and the default one is always there.
    NamedAndDefault,
    /// Any number, and the default one is always there. One that has no state gets an empty one when it is opened.
    NamedByState,
    /// Any number, but none is called `default`. One is there without a state, too; writing nothing makes it.
    NamedWithoutDefault,
}

/// Who asks for a lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockRequest {
    /// What for, such as `OperationTypeApply`.
    pub operation: String,
    /// All about it, as the JSON text that stores keep.
    pub info: String,
}

/// Why a lock could not be had.
#[derive(Clone, Debug)]
pub enum LockFailure {
    /// Somebody else has it.
    Held {
        /// Who, as the JSON text of a lock, if that is known.
        holder: Option<String>,
        /// What the store says.
        problems: Diagnostics,
    },
    /// Something else went wrong.
    Failed(Diagnostics),
}

/// A state store: a state, as bytes, for each workspace.
#[async_trait]
pub trait StateStore: Send + Sync {
    /// The schema of its configuration.
    async fn schema(&self) -> Result<Arc<Schema>, Diagnostics>;

    /// The schema of the provider that has the store.
    async fn provider_schema(&self) -> Result<Arc<Schema>, Diagnostics>;

    /// Checks a configuration of the provider that has the store, and hands it over, before the store's own.
    async fn configure_provider(&self, config: Value) -> Result<Answer<()>, Diagnostics>;

    /// Checks a configuration; the environment may add to it.
    async fn validate(&self, config: Value) -> Result<Answer<()>, Diagnostics>;

    /// Hands over the configuration, before everything that follows.
    async fn configure(&self, config: Value) -> Result<Answer<WorkspaceSupport>, Diagnostics>;

    /// The workspaces there are.
    async fn workspaces(&self) -> Result<Vec<String>, Diagnostics>;

    /// The state of a workspace; empty if there is none.
    async fn read(&self, workspace: &str) -> Result<Vec<u8>, Diagnostics>;

    /// Puts a state in the place of the one that is there.
    async fn write(&self, workspace: &str, state: Vec<u8>) -> Result<(), Diagnostics>;

    /// Deletes a workspace with its state.
    async fn delete(&self, workspace: &str) -> Result<(), Diagnostics>;

    /// Tries once to lock a workspace. Gives the name of the lock; an empty one if there are no locks.
    async fn lock(&self, workspace: &str, request: &LockRequest) -> Result<String, LockFailure>;

    /// Unlocks a workspace.
    async fn unlock(&self, workspace: &str, id: &str) -> Result<(), Diagnostics>;

    /// Ends it.
    async fn close(&self);
}
