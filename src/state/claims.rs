//! Parts of a state that a run changes, and parts that it depends on.

use std::collections::BTreeSet;
use std::sync::Arc;

use addrs::{AbsResourceInstance, ConfigResource, ModuleInstance};

/// A resource, in all instances of its module that are inside one instance of an outer module, or of the module itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopedResource {
    pub within: ModuleInstance,
    pub resource: ConfigResource,
}

impl ScopedResource {
    /// Creates the scope that fixes the first `depth` steps of a module instance.
    #[must_use]
    pub fn new(module: &ModuleInstance, depth: usize, resource: ConfigResource) -> ScopedResource {
        let depth = depth.min(module.0.len());
        ScopedResource {
            within: ModuleInstance(module.0[..depth].into()),
            resource,
        }
    }

    /// Lists the scopes that an instance is in.
    pub fn of(address: &AbsResourceInstance) -> impl Iterator<Item = ScopedResource> + '_ {
        (0..=address.module.0.len()).map(|depth| ScopedResource::new(&address.module, depth, address.config()))
    }
}

/// Claims of a run on a state that others can change at the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Instances whose objects are changed.
    pub objects: BTreeSet<AbsResourceInstance>,
    /// Outputs that are changed.
    pub outputs: BTreeSet<Arc<str>>,
    /// Resources that these depend on. They do not change meanwhile.
    pub needed: BTreeSet<ScopedResource>,
    /// Set if the run is about the whole configuration: operations of earlier runs on objects that it does not have concern the user,
    /// too.
    pub is_complete: bool,
}

impl Claims {
    /// Returns true if other claims are a part of these.
    #[must_use]
    pub fn cover(&self, other: &Claims) -> bool {
        other.objects.is_subset(&self.objects)
            && other.outputs.is_subset(&self.outputs)
            && other.needed.is_subset(&self.needed)
    }

    /// Lists the resources in which something is changed.
    #[must_use]
    pub fn within(&self) -> BTreeSet<ScopedResource> {
        self.objects.iter().flat_map(ScopedResource::of).collect()
    }

    /// Returns true if an instance belongs to a resource that is depended on.
    #[must_use]
    pub fn needs(&self, address: &AbsResourceInstance) -> bool {
        ScopedResource::of(address).any(|scope| self.needed.contains(&scope))
    }
}
