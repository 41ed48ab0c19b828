//! Modules, module instances and instance keys.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::text::quoted;

/// The key of an instance of an object with `count` or `for_each`.
///
/// The order is that of instances in the state file: no key, then numbers, then strings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InstanceKey {
    /// The single instance of an object without `count` and `for_each`.
    #[default]
    None,
    Int(u64),
    String(Arc<str>),
}

impl InstanceKey {
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self, InstanceKey::None)
    }
}

/// `[0]`, `["key"]`, or nothing.
impl fmt::Display for InstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstanceKey::None => Ok(()),
            InstanceKey::Int(n) => write!(f, "[{n}]"),
            InstanceKey::String(s) => write!(f, "[{}]", quoted(s)),
        }
    }
}

/// A module of the configuration: the names of the module calls from the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Module(pub Arc<[Arc<str>]>);

impl Module {
    #[must_use]
    pub fn root() -> Module {
        Module::default()
    }

    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the module of the call `name`.
    #[must_use]
    pub fn child(&self, name: impl Into<Arc<str>>) -> Module {
        Module(self.0.iter().cloned().chain([name.into()]).collect())
    }

    /// Returns the calling module and the name of the call; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<(Module, &Arc<str>)> {
        self.0.split_last().map(|(last, rest)| (Module(rest.into()), last))
    }

    /// Returns true if `other` is this module or a descendant of it.
    #[must_use]
    pub fn contains(&self, other: &Module) -> bool {
        other.0.starts_with(&self.0)
    }
}

/// `module.a.module.b`; empty for the root.
impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            write!(f, "{}module.{name}", if i > 0 { "." } else { "" })?;
        }
        Ok(())
    }
}

/// One step of a module instance's address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleStep {
    pub name: Arc<str>,
    pub key: InstanceKey,
}

/// An instance of a module: a module call and its key for each step from the root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ModuleInstance(pub Arc<[ModuleStep]>);

impl ModuleInstance {
    #[must_use]
    pub fn root() -> ModuleInstance {
        ModuleInstance::default()
    }

    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the module instance of the call `name` with `key`.
    #[must_use]
    pub fn child(&self, name: impl Into<Arc<str>>, key: InstanceKey) -> ModuleInstance {
        ModuleInstance(
            self.0
                .iter()
                .cloned()
                .chain([ModuleStep { name: name.into(), key }])
                .collect(),
        )
    }

    /// Returns the calling module instance and the last step; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<(ModuleInstance, &ModuleStep)> {
        self.0
            .split_last()
            .map(|(last, rest)| (ModuleInstance(rest.into()), last))
    }

    /// Returns the path without instance keys.
    #[must_use]
    pub fn module(&self) -> Module {
        // All root modules share one value, so that this allocates nothing for objects in the root module.
        if self.is_root() {
            return Module::root();
        }
        Module(self.0.iter().map(|s| s.name.clone()).collect())
    }

    /// Returns true if `other` is this module instance or a descendant of it.
    #[must_use]
    pub fn contains(&self, other: &ModuleInstance) -> bool {
        other.0.starts_with(&self.0)
    }
}

/// Orders by the number of steps, then step by step: parents come before their children.
impl Ord for ModuleInstance {
    fn cmp(&self, other: &ModuleInstance) -> Ordering {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for ModuleInstance {
    fn partial_cmp(&self, other: &ModuleInstance) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `module.a[0].module.b`; empty for the root.
impl fmt::Display for ModuleInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            write!(f, "{}module.{}{}", if i > 0 { "." } else { "" }, step.name, step.key)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_display_in_canonical_form() {
        let m = ModuleInstance::root()
            .child("a", InstanceKey::Int(0))
            .child("b", InstanceKey::String("k\"${x}".into()));
        assert_eq!(m.to_string(), "module.a[0].module.b[\"k\\\"$${x}\"]");
        assert_eq!(m.module().to_string(), "module.a.module.b");
    }

    #[test]
    fn instance_keys_order_as_in_state() {
        let mut keys = [
            InstanceKey::String("a".into()),
            InstanceKey::Int(10),
            InstanceKey::None,
            InstanceKey::Int(9),
        ];
        keys.sort();
        assert_eq!(keys.map(|k| k.to_string()), ["", "[9]", "[10]", "[\"a\"]"]);
    }
}
