//! Plans: the decided actions with their reasons, as data.

pub use crate::action::Action;
pub use crate::identity::IdentityChange;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use addrs::{AbsActionInstance, AbsProviderConfig, AbsResourceInstance, Target};
use cty::{Path, Value};
use provider::ImportTarget;
use serde::{Deserialize, Deserializer, Serialize};
use state::State;

use crate::invocation::ActionInvocation;
use crate::last_reads::ReadInstance;
use crate::stored;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Changes that make the objects match the configuration.
    #[default]
    Normal,
    /// Changes that destroy all objects.
    Destroy,
    /// Only an update of the state to the refreshed objects.
    RefreshOnly,
}

/// Reason for an action that the action itself does not imply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// No reason beyond the action itself.
    #[default]
    None,
    /// The provider cannot update the object in place.
    ReplaceBecauseCannotUpdate,
    /// The object is tainted.
    ReplaceBecauseTainted,
    /// `-replace` names the object.
    ReplaceByRequest,
    /// An object that `replace_triggered_by` refers to has changed.
    ReplaceByTriggers,
    /// The configuration has no such resource.
    DeleteBecauseNoResourceConfig,
    /// The resource has gained, lost or changed `count` or `for_each`, so that instances have another kind of key.
    DeleteBecauseWrongRepetition,
    /// The index of the instance is not below `count`.
    DeleteBecauseCountIndex,
    /// The key of the instance is not in `for_each`.
    DeleteBecauseEachKey,
    /// `enabled` is false.
    DeleteBecauseEnabledFalse,
    /// The configuration has no such module instance.
    DeleteBecauseNoModule,
    /// The target of a `moved` block is not in the configuration.
    DeleteBecauseNoMoveTarget,
    /// The state records `destroy = false` for an object whose block no longer has it.
    ForgetBecauseState,
    /// The configuration of the data source is unknown.
    ReadBecauseConfigUnknown,
    /// A dependency of the data source has planned changes.
    ReadBecauseDependencyPending,
    /// The data source belongs to a check block.
    ReadBecauseCheckNested,
}

impl Reason {
    #[must_use]
    pub fn as_json(self) -> Option<&'static str> {
        Some(match self {
            Reason::None => return None,
            Reason::ReplaceBecauseCannotUpdate => "replace_because_cannot_update",
            Reason::ReplaceBecauseTainted => "replace_because_tainted",
            Reason::ReplaceByRequest => "replace_by_request",
            Reason::ReplaceByTriggers => "replace_by_triggers",
            Reason::DeleteBecauseNoResourceConfig => "delete_because_no_resource_config",
            Reason::DeleteBecauseWrongRepetition => "delete_because_wrong_repetition",
            Reason::DeleteBecauseCountIndex => "delete_because_count_index",
            Reason::DeleteBecauseEachKey => "delete_because_each_key",
            Reason::DeleteBecauseEnabledFalse => "delete_because_enabled_false",
            Reason::DeleteBecauseNoModule => "delete_because_no_module",
            Reason::DeleteBecauseNoMoveTarget => "delete_because_no_move_target",
            Reason::ForgetBecauseState => "forgot_because_lifecycle_destroy_in_state",
            Reason::ReadBecauseConfigUnknown => "read_because_config_unknown",
            Reason::ReadBecauseDependencyPending => "read_because_dependency_pending",
            Reason::ReadBecauseCheckNested => "read_because_check_nested",
        })
    }
}

/// A planned change of one object.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResourceChange {
    #[serde(with = "stored")]
    pub address: AbsResourceInstance,
    /// The address before a move, if the object was moved.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored")]
    pub previous_address: Option<AbsResourceInstance>,
    /// The key of the deposed object; `None` for the current object.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored")]
    pub deposed: Option<Arc<str>>,
    #[serde(with = "stored")]
    pub provider: AbsProviderConfig,
    /// Action on the object.
    pub action: Action,
    /// Reason for the action.
    pub reason: Reason,
    /// The prior object: null if there is none. Sensitive values are marked.
    #[serde(with = "stored")]
    pub before: Value,
    /// The planned object: null if it is destroyed. Sensitive values are marked.
    #[serde(with = "stored")]
    pub after: Value,
    /// The paths whose changes require replacement.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "stored")]
    pub replace_paths: Vec<Path>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "stored::bytes")]
    pub private: Vec<u8>,
    /// Set if the configuration was wholly known. Otherwise apply requests another plan from the provider.
    pub config_known: bool,
    /// Import ID or identity of an imported object. An identity is complete, as the provider returned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importing: Option<ImportedBy>,
    /// The identities of the object, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored")]
    pub identity: Option<Box<IdentityChange>>,
}

