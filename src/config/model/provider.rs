//! Provider configurations and requirements.

use std::sync::Arc;

use addrs::{LocalProviderConfig, Provider};
use syntax::Range;
use syntax::ast::{Body, Expr};

use crate::model::provider_ref::ProviderRef;
use crate::version::Constraint;

/// A `provider` block.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    pub address: LocalProviderConfig,
    /// Collection with one instance of the configuration for each element (OpenTofu only).
    pub for_each: Option<Expr>,
    /// Arguments that the provider's schema describes.
    pub body: Arc<Body>,
    /// Constraint in the deprecated `version` argument.
    pub version: Option<Constraint>,
    /// Range of the block's header.
    pub range: Range,
    pub name_range: Range,
}

/// An entry of `required_providers`.
#[derive(Clone, Debug)]
pub struct RequiredProvider {
    /// Local name of the provider in the module.
    pub name: Arc<str>,
    pub provider: Provider,
    /// Source address as written; `None` if it is implied by the local name.
    pub source: Option<String>,
    pub constraint: Option<Constraint>,
    /// Additional configurations that callers must pass.
    pub configuration_aliases: Vec<ProviderRef>,
    /// Range of the whole entry.
    pub range: Range,
}

/// A `provider_meta` block of the `terraform` block.
#[derive(Clone, Debug)]
pub struct ProviderMeta {
    /// Local name of the provider in the module.
    pub name: Arc<str>,
    pub provider: Provider,
    /// Arguments that the provider's meta schema describes.
    pub body: Arc<Body>,
    /// Range of the block's header.
    pub range: Range,
}
