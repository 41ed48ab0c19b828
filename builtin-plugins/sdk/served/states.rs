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

    /// Configures a store. Its states are sent in chunks of `chunk_size` bytes.
    pub async fn configure_store(&self, name: &str, config: &Wire, chunk_size: usize) -> Result<WorkspaceSupport> {
        self.store(name)?.configure(config, chunk_size).await
    }

    pub async fn states(&self, name: &str) -> Result<Vec<String>> {
        let (client, _) = self.client(name)?;
        guarded(client.workspaces()).await
    }

    /// Reads a state. Returns its bytes (empty if there is no state) and the chunk size for sending it.
    pub async fn read_state(&self, name: &str, workspace: &str) -> Result<(Vec<u8>, usize)> {
        let (client, chunk_size) = self.client(name)?;
        let state = guarded(client.read(workspace)).await?;
        Ok((state.unwrap_or_default(), chunk_size))
    }

    /// Returns true if a configured store records each object of a state separately, with its history.
    pub fn store_keeps_objects(&self, name: &str) -> bool {
        self.client(name).is_ok_and(|(client, _)| client.keeps_objects())
    }

    /// Answers a query about the history of a state. Returns the answer and the chunk size for sending it.
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
        // A lock that is held is an answer to the host and not a failed call, so the error is passed on as it is. Only a panic fails the
        // call.
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
