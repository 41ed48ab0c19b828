//! State stores: where states are kept, as a plugin. What an author writes.
//!
//! A store keeps one state, as bytes, for each workspace; it can lock a workspace, so that two programs do not write the same
//! state at the same time. [`StateStore`] is the store before it is configured: its schema, and how a configuration becomes a
//! client. [`StateClient`] is the rest. `testing::state_store` checks what must hold for any of them.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::sync::{Arc, Mutex};
//!
//! use monoform_sdk::schema::optional;
//! use monoform_sdk::state_store::{LockError, LockInfo, StateClient, StateStore};
//! use monoform_sdk::{Attr, Model, Result, async_trait};
//!
//! #[derive(Clone, Default, Model)]
//! pub struct Config {
//!     /// What the store is called.
//!     #[member(optional())]
//!     pub label: Attr<String>,
//! }
//!
//! struct Memory;
//!
//! #[async_trait]
//! impl StateStore for Memory {
//!     type Config = Config;
//!     async fn configure(&self, _config: Config) -> Result<Arc<dyn StateClient>> {
//!         Ok(Arc::new(Kept::default()))
//!     }
//! }
//!
//! #[derive(Default)]
//! struct Kept(Mutex<BTreeMap<String, Vec<u8>>>);
//!
//! #[async_trait]
//! impl StateClient for Kept {
//!     async fn workspaces(&self) -> Result<Vec<String>> {
//!         Ok(self.0.lock().unwrap().keys().cloned().collect())
//!     }
//!     async fn read(&self, workspace: &str) -> Result<Option<Vec<u8>>> {
//!         Ok(self.0.lock().unwrap().get(workspace).cloned())
//!     }
//!     async fn write(&self, workspace: &str, state: Vec<u8>) -> Result<()> {
//!         self.0.lock().unwrap().insert(workspace.to_owned(), state);
//!         Ok(())
//!     }
//!     async fn delete(&self, workspace: &str) -> Result<()> {
//!         self.0.lock().unwrap().remove(workspace);
//!         Ok(())
//!     }
//!     async fn lock(&self, _workspace: &str, _info: LockInfo) -> std::result::Result<String, LockError> {
//!         Ok(String::new()) // This store has no locks.
//!     }
//!     async fn unlock(&self, _workspace: &str, _id: &str) -> Result<()> {
//!         Ok(())
//!     }
//! }
//! ```
//!
//! What the protocol does not say and our own programs exchange beside it, as gRPC metadata, is described at the constants
//! `STATE_LOCK_INFO`, `STATE_LOCK_HOLDER` and `STATE_WORKSPACES` of the crate `proto`. Without them everything works, but a
//! lock names the plugin's own idea of who takes it.

mod erased;
mod lock;

use std::sync::Arc;

use async_trait::async_trait;

pub use self::erased::AnyStateStore;
pub use self::lock::{LockError, LockInfo};
use crate::model::Model;
use crate::schema::Schema;
use crate::{Diagnostics, Result};

/// Tells the user that a server has not answered for a while: "Waiting for HOST to answer...". Other programs than Monoform find it in
/// their log. A store that waits in silence looks like one that hangs.
pub fn report_waiting(host: &str) {
    crate::server::log::waiting(host);
}

/// The workspace that is selected where none is named.
pub const DEFAULT: &str = "default";

/// A kind of state store, before it is configured.
#[async_trait]
pub trait StateStore: Send + Sync + 'static {
    /// The configuration, declared by [`model!`](crate::model!).
    type Config: Model;

    /// The schema of the configuration; the model's unless there is more to say.
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

/// Which workspaces a store can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkspaceSupport {
    /// One state only.
    Single,
    /// Any number; the default one is there if it is listed.
    #[default]
    Named,
    /// Any number, and the default one is always there, though it may not have a state yet.
    NamedAndDefault,
    /// Any number, and the default one is always there. One that has no state gets an empty one when it is opened.
    NamedByState,
    /// Any number, but none is called `default`. One is there without a state, too; writing nothing makes it.
    NamedWithoutDefault,
}

/// A configured state store.
#[async_trait]
pub trait StateClient: Send + Sync + 'static {
    /// Which workspaces there can be.
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
