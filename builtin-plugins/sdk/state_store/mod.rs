//! State stores as plugins: the traits that an author implements.
//!
//! A store has one state, as bytes, for each workspace. It can lock a workspace, so that two programs do not write the same state at the
//! same time. [`StateStore`] is the store before it is configured: it has the schema, and creates a client from a configuration.
//! [`StateClient`] answers the requests about states and locks. `state_store::conformance` of the crate `monoform-sdk-testing` tests any
//! store against the rules.
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
//!     /// The name of the store.
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
//! Monoform and its plugins exchange some data beside the protocol, as gRPC metadata: see the constants `STATE_LOCK_INFO`,
//! `STATE_LOCK_HOLDER` and `STATE_WORKSPACES` of the crate `proto`. Stores work without these data, but then a lock names the
//! process of the plugin as its holder.

mod contract;
mod erased;
mod lock;

pub use self::contract::{StateClient, StateStore, WorkspaceSupport};
pub use self::erased::AnyStateStore;
pub use self::lock::{LockError, LockInfo};
pub use crate::waiting::report_waiting;

/// Name of the default workspace.
pub const DEFAULT: &str = "default";