/// Import ID or identity of an imported object, as plans show and store it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImportedBy {
    Id(#[serde(with = "stored")] Arc<str>),
    Identity(#[serde(with = "stored::unmarked")] Value),
    /// A sensitive ID or identity, which only the provider may see.
    Sensitive,
}

impl From<&ImportTarget> for ImportedBy {
    fn from(target: &ImportTarget) -> ImportedBy {
        match target {
            ImportTarget::Id(id) => ImportedBy::Id(id.clone()),
            ImportTarget::Identity(identity) => ImportedBy::Identity(identity.clone()),
        }
    }
}

/// A planned change of a root output value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputChange {
    /// The action: no-op, create, update or delete.
    pub action: Action,
    /// The prior value: null if there is none.
    #[serde(with = "stored")]
    pub before: Value,
    /// The planned value: null if it is deleted; may be unknown.
    #[serde(with = "stored")]
    pub after: Value,
    /// Set if the output is or was declared as sensitive.
    pub sensitive: bool,
}

stored::derived!(OutputChange);

/// Objects and data sources that a plan has not read, because of a [partial refresh](crate::inputs::PartialRefresh). Objects that exist
/// only in the state do not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unread {
    /// Value of the option `-refresh`, such as `changed`.
    pub option: String,
    /// Number of objects and data sources that were read.
    pub read: usize,
    /// Objects and data sources that were not read, sorted by address.
    pub instances: Vec<UnreadInstance>,
}

/// An object or a data source that a plan has not read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnreadInstance {
    #[serde(with = "stored")]
    pub address: AbsResourceInstance,
    /// Time of the last read, if it is known: RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_read: Option<String>,
}

/// A plan. Saved plans contain its serialized form, so a new field becomes part of their format unless an attribute excludes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    pub mode: Mode,
    /// The time of planning: RFC 3339, UTC.
    pub timestamp: String,
    /// The values of the root variables, converted; ephemeral ones are null with their mark.
    #[serde(with = "stored")]
    pub variables: BTreeMap<Arc<str>, Value>,
    /// The values of the root variables as the user set them, before conversion, without ephemeral ones. Only for display.
    #[serde(with = "stored")]
    pub given_variables: BTreeMap<Arc<str>, Value>,
    /// Addresses of `-target`; empty for the whole configuration.
    #[serde(with = "stored")]
    pub targets: Vec<Target>,
    /// Addresses of `-exclude`; empty for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "stored")]
    pub excludes: Vec<Target>,
    /// Addresses of `-replace`; empty for none.
    #[serde(with = "stored")]
    pub force_replace: Vec<AbsResourceInstance>,
    /// The changes of objects, no-ops included, sorted by address.
    pub changes: Vec<ResourceChange>,
    /// The invocations of actions: first those that the user requests, then those of each resource instance in the order of its triggers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invocations: Vec<ActionInvocation>,
    /// Address of `-invoke`, if it was used.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored")]
    pub invoke: Option<AbsActionInstance>,
    /// Drift: the differences between the stored objects and the refreshed ones, sorted by address.
    pub drift: Vec<ResourceChange>,
    /// After a partial refresh: the objects that were not read, and the number of objects that were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<Unread>,
    /// Current objects and data sources that were read, for the record of last reads. Not part of a saved plan.
    #[serde(skip)]
    pub reads: Vec<ReadInstance>,
    #[serde(with = "stored")]
    pub outputs: BTreeMap<Arc<str>, OutputChange>,
    /// The state before planning. In a saved plan it is a separate file.
    #[serde(skip)]
    pub previous_state: State,
    /// The prior state: the state with refreshed objects. In a saved plan it is a separate file.
    #[serde(skip)]
    pub prior_state: State,
    /// The execution graph of the changes.
    pub graph: crate::execgraph::ExecGraph,
    /// Attributes whose values the changes depend on, with the address of their resource or resource instance. Drift of other attributes is
    /// not shown.
    #[serde(with = "stored")]
    pub relevant_attributes: Vec<(AbsResourceInstance, Path)>,
    /// The digests of the results of provider functions and of built-in functions that read files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub function_results: crate::functions::FunctionResults,
    /// The results of all conditions, sorted by address.
    #[serde(with = "stored")]
    pub checks: Vec<state::CheckResult>,
    /// The generated blocks of imported objects.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "stored")]
    pub generated_config: BTreeMap<AbsResourceInstance, String>,
    /// In a query: the results of the list blocks, by address. Not part of a saved plan.
    #[serde(skip)]
    pub queries: Vec<Arc<crate::query::QueryInstance>>,
    /// In a destroy plan: the data sources of the state, which apply removes when no object depends on them.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "stored")]
    pub dropped_data: Vec<AbsResourceInstance>,
    /// Set if planning failed: the plan is incomplete and must not be applied.
    #[serde(default)]
    pub errored: bool,
    /// Set if the plan was read from a file. The user who applies it may not have seen the warnings of planning.
    #[serde(skip)]
    pub saved: bool,
}

