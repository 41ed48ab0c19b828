//! Provider configurations and requirements.

use std::sync::Arc;

use addrs::{LocalProviderConfig, Provider};
use syntax::Range;
use syntax::ast::Body;

use crate::model::provider_ref::ProviderRef;
use crate::version::Constraint;

/// A `provider` block.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Local name and alias.
    pub address: LocalProviderConfig,
    /// The arguments that the provider's schema describes.
    pub body: Arc<Body>,
    /// The deprecated `version` argument.
    pub version: Option<Constraint>,
    /// The header of the block.
    pub range: Range,
    /// Where the name label stands.
    pub name_range: Range,
}

/// An entry of `required_providers`.
#[derive(Clone, Debug)]
pub struct RequiredProvider {
    /// The local name.
    pub name: Arc<str>,
    pub provider: Provider,
    /// The source as written.
    pub source: Option<String>,
    /// Which versions will do.
    pub constraint: Option<Constraint>,
    /// The additional configurations that callers must hand over.
    pub configuration_aliases: Vec<ProviderRef>,
    /// The whole entry.
    pub range: Range,
}

/// A `provider_meta` block of the `terraform` block.
#[derive(Clone, Debug)]
pub struct ProviderMeta {
    /// The local name of the provider.
    pub name: Arc<str>,
    pub provider: Provider,
    /// The arguments that the provider's meta schema describes.
    pub body: Arc<Body>,
    /// The header of the block.
    pub range: Range,
}
