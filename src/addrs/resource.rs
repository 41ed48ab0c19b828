//! Resources, their instances, and the targets of `-target`.

use std::fmt;
use std::sync::Arc;

use crate::{InstanceKey, Module, ModuleInstance, names};

/// The kind of a resource's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mode {
    /// A `data` block: only read.
    Data,
    /// A `resource` block: created, updated, destroyed.
    Managed,
    /// An `ephemeral` block: opened and closed, never stored.
    Ephemeral,
    /// A `list` block of a query: lists existing objects of a type, which are not stored.
    List,
}

impl Mode {
    /// Returns the name in the state file and in JSON: `managed`, `data`, `ephemeral` or `list`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Managed => "managed",
            Mode::Data => "data",
            Mode::Ephemeral => "ephemeral",
            Mode::List => "list",
        }
    }
}

/// A resource, relative to its module.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    pub mode: Mode,
    pub ty: Arc<str>,
    pub name: Arc<str>,
}

impl Resource {
    /// Returns the address of a `resource` block.
    pub fn managed(ty: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Resource {
        Resource {
            mode: Mode::Managed,
            ty: ty.into(),
            name: name.into(),
        }
    }

    /// Returns the address of a `data` block.
    pub fn data(ty: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Resource {
        Resource {
            mode: Mode::Data,
            ty: ty.into(),
            name: name.into(),
        }
    }

    #[must_use]
    pub fn instance(&self, key: InstanceKey) -> ResourceInstance {
        ResourceInstance {
            resource: self.clone(),
            key,
        }
    }

    #[must_use]
    pub fn absolute(&self, module: &ModuleInstance) -> AbsResource {
        AbsResource {
            module: module.clone(),
            resource: self.clone(),
        }
    }

    #[must_use]
    pub fn in_module(&self, module: &Module) -> ConfigResource {
        ConfigResource {
            module: module.clone(),
            resource: self.clone(),
        }
    }

    /// Returns the implied local name of the provider: the part of the type before the first underscore.
    #[must_use]
    pub fn implied_provider(&self) -> &str {
        self.ty.split('_').next().unwrap_or(&self.ty)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode {
            // Without the prefix, the address of a resource type such as `local` would be parsed as another kind of object.
            Mode::Managed if names::needs_resource_prefix(&self.ty) => f.write_str("resource.")?,
            Mode::Managed => {}
            Mode::Data => f.write_str("data.")?,
            Mode::Ephemeral => f.write_str("ephemeral.")?,
            Mode::List => f.write_str("list.")?,
        }
        write!(f, "{}.{}", self.ty, self.name)
    }
}

/// An instance of a resource, relative to its module.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceInstance {
    pub resource: Resource,
    pub key: InstanceKey,
}

impl fmt::Display for ResourceInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.resource, self.key)
    }
}

/// A resource of the configuration, without instance keys.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConfigResource {
    pub module: Module,
    pub resource: Resource,
}

impl fmt::Display for ConfigResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.module.is_root() {
            self.resource.fmt(f)
        } else {
            write!(f, "{}.{}", self.module, self.resource)
        }
    }
}

/// A resource in a module instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbsResource {
    pub module: ModuleInstance,
    pub resource: Resource,
}

impl AbsResource {
    #[must_use]
    pub fn instance(&self, key: InstanceKey) -> AbsResourceInstance {
        AbsResourceInstance {
            module: self.module.clone(),
            resource: self.resource.instance(key),
        }
    }

    /// Returns the address without instance keys.
    #[must_use]
    pub fn config(&self) -> ConfigResource {
        self.resource.in_module(&self.module.module())
    }
}

impl fmt::Display for AbsResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.module.is_root() {
            self.resource.fmt(f)
        } else {
            write!(f, "{}.{}", self.module, self.resource)
        }
    }
}

/// An instance of a resource in a module instance: the address of one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AbsResourceInstance {
    pub module: ModuleInstance,
    pub resource: ResourceInstance,
}

impl AbsResourceInstance {
    /// Returns the address without the instance key.
    #[must_use]
    pub fn containing_resource(&self) -> AbsResource {
        AbsResource {
            module: self.module.clone(),
            resource: self.resource.resource.clone(),
        }
    }

    /// Returns the address without instance keys.
    #[must_use]
    pub fn config(&self) -> ConfigResource {
        self.resource.resource.in_module(&self.module.module())
    }
}

impl fmt::Display for AbsResourceInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.module.is_root() {
            self.resource.fmt(f)
        } else {
            write!(f, "{}.{}", self.module, self.resource)
        }
    }
}

/// The objects that an argument of `-target` or a similar option selects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Every instance of a module, and all its descendants.
    Module(Module),
    /// One instance of a module, and all its descendants.
    ModuleInstance(ModuleInstance),
    /// Every instance of a resource in every instance of its module.
    ConfigResource(ConfigResource),
    /// Every instance of a resource in one module instance.
    Resource(AbsResource),
    ResourceInstance(AbsResourceInstance),
}

impl Target {
    /// Returns true if the target selects this resource instance.
    #[must_use]
    pub fn selects(&self, address: &AbsResourceInstance) -> bool {
        match self {
            Target::Module(m) => m.contains(&address.module.module()),
            Target::ModuleInstance(m) => m.contains(&address.module),
            Target::ConfigResource(r) => r.resource == address.resource.resource && r.module == address.module.module(),
            Target::Resource(r) => r.resource == address.resource.resource && r.module == address.module,
            Target::ResourceInstance(i) => i == address,
        }
    }

    /// Returns true if the target may select an instance of this resource.
    #[must_use]
    pub fn may_select(&self, resource: &ConfigResource) -> bool {
        match self {
            Target::Module(m) => m.contains(&resource.module),
            // The resource has no instance keys here, so the keys of the target are ignored.
            Target::ModuleInstance(m) => m.module().contains(&resource.module),
            Target::ConfigResource(r) => r == resource,
            Target::Resource(r) => r.config() == *resource,
            Target::ResourceInstance(i) => i.config() == *resource,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Module(t) => t.fmt(f),
            Target::ModuleInstance(t) => t.fmt(f),
            Target::ConfigResource(t) => t.fmt(f),
            Target::Resource(t) => t.fmt(f),
            Target::ResourceInstance(t) => t.fmt(f),
        }
    }
}
