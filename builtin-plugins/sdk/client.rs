//! The client of a provider, shared by its resources.

use std::sync::{Arc, PoisonError, RwLock};

/// The provider's client; empty until `configure` has made it.
pub(crate) struct ClientCell<C>(Arc<RwLock<Option<Arc<C>>>>);

impl<C> Clone for ClientCell<C> {
    fn clone(&self) -> ClientCell<C> {
        ClientCell(self.0.clone())
    }
}

impl<C> ClientCell<C> {
    /// Creates an empty cell, to be filled by `configure`.
    pub fn new() -> ClientCell<C> {
        ClientCell(Arc::new(RwLock::new(None)))
    }

    /// Returns the client; `None` before `configure`.
    pub fn get(&self) -> Option<Arc<C>> {
        // A panic of a writer leaves the client intact: it is set by a single assignment.
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores the client, and replaces an earlier one.
    pub fn set(&self, client: C) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(client));
    }
}
