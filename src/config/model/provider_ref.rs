//! References to provider configurations.

use std::sync::Arc;

use addrs::LocalProviderConfig;
use syntax::Range;
use syntax::ast::Expr;

/// Reference to a provider configuration, as a module writes it: name and alias, the key of an instance, and the
/// range.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderRef {
    pub config: LocalProviderConfig,
    /// Key of an instance, for a configuration with `for_each`.
    pub key: Option<Arc<Expr>>,
    pub range: Range,
}
