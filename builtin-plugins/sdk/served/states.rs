//! Requests for state stores.

use std::sync::Arc;

use super::provider::ServedProvider;
use super::store::ServedStore;
use crate::diag::{Diagnostic, Diagnostics, Result};
use crate::guard::guarded;
use crate::state_store::{LockError, LockInfo, StateClient, WorkspaceSupport};
use crate::wire::Wire;

impl ServedProvider {
    fn store(&self, name: &str) -> Result<&ServedStore> {
        self.state_stores.get(name).ok_or_else(|| {
            Diagnostic::error(
                "Unknown state store",
                format!("This plugin has no state store called {name:?}."),
            )
            .into()
        })
    }

    fn client(&self, name: &str) -> Result<(Arc<dyn StateClient>, usize)> {
        self.store(name)?.client().ok_or_else(|| {
            Diagnostic::error(
                "State store not configured",
                format!(
                    "The state store {name:?} was used before it was configured. This is a bug in the program that called the plugin."
                ),
            )
            .into()
        })
    }

    pub fn validate_store(&self, name: &str, config: &Wire) -> Diagnostics {
        match self.store(name) {
            Ok(store) => store.validate(config),
            Err(unknown) => unknown,
        }
    }

    /// Configures a store. States are read from it in pieces of `chunk_size` bytes.
    pub async fn configure_store(&self, name: &str, config: &Wire, chunk_size: usize) -> Result<WorkspaceSupport> {
        self.store(name)?.configure(config, chunk_size).await
    }

    pub async fn states(&self, name: &str) -> Result<Vec<String>> {
        let (client, _) = self.client(name)?;
        guarded(client.workspaces()).await
    }

    /// Reads a state. Returns its bytes, none if there is no state, and the size of the pieces that they are sent in.
    pub async fn read_state(&self, name: &str, workspace: &str) -> Result<(Vec<u8>, usize)> {
        let (client, chunk_size) = self.client(name)?;
        let state = guarded(client.read(workspace)).await?;
        Ok((state.unwrap_or_default(), chunk_size))
    }

    /// Returns true if a configured store keeps each object apart, with its history.
    pub fn store_keeps_objects(&self, name: &str) -> bool {
        self.client(name).is_ok_and(|(client, _)| client.keeps_objects())
    }

    /// Answers a question about the history of a state. The size is that of [`read_state`](Self::read_state).
    pub async fn inquire_state(&self, name: &str, workspace: &str, question: &str) -> Result<(Vec<u8>, usize)> {
        let (client, chunk_size) = self.client(name)?;
        Ok((guarded(client.inquire(workspace, question)).await?, chunk_size))
    }

    /// Carries out a request about single objects of a state.
    pub async fn request_state(&self, name: &str, workspace: &str, request: &str) -> Result<()> {
        let (client, _) = self.client(name)?;
        guarded(client.request(workspace, request)).await
    }

    pub async fn write_state(&self, name: &str, workspace: &str, state: Vec<u8>) -> Result<()> {
        let (client, _) = self.client(name)?;
        guarded(client.write(workspace, state)).await
    }

    pub async fn delete_state(&self, name: &str, workspace: &str) -> Result<()> {
        let (client, _) = self.client(name)?;
        guarded(client.delete(workspace)).await
    }

    pub async fn lock_state(
        &self,
        name: &str,
        workspace: &str,
        info: LockInfo,
    ) -> std::result::Result<String, LockError> {
        let (client, _) = self.client(name)?;
        // The error of a lock is data for the host, not a failed call; only a panic is one.
        match guarded(async { Ok(client.lock(workspace, info).await) }).await {
            Ok(result) => result,
            Err(panicked) => Err(LockError::Failed(panicked)),
        }
    }

    pub async fn unlock_state(&self, name: &str, workspace: &str, id: &str) -> Result<()> {
        let (client, _) = self.client(name)?;
        guarded(client.unlock(workspace, id)).await
    }
}
