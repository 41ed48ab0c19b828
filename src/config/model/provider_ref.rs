//! References to provider configurations.

use addrs::LocalProviderConfig;
use syntax::Range;

/// A provider configuration as a module names it, with its range.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderRef {
    pub config: LocalProviderConfig,
    pub range: Range,
}
