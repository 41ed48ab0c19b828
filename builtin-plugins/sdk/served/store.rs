//! A state store, and the client that `configure` has created.

use std::sync::{Arc, PoisonError, RwLock};

use crate::diag::{Diagnostics, Result};
use crate::guard::{guarded, guarded_now};
use crate::schema::{Compiled, Described, Schema};
use crate::state_store::{AnyStateStore, StateClient, WorkspaceSupport};
use crate::wire::{Wire, decode};

pub(super) struct ServedStore {
    store: AnyStateStore,
    client: RwLock<Option<(Arc<dyn StateClient>, usize)>>,
}

impl Described for ServedStore {
    fn declared(&self) -> Schema {
        self.store.declared()
    }

    fn schema(&self) -> &Compiled {
        self.store.schema()
    }
}

impl ServedStore {
    pub fn new(store: AnyStateStore) -> ServedStore {
        ServedStore {
            store,
            client: RwLock::new(None),
        }
    }

    /// Returns the client and the agreed size of pieces, once the store is configured.
    pub fn client(&self) -> Option<(Arc<dyn StateClient>, usize)> {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn validate(&self, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> { Ok(self.store.validate(&decode(config, &self.schema().ty)?)) };
        guarded_now(check).unwrap_or_else(Err).unwrap_or_else(|errors| errors)
    }

    pub async fn configure(&self, config: &Wire, chunk_size: usize) -> Result<WorkspaceSupport> {
        let config = decode(config, &self.schema().ty)?;
        let client = guarded(self.store.configure(&config)).await?;
        let support = client.support();
        // Client and chunk size are replaced together. Calls in progress keep the client with which they began.
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = Some((client, chunk_size));
        Ok(support)
    }
}
