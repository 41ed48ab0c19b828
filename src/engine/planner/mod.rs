//! Plan: compare what should be with what is, and decide.
//!
//! The planner walks the graph of blocks. At each block it does what the block needs: evaluates, opens a provider, and
//! at a resource plans every instance there is or was (`managed`, `data`). Decisions go into one list of changes; the
//! objects as planned go to the evaluator, where later blocks see them. When the walk is done, the changes are put in
//! order and the execution graph is laid down.

mod data;
mod delete;
mod generate;
pub(crate) mod import;
mod managed;
mod moves;
mod outputs;
mod relevance;
mod targets;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addrs::{AbsProviderConfig, AbsResource, AbsResourceInstance, ConfigResource, InstanceKey, Mode as ResourceMode};
use config::Resource;
use futures::StreamExt;
use lang::schema::Schema;
use plugins::Provider;
use state::State;
use syntax::{Diagnostic, Diagnostics};
use tokio::sync::Semaphore;

use crate::blocks::{Block, Blocks};
use crate::ephemeral::Ephemerals;
use crate::eval::checks::{Checked, Status};
use crate::eval::{Evaluator, Failed, Phase};
use crate::events::Event;
use crate::execgraph::{Dependencies, ExecGraph, Planned};
use crate::inputs::{Inputs, PlanOptions};
use crate::opening;
use crate::plan::{Action, Mode, Plan, Reason, ResourceChange};
use crate::priming::Priming;
use crate::providers::{Providers, Schemas};
use crate::removals::{self, Removals};
use crate::walk::{Outcome, walk};

use moves::Moves;
use targets::Selection;

/// What people get who ask for no other parallelism.
const USUAL_PARALLELISM: usize = 10;
/// How many objects of one resource are planned at the same time whose provider asks nobody.
const LOCAL_PARALLELISM: usize = 64;

/// What planning gives.
#[derive(Debug)]
pub struct Planning {
    /// The plan. With errors there is none, or one marked as errored that shows how far planning came.
    pub plan: Option<Plan>,
    /// What the plugins said about themselves, for showing the plan.
    pub schemas: Schemas,
    /// Every problem.
    pub diagnostics: Diagnostics,
}

/// Makes a plan.
///
/// Before everything goes, everything is looked at as in any plan: data sources are read, objects refreshed. Where such a
/// plan cannot be made (a data source is gone; a count depends on what was never created), that is no reason to keep what
/// exists: then the objects alone are looked at while their end is planned, and what provider configurations need is read.
pub async fn plan(inputs: Inputs<'_>, options: &PlanOptions) -> Planning {
    if options.mode == Mode::Destroy && options.refresh && !inputs.state.is_empty() {
        let look = PlanOptions {
            mode: Mode::Normal,
            targets: options.targets.clone(),
            excludes: options.excludes.clone(),
            ..PlanOptions::default()
        };
        let looked = plan_once(inputs, &look, true).await;
        if inputs.stop.is_requested() {
            return looked;
        }
        if let Some(looked) = looked.plan.filter(|plan| !plan.errored) {
            let inputs = Inputs {
                state: &looked.prior_state,
                ..inputs
            };
            let options = PlanOptions {
                refresh: false,
                ..options.clone()
            };
            let mut planning = plan_once(inputs, &options, false).await;
            if let Some(plan) = &mut planning.plan {
                plan.previous_state = looked.previous_state;
            }
            return planning;
        }
    }
    plan_once(inputs, options, false).await
}

/// Makes one plan; `before_destroy` if it is the look at everything before everything goes.
async fn plan_once(inputs: Inputs<'_>, options: &PlanOptions, before_destroy: bool) -> Planning {
    let written = inputs.config;
    let completed = (options.generate_config && options.mode == Mode::Normal)
        .then(|| generate::with_empty_blocks(written, inputs.state));
    let inputs = Inputs {
        config: completed.as_ref().unwrap_or(written),
        ..inputs
    };
    let providers = match Providers::needed(inputs.providers, inputs.config, inputs.state).await {
        Ok(providers) => providers,
        Err(diagnostics) => {
            return Planning {
                plan: None,
                schemas: Schemas::default(),
                diagnostics,
            };
        }
    };
    let (plan, diagnostics) = tokio::select! {
        result = with_providers(inputs, written, options, before_destroy, &providers) => result,
        () = stopped(inputs, &providers) => (None, interrupted()),
    };
    providers.close().await;
    Planning {
        plan,
        schemas: providers.schemas().clone(),
        diagnostics,
    }
}

