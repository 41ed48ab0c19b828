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

    /// The schema of the configuration. By default, it is that of the model.
    fn schema(&self) -> Schema {
        Schema::of::<Self::Config>()
    }

    /// Checks rules that the schema's validators cannot express, together with settings from the environment. Must make no
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
    /// Any number of workspaces; the default one always exists, possibly without a state.
    NamedAndDefault,
    /// Any number of workspaces; the default workspace always exists. A workspace without a state gets an empty state
    /// when it is opened.
    NamedByState,
    /// Any number of workspaces, none of them named `default`. A workspace may exist without a state; a write of zero
    /// bytes creates one.
    NamedWithoutDefault,
}

/// A configured state store: the requests about its states and locks.
#[async_trait]
pub trait StateClient: Send + Sync + 'static {
    /// Returns the kind of workspaces that this store supports.
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::Named
    }

    /// Returns the names of the existing workspaces. Not called for a store with a single one.
    async fn workspaces(&self) -> Result<Vec<String>>;

    /// Returns the state of a workspace; `None` if there is none yet.
    async fn read(&self, workspace: &str) -> Result<Option<Vec<u8>>>;

    /// Replaces the state of a workspace, which is created if it does not exist.
    async fn write(&self, workspace: &str, state: Vec<u8>) -> Result<()>;

    /// Deletes a workspace with its state. A workspace that no longer exists is no error.
    async fn delete(&self, workspace: &str) -> Result<()>;

    /// Tries once to lock a workspace. Returns the ID for unlocking, which is that of `info` unless the store creates IDs
    /// itself; empty if the store or its configuration has no locks.
    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError>;

    /// Unlocks a workspace. The lock may belong to another program that has ended without unlocking.
    async fn unlock(&self, workspace: &str, id: &str) -> Result<()>;

    /// Returns true if the store keeps each object of a state apart, with its history. Such a store answers
    /// [`inquire`](StateClient::inquire), and gets no encrypted states.
    fn keeps_objects(&self) -> bool {
        false
    }

    /// Answers a question about the history of a workspace's state. The questions, in JSON, are those of the constant
    /// `STATE_INQUIRY` of the crate `proto`. Called only if the store [keeps objects](StateClient::keeps_objects).
    async fn inquire(&self, _workspace: &str, _question: &str) -> Result<Vec<u8>> {
        Err(Diagnostic::error("No history of states", "This store keeps no history of its states.").into())
    }

    /// Carries out a request about single objects of a workspace's state. The requests, in JSON, are those of the constant
    /// `STATE_REQUEST` of the crate `proto`. Called only if the store [keeps objects](StateClient::keeps_objects).
    async fn request(&self, _workspace: &str, _request: &str) -> Result<()> {
        Err(Diagnostic::error("No objects in this store", "This store keeps states as a whole.").into())
    }
}
