//! Parts of a state that a run changes, and parts that it depends on.

use std::collections::BTreeSet;
use std::sync::Arc;

use addrs::{AbsResourceInstance, ConfigResource, ModuleInstance};

/// A resource in all instances of its module that are inside the module instance `within`, which is the module itself or an outer module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopedResource {
    pub within: ModuleInstance,
    pub resource: ConfigResource,
}

impl ScopedResource {
    /// Creates the scope of all module instances that share the first `depth` steps with `module`.
    #[must_use]
    pub fn new(module: &ModuleInstance, depth: usize, resource: ConfigResource) -> ScopedResource {
        let depth = depth.min(module.0.len());
        ScopedResource {
            within: ModuleInstance(module.0[..depth].into()),
            resource,
        }
    }

    /// Lists the scopes that contain an instance.
    pub fn of(address: &AbsResourceInstance) -> impl Iterator<Item = ScopedResource> + '_ {
        (0..=address.module.0.len()).map(|depth| ScopedResource::new(&address.module, depth, address.config()))
    }
}

/// Parts of a state that a run uses while other runs may use other parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Instances whose objects are changed.
    pub objects: BTreeSet<AbsResourceInstance>,
    /// Outputs that are changed.
    pub outputs: BTreeSet<Arc<str>>,
    /// Resources that the changed objects depend on. Other runs must not change them meanwhile.
    pub needed: BTreeSet<ScopedResource>,
    /// Set if the run covers the whole configuration, so that unfinished operations of earlier runs are reported for objects that are not
    /// claimed, too.
    pub is_complete: bool,
}

impl Claims {
    /// Returns true if these claims include all claims of `other`.
    #[must_use]
    pub fn cover(&self, other: &Claims) -> bool {
        other.objects.is_subset(&self.objects)
            && other.outputs.is_subset(&self.outputs)
            && other.needed.is_subset(&self.needed)
    }

    /// Lists all scopes that contain a changed object.
    #[must_use]
    pub fn within(&self) -> BTreeSet<ScopedResource> {
        self.objects.iter().flat_map(ScopedResource::of).collect()
    }

    /// Returns true if an instance belongs to a needed resource.
    #[must_use]
    pub fn needs(&self, address: &AbsResourceInstance) -> bool {
        ScopedResource::of(address).any(|scope| self.needed.contains(&scope))
    }
}