/// Ends some time after a stop was requested, when the plugins had their chance to end by themselves.
async fn stopped(inputs: Inputs<'_>, providers: &Providers<'_>) {
    inputs.stop.requested().await;
    inputs.events.event(Event::Stopping);
    providers.stop().await;
    std::future::pending::<()>().await;
}

fn interrupted() -> Diagnostics {
    Diagnostic::error(
        "Operation interrupted",
        "Planning was interrupted before it was complete.",
    )
    .into()
}

async fn with_providers(
    inputs: Inputs<'_>,
    written: &config::Config,
    options: &PlanOptions,
    before_destroy: bool,
    providers: &Providers<'_>,
) -> (Option<Plan>, Diagnostics) {
    let removals = Removals::new(inputs.config);
    let still_there = removals.still_declared(inputs.config);
    if still_there.has_errors() {
        return (None, still_there);
    }
    let statements = moves::statements(inputs.config, inputs.state);
    let mut moved = inputs.state.clone();
    let moves = match moves::apply(&statements, &mut moved, providers).await {
        Ok(moves) => moves,
        Err(diagnostics) => return (None, diagnostics),
    };
    if let Some(problem) = moves.outside_of_targets(&options.targets) {
        return (None, [problem].into_iter().chain(targets::warning(options)).collect());
    }
    // From here on, objects are where the configuration has them.
    let inputs = Inputs {
        state: &moved,
        ..inputs
    };
    let in_state: Vec<_> = inputs
        .state
        .resources
        .iter()
        .map(|(r, s)| (r.config(), s.provider.clone()))
        .collect();
    let blocks = match Blocks::build(inputs.config, providers.schemas(), &in_state) {
        Ok(blocks) => blocks,
        Err(diagnostics) => return (None, diagnostics),
    };
    let phase = if options.mode == Mode::Destroy {
        Phase::Destroy
    } else {
        Phase::Plan
    };
    let mut surroundings = inputs.surroundings.clone();
    surroundings.functions.pure = true;
    let timestamp = surroundings.functions.plan_timestamp.clone().unwrap_or_default();
    let partial = !(options.targets.is_empty() && options.excludes.is_empty());
    let prior = Arc::new(Mutex::new(inputs.state.clone()));
    let stored = {
        let (prior, schemas) = (prior.clone(), providers.schemas());
        Box::new(move |resource: &AbsResource| {
            if phase == Phase::Destroy || partial {
                opening::stored_objects(&prior.lock().unwrap_or_else(PoisonError::into_inner), schemas, resource)
            } else {
                BTreeMap::new()
            }
        })
    };
    let evaluator = Evaluator::new(inputs.config, phase, surroundings, inputs.variables, stored)
        .with_functions(providers.functions())
        .partial(partial)
        .existing(options.mode == Mode::RefreshOnly);
    let dependencies = blocks.resource_dependencies(false);
    let selection = Selection::new(&blocks, options, inputs.state);
    let ephemerals = Ephemerals::new(inputs, providers, &evaluator, &blocks, |_| 1);
    let planner = Planner {
        cbd: create_before_destroy(inputs, &dependencies, |r| {
            selection.includes(&Block::Resource(r.clone()))
        }),
        read_for_providers: match options.mode {
            Mode::Destroy => {
                let before = |p: &AbsProviderConfig| blocks.resources_before(&Block::Provider(p.clone()));
                let all = selection.providers().flat_map(before);
                all.filter(|r| r.resource.mode != ResourceMode::Managed).collect()
            }
            _ => BTreeSet::new(),
        },
        by_config: by_config(inputs.state),
        slots: Semaphore::new(inputs.parallelism.max(1)),
        inputs,
        written,
        options,
        before_destroy,
        providers,
        blocks: &blocks,
        selection: &selection,
        dependencies: &dependencies,
        priming: Priming::new(&blocks),
        evaluator: &evaluator,
        ephemerals: &ephemerals,
        moves: &moves,
        removals: &removals,
        prior,
        done: Mutex::default(),
        known: AtomicUsize::new(0),
        finished: AtomicUsize::new(0),
    };
    planner.warn_about_replace();
    if options.mode == Mode::Normal && !before_destroy {
        planner.check_imports();
    }
    let outcomes = tokio::select! {
        outcomes = walk(&blocks.graph, usize::MAX, |node| planner.visit(&blocks.graph[node])) => outcomes,
        never = ephemerals.keep() => match never {},
    };
    let mut diagnostics = evaluator.take_diagnostics();
    // The order in which providers answered is of no interest; that of the files is.
    diagnostics.0.sort_by_cached_key(|d| {
        let at = d.subject.as_ref().map(|r| (r.file.to_string(), r.start.byte));
        (at, d.address.clone(), d.summary.clone())
    });
    if inputs.stop.is_requested() {
        diagnostics.extend(interrupted());
    }
    if options.mode != Mode::Destroy {
        let problems = moves::validate(&statements, &evaluator);
        // What could not be evaluated has been reported.
        evaluator.take_diagnostics();
        if problems.has_errors() {
            // Wrong moves are likely to be why anything else went wrong.
            return (None, problems);
        }
    }
    let mut errored = diagnostics.has_errors();
    if !errored && outcomes.contains(&Outcome::Failed) {
        errored = true;
        diagnostics.push(Diagnostic::error(
            "Planning failed without a reason",
            "Some part of the configuration could not be planned, and no problem was reported. This is a bug in Monoform; \
             please report it.",
        ));
    }
    let outputs = outputs::changes(&planner, errored);
    ephemerals.close_all().await;
    diagnostics.extend(evaluator.take_diagnostics());
    errored |= diagnostics.has_errors();
    let skipped = |block: &Block| {
        let outcome = blocks.find(block).and_then(|n| outcomes.get(n.index()));
        outcome.is_some_and(|o| *o != Outcome::Done)
    };
    let plan = planner.finish(timestamp, outputs, errored, skipped);
    diagnostics.extend(targets::warning(options));
    if options.generate_config {
        diagnostics.push(Diagnostic::warning(
            "Config generation is experimental",
            "Configuration for imported objects is written as well as can be told from the objects alone. Look at it before \
             you use it; its form may change in later versions.",
        ));
    }
    if errored && options.mode == Mode::Destroy {
        // Half a destruction is none.
        return (None, diagnostics);
    }
    if !errored {
        diagnostics.extend(moves.blocked());
    }
    diagnostics.extend(removals::warning(&plan));
    if let Some(cycle) = plan.graph.cycle() {
        diagnostics.push(cyclic(&plan, &cycle));
        return (None, diagnostics);
    }
    (Some(plan), diagnostics)
}

