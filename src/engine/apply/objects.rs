//! Object sources of apply: the objects of the state, with the results of the operations so far.

use addrs::AbsResource;
use cty::Value;

use crate::eval::Reported;
use crate::eval::objects::{ObjectSource, Objects, ReferencedResource};
use crate::plan::{Mode, Plan};
use crate::state_objects::{PartialObjects, StateObjects};

/// Returns the object source for the apply of a plan, depending on the mode, and on whether the plan is partial.
pub(super) fn object_source<'a>(plan: &Plan, state: StateObjects<'a>) -> Box<dyn ObjectSource + 'a> {
    match plan.mode {
        Mode::Destroy => Box::new(state),
        Mode::RefreshOnly => Box::new(RefreshedObjects(state)),
        Mode::Normal if plan.is_partial() => Box::new(PartialObjects(state)),
        Mode::Normal => Box::new(AppliedObjects(state)),
    }
}

/// The objects of the state. An operation replaces its object before dependents are evaluated.
struct AppliedObjects<'a>(StateObjects<'a>);

impl ObjectSource for AppliedObjects<'_> {
    fn initial_objects(&self, resource: &AbsResource) -> Objects {
        self.0.of_resource(resource)
    }

    fn value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported> {
        resource.configured_instances()
    }
}

/// Objects of the state for an apply that only refreshes. Instances are those that have an object, because none are created or destroyed to
/// match the configuration.
struct RefreshedObjects<'a>(StateObjects<'a>);

impl ObjectSource for RefreshedObjects<'_> {
    fn initial_objects(&self, resource: &AbsResource) -> Objects {
        self.0.of_resource(resource)
    }

    fn value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported> {
        Ok(resource.existing_instances())
    }
}
