//! The planner: its context, its results, and the visit of each block of the configuration.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addrs::{AbsProviderConfig, AbsResource, AbsResourceInstance, ConfigResource, InstanceKey, Mode as ResourceMode};
use config::Resource;
use provider::Provider;
use schema::Schema;
use state::State;
use syntax::Diagnostic;
use tokio::sync::Semaphore;

use super::import;
use super::kind::PlanKind;
use super::moves::Moves;
use super::reading::{ReadResults, Reading};
use super::targets::Selection;
use super::value_sources::Sources;
use crate::block_visits;
use crate::blocks::{Block, Blocks, create_before_destroy};
use crate::context::OperationContext;
use crate::dependency_evaluation::DependencyEvaluation;
use crate::ephemeral::Ephemerals;
use crate::eval::Reported;
use crate::execgraph::Planned;
use crate::inputs::{Inputs, PlanOptions};
use crate::invocation::ActionInvocation;
use crate::plan::{Action, ResourceChange};
use crate::provider_opening;
use crate::query::QueryInstance;
use crate::removals::Removals;
use crate::walk::Outcome;

/// Parameters of one run of the planner: kind, options, configuration as written, selection, moves and removals.
#[derive(Clone, Copy)]
pub(super) struct PlanSpec<'a> {
    pub(super) kind: PlanKind,
    pub(super) options: &'a PlanOptions,
    /// Configuration as written, without the empty blocks that are added for imports.
    pub(super) written: &'a config::Config,
    pub(super) selection: &'a Selection,
    pub(super) moves: &'a Moves,
    pub(super) removals: &'a Removals<'a>,
}

/// Properties of resources that are known before the walk.
pub(super) struct ResourceFacts {
    /// Managed resources that each resource depends on, directly or indirectly.
    pub(super) dependencies: BTreeMap<ConfigResource, BTreeSet<ConfigResource>>,
    /// Resources that are replaced with create_before_destroy.
    pub(super) create_before_destroy: BTreeSet<ConfigResource>,
    /// In a destroy plan, the data sources and ephemeral resources on which provider configurations depend.
    pub(super) read_for_providers: BTreeSet<ConfigResource>,
    /// Resources of the state, grouped by their addresses without instance keys of modules.
    pub(super) by_config: HashMap<ConfigResource, Vec<AbsResource>>,
}

impl ResourceFacts {
    pub(super) fn new(inputs: Inputs<'_>, blocks: &Blocks, selection: &Selection, kind: PlanKind) -> ResourceFacts {
        let dependencies = blocks.resource_dependencies(false);
        let selected = |r: &ConfigResource| selection.includes(&Block::Resource(r.clone()));
        let mut read_for_providers = BTreeSet::new();
        // A destroy plan reads only the data sources on which provider configurations depend.
        if kind.is_destroy() {
            for provider in selection.providers() {
                let before = blocks.resources_before(&Block::Provider(provider.clone()));
                read_for_providers.extend(before.into_iter().filter(|r| r.resource.mode != ResourceMode::Managed));
            }
        }
        let mut by_config: HashMap<ConfigResource, Vec<AbsResource>> = HashMap::new();
        for resource in inputs.state.resources.keys() {
            by_config.entry(resource.config()).or_default().push(resource.clone());
        }
        ResourceFacts {
            create_before_destroy: create_before_destroy::resources(inputs.config, &dependencies, selected),
            dependencies,
            read_for_providers,
            by_config,
        }
    }
}

/// Limits of concurrently planned objects.
pub(super) struct Limits {
    /// Permits for all objects except those that exist only in the state.
    pub(super) slots: Semaphore,
    /// Permits for objects that exist only in the state.
    pub(super) local_slots: Semaphore,
}

impl Limits {
    pub(super) fn new(inputs: &Inputs<'_>) -> Limits {
        let permits = inputs.permits();
        Limits {
            slots: Semaphore::new(permits),
            local_slots: Semaphore::new(inputs.local_parallelism().unwrap_or(permits)),
        }
    }
}

/// Progress of a plan, for display.
#[derive(Default)]
pub(super) struct Progress {
    /// Number of instances to plan, as far as they are known.
    pub(super) known: AtomicUsize,
    /// Number of instances that have been planned.
    pub(super) finished: AtomicUsize,
}

