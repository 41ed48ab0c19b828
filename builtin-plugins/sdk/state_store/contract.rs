//! The traits of state stores.

use std::sync::Arc;

use async_trait::async_trait;

use super::lock::{LockError, LockInfo};
use crate::diag::{Diagnostics, Result};
use crate::model::Model;
use crate::schema::Schema;

/// A kind of state store, before it is configured.
#[async_trait]
pub trait StateStore: Send + Sync + 'static {
    /// The configuration, declared by [`model!`](crate::model!).
    type Config: Model;

    /// The schema of the configuration. By default, it is that of the model.
    fn schema(&self) -> Schema {
        Schema::of::<Self::Config>()
    }

    /// Checks a configuration beyond what the rules of its attributes say, together with what the environment adds to it. No
    /// request is made yet. Warnings go here, too.
    fn validate(&self, _config: &Self::Config) -> Diagnostics {
        Diagnostics::new()
    }

    /// Makes a configuration into a client. What is not configured may come from the environment.
    async fn configure(&self, config: Self::Config) -> Result<Arc<dyn StateClient>>;
}

/// The workspaces that a store can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceSupport {
    /// One state only, in the workspace `default`.
    Single,
    /// Any number of workspaces; the default workspace exists if it is listed.
    #[default]
    Named,
    /// Any number, and the default one is always there, though it may not have a state yet.
    NamedAndDefault,
    /// Any number of workspaces; the default workspace always exists. A workspace without a state gets an empty state
    /// when it is opened.
    NamedByState,
    /// Any number of workspaces, none of them named `default`. A workspace may exist without a state; writing no state
    /// creates it.
    NamedWithoutDefault,
}

/// A configured state store: the requests about its states and locks.
#[async_trait]
pub trait StateClient: Send + Sync + 'static {
    /// The workspaces that this store can have.
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::Named
    }

    /// The workspaces that there are. Not called for a store with a single one.
    async fn workspaces(&self) -> Result<Vec<String>>;

    /// The state of a workspace; `None` if there is none yet.
    async fn read(&self, workspace: &str) -> Result<Option<Vec<u8>>>;

    /// Puts a state in the place of the one that is there. The workspace comes into being by this.
    async fn write(&self, workspace: &str, state: Vec<u8>) -> Result<()>;

    /// Deletes a workspace with its state. It may be gone already.
    async fn delete(&self, workspace: &str) -> Result<()>;

    /// Tries once to lock a workspace. Gives the name by which it is unlocked, which is the name in `info` unless the store has
    /// names of its own; empty if this store, or its configuration, has no locks.
    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError>;

    /// Unlocks a workspace. The lock may be one of another program, that has ended without unlocking.
    async fn unlock(&self, workspace: &str, id: &str) -> Result<()>;
}
