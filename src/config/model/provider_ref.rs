//! References to provider configurations.

use std::sync::Arc;

use addrs::LocalProviderConfig;
use syntax::Range;
use syntax::ast::Expr;

/// A provider configuration as a module names it, with its range.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderRef {
    pub config: LocalProviderConfig,
    /// Key of an instance, for a configuration with `for_each`.
    pub key: Option<Arc<Expr>>,
    pub range: Range,
}
