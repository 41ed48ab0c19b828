//! The `terraform` block apart from providers: where the state is stored.

use std::sync::Arc;

use syntax::Range;
use syntax::ast::Body;

/// A `backend` block.
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
}

/// A `cloud` block.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// The settings, constants only.
    pub body: Arc<Body>,
    /// The header of the block.
    pub range: Range,
}
