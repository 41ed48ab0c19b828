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
    /// Source; `None` if the argument is missing or could not be read (which has been reported).
    pub source: Option<Expr>,
    /// Version constraint, for a module of a registry.
    pub version: Option<Expr>,
    /// Source and version, as far as they are known without evaluating anything.
    pub address: LiteralAddress,
    /// Values of input variables, one attribute each. Blocks have been reported as errors.
    pub inputs: Arc<Body>,
    /// Number of instances; excludes `for_each`.
    pub count: Option<Expr>,
    /// One instance for each element; excludes `count`.
    pub for_each: Option<Expr>,
    /// If false, there is no instance, and the module is null; excludes `count` and `for_each`.
    pub enabled: Option<Expr>,
    /// Explicit dependencies of all objects in the module.
    pub depends_on: Vec<Reference>,
    /// Provider configurations passed to the module; `None` without the argument.
    pub providers: Option<Vec<PassedProvider>>,
    /// True if the use of deprecated values in the module, and in the modules that it calls, causes no warnings.
    pub ignore_nested_deprecations: bool,
    /// Range of the block's header.
    pub range: Range,
}

impl ModuleCall {
    /// Returns the expressions of the repetition arguments that are set.
    pub fn repetition(&self) -> impl Iterator<Item = &Expr> {
        self.count.iter().chain(&self.for_each).chain(&self.enabled)
    }

    /// Returns the range of the source argument, or of the block's header if the argument is missing.
    #[must_use]
    pub fn source_range(&self) -> &Range {
        self.source.as_ref().map_or(&self.range, Expr::range)
    }

    /// Returns the entry of `providers` for a configuration of the called module.
    #[must_use]
    pub fn passed(&self, child: &LocalProviderConfig) -> Option<&PassedProvider> {
        self.providers.iter().flatten().find(|p| p.child.config == *child)
    }
}

/// Evaluated source and version of a module call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallAddress {
    pub source: ModuleSource,
    pub version: Option<Constraint>,
}

/// Source and version of a call, as far as they are known without evaluating anything.
#[derive(Clone, Debug, Default)]
pub enum LiteralAddress {
    /// The arguments are wrong, which has been reported.
    #[default]
    Invalid,
    Known(Arc<CallAddress>),
    /// The arguments are not literals: they are evaluated when the tree of modules is loaded.
    Evaluated,
}

/// Entry of `providers`: the name `child` in the module for the caller's configuration `parent`.
#[derive(Clone, Debug, PartialEq)]
pub struct PassedProvider {
    /// Name in the called module.
    pub child: ProviderRef,
    /// Name in the calling module.
    pub parent: ProviderRef,
}
