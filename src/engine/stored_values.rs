//! Stored values: the objects of a state as values that expressions can refer to.

use std::collections::BTreeMap;

use addrs::{AbsResource, InstanceKey};
use config::Config;
use cty::Value;
use provider::Schemas;
use state::State;

use crate::instance::decode;

/// The stored objects of a resource as values, with their marks. Objects that do not conform to their schema are left out: the
/// walk reports them when it visits the resource.
#[must_use]
pub fn stored_objects(state: &State, schemas: &Schemas, resource: &AbsResource) -> BTreeMap<InstanceKey, Value> {
    let Some(existing) = state.resources.get(resource) else {
        return BTreeMap::new();
    };
    let schema = schemas.resource(
        &existing.provider.provider,
        resource.resource.mode,
        &resource.resource.ty,
    );
    let Some(schema) = schema else { return BTreeMap::new() };
    let instances = existing.instances.iter().filter_map(|(key, instance)| {
        let object = instance.current.as_ref()?;
        let stored = decode(schema, object, resource).ok()?;
        Some((key.clone(), stored.marked(schema)))
    });
    instances.collect()
}

/// An unknown value for the object of a resource that has neither `count` nor `for_each` and is not in the state, where no
/// object is created.
#[must_use]
pub fn missing_object(config: &Config, schemas: &Schemas, resource: &AbsResource) -> Option<(InstanceKey, Value)> {
    let address = resource.config();
    let block = config.resource(&address)?;
    if block.count.is_some() || block.for_each.is_some() {
        return None;
    }
    let addrs::Resource { mode, ty, .. } = &address.resource;
    let schema = schemas.resource(&config.provider_for(&address).provider, *mode, ty)?;
    Some((InstanceKey::None, Value::unknown(schema.implied_type())))
}
