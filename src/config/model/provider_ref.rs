//! References to provider configurations.

use addrs::LocalProviderConfig;
use syntax::Range;

/// A provider configuration as a module names it, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderRef {
    /// Name and alias.
    pub config: LocalProviderConfig,
    /// Where it is written.
    pub range: Range,
}