/// The part of a plan that is displayed. A plan of a remote run has only this part.
#[derive(Clone, Copy, Debug)]
pub struct PlanView<'p> {
    pub mode: Mode,
    /// Changes of objects, no-ops included.
    pub changes: &'p [ResourceChange],
    /// The differences between the stored objects and the refreshed ones.
    pub drift: &'p [ResourceChange],
    /// Invocations of actions, in the order of [`ActionInvocation::listed_before`].
    pub invocations: &'p [ActionInvocation],
    pub outputs: &'p BTreeMap<Arc<str>, OutputChange>,
    /// Attributes whose values the changes depend on.
    pub relevant_attributes: &'p [(AbsResourceInstance, Path)],
    /// After a partial refresh: the objects that were not read, and the number of objects that were.
    pub unread: Option<&'p Unread>,
    /// The generated blocks of imported objects.
    pub generated_config: &'p BTreeMap<AbsResourceInstance, String>,
    /// Set if planning failed: the plan is incomplete.
    pub errored: bool,
}

/// Totals of a plan's changes, for the line that begins with "Plan:".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Imported objects.
    pub imported: usize,
    /// Created objects, including the new objects of replacements.
    pub added: usize,
    /// Objects updated in place.
    pub changed: usize,
    /// Destroyed objects, including the old objects of replacements.
    pub destroyed: usize,
    /// Objects that leave the state without being destroyed. Only OpenTofu counts them.
    pub forgotten: usize,
    /// Invocations of actions.
    pub invoked: usize,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals {
            imported,
            added,
            changed,
            destroyed,
            forgotten,
            invoked,
        } = self;
        if *imported > 0 {
            write!(f, "{imported} to import, ")?;
        }
        write!(f, "{added} to add, {changed} to change, {destroyed} to destroy")?;
        if *forgotten > 0 && addrs::program::Mode::current().is_opentofu() {
            write!(f, ", {forgotten} to forget")?;
        }
        f.write_str(".")?;
        if *invoked > 0 {
            write!(f, " Actions: {invoked} to invoke.")?;
        }
        Ok(())
    }
}

impl PlanView<'_> {
    /// Counts the changes.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals {
            invoked: self.invocations.len(),
            ..Totals::default()
        };
        // A data source that leaves the state is not counted as destroyed.
        for change in self.changes.iter().filter(|change| !change.drops_data_source()) {
            totals.imported += usize::from(change.importing.is_some());
            let forgets = matches!(change.action, Action::Forget | Action::CreateThenForget);
            totals.forgotten += usize::from(forgets);
            for step in change.action.steps() {
                match step {
                    Action::Create => totals.added += 1,
                    Action::Update => totals.changed += 1,
                    Action::Delete => totals.destroyed += 1,
                    _ => {}
                }
            }
        }
        totals
    }

    /// Returns true if an object or an output changes, or an object is imported or moved.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.changes
            .iter()
            .any(|c| c.action != Action::NoOp || c.importing.is_some() || c.previous_address.is_some())
            || self.outputs.values().any(|o| o.action != Action::NoOp)
    }
}

