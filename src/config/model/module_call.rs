//! Module calls.

use std::sync::Arc;

use addrs::LocalProviderConfig;
use syntax::Range;
use syntax::ast::{Body, Expr};

use crate::model::Reference;
use crate::model::resource::ProviderRef;
use crate::source_address::ModuleSource;
use crate::version::Constraint;

/// A `module` block.
#[derive(Clone, Debug)]
pub struct ModuleCall {
    /// The name.
    pub name: Arc<str>,
    /// Where the module comes from; `None` if the argument is missing or wrong (which has been reported).
    pub source: Option<ModuleSource>,
    /// The source as written; empty without one.
    pub source_text: String,
    /// Where the source is written.
    pub source_range: Range,
    /// Which versions of a registry module will do.
    pub version: Option<Constraint>,
    /// The input variables' values: an attribute each. Blocks have been reported as errors.
    pub inputs: Arc<Body>,
    /// How many instances; excludes `for_each`.
    pub count: Option<Expr>,
    /// An instance for each element; excludes `count`.
    pub for_each: Option<Expr>,
    /// What must be done before anything in the module.
    pub depends_on: Vec<Reference>,
    /// The provider configurations handed to the module; `None` without the argument.
    pub providers: Option<Vec<PassedProvider>>,
    /// Whether deprecated values that are used in the module, or in those it calls, are not warned about.
    pub ignore_nested_deprecations: bool,
    /// The header of the block.
    pub range: Range,
}

impl ModuleCall {
    /// What the `providers` argument hands over for a configuration of the module.
    #[must_use]
    pub fn passed(&self, child: &LocalProviderConfig) -> Option<&PassedProvider> {
        self.providers.iter().flatten().find(|p| p.child.config == *child)
    }
}

/// One entry of `providers`: what the module calls `child` is the caller's `parent`.
#[derive(Clone, Debug, PartialEq)]
pub struct PassedProvider {
    /// The name in the module.
    pub child: ProviderRef,
    /// The name in the caller.
    pub parent: ProviderRef,
}
