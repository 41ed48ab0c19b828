//! Objects of a state as values that expressions can refer to.

use std::sync::{Arc, Mutex, PoisonError};

use addrs::AbsResource;
use cty::Value;
use provider::Schemas;
use state::State;

use crate::eval::objects::{ObjectSource, Objects, ReferencedResource};
use crate::eval::{Expansion, Reported};
use crate::instance::decode;

/// Returns the stored objects of a resource as values, with their marks. Objects that do not conform to their schema
/// are left out: the walk reports them when it visits the resource.
#[must_use]
pub fn stored_objects(state: &State, schemas: &Schemas, resource: &AbsResource) -> Objects {
    let Some(existing) = state.resources.get(resource) else {
        return Objects::new();
    };
    let schema = schemas.resource(
        &existing.provider.provider,
        resource.resource.mode,
        &resource.resource.ty,
    );
    let Some(schema) = schema else { return Objects::new() };
    let instances = existing.instances.iter().filter_map(|(key, instance)| {
        let object = instance.current.as_ref()?;
        let stored = decode(schema, object, resource).ok()?;
        Some((key.clone(), stored.marked(schema)))
    });
    instances.collect()
}

/// Objects of a state that an operation changes while it runs. This is the object source of destroy plans and of their apply: a resource
/// has the instances in the state, even if the configuration declares other ones.
#[derive(Clone)]
pub struct StateObjects<'a> {
    /// State that the operation changes.
    pub state: Arc<Mutex<State>>,
    pub schemas: &'a Schemas,
}

impl StateObjects<'_> {
    /// Returns the stored objects of a resource.
    #[must_use]
    pub fn of_resource(&self, resource: &AbsResource) -> Objects {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        stored_objects(&state, self.schemas, resource)
    }
}

impl ObjectSource for StateObjects<'_> {
    fn initial_objects(&self, resource: &AbsResource) -> Objects {
        self.of_resource(resource)
    }

    fn key_rule(&self, _: &ReferencedResource<'_>) -> Result<Option<Arc<Expansion>>, Reported> {
        Ok(None)
    }

    fn value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported> {
        Ok(resource.existing_instances())
    }
}

/// Object source of a plan with `-target` or `-exclude`, and of its apply. Resources that are left out have the objects of the state.
/// Instances without an object are left out of values, or are unknown if they come before others of a `count`.
pub struct PartialObjects<'a>(pub StateObjects<'a>);

impl ObjectSource for PartialObjects<'_> {
    fn initial_objects(&self, resource: &AbsResource) -> Objects {
        self.0.of_resource(resource)
    }

    fn value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported> {
        resource.configured_instances_with_object()
    }
}
