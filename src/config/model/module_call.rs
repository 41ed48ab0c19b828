//! Module calls.

use std::sync::Arc;

use addrs::LocalProviderConfig;
use syntax::Range;
use syntax::ast::{Body, Expr};

use crate::model::Reference;
use crate::model::provider_ref::ProviderRef;
use crate::source_address::ModuleSource;
use crate::version::Constraint;

/// A `module` block.
#[derive(Clone, Debug)]
pub struct ModuleCall {
    pub name: Arc<str>,
    /// The source; `None` if the argument is missing or could not be read (which has been reported).
    pub source: Option<Expr>,
    /// Which versions of a registry module will do.
    pub version: Option<Expr>,
    /// Where the module comes from, as far as it is known without evaluating anything.
    pub address: LiteralAddress,
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
    /// Where the source is written; the header of the block if it is missing.
    #[must_use]
    pub fn source_range(&self) -> &Range {
        self.source.as_ref().map_or(&self.range, Expr::range)
    }

    /// What the `providers` argument hands over for a configuration of the module.
    #[must_use]
    pub fn passed(&self, child: &LocalProviderConfig) -> Option<&PassedProvider> {
        self.providers.iter().flatten().find(|p| p.child.config == *child)
    }
}

/// Where a module comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct CallAddress {
    pub source: ModuleSource,
    /// Which versions of a registry module will do.
    pub version: Option<Constraint>,
}

/// Where a module comes from, as far as it is known without evaluating anything.
#[derive(Clone, Debug, Default)]
pub enum LiteralAddress {
    /// Nowhere: the arguments are wrong, which has been reported.
    #[default]
    Invalid,
    /// There.
    Known(Arc<CallAddress>),
    /// Where its arguments say, which are no literals: they are evaluated when the tree of modules is loaded.
    Evaluated,
}

/// One entry of `providers`: what the module calls `child` is the caller's `parent`.
#[derive(Clone, Debug, PartialEq)]
pub struct PassedProvider {
    /// The name in the module.
    pub child: ProviderRef,
    /// The name in the caller.
    pub parent: ProviderRef,
}