/// Resources whose new objects are created before their old ones are destroyed: those that say so, and everything they
/// depend on, because a dependency cannot go while the old object is still there. Only those that are selected have a say.
pub(crate) fn create_before_destroy(
    inputs: Inputs<'_>,
    dependencies: &BTreeMap<ConfigResource, BTreeSet<ConfigResource>>,
    selected: impl Fn(&ConfigResource) -> bool,
) -> BTreeSet<ConfigResource> {
    let mut out = BTreeSet::new();
    for node in inputs.config.nodes() {
        for resource in node.module.managed_resources() {
            if resource.lifecycle.create_before_destroy == Some(true) {
                let address = resource.address.in_module(&node.path);
                if !selected(&address) {
                    continue;
                }
                out.extend(dependencies.get(&address).into_iter().flatten().cloned());
                out.insert(address);
            }
        }
    }
    out
}

fn by_config(state: &State) -> HashMap<ConfigResource, Vec<AbsResource>> {
    let mut out: HashMap<ConfigResource, Vec<AbsResource>> = HashMap::new();
    for resource in state.resources.keys() {
        out.entry(resource.config()).or_default().push(resource.clone());
    }
    out
}

fn cyclic(plan: &Plan, cycle: &[crate::execgraph::Operation]) -> Diagnostic {
    use crate::execgraph::Operation;
    let names: Vec<String> = cycle
        .iter()
        .filter_map(|operation| match operation {
            Operation::Change(i) => Some(plan.changes.get(*i as usize)?.address.to_string()),
            Operation::Destroy(i) => Some(format!("{} (destroy)", plan.changes.get(*i as usize)?.address)),
            _ => None,
        })
        .collect();
    Diagnostic::error(
        format!("Cycle: {}", names.join(", ")),
        "The planned changes wait for one another in a circle. This happens when dependencies between objects have been turned \
         around. Apply the change in two steps: first remove the old dependency, then add the new one.",
    )
}

