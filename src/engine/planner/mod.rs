//! Plan: compare what should be with what is, and decide.
//!
//! The planner walks the graph of blocks. At each block it does what the block needs: evaluates, opens a provider, and
//! at a resource plans every instance there is or was (`tasks`, `managed`, `data`). Decisions go into one list of changes; the
//! objects as planned go to the evaluator, where later blocks see them. When the walk is done, the changes are put in
//! order and the execution graph is laid down.

mod data;
mod decide;
mod delete;
mod finish;
mod generate;
pub(crate) mod import;
mod kind;
mod managed;
mod moves;
mod objects;
mod outputs;
mod relevance;
mod targets;
mod tasks;
mod unmatched;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addrs::{AbsProviderConfig, AbsResource, AbsResourceInstance, ConfigResource, InstanceKey, Mode as ResourceMode};
use config::Resource;
use provider::Provider;
use schema::Schema;
use state::State;
use syntax::{Diagnostic, Diagnostics};
use tokio::sync::Semaphore;

use crate::block_visits;
use crate::blocks::{Block, Blocks};
use crate::dependency_evaluation::DependencyEvaluation;
use crate::ephemeral::Ephemerals;
use crate::eval::{Evaluator, Reported};
use crate::events::Event;
use crate::execgraph::Planned;
use crate::inputs::{Inputs, PlanOptions};
use crate::plan::{Action, Mode, Plan, ResourceChange};
use crate::provider_opening;
use crate::state_objects::StateObjects;
use provider::Schemas;

use crate::providers::Providers;
use crate::removals::{self, Removals};
use crate::validate;
use crate::walk::{Outcome, walk};

use kind::PlanKind;
use moves::Moves;
use targets::Selection;

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
/// First the configuration is validated as a whole, whatever the plan is about: a mistake in any block is found before an
/// object is refreshed, a data source read or an ephemeral resource opened.
///
/// A destroy plan begins with a refresh pass: data sources are read and objects refreshed as in any plan. Where that cannot be
/// done (a data source is gone; a count depends on what was never created), that is no reason to keep what exists: then the
/// objects alone are refreshed while their destruction is planned, and what provider configurations need is read.
pub async fn plan(inputs: Inputs<'_>, options: &PlanOptions) -> Planning {
    if options.mode == Mode::Destroy && options.refresh && !inputs.state.is_empty() {
        let refresh = PlanOptions {
            mode: Mode::Normal,
            targets: options.targets.clone(),
            excludes: options.excludes.clone(),
            ..PlanOptions::default()
        };
        let (refreshed, warned) =
            match plan_once(inputs, &refresh, PlanKind::DestroyRefresh, Validation::Required).await {
                Ok(refreshed) => refreshed,
                Err(invalid) => return invalid,
            };
        if inputs.stop.is_requested() {
            return refreshed;
        }
        let Some(refreshed) = refreshed.plan.filter(|plan| !plan.errored) else {
            return whole(
                plan_once(inputs, options, PlanKind::Destroy, Validation::Done).await,
                warned,
            );
        };
        let inputs = Inputs {
            state: &refreshed.prior_state,
            ..inputs
        };
        let options = PlanOptions {
            refresh: false,
            ..options.clone()
        };
        // What else was warned of is warned of again where it matters.
        let mut planning = whole(
            plan_once(inputs, &options, PlanKind::Destroy, Validation::Done).await,
            warned,
        );
        if let Some(plan) = &mut planning.plan {
            plan.previous_state = refreshed.previous_state;
        }
        return planning;
    }
    let kind = PlanKind::from(options.mode);
    whole(
        plan_once(inputs, options, kind, Validation::Required).await,
        Diagnostics::new(),
    )
}

/// What came of planning, with what validation warned of, in an earlier pass, too.
fn whole(result: Result<(Planning, Diagnostics), Planning>, mut warned: Diagnostics) -> Planning {
    match result {
        Ok((planning, more)) => {
            warned.extend(more);
            // Providers warn of the same places when their resources are planned.
            let known: HashSet<_> = warned.iter().map(same_warning).collect();
            let is_new = |d: &&Diagnostic| d.is_error() || !known.contains(&same_warning(d));
            let new: Vec<_> = planning.diagnostics.iter().filter(is_new).cloned().collect();
            warned.extend(new);
            Planning {
                diagnostics: warned,
                ..planning
            }
        }
        Err(planning) => planning,
    }
}

