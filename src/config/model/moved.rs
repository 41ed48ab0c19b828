//! `moved`, `removed` and `import` blocks, which move managed objects to other addresses, end their management, or
//! begin it.

use addrs::{AbsResource, AbsResourceInstance, ConfigResource, Module, ModuleInstance, Provider, Target};
use syntax::Range;
use syntax::ast::Expr;

use crate::model::provider_ref::ProviderRef;
use crate::model::resource::{Connection, Provisioner};

/// A `moved` block.
#[derive(Clone, Debug)]
pub struct Moved {
    /// The old address, relative to the declaring module.
    pub from: MoveEndpoint,
    /// The new address, relative to the declaring module.
    pub to: MoveEndpoint,
    /// Range of the block's header.
    pub range: Range,
}

/// One side of a `moved` block.
#[derive(Clone, Debug)]
pub struct MoveEndpoint {
    pub subject: MoveSubject,
    pub range: Range,
}

/// Address of a module, resource or instance, on one side of a `moved` block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MoveSubject {
    /// A module call if the last steps of both sides have no key; otherwise an instance of a call.
    Module(ModuleInstance),
    /// A resource with all its instances, or its single instance if the other side is an instance.
    Resource(AbsResource),
    Instance(AbsResourceInstance),
}

/// A `removed` block.
#[derive(Clone, Debug)]
pub struct Removed {
    /// Address that is no longer managed, relative to the declaring module: a module or a resource, without keys.
    pub from: Target,
    pub from_range: Range,
    /// The lifecycle argument `destroy`. If it is false, objects are forgotten. If it is missing, they are destroyed, unless the state says
    /// otherwise.
    pub destroy: Option<bool>,
    /// Provisioners that run before objects are destroyed.
    pub provisioners: Vec<Provisioner>,
    pub connection: Option<Connection>,
    /// Range of the block's header.
    pub range: Range,
}

/// The argument of an import that identifies the object.
#[derive(Clone, Debug)]
pub enum ImportBy {
    Id(Expr),
    Identity(Expr),
}

impl ImportBy {
    /// Returns the expression of the argument.
    #[must_use]
    pub fn expr(&self) -> &Expr {
        match self {
            ImportBy::Id(expr) | ImportBy::Identity(expr) => expr,
        }
    }
}

/// An `import` block.
#[derive(Clone, Debug)]
pub struct Import {
    /// Target address, relative to the declaring module, as written. Its keys may be expressions, such as `each.key`.
    pub to: Expr,
    /// Target address without keys.
    pub to_resource: ConfigResource,
    /// Target address as an instance, if all its keys are constant.
    pub to_instance: Option<AbsResourceInstance>,
    /// Identification of the object for the provider.
    pub by: ImportBy,
    /// Collection with one import for each element.
    pub for_each: Option<Expr>,
    /// Provider configuration that the block names, for a target without a `resource` block.
    pub provider_ref: Option<ProviderRef>,
    /// Range of the `provider` argument.
    pub provider_range: Option<Range>,
    pub provider: Provider,
    /// Range of the block's header.
    pub range: Range,
}

impl Import {
    /// Returns true if this block, declared in `module`, imports to a resource.
    #[must_use]
    pub fn imports_to(&self, module: &Module, resource: &ConfigResource) -> bool {
        let (outer, inner) = (&module.0, &self.to_resource.module.0);
        self.to_resource.resource == resource.resource
            && resource.module.0.len() == outer.len() + inner.len()
            && resource.module.0.iter().eq(outer.iter().chain(inner.iter()))
    }

    /// Returns the target's absolute configuration address, for a block declared in `module`.
    #[must_use]
    pub fn target(&self, module: &Module) -> ConfigResource {
        let mut path = module.clone();
        for name in self.to_resource.module.0.iter() {
            path = path.child(name.clone());
        }
        self.to_resource.resource.in_module(&path)
    }
}
