//! Operation `import`: an object that exists is read and saved in the state.

use addrs::AbsResourceInstance;
use engine::inputs::PlanOptions;
use engine::plan::Plan;
use engine::planner::Planning;
use state::State;
use state::journal::Writer;
use stores::journal;
use syntax::Diagnostics;
use views::live::Work;
use views::progress::Progress;

use super::Operation;
use crate::reporting;

impl Operation<'_> {
    /// Reads the object to import. The prior state of the returned plan contains it.
    pub fn import(&self, options: &PlanOptions) -> Planning {
        self.session.show_now(&self.take_warnings(), &self.project.sources);
        let reporter = reporting::showing(self.session, Progress::of_import, Work::named("Importing"));
        self.plan_with(options, &reporter)
    }

    /// Begins the journal of an import. A store that keeps objects apart has none before the object is [claimed](Operation::claim_import).
    pub fn begin_import(&self, address: &AbsResourceInstance) -> Option<Writer> {
        let provider = self.project.config.provider_for(&address.config());
        journal::begin_import(self.states.store(), self.operation, address, provider.to_string())
    }

    /// Locks the object of an import, as [`Operation::claim`] locks those of a plan.
    pub fn claim_import(&mut self, plan: &Plan, address: &AbsResourceInstance) -> Result<bool, Diagnostics> {
        self.claim_parts(plan, |config, schemas| {
            engine::claims::of_import(config, schemas, plan, address)
        })
    }

    /// Returns the state with the object and the outputs of an import.
    pub fn with_import(&self, plan: &Plan, address: &AbsResourceInstance) -> Option<State> {
        let resource = plan.prior_state.resources.get(&address.containing_resource())?;
        let object = plan.prior_state.current(address)?.clone();
        let claimed = self.parts.claimed.as_ref();
        let mut state = claimed.map_or(&self.state, |claimed| &claimed.state).clone();
        state.set_current(address, &resource.provider_of(&address.resource.key), Some(object));
        // Outputs that depend on this object have their values now.
        state.outputs.clone_from(&plan.prior_state.outputs);
        if let Some(claimed) = claimed {
            claimed.keep_unclaimed_outputs(&mut state);
        }
        Some(state)
    }
}