/// Results of planning so far.
#[derive(Default)]
pub(super) struct PlanResults {
    pub(super) changes: Vec<ResourceChange>,
    /// For each change, in the same order, the properties that the execution graph needs.
    pub(super) planned: Vec<Planned>,
    /// Indexes into `changes` of the updates and replacements of current objects.
    pub(super) changed: HashMap<AbsResource, HashMap<InstanceKey, usize>>,
    /// Indexes into `changes` of the creations.
    pub(super) created: HashMap<AbsResource, HashMap<InstanceKey, usize>>,
    pub(super) drift: Vec<ResourceChange>,
    pub(super) reads: ReadResults,
    /// Planned invocations of actions.
    pub(super) invocations: Vec<ActionInvocation>,
    pub(super) generated: BTreeMap<AbsResourceInstance, String>,
    pub(super) queries: Vec<Arc<QueryInstance>>,
    /// Check blocks whose data source could not be read, by module instance.
    pub(super) unread_checks: HashSet<(addrs::ModuleInstance, Arc<str>)>,
    /// Orphans that are not destroyed because objects depend on them that the plan leaves out, with the addresses of these objects.
    pub(super) kept_for_others: Vec<(AbsResourceInstance, String)>,
    /// Targeted orphans that are destroyed, each with an object that the plan leaves out and that probably depends on the orphan.
    pub(super) destroyed_though_needed: Vec<(AbsResourceInstance, String)>,
    /// Objects whose destroy-time provisioners cannot run because their block was removed, with the provisioner types.
    pub(super) lost_provisioners: Vec<(AbsResourceInstance, String)>,
    /// Resources of which at least one instance will change.
    pub(super) pending: HashSet<ConfigResource>,
}

pub(crate) struct Planner<'a> {
    pub(super) context: OperationContext<'a>,
    pub(super) spec: PlanSpec<'a>,
    pub(super) resources: ResourceFacts,
    pub(super) ephemerals: &'a Ephemerals<'a>,
    pub(super) dependency_evaluation: DependencyEvaluation<'a>,
    pub(super) limits: Limits,
    pub(super) reading: &'a Reading,
    /// Sources of the values in provider configurations.
    pub(super) of_providers: Sources,
    /// Prior state: it begins as the state of the inputs, and each object is replaced when it is refreshed.
    pub(super) prior: Arc<Mutex<State>>,
    pub(super) results: Mutex<PlanResults>,
    pub(super) progress: Progress,
}

/// A resource that is being planned, with everything that its instances share.
#[derive(Clone)]
pub(super) struct PlannedResource<'p> {
    pub(super) address: &'p ConfigResource,
    pub(super) block: Option<&'p Resource>,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) provider_address: AbsProviderConfig,
    /// Set if the provider configuration has `for_each`, so that each instance of the resource selects a provider instance.
    pub(super) expanded: bool,
    pub(super) schema: &'p Schema,
    /// Dependencies of the resource, sorted as in the state.
    pub(super) dependencies: Arc<[ConfigResource]>,
    pub(super) imports: import::Imports<'p>,
}

impl PlannedResource<'_> {
    /// Returns true if the block has `destroy = false`: objects leave the state without being destroyed.
    pub(super) fn keeps_objects(&self) -> bool {
        self.block.is_some_and(|block| block.lifecycle.keeps_object())
    }

    /// Returns the resource with another block, and without imports.
    pub(super) fn with_block<'b>(&'b self, block: &'b Resource) -> PlannedResource<'b> {
        PlannedResource {
            address: self.address,
            block: Some(block),
            provider: self.provider.clone(),
            provider_address: self.provider_address.clone(),
            expanded: self.expanded,
            schema: self.schema,
            dependencies: self.dependencies.clone(),
            imports: import::Imports::new(),
        }
    }
}

