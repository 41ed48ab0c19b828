//! The `backend`, `state_store`, `cloud` and `encryption` blocks of a `terraform` block.

use std::sync::Arc;

use addrs::Provider;
use syntax::ast::Body;
use syntax::{Diagnostics, Range};

/// A `backend` block, or a `state_store` block.
#[derive(Clone, Debug)]
pub struct Backend {
    pub ty: Arc<str>,
    /// Settings: constants, or values that are known before a plan (see [`crate::known::settle`]).
    pub body: Arc<Body>,
    /// Errors of settings that cannot be evaluated. The backend cannot be used with them.
    pub problems: Diagnostics,
    /// Range of the block's header.
    pub range: Range,
    pub type_range: Range,
    /// Provider of the store, for a `state_store` block.
    pub provider: Option<StoreProvider>,
}

impl Backend {
    #[must_use]
    pub fn block_type(&self) -> &'static str {
        if self.provider.is_some() {
            "state_store"
        } else {
            "backend"
        }
    }
}

/// The `provider` block inside a `state_store` block.
#[derive(Clone, Debug)]
pub struct StoreProvider {
    pub name: Arc<str>,
    /// Address of the provider with this local name.
    pub provider: Provider,
    /// Arguments of the provider configuration, which must be constants.
    pub body: Arc<Body>,
    /// Range of the block's header.
    pub range: Range,
}

/// An `encryption` block: the encryption of states and saved plans.
#[derive(Clone, Debug)]
pub struct Encryption {
    pub body: Arc<Body>,
    /// Range of the block's header.
    pub range: Range,
    /// Bodies of override files, in order.
    pub overrides: Vec<Arc<Body>>,
}

/// A `cloud` block.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// Settings: constants, or values that are known before a plan, as in a [`Backend`].
    pub body: Arc<Body>,
    /// Errors of settings that cannot be evaluated.
    pub problems: Diagnostics,
    /// Range of the block's header.
    pub range: Range,
}