/// What makes two warnings the same for people: the instances of a block share what is said of the block.
fn same_warning(d: &Diagnostic) -> (&str, &str, Option<(&str, u32)>) {
    let at = d.subject.as_ref().map(|range| (&*range.file, range.start.byte));
    (&d.summary, &d.detail, at)
}

/// Whether the configuration has to be validated before a plan is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Validation {
    Required,
    /// An earlier pass has done it.
    Done,
}

/// Makes one plan, and returns the warnings of validation separately. The error is the result for an invalid configuration.
async fn plan_once(
    inputs: Inputs<'_>,
    options: &PlanOptions,
    kind: PlanKind,
    validation: Validation,
) -> Result<(Planning, Diagnostics), Planning> {
    let written = inputs.config;
    let completed = (options.generate_config && kind.compares_with_configuration())
        .then(|| generate::with_empty_blocks(written, inputs.state));
    let inputs = Inputs {
        config: completed.as_ref().unwrap_or(written),
        ..inputs
    };
    let nothing = |schemas, diagnostics| Planning {
        plan: None,
        schemas,
        diagnostics,
    };
    let providers = match Providers::start_required(inputs.providers, inputs.config, inputs.state).await {
        Ok(providers) => providers,
        Err(diagnostics) => return Err(nothing(Schemas::default(), diagnostics)),
    };
    let work = async {
        let mut warned = Diagnostics::new();
        if validation == Validation::Required {
            let on_written = Inputs {
                config: written,
                ..inputs
            };
            warned = validate::with_providers(on_written, &providers).await;
            if warned.has_errors() {
                return Err(warned);
            }
        }
        let (plan, found) = with_providers(inputs, written, options, kind, &providers).await;
        Ok((plan, found, warned))
    };
    let result = tokio::select! {
        result = work => result,
        () = stopped(inputs, &providers) => Ok((None, interrupted(), Diagnostics::new())),
    };
    providers.close().await;
    let schemas = providers.schemas().clone();
    match result {
        Ok((plan, found, warned)) => Ok((
            Planning {
                plan,
                ..nothing(schemas, found)
            },
            warned,
        )),
        Err(problems) => Err(nothing(schemas, problems)),
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
    kind: PlanKind,
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
    let mut environment = inputs.environment.clone();
    environment.functions.pure = true;
    let timestamp = environment.functions.plan_timestamp.clone().unwrap_or_default();
    let partial = !(options.targets.is_empty() && options.excludes.is_empty());
    let prior = Arc::new(Mutex::new(inputs.state.clone()));
    let objects = StateObjects {
        state: prior.clone(),
        schemas: providers.schemas(),
    };
    let source = objects::object_source(kind, partial, objects);
    let evaluator =
        Evaluator::new(inputs.config, environment, inputs.variables, source).with_functions(providers.functions());
    let dependencies = blocks.resource_dependencies(false);
    let selection = Selection::new(&blocks, options, inputs.state);
    let ephemerals = Ephemerals::new(inputs, providers, &evaluator, &blocks, |_| 1);
    let planner = Planner {
        create_before_destroy: create_before_destroy_resources(inputs, &dependencies, |r| {
            selection.includes(&Block::Resource(r.clone()))
        }),
        read_for_providers: if kind.is_destroy() {
            let dependencies = |p: &AbsProviderConfig| blocks.resources_before(&Block::Provider(p.clone()));
            let all = selection.providers().flat_map(dependencies);
            all.filter(|r| r.resource.mode != ResourceMode::Managed).collect()
        } else {
            BTreeSet::new()
        },
        by_config: by_config(inputs.state),
        slots: Semaphore::new(inputs.parallelism.max(1)),
        local_slots: Semaphore::new(inputs.parallelism.max(tasks::LOCAL_PARALLELISM)),
        inputs,
        written,
        options,
        kind,
        providers,
        blocks: &blocks,
        selection: &selection,
        dependencies: &dependencies,
        dependency_evaluation: DependencyEvaluation::new(&blocks, false),
        evaluator: &evaluator,
        ephemerals: &ephemerals,
        moves: &moves,
        removals: &removals,
        prior,
        done: Mutex::default(),
        known: AtomicUsize::new(0),
        finished: AtomicUsize::new(0),
    };
    let unmatched = planner.unmatched_blocks();
    if unmatched.has_errors() {
        return (None, unmatched);
    }
    if kind.imports() {
        planner.check_imports();
    }
    let outcomes = tokio::select! {
        outcomes = walk(&blocks.graph, blocks_at_once(inputs.parallelism), |node| planner.visit(&blocks.graph[node])) => outcomes,
        never = ephemerals.renew_until_closed() => match never {},
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
    if !kind.is_destroy() {
        let problems = moves::validate(&statements, &evaluator);
        // What could not be evaluated has been reported.
        evaluator.take_diagnostics();
        if problems.has_errors() {
            // Wrong moves are likely to be why anything else went wrong.
            return (None, problems);
        }
    }
    if !diagnostics.has_errors() {
        diagnostics.extend(planner.unmatched_instances());
    }
    let mut errored = diagnostics.has_errors();
    if !errored && outcomes.contains(&Outcome::Failed) {
        errored = true;
        diagnostics.push(Diagnostic::error(
            "Planning failed without a reason",
            "Some part of the configuration could not be planned, and no problem was reported. This is a defect of \
             Monoform; please report it.",
        ));
    }
    let skipped = |block: &Block| {
        let outcome = blocks.find(block).and_then(|n| outcomes.get(n.index()));
        outcome.is_some_and(|o| *o != Outcome::Done)
    };
    let outputs = outputs::changes(&planner, skipped);
    ephemerals.close_all().await;
    diagnostics.extend(evaluator.take_diagnostics());
    errored |= diagnostics.has_errors();
    let plan = planner.finish(timestamp, outputs, errored, skipped);
    diagnostics.extend(targets::warning(options));
    if options.generate_config {
        diagnostics.push(Diagnostic::warning(
            "Config generation is experimental",
            "Configuration for imported objects is generated from the objects alone. Check it before you use it; its \
             form may change in later versions.",
        ));
    }
    if errored && kind.is_destroy() {
        // A partial destroy plan is never shown or applied.
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

/// How many blocks are visited at the same time. What is asked of providers is bounded by objects; this bounds what is kept
/// for blocks that wait for their turn, and is never less than can have one.
fn blocks_at_once(parallelism: usize) -> usize {
    parallelism.max(MIN_BLOCKS_AT_ONCE)
}

/// Enough for blocks that ask nobody to go on beside many that wait for slow answers.
const MIN_BLOCKS_AT_ONCE: usize = 256;

/// Resources whose new objects are created before their old ones are destroyed: those that say so, and everything they
/// depend on, because a dependency cannot go while the old object is still there. Only those that are selected have a say.
pub(crate) fn create_before_destroy_resources(
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
        "The planned changes depend on one another. This happens when the direction of a dependency between objects \
         is reversed. Apply the change in two steps: remove the old dependency first, then add the new one.",
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
    kind: PlanKind,
    providers: &'a Providers<'a>,
    blocks: &'a Blocks,
    selection: &'a Selection,
    dependencies: &'a BTreeMap<ConfigResource, BTreeSet<ConfigResource>>,
    evaluator: &'a Evaluator<'a>,
    ephemerals: &'a Ephemerals<'a>,
    moves: &'a Moves,
    removals: &'a Removals<'a>,
    dependency_evaluation: DependencyEvaluation<'a>,
    create_before_destroy: BTreeSet<ConfigResource>,
    /// When everything goes: the data sources that provider configurations need even then.
    read_for_providers: BTreeSet<ConfigResource>,
    by_config: HashMap<ConfigResource, Vec<AbsResource>>,
    /// One for each object that may be planned at the same time.
    slots: Semaphore,
    /// The same for objects whose provider keeps them in the state alone.
    local_slots: Semaphore,
    /// The state, objects replaced by what they turn out to be.
    prior: Arc<Mutex<State>>,
    done: Mutex<Done>,
    /// How many instances are known to be planned in all, and how many are done: for a progress display.
    known: AtomicUsize,
    finished: AtomicUsize,
}

/// A resource that is being planned: what all its instances share.
struct PlannedResource<'p> {
    address: &'p ConfigResource,
    block: Option<&'p Resource>,
    provider: Arc<dyn Provider>,
    provider_address: AbsProviderConfig,
    schema: &'p Schema,
    /// What its objects depend on, as the state records it.
    dependencies: Arc<[ConfigResource]>,
    imports: import::Imports<'p>,
}

impl PlannedResource<'_> {
    /// The same resource with another block, and without imports.
    fn with_block<'b>(&'b self, block: &'b Resource) -> PlannedResource<'b> {
        PlannedResource {
            address: self.address,
            block: Some(block),
            provider: self.provider.clone(),
            provider_address: self.provider_address.clone(),
            schema: self.schema,
            dependencies: self.dependencies.clone(),
            imports: import::Imports::new(),
        }
    }
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
            _ if self.kind.is_destroy() => Ok(()),
            Block::Variable(module, name) => block_visits::visit_variable(self.evaluator, module, name),
            Block::Local(module, name) => block_visits::for_each_instance(self.evaluator, module, |instance, node| {
                self.evaluator.local(instance, node, name).map(|_| ())
            }),
            Block::Output(module, name) => {
                let severity = self.kind.condition_severity();
                block_visits::visit_output(self.evaluator, module, name, severity)
            }
            Block::Call(module, name) => block_visits::for_each_instance(self.evaluator, module, |instance, _| {
                self.evaluator.call_expansion(instance, name).map(|_| ())
            }),
            Block::Check(module, name) => {
                // Where data is missing, that is all there is to say of the check.
                let unread = self.done().unread_checks.clone();
                block_visits::visit_check(self.evaluator, module, name, |at| {
                    !unread.iter().any(|(module, check)| module == at && check == name)
                })
            }
        };
        self.ephemerals.used(block).await;
        if result.is_ok() { Outcome::Done } else { Outcome::Failed }
    }

    /// Opens an ephemeral resource. When everything goes, only what provider configurations need is opened.
    async fn ephemeral(&self, address: &ConfigResource) -> Result<(), Reported> {
        if self.kind.is_destroy() {
            if !self.read_for_providers.contains(address) {
                return Ok(());
            }
            self.dependency_evaluation
                .evaluate(self.evaluator, &Block::Resource(address.clone()))?;
        }
        self.ephemerals.open(address).await
    }

    async fn provider(&self, address: &AbsProviderConfig) -> Result<(), Reported> {
        if !self.selection.needs_provider(address) {
            return Ok(());
        }
        if !provider_opening::is_declared(self.inputs.config, address) {
            let resources: Vec<String> = self.blocks.managed_by(address).map(|r| format!("  - {r}")).collect();
            return Err(self.reported(
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
        if self.kind.is_destroy() {
            self.dependency_evaluation
                .evaluate(self.evaluator, &Block::Provider(address.clone()))?;
        }
        provider_opening::open(self.evaluator, self.providers, address).await
    }

    /// Reports problems and gives the mark of failure.
    fn reported(&self, diagnostics: Diagnostics) -> Reported {
        self.evaluator.report(diagnostics);
        Reported
    }

    /// Where an object was in the state, if that was elsewhere.
    fn moved_from(&self, address: &AbsResourceInstance) -> Option<AbsResourceInstance> {
        self.moves.from.get(address).cloned()
    }

    /// Whether new objects of a resource are created before old ones are destroyed.
    fn is_create_before_destroy(&self, address: &ConfigResource) -> bool {
        self.create_before_destroy.contains(address)
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
}