impl ResourceChange {
    /// Returns true if the change removes a data source from the state. Plans do not show such a change, because no object changes.
    #[must_use]
    pub fn drops_data_source(&self) -> bool {
        self.action == Action::Delete && self.address.resource.resource.mode == addrs::Mode::Data
    }

    #[must_use]
    pub fn is_moved(&self) -> bool {
        self.previous_address
            .as_ref()
            .is_some_and(|previous| *previous != self.address)
    }

    /// Returns the identity of the planned object, if it has one.
    #[must_use]
    pub fn planned_identity(&self) -> Option<&Value> {
        self.identity.as_ref()?.after.as_ref()
    }
}

impl Plan {
    /// Reads a saved plan from its document, and from the states that are separate files.
    ///
    /// # Errors
    /// The document is not that of a plan.
    pub fn read<'de, D: Deserializer<'de>>(
        document: D,
        previous_state: State,
        prior_state: State,
    ) -> Result<Plan, D::Error> {
        Ok(Plan {
            previous_state,
            prior_state,
            saved: true,
            ..Plan::deserialize(document)?
        })
    }

    /// Returns true if the plan has `-target` or `-exclude`.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !(self.targets.is_empty() && self.excludes.is_empty())
    }

    /// Returns true if the plan changes an object or an output, or imports or moves an object.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.view().has_changes()
    }

    /// Returns the part of the plan that is displayed.
    #[must_use]
    pub fn view(&self) -> PlanView<'_> {
        PlanView {
            mode: self.mode,
            changes: &self.changes,
            drift: &self.drift,
            invocations: &self.invocations,
            outputs: &self.outputs,
            relevant_attributes: &self.relevant_attributes,
            unread: self.unread.as_ref(),
            generated_config: &self.generated_config,
            errored: self.errored,
        }
    }

    /// Returns true if the refresh has changed a managed object. An upgrade to a newer schema version does not count.
    fn refreshes(&self) -> bool {
        let managed = |state: &'_ State| -> Vec<(AbsResourceInstance, state::InstanceState)> {
            state
                .instances()
                .filter(|(resource, ..)| resource.resource.mode == addrs::Mode::Managed)
                .map(|(resource, _, key, instance)| (resource.instance(key.clone()), instance.clone()))
                .collect()
        };
        // Both states share the objects that did not change, so most comparisons only compare pointers.
        let same = |a: &Arc<state::Object>, b: &Arc<state::Object>| {
            Arc::ptr_eq(a, b) || a.schema_version != b.schema_version || a == b
        };
        let all_same = |a: &state::InstanceState, b: &state::InstanceState| {
            let current = match (&a.current, &b.current) {
                (Some(a), Some(b)) => same(a, b),
                (None, None) => true,
                _ => false,
            };
            let mut deposed = a.deposed.iter().zip(&b.deposed);
            current
                && a.deposed.len() == b.deposed.len()
                && deposed.all(|((at, a), (now_at, b))| at == now_at && same(a, b))
        };
        let (before, now) = (managed(&self.previous_state), managed(&self.prior_state));
        before.len() != now.len()
            || before
                .iter()
                .zip(&now)
                .any(|((at, a), (now_at, b))| at != now_at || !all_same(a, b))
    }

    /// Returns true if the plan has no errors and something to apply: changes or, in a refresh-only plan, refreshed objects, changed
    /// outputs or invocations of actions.
    #[must_use]
    pub fn is_applyable(&self) -> bool {
        !self.errored
            && match self.mode {
                Mode::RefreshOnly => {
                    // An output that is not wholly known cannot be stored, so it is no reason to apply.
                    let news = |o: &OutputChange| o.action != Action::NoOp && o.after.is_wholly_known();
                    self.refreshes() || !self.invocations.is_empty() || self.outputs.values().any(news)
                }
                _ => self.has_changes(),
            }
    }
}

#[cfg(test)]
mod tests;