impl Planner<'_> {
    pub(super) fn results(&self) -> MutexGuard<'_, PlanResults> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn prior(&self) -> MutexGuard<'_, State> {
        self.prior.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn visit(&self, block: &Block) -> Outcome {
        // A stop is checked before each block, so that the walk ends without new requests.
        if self.context.inputs.stop.is_requested() {
            return Outcome::Failed;
        }
        let result = match block {
            _ if !self.spec.selection.includes(block) => Ok(()),
            Block::Resource(address) if address.resource.mode == ResourceMode::Ephemeral => {
                self.ephemeral(address).await
            }
            Block::Resource(address) => self.resource(address).await,
            Block::Provider(address) => self.provider(address).await,
            // A destroy plan evaluates only what provider configurations depend on, when they are opened.
            _ if self.spec.kind.is_destroy() => Ok(()),
            Block::Variable(module, name) => block_visits::visit_variable(self.context.evaluator, module, name),
            Block::Local(module, name) => block_visits::visit_local(self.context.evaluator, module, name),
            Block::Output(module, name) => {
                let severity = self.spec.kind.condition_severity();
                block_visits::visit_output(self.context.evaluator, module, name, severity)
            }
            Block::Action(action) => block_visits::visit_action(self.context.evaluator, action),
            Block::Call(module, name) => block_visits::visit_call(self.context.evaluator, module, name),
            Block::Check(module, name) => {
                // If the data source of a check could not be read, the check has failed already.
                let unread = self.results().unread_checks.clone();
                block_visits::visit_check(self.context.evaluator, module, name, |at| {
                    !unread.iter().any(|(module, check)| module == at && check == name)
                })
            }
        };
        self.ephemerals.used(block).await;
        if result.is_ok() { Outcome::Done } else { Outcome::Failed }
    }

    /// Opens an ephemeral resource; in a destroy plan, only if a provider configuration needs it.
    async fn ephemeral(&self, address: &ConfigResource) -> Result<(), Reported> {
        if self.spec.kind.is_destroy() {
            if !self.resources.read_for_providers.contains(address) {
                return Ok(());
            }
            self.dependency_evaluation
                .evaluate(self.context.evaluator, &Block::Resource(address.clone()))?;
        }
        self.ephemerals.open(address).await
    }

    async fn provider(&self, address: &AbsProviderConfig) -> Result<(), Reported> {
        if !self.spec.selection.needs_provider(address) {
            return Ok(());
        }
        if !provider_opening::is_declared(self.context.inputs.config, address) {
            let resources: Vec<String> = self
                .context
                .blocks
                .managed_by(address)
                .map(|r| format!("  - {r}"))
                .collect();
            return Err(self.context.fail(
                Diagnostic::error(
                    "Provider configuration not present",
                    format!(
                        "The provider configuration {address} has been removed while objects that it manages still exist in the \
                         state:\n{}\n\nThey can only be destroyed through it. Put the configuration back, apply, and remove it \
                         afterwards.",
                        resources.join("\n")
                    ),
                ),
            ));
        }
        // A destroy plan does not visit the dependencies of provider configurations, so they are evaluated here.
        if self.spec.kind.is_destroy() {
            self.dependency_evaluation
                .evaluate(self.context.evaluator, &Block::Provider(address.clone()))?;
        }
        let instances = self.context.evaluator.provider_instances(address)?;
        let open = |instance| async move {
            provider_opening::open(self.context.evaluator, self.context.providers, instance).await
        };
        // All instances are opened even after a failure, so that all problems are reported.
        let opened = futures::future::join_all(instances.iter().map(open)).await;
        opened.into_iter().collect()
    }

    /// Returns the previous address of an object that has been moved.
    pub(super) fn moved_from(&self, address: &AbsResourceInstance) -> Option<AbsResourceInstance> {
        self.spec.moves.from.get(address).cloned()
    }

    /// Returns true if new objects of a resource are created before old ones are destroyed.
    pub(super) fn is_create_before_destroy(&self, address: &ConfigResource) -> bool {
        self.resources.create_before_destroy.contains(address)
    }

    /// Adds a change, and its properties for the execution graph.
    pub(super) fn add(
        &self,
        mut change: ResourceChange,
        destroy_last: bool,
        state_dependencies: Arc<[ConfigResource]>,
    ) {
        change.previous_address = self.moved_from(&change.address);
        let resource = change.address.config();
        let planned = Planned {
            resource: resource.clone(),
            action: change.action,
            destroy_last,
            deposed: change.deposed.is_some(),
            provider: change.provider.block(),
            state_dependencies,
        };
        let mut results = self.results();
        if change.action != Action::NoOp {
            results.pending.insert(resource);
        }
        let at = results.changes.len();
        let list = match change.action {
            Action::Create => Some(&mut results.created),
            Action::Update => Some(&mut results.changed),
            replace if replace.is_replace() => Some(&mut results.changed),
            _ => None,
        };
        // A deposed object remains from an earlier replacement, so its destruction triggers no replacement of other objects.
        if let Some(list) = list.filter(|_| change.deposed.is_none()) {
            let instances = list.entry(change.address.containing_resource()).or_default();
            instances.insert(change.address.resource.key.clone(), at);
        }
        results.changes.push(change);
        results.planned.push(planned);
    }
}
