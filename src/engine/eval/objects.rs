//! Object sources, and the values that references to resources evaluate to.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{AbsResource, InstanceKey};
use config::Resource;
use cty::Value;
use provider::Schemas;

use super::{Evaluator, Expansion, Reported};

/// Objects of a resource as values, by instance key.
pub type Objects = BTreeMap<InstanceKey, Value>;

/// Source of the objects of resources in one operation. Each operation implements it: validation has no objects, a plan has planned
/// objects, apply has the objects of the state, and the console has the objects of the state with the changes of a plan. Destroy plans and
/// partial plans use the same source as their applies ([`crate::state_objects`]).
pub trait ObjectSource: Send + Sync {
    /// Returns true if evaluation is static: each block is evaluated once, for every value of the input variables and for all instances of
    /// its module. In static evaluation, input variables are unknown, `count` and `for_each` may be unknown, and a module instance without
    /// keys represents all instances of the module.
    fn is_static(&self) -> bool {
        false
    }

    /// Returns the objects of a resource before the operation has set or removed any ([`Evaluator::set_object`]).
    fn initial_objects(&self, _: &AbsResource) -> Objects {
        Objects::new()
    }

    /// Returns the expansion against which the instance keys of references to a resource are checked. `None` if keys are not checked.
    fn key_rule(&self, resource: &ReferencedResource<'_>) -> Result<Option<Arc<Expansion>>, Reported> {
        resource.expansion().map(Some)
    }

    /// Returns the value of a resource: its object, or a tuple or object of its instances. The evaluator caches the result.
    fn value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported>;
}

/// A resource that an expression refers to, in one instance of its module.
pub struct ReferencedResource<'e> {
    pub(super) evaluator: &'e Evaluator<'e>,
    pub(super) address: &'e AbsResource,
    pub(super) block: &'e Resource,
}

/// Returns an object in which every attribute of the schema is unknown.
pub(crate) fn unknown_attributes(schema: &schema::Schema) -> Value {
    let ty = schema.block.implied_object();
    let attributes = ty.attributes().iter().map(|a| Value::unknown(a.ty.clone())).collect();
    Value::object_of(&ty, attributes)
}

impl ReferencedResource<'_> {
    #[must_use]
    pub fn address(&self) -> &AbsResource {
        self.address
    }

    #[must_use]
    pub fn objects(&self) -> Objects {
        self.evaluator.with_objects(self.address, |objects| objects.clone())
    }

    pub fn expansion(&self) -> Result<Arc<Expansion>, Reported> {
        self.evaluator
            .resource_expansion(&self.address.module, &self.address.resource)
    }

    /// Returns the expansion of a block without evaluating its arguments: no instances with `count` or `for_each`, [`Expansion::Disabled`]
    /// with `enabled`, otherwise a single instance.
    #[must_use]
    pub fn empty_expansion(&self) -> Expansion {
        match (&self.block.count, &self.block.for_each) {
            (Some(_), _) => Expansion::Count(0),
            (None, Some(_)) => Expansion::ForEach(BTreeMap::new()),
            (None, None) if self.block.lifecycle.enabled.is_some() => Expansion::Disabled,
            (None, None) => Expansion::Single,
        }
    }

    /// Returns the value of a resource that has no objects yet. A single instance is an object with unknown attributes. With `count` or
    /// `for_each`, the whole value is unknown, because the keys are.
    #[must_use]
    pub fn without_objects(&self, schemas: &Schemas) -> Value {
        if self.block.count.is_some() || self.block.for_each.is_some() {
            return Value::dynamic();
        }
        let resource = &self.address.resource;
        let address = resource.in_module(&self.address.module.module());
        let provider = self.evaluator.config.provider_for(&address).provider.clone();
        let Some(schema) = schemas.resource(&provider, resource.mode, &resource.ty) else {
            return Value::dynamic();
        };
        if self.block.lifecycle.enabled.is_some() {
            // With `enabled`, the value may also turn out to be null.
            return Value::unknown(schema.block.implied_type());
        }
        unknown_attributes(schema)
    }

    /// Returns the value of all configured instances. Instances without an object are unknown.
    pub fn configured_instances(&self) -> Result<Value, Reported> {
        let expansion = self.expansion()?;
        let objects = self.objects();
        expansion.gather(|key| Ok(objects.get(&key).cloned().unwrap_or_else(Value::dynamic)))
    }

    /// Returns the value of the configured instances that have an object. For `count`, the tuple ends at the last instance with an object,
    /// and earlier instances without one are unknown.
    pub fn configured_instances_with_object(&self) -> Result<Value, Reported> {
        let expansion = self.expansion()?;
        expansion.gather_present(&self.objects())
    }

    /// Returns the value of all instances that have an object, whether or not `count` or `for_each` still include them.
    #[must_use]
    pub fn existing_instances(&self) -> Value {
        self.empty_expansion().gather_existing(self.objects())
    }
}
