//! Applies that lock only parts of a state, so that other runs can change the other parts at the same time.
//!
//! Some stores keep every object of a state as a separate record, and can lock single objects. With such a store, a plan takes no lock.
//! Between the approval of the plan and its first change, the apply locks the objects that it changes and the objects that these depend on.
//! If none of them has changed since the plan was made, the plan is still valid, whatever else has changed in the state. The plan is then
//! transferred to the current state.

use std::collections::BTreeSet;
use std::time::Duration;

use addrs::{AbsResourceInstance, ConfigResource, Mode};
use config::Config;
use engine::plan::Plan;
use state::journal::changes;
use state::{Claims, InstanceState, State};
use stores::backend::{StateBackend, StateLocation, history};
use stores::session::StateSession;
use syntax::{Diagnostic, Diagnostics};
use views::verb::Verb;

use crate::outcome::Failure;
use crate::session::Session;
use crate::state_addresses;

/// Limit of the objects that a message names.
const NAMED: usize = 20;

/// Plan with the current state. The parts of the state that the plan is about are locked.
pub struct Claimed {
    /// Plan, transferred to the current state.
    pub plan: Plan,
    /// State as it was read after locking.
    pub state: State,
    claims: Claims,
}

impl Claimed {
    /// Resets the outputs that this run has not locked to their values in the current state: the apply may have evaluated them from objects
    /// that other runs have changed meanwhile.
    pub fn keep_unclaimed_outputs(&self, state: &mut State) {
        state.outputs.retain(|name, _| self.claims.outputs.contains(name));
        let others = self.state.outputs.iter();
        let others = others.filter(|(name, _)| !self.claims.outputs.contains(*name));
        state
            .outputs
            .extend(others.map(|(name, output)| (name.clone(), output.clone())));
    }
}

/// Locks of an operation on its state. A time limit of `None` means no lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// The whole state, from the beginning.
    Whole(Option<Duration>),
    /// Parts, once there is a plan.
    Parts(Option<Duration>),
    /// Nothing: one snapshot is read.
    Snapshot,
}

impl Locking {
    pub fn of(backend: &StateBackend, verb: Verb, timeout: Option<Duration>) -> Locking {
        match backend {
            StateBackend::Store(store) if store.keeps_objects() => match verb {
                Verb::Plan | Verb::Console => Locking::Snapshot,
                Verb::Apply | Verb::Destroy | Verb::Refresh | Verb::Import => Locking::Parts(timeout),
            },
            _ => Locking::Whole(timeout),
        }
    }

    /// Returns the time limit for the lock on the whole state.
    pub fn whole(self) -> Option<Duration> {
        match self {
            Locking::Whole(timeout) => timeout,
            Locking::Parts(_) | Locking::Snapshot => None,
        }
    }
}

/// Checks that a saved plan was made from the current state. With `by_object`, only the lineage is compared: the objects are compared after
/// they are locked.
///
/// # Errors
/// The plan was made from another state, or from an earlier snapshot of this one.
pub fn check_saved(previous: &State, current: &State, by_object: bool) -> Result<(), Failure> {
    // The lineage is compared first: a plan of another state must not be reported as stale.
    if previous.lineage != current.lineage && !previous.lineage.is_empty() {
        return Err(Failure::new(
            "Saved plan does not match the given state",
            "The state has another lineage than the state that the plan was made from: it belongs to another configuration, or was \
             replaced since then. Make a new plan.",
        ));
    }
    if !by_object && (previous.serial != current.serial || previous.lineage != current.lineage) {
        return Err(Failure::new(
            "Saved plan is stale",
            "The state has been changed since the plan was made, by another apply or by hand. Make a new plan.",
        ));
    }
    Ok(())
}

/// Returns true if an instance has the same objects in two states.
fn same(one: Option<&InstanceState>, other: Option<&InstanceState>) -> bool {
    let one = one.filter(|instance| !instance.is_empty());
    let other = other.filter(|instance| !instance.is_empty());
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.current == other.current && one.deposed == other.deposed,
        _ => false,
    }
}

/// Lists objects that others have changed since a plan was made, if they matter for the plan: claimed objects, managed objects that these
/// depend on, and objects that depend on an object that the plan destroys.
fn changed_since(plan: &Plan, current: &State, claims: &Claims) -> Vec<AbsResourceInstance> {
    let destroyed: BTreeSet<ConfigResource> = plan
        .changes
        .iter()
        .filter(|change| change.after.is_null() && claims.objects.contains(&change.address))
        .map(|change| change.address.config())
        .collect();
    let depends = |address: &AbsResourceInstance| {
        let instance = current.instance(address);
        let objects = instance.into_iter().flat_map(|instance| instance.current.iter());
        let mut dependencies = objects.flat_map(|object| object.dependencies.iter());
        dependencies.any(|dependency| destroyed.contains(dependency))
    };
    let matters = |address: &AbsResourceInstance| {
        // The plan has read data sources itself, so their records in the state do not matter.
        let is_needed = address.resource.resource.mode == Mode::Managed && claims.needs(address);
        claims.objects.contains(address) || is_needed || depends(address)
    };
    let others = changes(&plan.previous_state, current).into_iter();
    let others = others.map(|change| change.address).filter(matters);
    // The comparison is with the refreshed object: another run may have stored the same refresh result.
    others
        .filter(|address| !same(plan.prior_state.instance(address), current.instance(address)))
        .collect()
}