/// What planning has found so far.
#[derive(Default)]
struct Done {
    changes: Vec<ResourceChange>,
    /// For each change, what its object depends on, and whether its deletion comes last.
    planned: Vec<Planned>,
    /// Which of the changes are updates or replacements of objects in use.
    changed: HashMap<AbsResource, HashMap<InstanceKey, usize>>,
    drift: Vec<ResourceChange>,
    generated: BTreeMap<AbsResourceInstance, String>,
    /// Checks whose data source could not be read.
    unread_checks: HashSet<(addrs::ModuleInstance, Arc<str>)>,
    /// Resources of which something will change.
    pending: HashSet<ConfigResource>,
}

/// One run of the planner.
pub(crate) struct Planner<'a> {
    inputs: Inputs<'a>,
    /// The configuration without blocks that are being written for imports.
    written: &'a config::Config,
    options: &'a PlanOptions,
    /// Whether this is the look at everything before everything goes: then nothing is imported, conditions do not count, and
    /// nothing is kept from being destroyed.
    before_destroy: bool,
    providers: &'a Providers<'a>,
    blocks: &'a Blocks,
    selection: &'a Selection,
    dependencies: &'a BTreeMap<ConfigResource, BTreeSet<ConfigResource>>,
    evaluator: &'a Evaluator<'a>,
    ephemerals: &'a Ephemerals<'a>,
    moves: &'a Moves,
    removals: &'a Removals<'a>,
    priming: Priming<'a>,
    cbd: BTreeSet<ConfigResource>,
    /// When everything goes: the data sources that provider configurations need even then.
    read_for_providers: BTreeSet<ConfigResource>,
    by_config: HashMap<ConfigResource, Vec<AbsResource>>,
    slots: Semaphore,
    /// The state, objects replaced by what they turn out to be.
    prior: Arc<Mutex<State>>,
    done: Mutex<Done>,
    /// How many instances are known to be planned in all, and how many are done: for a progress display.
    known: AtomicUsize,
    finished: AtomicUsize,
}

/// A resource that is being planned: what all its instances share.
struct Subject<'p> {
    address: &'p ConfigResource,
    block: Option<&'p Resource>,
    provider: Arc<dyn Provider>,
    provider_address: AbsProviderConfig,
    schema: &'p Schema,
    /// What its objects depend on, as the state records it.
    dependencies: Arc<[ConfigResource]>,
    imports: import::Imports<'p>,
}

/// One thing to be done for a resource.
enum Task {
    /// An instance the configuration asks for.
    Desired(AbsResourceInstance, crate::eval::Repetition),
    /// An instance that only the state has.
    Orphan(AbsResourceInstance, Reason),
    /// An object that was to be destroyed earlier.
    Deposed(AbsResourceInstance, state::DeposedKey),
}

