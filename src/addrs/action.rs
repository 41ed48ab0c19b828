//! Addresses of actions: provider operations that resources trigger or users invoke.

use std::fmt;
use std::sync::Arc;

use crate::{InstanceKey, Module, ModuleInstance};

/// An action, relative to its module.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Action {
    pub ty: Arc<str>,
    pub name: Arc<str>,
}

impl Action {
    #[must_use]
    pub fn instance(&self, key: InstanceKey) -> ActionInstance {
        ActionInstance {
            action: self.clone(),
            key,
        }
    }

    #[must_use]
    pub fn in_module(&self, module: &Module) -> ConfigAction {
        ConfigAction {
            module: module.clone(),
            action: self.clone(),
        }
    }

    /// Returns the implied local name of the provider: the part of the type before the first underscore.
    #[must_use]
    pub fn implied_provider(&self) -> &str {
        self.ty.split('_').next().unwrap_or(&self.ty)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "action.{}.{}", self.ty, self.name)
    }
}

/// An instance of an action, relative to its module.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActionInstance {
    pub action: Action,
    pub key: InstanceKey,
}

impl ActionInstance {
    #[must_use]
    pub fn absolute(&self, module: &ModuleInstance) -> AbsActionInstance {
        AbsActionInstance {
            module: module.clone(),
            action: self.clone(),
        }
    }
}

impl fmt::Display for ActionInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.action, self.key)
    }
}

/// An action of the configuration, without instance keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConfigAction {
    pub module: Module,
    pub action: Action,
}

impl fmt::Display for ConfigAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.module.is_root() {
            self.action.fmt(f)
        } else {
            write!(f, "{}.{}", self.module, self.action)
        }
    }
}

/// An instance of an action in a module instance. With `-invoke`, an address without an instance key can also mean all instances in the
/// module instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbsActionInstance {
    pub module: ModuleInstance,
    pub action: ActionInstance,
}

impl AbsActionInstance {
    /// Returns the address without instance keys.
    #[must_use]
    pub fn config(&self) -> ConfigAction {
        self.action.action.in_module(&self.module.module())
    }
}

impl fmt::Display for AbsActionInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.module.is_root() {
            self.action.fmt(f)
        } else {
            write!(f, "{}.{}", self.module, self.action)
        }
    }
}
