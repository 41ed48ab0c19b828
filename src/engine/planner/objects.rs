//! Object sources for the kinds of plans.

use addrs::AbsResource;
use cty::Value;

use super::kind::PlanKind;
use crate::eval::Reported;
use crate::eval::objects::{ObjectSource, Objects, ReferencedResource};
use crate::state_objects::{PartialObjects, StateObjects};

/// Returns the object source for a kind of plan. `partial` is set if the plan leaves out a part of the configuration.
pub(super) fn object_source(kind: PlanKind, partial: bool, prior: StateObjects<'_>) -> Box<dyn ObjectSource + '_> {
    match kind {
        PlanKind::Destroy => Box::new(prior),
        PlanKind::RefreshOnly => Box::new(RefreshedObjects(partial.then_some(prior))),
        PlanKind::Normal | PlanKind::DestroyRefresh if partial => Box::new(PartialObjects(prior)),
        PlanKind::Normal | PlanKind::DestroyRefresh => Box::new(PlannedObjects),
    }
}

/// Planned objects of a complete configuration. The walk visits a resource before the blocks that refer to it, so all
/// objects are set when the value is computed.
struct PlannedObjects;

impl ObjectSource for PlannedObjects {
    fn value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported> {
        resource.configured_instances()
    }
}

/// Refreshed objects. The plan creates and destroys nothing, so the instances are those that exist in the state. The inner state is needed
/// only for resources that the walk leaves out.
struct RefreshedObjects<'a>(Option<StateObjects<'a>>);

impl ObjectSource for RefreshedObjects<'_> {
    fn initial_objects(&self, resource: &AbsResource) -> Objects {
        self.0
            .as_ref()
            .map(|state| state.of_resource(resource))
            .unwrap_or_default()
    }

    fn value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported> {
        Ok(resource.existing_instances())
    }
}