impl<'a> Planner<'a> {
    fn done(&self) -> MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prior(&self) -> MutexGuard<'_, State> {
        self.prior.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn visit(&self, block: &Block) -> Outcome {
        if self.inputs.stop.is_requested() {
            return Outcome::Failed;
        }
        let result = match block {
            _ if !self.selection.includes(block) => Ok(()),
            Block::Resource(address) if address.resource.mode == ResourceMode::Ephemeral => {
                self.ephemeral(address).await
            }
            Block::Resource(address) => self.resource(address).await,
            Block::Provider(address) => self.provider(address).await,
            // When everything goes, only what provider configurations need is evaluated, on demand.
            _ if self.options.mode == Mode::Destroy => Ok(()),
            Block::Variable(module, name) => opening::visit_variable(self.evaluator, module, name),
            Block::Local(module, name) => opening::for_each_instance(self.evaluator, module, |instance, node| {
                self.evaluator.local(instance, node, name).map(|_| ())
            }),
            Block::Output(module, name) => {
                let lenient = self.options.mode == Mode::RefreshOnly || self.before_destroy;
                opening::visit_output(self.evaluator, module, name, lenient)
            }
            Block::Call(module, name) => opening::for_each_instance(self.evaluator, module, |instance, _| {
                self.evaluator.call_expansion(instance, name).map(|_| ())
            }),
            Block::Check(module, name) => {
                // Where data is missing, that is all there is to say of the check.
                let unread = self.done().unread_checks.clone();
                opening::visit_check(self.evaluator, module, name, |at| {
                    !unread.iter().any(|(module, check)| module == at && check == name)
                })
            }
        };
        self.ephemerals.used(block).await;
        if result.is_ok() { Outcome::Done } else { Outcome::Failed }
    }

    /// Opens an ephemeral resource. When everything goes, only what provider configurations need is opened.
    async fn ephemeral(&self, address: &ConfigResource) -> Result<(), Failed> {
        if self.options.mode == Mode::Destroy {
            if !self.read_for_providers.contains(address) {
                return Ok(());
            }
            self.priming
                .prepare(self.evaluator, &Block::Resource(address.clone()))?;
        }
        self.ephemerals.open(address).await
    }

    async fn provider(&self, address: &AbsProviderConfig) -> Result<(), Failed> {
        if !self.selection.needs_provider(address) {
            return Ok(());
        }
        if !opening::is_present(self.inputs.config, address) {
            let resources: Vec<String> = self.blocks.managed_by(address).map(|r| format!("  - {r}")).collect();
            return Err(self.failed(
                Diagnostic::error(
                    "Provider configuration not present",
                    format!(
                        "The provider configuration {address} has been removed while objects that it manages still exist in the \
                         state:\n{}\n\nThey can only be destroyed through it. Put the configuration back, apply, and remove it \
                         afterwards.",
                        resources.join("\n")
                    ),
                )
                .into(),
            ));
        }
        if self.options.mode == Mode::Destroy {
            self.priming
                .prepare(self.evaluator, &Block::Provider(address.clone()))?;
        }
        opening::open(self.evaluator, self.providers, address).await
    }

    async fn resource(&self, address: &ConfigResource) -> Result<(), Failed> {
        let config = self.inputs.config;
        let block = config.resource(address);
        let in_state = self.by_config.get(address).map_or(&[][..], Vec::as_slice);
        let provider_address = match (block, in_state.first()) {
            (None, Some(resource)) => self.inputs.state.resources[resource].provider.clone(),
            _ => config.provider_for(address),
        };
        let tasks = self.tasks(address, block, in_state)?;
        if tasks.is_empty() {
            return Ok(());
        }
        self.known.fetch_add(tasks.len(), Ordering::Relaxed);
        let provider = self
            .providers
            .get(&provider_address)
            .await
            .map_err(|d| self.failed(d))?;
        let schema = opening::resource_schema(
            self.providers.schemas(),
            &provider_address.provider,
            &address.resource,
            block.map(|b| &b.type_range),
        )
        .map_err(|d| self.failed(d.into()))?;
        let dependencies = self.dependencies_of(address);
        let imports = match (self.options.mode, block) {
            (Mode::Normal, Some(_)) if !self.before_destroy => self.imports(address)?,
            _ => import::Imports::new(),
        };
        let planning = Subject {
            address,
            block,
            provider,
            provider_address,
            schema,
            dependencies,
            imports,
        };
        let planning = &planning;
        // The limit is there to spare services that providers ask. Nobody is asked here, and many calls that are under way at
        // the same time cost less than as many one after the other.
        let local = address.resource.mode == ResourceMode::Managed
            && self.inputs.parallelism >= USUAL_PARALLELISM
            && self.is_state_only(planning, &address.resource.ty);
        let at_once = if local {
            LOCAL_PARALLELISM.max(self.inputs.parallelism)
        } else {
            self.inputs.parallelism.max(1)
        };
        let mut results = futures::stream::iter(tasks)
            .map(|task| async move {
                let _slot = match local {
                    true => None,
                    false => Some(self.slots.acquire().await.map_err(|_| Failed)?),
                };
                if self.inputs.stop.is_requested() {
                    return Err(Failed);
                }
                match (task, planning.address.resource.mode) {
                    (Task::Desired(address, repetition), ResourceMode::Managed) => {
                        self.managed(planning, &address, repetition).await
                    }
                    (Task::Desired(address, repetition), ResourceMode::Data) => {
                        self.data(planning, &address, repetition).await
                    }
                    // These are no objects to plan for; see `ephemeral`.
                    (Task::Desired(..), ResourceMode::Ephemeral) => Ok(()),
                    (Task::Orphan(address, reason), ResourceMode::Managed) => {
                        self.delete(planning, &address, reason).await
                    }
                    (Task::Orphan(address, _), _) => {
                        // When everything goes, it may be needed until all has gone.
                        if self.options.mode != Mode::Destroy {
                            self.prior().remove_instance(&address);
                        }
                        Ok(())
                    }
                    (Task::Deposed(address, key), _) => self.delete_deposed(planning, &address, key).await,
                }
            })
            .buffer_unordered(at_once);
        let mut failed = false;
        while let Some(result) = results.next().await {
            failed |= result.is_err();
            let done = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
            let total = self.known.load(Ordering::Relaxed);
            self.inputs.events.event(Event::Progress { done, total });
        }
        if failed { Err(Failed) } else { Ok(()) }
    }

