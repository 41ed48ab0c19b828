//! Provider configurations that a module can use, and the instance that it uses of each.

use std::sync::Arc;

use addrs::AbsProviderConfig;
use syntax::Diagnostic;
use syntax::ast::Expr;

use crate::model::module_call::ModuleCall;
use crate::model::provider::ProviderConfig;
use crate::model::provider_ref::ProviderRef;

/// The key that selects the provider instance which a module call passes, and the scope in which the key is evaluated.
#[derive(Clone, Debug)]
pub struct PassedKey {
    /// The calling module.
    pub caller: addrs::Module,
    /// Name of the call, whose `count.index` and `each` the key may use.
    pub call: Arc<str>,
    pub expr: Arc<Expr>,
}

/// Instance of a provider configuration that a module can use.
#[derive(Clone, Debug)]
pub(crate) enum Instance {
    /// The only instance: the configuration has no `for_each`.
    Only,
    /// Any of several instances: a reference must select one by a key.
    Any,
    /// The instance that a caller selected by this key.
    Passed(PassedKey),
}

/// A provider configuration that a module can name.
#[derive(Clone, Debug)]
pub(crate) struct Visible {
    pub address: AbsProviderConfig,
    pub instance: Instance,
}

impl Visible {
    /// Creates a configuration without `for_each`.
    pub fn single(address: AbsProviderConfig) -> Visible {
        Visible {
            address,
            instance: Instance::Only,
        }
    }

    /// Creates the configuration of a `provider` block, as the module of the block sees it.
    pub fn of_block(address: AbsProviderConfig, block: &ProviderConfig) -> Visible {
        Visible {
            address,
            instance: match block.for_each {
                Some(_) => Instance::Any,
                None => Instance::Only,
            },
        }
    }

    /// Returns this configuration for a called module, to which the caller passes it by `reference`.
    pub fn passed(&self, reference: &ProviderRef, caller: &addrs::Module, call: &ModuleCall) -> Visible {
        let Some(expr) = &reference.key else {
            return self.clone();
        };
        Visible {
            address: self.address.clone(),
            instance: Instance::Passed(PassedKey {
                caller: caller.clone(),
                call: call.name.clone(),
                expr: expr.clone(),
            }),
        }
    }

    /// Checks that a reference has a key if, and only if, the configuration has several instances.
    pub fn check(&self, reference: &ProviderRef, kind: &str) -> Option<Diagnostic> {
        let detail = match (&self.instance, &reference.key) {
            (Instance::Any, None) => format!(
                "The provider configuration {name} has for_each, so one of its instances must be selected by a key: \
                 {name}[each.key], for example. All instances together cannot be used or passed.",
                name = reference.config
            ),
            (Instance::Only, Some(_)) => format!(
                "The provider configuration {} has no for_each, so there are no instances to select by a key. Remove the key.",
                reference.config
            ),
            (Instance::Passed(_), Some(_)) => format!(
                "The caller of this module passes one instance of a provider configuration as {}. There is nothing to select by a \
                 key. Remove the key.",
                reference.config
            ),
            _ => return None,
        };
        Some(Diagnostic::error(format!("Invalid {kind} provider configuration"), detail).at(&reference.range))
    }
}