/// Returns the plan with the current state as its previous and prior state. Refreshed objects of the plan stay, unless others have changed
/// the objects since.
fn on_current(plan: &Plan, current: &State) -> Plan {
    let mut prior = current.clone();
    for change in changes(&plan.previous_state, &plan.prior_state) {
        let (before, now) = (
            plan.previous_state.instance(&change.address),
            current.instance(&change.address),
        );
        if same(before, now) {
            prior.set_instance(&change.address, &change.provider, change.objects);
        }
    }
    Plan {
        prior_state: prior,
        previous_state: current.clone(),
        ..plan.clone()
    }
}

/// Locked parts of a state, after a plan turned out to be stale.
struct Held {
    claims: Claims,
    /// Claimed objects that others have changed since the plan was made.
    changed: Vec<AbsResourceInstance>,
}

/// Parameters of [`PartLocks::claim`]: the opened state, its configuration and schemas.
pub struct Subject<'o> {
    pub session: &'o Session,
    pub states: &'o StateSession<'o>,
    pub config: &'o Config,
    pub cancelled: &'o dyn Fn() -> bool,
}

/// Locks of an operation on parts of its state.
pub struct PartLocks {
    locking: Locking,
    /// Plan whose parts of the state are locked.
    pub claimed: Option<Claimed>,
    held: Option<Held>,
}

impl PartLocks {
    pub fn new(locking: Locking) -> PartLocks {
        PartLocks {
            locking,
            claimed: None,
            held: None,
        }
    }

    /// Returns true if the operation is about parts of its state, locked or not.
    pub fn are_used(&self) -> bool {
        matches!(self.locking, Locking::Parts(_))
    }

    /// Locks the parts of the state that a plan is about, and puts the plan on the state as it is then. Returns false if others have
    /// changed these objects since the plan was made: `state` is then the new one, for another plan, and the parts stay locked.
    ///
    /// # Errors
    /// The locks are held by others, or the state was replaced by another one.
    pub fn claim(
        &mut self,
        subject: &Subject<'_>,
        state: &mut State,
        plan: &Plan,
        claims: Claims,
    ) -> Result<bool, Diagnostics> {
        let Locking::Parts(timeout) = self.locking else {
            return Ok(true);
        };
        let covers = |held: &Held| timeout.is_some() && held.claims.cover(&claims);
        if self.held.as_ref().is_some_and(covers) {
            // Nobody else can have changed them since they were read for this plan.
            self.claimed = Some(Claimed {
                plan: plan.clone(),
                state: state.clone(),
                claims,
            });
            return Ok(true);
        }
        if self.held.take().is_some() {
            subject.states.unlock()?;
        }
        let current = subject.states.lock_objects(&claims, timeout, subject.cancelled)?;
        let mut current = current.unwrap_or_default();
        state_addresses::translate(subject.session, subject.config, &mut current);
        let lineage = &plan.previous_state.lineage;
        if *lineage != current.lineage && !lineage.is_empty() {
            return Err(Diagnostic::error(
                "State was replaced since the plan",
                "The state has another lineage than the one that the plan was made from. Nothing was changed. Make a new plan.",
            )
            .into());
        }
        let changed = changed_since(plan, &current, &claims);
        if changed.is_empty() {
            self.claimed = Some(Claimed {
                plan: on_current(plan, &current),
                state: current,
                claims,
            });
            return Ok(true);
        }
        *state = current;
        self.held = Some(Held { claims, changed });
        Ok(false)
    }

    /// Returns the error for a stale plan that was approved or saved.
    pub fn stale(&self, summary: &str, location: &StateLocation) -> Diagnostic {
        let list = self.listed(location);
        Diagnostic::error(
            summary,
            format!(
                "Another run has changed objects that this plan changes or depends on, so the plan does not hold any more. Nothing was \
                 changed. Make a new plan.{list}"
            ),
        )
    }

    /// Returns the warning for a stale plan that is made again without asking, because nobody has approved it.
    pub fn planned_again(&self, location: &StateLocation) -> Diagnostic {
        let list = self.listed(location);
        Diagnostic::warning(
            "Objects changed since the plan",
            format!(
                "Another run has changed objects that this plan changes or depends on. The plan is made again.{list}"
            ),
        )
    }

    /// Lists the changed objects, each with the run that changed it last.
    fn listed(&self, location: &StateLocation) -> String {
        let changed = self.held.as_ref().map_or(&[][..], |held| &held.changed);
        let list: String = changed
            .iter()
            .take(NAMED)
            .map(|address| format!("\n  - {address}{}", last_change(location, address)))
            .collect();
        match changed.len().saturating_sub(NAMED) {
            0 => list,
            more => format!("{list}\n  - and {more} more"),
        }
    }
}

/// Describes the run that changed an object last; empty if the store has no history of it.
fn last_change(location: &StateLocation, address: &AbsResourceInstance) -> String {
    let StateBackend::Store(store) = &location.backend else {
        return String::new();
    };
    let subject = history::Subject::Instance(address.clone());
    let runs = store.runs(&location.workspace, Some(&subject)).unwrap_or_default();
    runs.first().map_or_else(String::new, |run| {
        format!(
            ", by run {} ({} of {}, begun at {})",
            run.run, run.operation, run.who, run.started_at
        )
    })
}
