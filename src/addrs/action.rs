//! Actions: operations of a provider that resources trigger, or that users invoke.

use std::fmt;
use std::sync::Arc;

use crate::{InstanceKey, Module, ModuleInstance};

/// An action inside its module.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Action {
    /// Its type.
    pub ty: Arc<str>,
    pub name: Arc<str>,
}

impl Action {
    /// The instance with this key.
    #[must_use]
    pub fn instance(&self, key: InstanceKey) -> ActionInstance {
        ActionInstance {
            action: self.clone(),
            key,
        }
    }

    /// This action in a module.
    #[must_use]
    pub fn in_module(&self, module: &Module) -> ConfigAction {
        ConfigAction {
            module: module.clone(),
            action: self.clone(),
        }
    }

    /// The local name of the provider that the type's name implies: what stands before the first underscore.
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

/// An instance of an action inside its module.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActionInstance {
    pub action: Action,
    /// Which instance.
    pub key: InstanceKey,
}

impl ActionInstance {
    /// This instance in a module instance.
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

/// An action of the configuration, without instance keys anywhere.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConfigAction {
    pub module: Module,
    /// The action in it.
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

/// An instance of an action in a module instance. Without a key it may also mean all instances in that module instance, as
/// `-invoke` has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbsActionInstance {
    /// The module instance.
    pub module: ModuleInstance,
    /// The instance in it.
    pub action: ActionInstance,
}

impl AbsActionInstance {
    /// The action of the configuration this belongs to.
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
