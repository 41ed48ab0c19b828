//! The `terraform` block apart from providers: where the state is stored.

use std::sync::Arc;

use addrs::Provider;
use syntax::Range;
use syntax::ast::Body;

/// A `backend` block, or a `state_store` block.
#[derive(Clone, Debug)]
pub struct Backend {
    /// The type.
    pub ty: Arc<str>,
    /// The settings, constants only.
    pub body: Arc<Body>,
    /// The header of the block.
    pub range: Range,
    /// Where the type label stands.
    pub type_range: Range,
    /// The provider that has the store, if it is a `state_store` block.
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
    /// The local name.
    pub name: Arc<str>,
    /// The provider that the module means by this name.
    pub provider: Provider,
    /// The configuration, constants only.
    pub body: Arc<Body>,
    /// The header of the block.
    pub range: Range,
}

/// A `cloud` block.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// The settings, constants only.
    pub body: Arc<Body>,
    /// The header of the block.
    pub range: Range,
}
