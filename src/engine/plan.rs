//! A plan: what will be done, decided once, as data.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResourceInstance, Target};
use cty::{Path, Value};
use serde::{Deserialize, Serialize};

/// What kind of plan this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Make the objects match the configuration.
    #[default]
    Normal,
    /// Destroy everything.
    Destroy,
    /// Only update the state to what the objects are.
    RefreshOnly,
}

/// What will be done to one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Action {
    /// Nothing.
    NoOp,
    /// Create it.
    Create,
    /// Read it (data sources whose reading waits for apply).
    Read,
    /// Change it in place.
    Update,
    /// Destroy it.
    Delete,
    /// Replace it: destroy, then create.
    DeleteThenCreate,
    /// Replace it: create, then destroy.
    CreateThenDelete,
    /// Drop it from the state without destroying it.
    Forget,
}

impl Action {
    /// Whether one object is destroyed and another created.
    #[must_use]
    pub fn is_replace(self) -> bool {
        matches!(self, Action::DeleteThenCreate | Action::CreateThenDelete)
    }
}

/// Why an action was chosen, where the action alone does not say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// Nothing to add.
    #[default]
    None,
    /// The provider cannot update in place.
    ReplaceBecauseCannotUpdate,
    /// The object is tainted.
    ReplaceBecauseTainted,
    /// `-replace` asked for it.
    ReplaceByRequest,
    /// `replace_triggered_by` asked for it.
    ReplaceByTriggers,
    /// The resource is not in the configuration any more.
    DeleteBecauseNoResourceConfig,
    /// The resource has `count` or `for_each` where the object has no such key, or the other way round.
    DeleteBecauseWrongRepetition,
    /// The index is beyond `count`.
    DeleteBecauseCountIndex,
    /// The key is not in `for_each`.
    DeleteBecauseEachKey,
    /// The module instance does not exist any more.
    DeleteBecauseNoModule,
    /// The target of a move is not in the configuration.
    DeleteBecauseNoMoveTarget,
    /// The configuration of the data source is not known yet.
    ReadBecauseConfigUnknown,
    /// Something the data source depends on will change.
    ReadBecauseDependencyPending,
    /// The data source belongs to a check block.
    ReadBecauseCheckNested,
}

impl Reason {
    /// The word used for it in JSON, if it has one.
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
            Reason::DeleteBecauseNoModule => "delete_because_no_module",
            Reason::DeleteBecauseNoMoveTarget => "delete_because_no_move_target",
            Reason::ReadBecauseConfigUnknown => "read_because_config_unknown",
            Reason::ReadBecauseDependencyPending => "read_because_dependency_pending",
            Reason::ReadBecauseCheckNested => "read_because_check_nested",
        })
    }
}

/// What will be done to one object, and why.
#[derive(Clone, Debug)]
pub struct ResourceChange {
    /// The object's address.
    pub address: AbsResourceInstance,
    /// The address it had before a move, if that differs.
    pub previous_address: Option<AbsResourceInstance>,
    /// Which deposed object, if it is not the current one.
    pub deposed: Option<Arc<str>>,
    /// The provider configuration that will carry it out.
    pub provider: AbsProviderConfig,
    /// What will be done.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// The object as it is: null if there is none. Sensitive parts are marked.
    pub before: Value,
    /// The object as it will be: null if there will be none. Sensitive parts are marked, unknown ones unknown.
    pub after: Value,
    /// The paths whose change asks for a new object.
    pub replace_paths: Vec<Path>,
    /// The provider's own data for apply.
    pub private: Vec<u8>,
    /// Whether the whole configuration of the object was known: then apply need not ask the provider to plan again.
    pub config_known: bool,
    /// The object is being imported under this identifier.
    pub importing: Option<Arc<str>>,
}

/// What will become of a root output value.
#[derive(Clone, Debug)]
pub struct OutputChange {
    /// What will be done: no-op, create, update or delete.
    pub action: Action,
    /// The value as it is: null if there is none.
    pub before: Value,
    /// The value as it will be: null if there will be none; perhaps unknown.
    pub after: Value,
    /// Whether the output is (or was) declared sensitive.
    pub sensitive: bool,
}