    /// Reports problems and gives the mark of failure.
    fn failed(&self, diagnostics: Diagnostics) -> Failed {
        self.evaluator.report(diagnostics);
        Failed
    }

    /// What is to be done for a resource: its instances as they should be, and what else the state has of it.
    fn tasks(
        &self,
        address: &ConfigResource,
        block: Option<&Resource>,
        in_state: &[AbsResource],
    ) -> Result<Vec<Task>, Failed> {
        let mut tasks = Vec::new();
        let destroy = self.options.mode == Mode::Destroy;
        let mut desired: HashMap<addrs::ModuleInstance, Arc<crate::eval::Expansion>> = HashMap::new();
        let module_known = self.inputs.config.node(&address.module).is_some();
        let for_provider = self.read_for_providers.contains(address);
        if for_provider {
            self.priming
                .prepare(self.evaluator, &Block::Resource(address.clone()))?;
        }
        if for_provider && !self.options.refresh && !in_state.is_empty() {
            // What was read last time must do.
            return Ok(tasks);
        }
        if (!destroy || for_provider) && block.is_some() {
            for module in self.evaluator.module_instances(&address.module)? {
                let expansion = self.evaluator.resource_expansion(&module, &address.resource)?;
                for key in expansion.keys() {
                    let repetition = expansion.repetition(&key);
                    let instance = address.resource.absolute(&module).instance(key);
                    if self.selection.includes_instance(&instance) {
                        tasks.push(Task::Desired(instance, repetition));
                    }
                }
                desired.insert(module, expansion);
            }
        }
        let module_instances: HashSet<addrs::ModuleInstance> = if destroy || !module_known {
            HashSet::new()
        } else {
            self.evaluator.module_instances(&address.module)?.into_iter().collect()
        };
        for resource in in_state {
            let Some(existing) = self.inputs.state.resources.get(resource) else {
                continue;
            };
            let expansion = desired.get(&resource.module);
            for (key, instance) in &existing.instances {
                let at = resource.instance(key.clone());
                if !self.selection.includes_instance(&at) {
                    continue;
                }
                if instance.current.is_some() && !expansion.is_some_and(|e| e.has(key)) {
                    let reason = if destroy {
                        Reason::None
                    } else if block.is_none() {
                        if self.moves.from.contains_key(&at) {
                            Reason::DeleteBecauseNoMoveTarget
                        } else {
                            Reason::DeleteBecauseNoResourceConfig
                        }
                    } else if !module_instances.contains(&resource.module) {
                        Reason::DeleteBecauseNoModule
                    } else {
                        orphan_reason(expansion.map(|e| &**e), key)
                    };
                    tasks.push(Task::Orphan(at.clone(), reason));
                }
                for deposed in instance.deposed.keys() {
                    tasks.push(Task::Deposed(at.clone(), deposed.clone()));
                }
            }
        }
        Ok(tasks)
    }

