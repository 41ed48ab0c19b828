//! Traits of state stores.

use std::sync::Arc;

use async_trait::async_trait;

use super::lock::{LockError, LockInfo};
use crate::diag::{Diagnostic, Diagnostics, Result};
use crate::model::Model;
use crate::schema::Schema;

/// A kind of state store, before it is configured.
///
/// The [`StateClient`] reads and writes states. `monoform_sdk_testing::state_store::conformance` checks an implementation.
#[async_trait]
pub trait StateStore: Send + Sync + 'static {
    /// The configuration, declared by [`model!`](crate::model!).
    type Config: Model;

    /// Returns the schema of the configuration. By default, it is derived from [`StateStore::Config`].
    fn schema(&self) -> Schema {
        Schema::of::<Self::Config>()
    }

    /// Checks rules that the schema's validators cannot express, including those for settings from the environment. Must not send a
    /// request. Warnings are returned here, too.
    fn validate(&self, _config: &Self::Config) -> Diagnostics {
        Diagnostics::new()
    }

    /// Creates the client from the configuration. Missing settings may come from the environment.
    async fn configure(&self, config: Self::Config) -> Result<Arc<dyn StateClient>>;
}

/// The workspaces that a store can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceSupport {
    /// A single state, in the workspace `default`.
    Single,
    /// Any number of workspaces; the default workspace exists if it is listed.
    #[default]
    Named,
    /// Any number of workspaces; the default workspace always exists, possibly without a state.
    NamedAndDefault,
    /// Any number of workspaces; the default workspace always exists. A workspace without a state gets an empty state
    /// when it is opened.
    NamedByState,
    /// Any number of workspaces, none of them named `default`. A workspace may exist without a state; a write of zero
    /// bytes creates one.
    NamedWithoutDefault,
}

/// A configured state store, which answers requests for its states and locks.
#[async_trait]
pub trait StateClient: Send + Sync + 'static {
    /// Returns the workspaces that this store can have.
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::Named
    }

    /// Returns the names of the existing workspaces. Not called for a store with [`WorkspaceSupport::Single`].
    async fn workspaces(&self) -> Result<Vec<String>>;

    /// Returns the state of a workspace; `None` if there is none yet.
    async fn read(&self, workspace: &str) -> Result<Option<Vec<u8>>>;

    /// Replaces the state of a workspace. Creates the workspace if it does not exist.
    async fn write(&self, workspace: &str, state: Vec<u8>) -> Result<()>;

    /// Deletes a workspace with its state. It is not an error if the workspace does not exist.
    async fn delete(&self, workspace: &str) -> Result<()>;

    /// Tries once to lock a workspace. Returns the lock ID for unlocking: the ID in `info`, unless the store creates IDs itself. Returns an
    /// empty ID if the store or its configuration has no locks.
    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError>;

    /// Unlocks a workspace. The lock may belong to another program that has ended without unlocking.
    async fn unlock(&self, workspace: &str, id: &str) -> Result<()>;

    /// Returns true if the store records each object of a state separately, with its history. Such a store answers
    /// [`inquire`](StateClient::inquire) and [`request`](StateClient::request). It never gets encrypted states, because it has to read the
    /// objects.
    fn keeps_objects(&self) -> bool {
        false
    }

    /// Answers a query about the history of a workspace's state. Queries are JSON; the constant `STATE_INQUIRY` of the crate `proto`
    /// documents them. Called only if the store [keeps objects](StateClient::keeps_objects).
    async fn inquire(&self, _workspace: &str, _question: &str) -> Result<Vec<u8>> {
        Err(Diagnostic::error("No history of states", "This store keeps no history of its states.").into())
    }

    /// Carries out a request about single objects of a workspace's state. Requests are JSON; the constant `STATE_REQUEST` of the crate
    /// `proto` documents them. Called only if the store [keeps objects](StateClient::keeps_objects).
    async fn request(&self, _workspace: &str, _request: &str) -> Result<()> {
        Err(Diagnostic::error("No objects in this store", "This store keeps states as a whole.").into())
    }
}
