//! What happens to objects that the configuration speaks of in another way than before: `moved`, `removed`, `import`.

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
    /// The header of the block.
    pub range: Range,
}

/// One side of a `moved` block.
#[derive(Clone, Debug)]
pub struct MoveEndpoint {
    /// What is moved.
    pub subject: MoveSubject,
    /// Where it is written.
    pub range: Range,
}

/// What is moved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MoveSubject {
    /// A module call if the last step has no key and neither has the other side's, else an instance of it.
    Module(ModuleInstance),
    /// A resource with all its instances, or its single instance if the other side is an instance.
    Resource(AbsResource),
    /// An instance of a resource.
    Instance(AbsResourceInstance),
}

/// A `removed` block.
#[derive(Clone, Debug)]
pub struct Removed {
    /// What is no longer managed, relative to the declaring module: a module or a resource, without keys.
    pub from: Target,
    /// Where it is written.
    pub from_range: Range,
    /// The lifecycle argument `destroy`: objects are forgotten if it is false. Without it they are destroyed, unless the state says otherwise.
    pub destroy: Option<bool>,
    /// What runs before objects are destroyed.
    pub provisioners: Vec<Provisioner>,
    /// The connection of the provisioners.
    pub connection: Option<Connection>,
    /// The header of the block.
    pub range: Range,
}

/// What says which object to import.
#[derive(Clone, Debug)]
pub enum ImportBy {
    /// An identifier: the argument `id`.
    Id(Expr),
    /// An identity: the argument `identity`.
    Identity(Expr),
}

impl ImportBy {
    /// The value of the argument.
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
    /// The address to import to, relative to the declaring module, as written; its keys may be expressions of `each.key` and
    /// the like.
    pub to: Expr,
    /// The same without keys.
    pub to_resource: ConfigResource,
    /// The same, if all its keys are constant.
    pub to_instance: Option<AbsResourceInstance>,
    /// Which object it is to the provider.
    pub by: ImportBy,
    /// An import for each element.
    pub for_each: Option<Expr>,
    /// The provider configuration, if named, for a target without configuration.
    pub provider_ref: Option<ProviderRef>,
    /// Where the `provider` argument stands.
    pub provider_range: Option<Range>,
    /// The provider that imports.
    pub provider: Provider,
    /// The header of the block.
    pub range: Range,
}

impl Import {
    /// Whether a block in this module imports to a resource.
    #[must_use]
    pub fn imports_to(&self, module: &Module, resource: &ConfigResource) -> bool {
        let (outer, inner) = (&module.0, &self.to_resource.module.0);
        self.to_resource.resource == resource.resource
            && resource.module.0.len() == outer.len() + inner.len()
            && resource.module.0.iter().eq(outer.iter().chain(inner.iter()))
    }

    /// What is imported to, of a block in this module.
    #[must_use]
    pub fn target(&self, module: &Module) -> ConfigResource {
        let mut path = module.clone();
        for name in self.to_resource.module.0.iter() {
            path = path.child(name.clone());
        }
        self.to_resource.resource.in_module(&path)
    }
}