/// A plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What kind of plan.
    pub mode: Mode,
    /// When it was made, RFC 3339, UTC.
    pub timestamp: String,
    /// The root variables as they were given, converted; ephemeral ones are null with their mark.
    pub variables: BTreeMap<Arc<str>, Value>,
    /// The root variables as they were given, before conversion, for showing; ephemeral ones are left out. Whoever took
    /// them from people fills this in.
    pub given_variables: BTreeMap<Arc<str>, Value>,
    /// What `-target` selected; empty for everything.
    pub targets: Vec<Target>,
    /// What `-exclude` left out.
    pub excludes: Vec<Target>,
    /// What `-replace` asked for.
    pub force_replace: Vec<AbsResourceInstance>,
    /// What will be done to objects, no-ops included, in the order of addresses.
    pub changes: Vec<ResourceChange>,
    /// What changed outside: the state as it was against the objects as they are, in the order of addresses.
    pub drift: Vec<ResourceChange>,
    /// What will become of the root outputs.
    pub outputs: BTreeMap<Arc<str>, OutputChange>,
    /// The state before planning.
    pub previous_state: state::State,
    /// The state with the objects as they are now.
    pub prior_state: state::State,
    /// The order in which the changes will be carried out.
    pub graph: crate::execgraph::ExecGraph,
    /// Attributes whose values the changes depend on: (resource instance or resource, path), for the drift display.
    pub relevant_attributes: Vec<(AbsResourceInstance, Path)>,
    /// What functions of providers said.
    pub function_results: crate::functions::FunctionResults,
    /// How everything with conditions turned out, in the order of addresses.
    pub checks: Vec<state::CheckResult>,
    /// The blocks that were written for imports that had none.
    pub generated_config: BTreeMap<AbsResourceInstance, String>,
    /// When everything goes: what was read of data sources, which leaves the state once nothing there needs it.
    pub dropped_data: Vec<AbsResourceInstance>,
    /// Whether planning ended with errors: the plan is partial and must not be applied.
    pub errored: bool,
    /// Whether it was read from a file: whoever applies it may not have seen what was warned of when it was made.
    pub saved: bool,
}

impl Plan {
    /// Whether the plan is for a part of the configuration only.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        !(self.targets.is_empty() && self.excludes.is_empty())
    }

    /// Whether applying would do anything.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        self.changes
            .iter()
            .any(|c| c.action != Action::NoOp || c.importing.is_some() || c.previous_address.is_some())
            || self.outputs.values().any(|o| o.action != Action::NoOp)
    }

    /// Whether looking at the objects has changed anything that the state says of them. That they were brought to a newer
    /// version of their schema does not count.
    fn refreshes(&self) -> bool {
        let managed = |state: &'_ state::State| -> Vec<(AbsResourceInstance, state::InstanceState)> {
            state
                .instances()
                .filter(|(resource, ..)| resource.resource.mode == addrs::Mode::Managed)
                .map(|(resource, _, key, instance)| (resource.instance(key.clone()), instance.clone()))
                .collect()
        };
        let same = |a: &Option<Arc<state::Object>>, b: &Option<Arc<state::Object>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a.schema_version != b.schema_version || a == b,
            (None, None) => true,
            _ => false,
        };
        let (before, now) = (managed(&self.previous_state), managed(&self.prior_state));
        before.len() != now.len()
            || before.iter().zip(&now).any(|((at, a), (now_at, b))| {
                at != now_at || !same(&a.current, &b.current) || a.deposed.len() != b.deposed.len()
            })
    }

    /// Whether the plan may be applied: there is something to do, and nothing went wrong.
    #[must_use]
    pub fn is_applyable(&self) -> bool {
        !self.errored
            && match self.mode {
                Mode::RefreshOnly => {
                    // What is not known yet cannot be kept.
                    let news = |o: &OutputChange| o.action != Action::NoOp && o.after.is_wholly_known();
                    self.refreshes() || self.outputs.values().any(news)
                }
                _ => self.has_changes(),
            }
    }
}