    fn warn_about_replace(&self) {
        for address in &self.options.force_replace {
            let Some(block) = self.inputs.config.resource(&address.config()) else {
                continue;
            };
            if address.resource.key.is_none() && (block.count.is_some() || block.for_each.is_some()) {
                self.evaluator.report([Diagnostic::warning(
                    "Incompletely-matched force-replace resource instance",
                    format!(
                        "Your force-replace request for {address} doesn't match any resource instances because this \
                         resource has \"count\" or \"for_each\" set. Name an instance, such as {}.",
                        if block.count.is_some() {
                            format!("{address}[0]")
                        } else {
                            format!("{address}[\"key\"]")
                        }
                    ),
                )]);
            }
        }
    }

    /// Where an object was in the state, if that was elsewhere.
    fn moved_from(&self, address: &AbsResourceInstance) -> Option<AbsResourceInstance> {
        self.moves.from.get(address).cloned()
    }

    /// Whether new objects of a resource are created before old ones are destroyed.
    fn creates_first(&self, address: &ConfigResource) -> bool {
        self.cbd.contains(address)
    }

    /// Adds a change, and what ordering must know of it.
    fn add(&self, mut change: ResourceChange, destroy_last: bool, state_dependencies: Arc<[ConfigResource]>) {
        change.previous_address = self.moved_from(&change.address);
        let resource = change.address.config();
        let planned = Planned {
            resource: resource.clone(),
            action: change.action,
            destroy_last,
            deposed: change.deposed.is_some(),
            provider: change.provider.clone(),
            state_dependencies,
        };
        let mut done = self.done();
        if change.action != Action::NoOp {
            done.pending.insert(resource);
        }
        if change.deposed.is_none() && (change.action == Action::Update || change.action.is_replace()) {
            let at = done.changes.len();
            let changed = done.changed.entry(change.address.containing_resource()).or_default();
            changed.insert(change.address.resource.key.clone(), at);
        }
        done.changes.push(change);
        done.planned.push(planned);
    }

    /// Root outputs that are known already belong to the state that apply begins with.
    fn keep_known_outputs(&self, outputs: &BTreeMap<Arc<str>, crate::plan::OutputChange>) {
        if self.options.mode == Mode::Destroy {
            return;
        }
        let mut prior = self.prior();
        for (name, change) in outputs
            .iter()
            .filter(|(_, c)| c.after.is_wholly_known() && c.action != Action::Delete)
        {
            let (value, _) = change.after.clone().unmark_deep();
            if !value.is_null() {
                prior.outputs.insert(
                    name.clone(),
                    state::OutputValue {
                        value,
                        sensitive: self
                            .inputs
                            .config
                            .root
                            .module
                            .outputs
                            .get(name)
                            .is_some_and(|o| o.sensitive),
                    },
                );
            }
        }
    }

    fn finish(
        &self,
        timestamp: String,
        outputs: BTreeMap<Arc<str>, crate::plan::OutputChange>,
        errored: bool,
        skipped: impl Fn(&Block) -> bool,
    ) -> Plan {
        let done = std::mem::take(&mut *self.done());
        self.keep_known_outputs(&outputs);
        let mut both: Vec<_> = done.changes.into_iter().zip(done.planned).collect();
        both.sort_by(|(a, _), (b, _)| (&a.address, &a.deposed).cmp(&(&b.address, &b.deposed)));
        let (changes, planned): (Vec<_>, Vec<_>) = both.into_iter().unzip();
        let mut drift = done.drift;
        drift.sort_by(|a, b| (&a.address, &a.deposed).cmp(&(&b.address, &b.deposed)));
        let graph = self.order(&planned);
        let dropped_data = self.dropped_data();
        let relevant_attributes = relevance::attributes(
            self.inputs.config,
            self.providers.schemas(),
            self.options.mode,
            (&changes, &dropped_data),
            &outputs,
            &self.outputs_of_modules(),
        );
        let variables = self
            .inputs
            .config
            .root
            .module
            .variables
            .iter()
            .filter_map(|(name, variable)| {
                let value = self.inputs.variables.get(name)?;
                let value = if variable.ephemeral {
                    cty::Value::null(value.ty().clone()).with_marks(cty::Marks::EPHEMERAL)
                } else {
                    value.clone()
                };
                Some((name.clone(), value))
            });
        Plan {
            mode: self.options.mode,
            timestamp,
            variables: variables.collect(),
            given_variables: BTreeMap::new(),
            targets: self.options.targets.clone(),
            excludes: self.options.excludes.clone(),
            force_replace: self.options.force_replace.clone(),
            changes,
            drift,
            outputs,
            previous_state: self.inputs.state.clone(),
            prior_state: self.prior().clone(),
            graph,
            relevant_attributes,
            function_results: self.providers.functions().take_results(),
            checks: self.check_results(skipped),
            generated_config: done.generated,
            dropped_data,
            errored,
        }
    }

    /// When everything goes: what the state has of the data sources that are selected.
    fn dropped_data(&self) -> Vec<AbsResourceInstance> {
        if self.options.mode != Mode::Destroy {
            return Vec::new();
        }
        let prior = self.prior();
        let data = prior
            .instances()
            .filter(|(resource, ..)| resource.resource.mode == ResourceMode::Data);
        data.map(|(resource, _, key, _)| resource.instance(key.clone()))
            .filter(|address| {
                self.selection.includes(&Block::Resource(address.config())) && self.selection.includes_instance(address)
            })
            .collect()
    }

    /// All outputs of all module instances but the root module.
    fn outputs_of_modules(&self) -> Vec<(addrs::ModuleInstance, Arc<str>)> {
        let mut out = Vec::new();
        if self.options.mode == Mode::Destroy {
            return out;
        }
        for node in self.inputs.config.nodes() {
            for name in node.module.outputs.keys() {
                let block = Block::Output(node.path.clone(), name.clone());
                if node.path.is_root() || !self.selection.includes(&block) {
                    continue;
                }
                let instances = self.evaluator.module_instances(&node.path).unwrap_or_default();
                out.extend(instances.into_iter().map(|instance| (instance, name.clone())));
            }
        }
        out
    }

    /// How everything with conditions turned out.
    fn check_results(&self, skipped: impl Fn(&Block) -> bool) -> Vec<state::CheckResult> {
        let destroy = self.options.mode == Mode::Destroy;
        if destroy {
            // Of what goes, only the outputs of the root module are spoken of.
            let root = &self.inputs.config.root.module;
            for (name, _) in root.outputs.iter().filter(|(_, o)| !o.preconditions.is_empty()) {
                let of = Checked::Output(addrs::ModuleInstance::root(), name.clone());
                self.evaluator.record(&of, &Status::Unknown);
            }
        }
        self.evaluator.check_results(&[], |block| {
            !destroy && self.selection.includes(block) && !skipped(block)
        })
    }

    /// Lays down the order of the changes.
    fn order(&self, planned: &[Planned]) -> ExecGraph {
        let used: BTreeSet<&AbsProviderConfig> = planned.iter().map(|p| &p.provider).collect();
        let before = |p: &AbsProviderConfig| self.blocks.resources_before(&Block::Provider(p.clone()));
        let dependencies = Dependencies {
            resources: self.blocks.resource_dependencies(true),
            providers: used.into_iter().map(|p| (p.clone(), before(p))).collect(),
        };
        if self.options.mode == Mode::Destroy {
            let graph = ExecGraph::build(planned, &dependencies, true);
            if graph.cycle().is_none() {
                return graph;
            }
            // The configuration contradicts what the objects were created with, which counts.
        }
        ExecGraph::build(planned, &dependencies, false)
    }
}

fn orphan_reason(expansion: Option<&crate::eval::Expansion>, key: &InstanceKey) -> Reason {
    use crate::eval::Expansion;
    match (expansion, key) {
        (None, _) => Reason::DeleteBecauseNoResourceConfig,
        (Some(Expansion::Count(_)), InstanceKey::Int(_)) => Reason::DeleteBecauseCountIndex,
        (Some(Expansion::ForEach(_)), InstanceKey::String(_)) => Reason::DeleteBecauseEachKey,
        _ => Reason::DeleteBecauseWrongRepetition,
    }
}
