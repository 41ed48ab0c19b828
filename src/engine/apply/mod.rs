//! Apply: carry out the execution graph of a plan.
//!
//! Nothing is decided here. Each operation evaluates its object's configuration again, asks the provider to plan again
//! only where the configuration was not wholly known, applies, and writes what came of it into the state, whatever came:
//! an operation that fails still leaves the truth behind. Operations whose dependencies failed are skipped, all others go
//! on.

mod data;
mod destroy;
mod managed;
mod objects;
mod provision;
mod tally;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addrs::{AbsProviderConfig, AbsResourceInstance, ConfigResource, Module, ModuleInstance, Target};
use provider::Provider;
use schema::Schema;
use state::{CheckStatus, DeposedKey, Object, OutputValue, State};
use syntax::{Diagnostic, Diagnostics};
use tokio::sync::OnceCell;

use crate::block_visits;
use crate::blocks::{Block, Blocks};
use crate::dependency_evaluation::DependencyEvaluation;
use crate::ephemeral::Ephemerals;
use crate::eval::checks::{Checked, ConditionKind, Conditions, FailureSeverity};
use crate::eval::{Evaluator, Reported};
use crate::events::Event;
use crate::execgraph::Operation;
use crate::inputs::Inputs;
use crate::instance::nulls_for_unknowns;
use crate::object_config;
use crate::plan::{Action, Mode, Plan, ResourceChange};
use crate::planner::create_before_destroy_resources;
use crate::provider_opening;
use crate::providers::Providers;
use crate::removals::Removals;
use crate::results::ResultSink;
use crate::state_objects::StateObjects;
use crate::validate;
use crate::walk::{Outcome, walk};

use tally::Tally;
pub use tally::{Completion, UnfinishedOperation};

/// What came of an apply.
#[derive(Debug)]
pub struct ApplyResult {
    /// What exists now, with or without errors.
    pub state: State,
    /// What went wrong.
    pub diagnostics: Diagnostics,
    /// How far it has come.
    pub completion: Completion,
}

/// Carries out a plan. The state is what became of it, with or without errors; `results` gets each result on the way. The
/// inputs' state is not read: the plan has its own. When the inputs' stop is cancelled, running operations are dropped.
pub async fn apply(inputs: Inputs<'_>, plan: &Plan, results: &dyn ResultSink) -> ApplyResult {
    let tally = Tally::new(plan);
    let unchanged = |diagnostics| ApplyResult {
        state: plan.prior_state.clone(),
        diagnostics,
        completion: tally.completion(plan),
    };
    let needed = tokio::select! {
        needed = Providers::start_required(inputs.providers, inputs.config, &plan.prior_state) => needed,
        () = inputs.stop.cancelled() => Err(cancelled().into()),
    };
    let providers = match needed {
        Ok(providers) => providers,
        Err(diagnostics) => return unchanged(diagnostics),
    };
    let (state, diagnostics) = {
        let work = with_providers(inputs, plan, &providers, results, &tally);
        tokio::pin!(work);
        tokio::select! {
            result = &mut work => result,
            () = inputs.stop.requested() => {
                inputs.events.event(Event::Stopping);
                // Running operations are asked to end soon, and waited for; no new ones begin.
                let stop = async {
                    tokio::select! {
                        () = providers.stop() => {}
                        () = inputs.stop.cancelled() => {}
                    }
                };
                let (result, ()) = tokio::join!(work, stop);
                result
            }
        }
    };
    // Plugins that are not closed are killed.
    tokio::select! {
        () = providers.close() => {}
        () = inputs.stop.cancelled() => {}
    }
    ApplyResult {
        state,
        diagnostics,
        completion: tally.completion(plan),
    }
}

fn cancelled() -> Diagnostic {
    Diagnostic::error(
        "Operation canceled",
        "The apply was canceled by a second interrupt. What had been completed is in the state. What was running was not waited \
         for: it may have been carried out, in whole or in part, without being in the state.",
    )
}

async fn with_providers(
    inputs: Inputs<'_>,
    plan: &Plan,
    providers: &Providers<'_>,
    results: &dyn ResultSink,
    tally: &Tally,
) -> (State, Diagnostics) {
    let in_state: Vec<_> = plan
        .prior_state
        .resources
        .iter()
        .map(|(r, s)| (r.config(), s.provider.clone()))
        .collect();
    let blocks = match Blocks::build(inputs.config, providers.schemas(), &in_state) {
        Ok(blocks) => blocks,
        Err(diagnostics) => return (plan.prior_state.clone(), diagnostics),
    };
    let state = Arc::new(Mutex::new(plan.prior_state.clone()));
    let objects = StateObjects {
        state: state.clone(),
        schemas: providers.schemas(),
    };
    let mut environment = inputs.environment.clone();
    environment.functions.pure = false;
    environment.functions.plan_timestamp = Some(plan.timestamp.clone());
    providers.functions().expect(&plan.function_results);
    environment.applying = true;
    let source = objects::object_source(plan, inputs.config, objects);
    let evaluator =
        Evaluator::new(inputs.config, environment, inputs.variables, source).with_functions(providers.functions());
    let mut operations: HashMap<ConfigResource, usize> = HashMap::new();
    for operation in &plan.graph.nodes {
        if let Operation::Change(i) | Operation::Destroy(i) = operation
            && let Some(change) = plan.changes.get(*i as usize)
        {
            *operations.entry(change.address.config()).or_default() += 1;
        }
    }
    let ephemerals = Ephemerals::new(inputs, providers, &evaluator, &blocks, |block| match block {
        Block::Resource(resource) => operations.get(resource).copied().unwrap_or_default(),
        // These are evaluated when all operations are done.
        Block::Output(module, _) => usize::from(module.is_root()),
        Block::Check(..) => 1,
        _ => 0,
    });
    let dependencies = blocks.resource_dependencies(false);
    let applier = Applier {
        // Also of a partial plan what stays has a say now: the next plan is one of everything.
        create_before_destroy: create_before_destroy_resources(inputs, &dependencies, |_| true),
        recorded: blocks
            .resource_dependencies(true)
            .iter()
            .map(|(resource, needs)| {
                let mut needs: Vec<ConfigResource> = needs.iter().cloned().collect();
                needs.sort_by_cached_key(ToString::to_string);
                (resource.clone(), needs.into())
            })
            .collect(),
        inputs,
        plan,
        providers,
        evaluator: &evaluator,
        ephemerals: &ephemerals,
        opened_ephemerals: Mutex::default(),
        ephemerals_before: Mutex::default(),
        blocks: &blocks,
        removals: Removals::new(inputs.config),
        dependency_evaluation: DependencyEvaluation::new(&blocks, plan.mode != Mode::Destroy),
        state,
        opened: Mutex::default(),
        deposed: Mutex::default(),
        failed: Mutex::default(),
        unread_checks: Mutex::default(),
        results,
        tally,
        done: AtomicUsize::new(0),
        total: plan.graph.operations(),
    };
    let graph = plan.graph.to_walk();
    if plan.saved {
        let changed = plan.changes.iter().filter(|c| c.action != Action::NoOp);
        let resources = changed.map(|c| c.address.config()).collect();
        evaluator.report(validate::warnings_of_providers(inputs, providers, resources).await);
    }
    let work = async {
        // Where that is all there is to do, no operation tells of it.
        for change in plan.changes.iter().filter(|c| c.action == Action::NoOp) {
            applier.note_import(change);
        }
        walk(&graph, inputs.parallelism, |node| applier.visit(graph[node])).await;
        applier.after().await
    };
    let mut diagnostics = tokio::select! {
        diagnostics = work => diagnostics,
        never = ephemerals.renew_until_closed() => match never {},
        () = inputs.stop.cancelled() => cancelled().into(),
    };
    tokio::select! {
        () = ephemerals.close_all() => {}
        () = inputs.stop.cancelled() => {}
    }
    diagnostics.extend(evaluator.take_diagnostics());
    let mut state = applier.state().clone();
    let results = evaluator.check_results(&checks_before(plan), |_| false);
    state.check_results = (!results.is_empty()).then(|| results.into());
    drop_data(plan, &mut state);
    (state, diagnostics)
}

/// How conditions turned out before anything was carried out. Of data sources, only those that are read now have results:
/// what was found when the plan was made may have been read of what has changed since.
fn checks_before(plan: &Plan) -> Vec<state::CheckResult> {
    let mut results = plan.checks.clone();
    for result in &mut results {
        let mode = match addrs::parse::target(&result.config_addr) {
            Ok(Target::ConfigResource(r)) => r.resource.mode,
            Ok(Target::Resource(r)) => r.resource.mode,
            Ok(Target::ResourceInstance(i)) => i.resource.resource.mode,
            Ok(Target::Module(_) | Target::ModuleInstance(_)) | Err(_) => continue,
        };
        if mode == addrs::Mode::Data && !result.objects.is_empty() {
            result.status = CheckStatus::Unknown;
            for object in &mut result.objects {
                object.status = CheckStatus::Unknown;
                object.failure_messages.clear();
            }
        }
    }
    results
}

/// Drops what was read of data sources that go, unless an object that is still there was made with it.
fn drop_data(plan: &Plan, state: &mut State) {
    let needed: HashSet<ConfigResource> = state
        .instances()
        .flat_map(|(_, _, _, instance)| instance.current.iter().chain(instance.deposed.values()))
        .flat_map(|object| object.dependencies.iter().cloned())
        .collect();
    for address in &plan.dropped_data {
        if !needed.contains(&address.config()) {
            state.remove_instance(address);
        }
    }
}

/// One run of apply.
struct Applier<'a> {
    inputs: Inputs<'a>,
    plan: &'a Plan,
    providers: &'a Providers<'a>,
    evaluator: &'a Evaluator<'a>,
    ephemerals: &'a Ephemerals<'a>,
    opened_ephemerals: Mutex<HashMap<ConfigResource, Arc<OnceCell<Result<(), Reported>>>>>,
    /// The ephemeral resources that blocks use, as far as it was asked.
    ephemerals_before: Mutex<HashMap<Block, Arc<[ConfigResource]>>>,
    blocks: &'a Blocks,
    removals: Removals<'a>,
    dependency_evaluation: DependencyEvaluation<'a>,
    state: Arc<Mutex<State>>,
    /// For each resource what it depends on, as the state records it.
    recorded: BTreeMap<ConfigResource, Arc<[ConfigResource]>>,
    create_before_destroy: BTreeSet<ConfigResource>,
    opened: Mutex<HashMap<AbsProviderConfig, Arc<OnceCell<Result<(), Reported>>>>>,
    /// Which deposed object is the old one of a replacement, by change.
    deposed: Mutex<HashMap<u32, DeposedKey>>,
    failed: Mutex<HashSet<ConfigResource>>,
    /// Checks whose data source could not be read.
    unread_checks: Mutex<HashSet<(ModuleInstance, Arc<str>)>>,
    results: &'a dyn ResultSink,
    tally: &'a Tally,
    done: AtomicUsize,
    /// How many operations there are.
    total: usize,
}

/// What an operation on an object needs.
struct ObjectOperation<'s> {
    change: &'s ResourceChange,
    address: &'s AbsResourceInstance,
    ty: &'s str,
    schema: &'s Schema,
    provider: Arc<dyn Provider>,
}

impl Applier<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the objects of the instance that a change is about, and passes the result on.
    fn update<T>(&self, change: &ResourceChange, update: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let result = update(&mut state);
        let objects = state.instance(&change.address).cloned();
        // With the lock held, so that the results of an instance come in their order.
        self.results.instance(&change.address, &change.provider, objects);
        result
    }

    /// Makes this the current object of the instance that a change is about.
    fn update_current(&self, change: &ResourceChange, object: Option<Arc<Object>>) {
        self.update(change, |state| {
            state.set_current(&change.address, &change.provider, object)
        });
    }

    /// Makes this one of the deposed objects of the instance that a change is about.
    fn update_deposed(&self, change: &ResourceChange, key: DeposedKey, object: Option<Arc<Object>>) {
        self.update(change, |state| {
            state.set_deposed(&change.address, &change.provider, key, object);
        });
    }

    /// Reports problems and gives the mark of failure.
    fn reported(&self, diagnostics: Diagnostics) -> Reported {
        self.evaluator.report(diagnostics);
        Reported
    }

    async fn visit(&self, operation: Operation) -> Outcome {
        let index = match operation {
            Operation::GroupStart(_) | Operation::GroupEnd(_) => return Outcome::Done,
            Operation::Change(i) | Operation::Destroy(i) => i,
        };
        let Some(change) = self.plan.changes.get(index as usize) else {
            return Outcome::Failed;
        };
        if self.inputs.stop.is_requested() {
            self.note_failed(change);
            return Outcome::Failed;
        }
        let begun = self.tally.begin(operation);
        let result = self.carry_out(operation, index, change).await;
        begun.end(result.is_ok());
        if !self.ephemerals.is_empty() {
            self.ephemerals.used(&Block::Resource(change.address.config())).await;
        }
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let total = self.total;
        self.inputs.events.event(Event::Progress { done, total });
        match result {
            Ok(()) => Outcome::Done,
            Err(Reported) => {
                self.note_failed(change);
                Outcome::Failed
            }
        }
    }

    fn note_failed(&self, change: &ResourceChange) {
        self.failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(change.address.config());
    }

    async fn carry_out(&self, operation: Operation, index: u32, change: &ResourceChange) -> Result<(), Reported> {
        if change.action == Action::Forget {
            match &change.deposed {
                Some(key) => self.update_deposed(change, DeposedKey(key.clone()), None),
                None => {
                    self.update_current(change, None);
                    self.evaluator.remove_object(&change.address);
                }
            }
            return Ok(());
        }
        self.open(&change.provider).await?;
        if matches!(operation, Operation::Change(_)) {
            self.note_import(change);
            self.open_ephemerals(&Block::Resource(change.address.config())).await?;
            self.dependency_evaluation
                .evaluate(self.evaluator, &Block::Resource(change.address.config()))?;
        }
        let resource = &change.address.resource.resource;
        let schemas = self.providers.schemas();
        let schema = object_config::resource_schema(schemas, &change.provider.provider, resource, None)
            .map_err(|d| self.reported(d.into()))?;
        let provider = self
            .providers
            .get(&change.provider)
            .await
            .map_err(|d| self.reported(d))?;
        let subject = ObjectOperation {
            change,
            address: &change.address,
            ty: &resource.ty,
            schema,
            provider,
        };
        match (operation, change.action) {
            (Operation::Destroy(_), _) => self.destroy(index, &subject).await,
            (_, Action::Read) => self.read(&subject).await,
            _ => self.change(index, &subject).await,
        }
    }

    /// Tells of an import: the object came into the state with the plan, and is there whatever happens next.
    fn note_import(&self, change: &ResourceChange) {
        if let Some(id) = &change.importing {
            self.inputs.events.event(Event::Imported {
                address: change.address.clone(),
                id: id.clone(),
            });
        }
    }

    /// Opens a provider configuration and what it uses.
    async fn open(&self, address: &AbsProviderConfig) -> Result<(), Reported> {
        self.open_ephemerals(&Block::Provider(address.clone())).await?;
        self.open_provider(address).await
    }

    /// Opens the ephemeral resources that a block uses, each once.
    async fn open_ephemerals(&self, block: &Block) -> Result<(), Reported> {
        if self.ephemerals.is_empty() {
            return Ok(());
        }
        let needed = {
            let mut before = self.ephemerals_before.lock().unwrap_or_else(PoisonError::into_inner);
            match before.get(block) {
                Some(known) => known.clone(),
                None => {
                    let found: Arc<[ConfigResource]> = self.blocks.ephemeral_before(block).into();
                    before.insert(block.clone(), found.clone());
                    found
                }
            }
        };
        for resource in &*needed {
            let cell = {
                let mut opened = self.opened_ephemerals.lock().unwrap_or_else(PoisonError::into_inner);
                opened.entry(resource.clone()).or_default().clone()
            };
            // What its provider uses comes before it in this list.
            let open = || async {
                self.open_provider(&self.inputs.config.provider_for(resource)).await?;
                self.dependency_evaluation
                    .evaluate(self.evaluator, &Block::Resource(resource.clone()))?;
                self.ephemerals.open(resource).await
            };
            (*cell.get_or_init(open).await)?;
        }
        Ok(())
    }

    /// Opens a provider configuration, once; all who need it wait.
    async fn open_provider(&self, address: &AbsProviderConfig) -> Result<(), Reported> {
        let cell = {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            opened.entry(address.clone()).or_default().clone()
        };
        let open = || async {
            self.dependency_evaluation
                .evaluate(self.evaluator, &Block::Provider(address.clone()))?;
            provider_opening::open(self.evaluator, self.providers, address).await
        };
        *cell.get_or_init(open).await
    }

    /// The facts stored with an object of this resource, beside its value.
    fn record(&self, address: &AbsResourceInstance, schema: &Schema) -> Object {
        let resource = address.config();
        Object {
            dependencies: self.recorded.get(&resource).cloned().unwrap_or_default(),
            create_before_destroy: self.create_before_destroy.contains(&resource),
            ..Object::new(schema.version, state::Attributes::Flat(Arc::default()))
        }
    }

    fn depends_on_any(&self, block: &Block, resources: &HashSet<ConfigResource>) -> bool {
        !resources.is_empty()
            && self
                .blocks
                .resources_before(block)
                .iter()
                .any(|r| resources.contains(r))
    }

    /// What remains to be done after the last operation. Gives the problems so far.
    async fn after(&self) -> Diagnostics {
        let mut diagnostics = self.evaluator.take_diagnostics();
        if self.inputs.stop.is_requested() {
            diagnostics.push(Diagnostic::error(
                "Operation interrupted",
                "The apply was interrupted: what had been started was completed and is in the state, the rest was not begun. \
                 Run apply again to go on.",
            ));
        }
        self.outputs(&mut diagnostics).await;
        if self.plan.mode == Mode::Normal && !self.inputs.stop.is_requested() {
            self.checks().await;
            self.late_conditions().await;
        }
        diagnostics
    }

    /// Evaluates the check blocks, now that everything is what it is. Only where all was planned: what was left out may be
    /// missing.
    async fn checks(&self) {
        if !self.plan.targets.is_empty() {
            return;
        }
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let unread = self
            .unread_checks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for node in self.inputs.config.nodes() {
            for name in node.module.checks.keys() {
                let block = Block::Check(node.path.clone(), name.clone());
                if self.depends_on_any(&block, &failed) {
                    continue;
                }
                if self.open_ephemerals(&block).await.is_err() {
                    continue;
                }
                // Nothing that goes wrong here matters to anything else.
                let prepared = self.dependency_evaluation.evaluate(self.evaluator, &block);
                let _: Result<(), Reported> = prepared.and_then(|()| {
                    block_visits::visit_check(self.evaluator, &node.path, name, |at| {
                        !unread.iter().any(|(module, check)| module == at && check == name)
                    })
                });
            }
        }
    }

    /// Evaluates the conditions that could not be evaluated when the plan was made, as far as nothing that was carried out
    /// has.
    async fn late_conditions(&self) {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let unknown = |address: &str| {
            let at = self.plan.checks.binary_search_by(|r| (*r.config_addr).cmp(address));
            at.is_ok_and(|i| self.plan.checks[i].status == CheckStatus::Unknown)
        };
        let open = |block: &Block| {
            unknown(&block.to_string())
                && !self.dependency_evaluation.is_evaluated(block)
                && !self.depends_on_any(block, &failed)
        };
        for node in self.inputs.config.nodes() {
            for name in node.module.variables.keys() {
                let block = Block::Variable(node.path.clone(), name.clone());
                if open(&block) && self.prepare_late(&block).await.is_ok() {
                    // A failure has been reported.
                    let _: Result<(), Reported> = block_visits::visit_variable(self.evaluator, &node.path, name);
                }
            }
            for name in node.module.outputs.keys().filter(|_| !node.path.is_root()) {
                let block = Block::Output(node.path.clone(), name.clone());
                if open(&block) && self.prepare_late(&block).await.is_ok() {
                    let _: Result<(), Reported> =
                        block_visits::visit_output(self.evaluator, &node.path, name, FailureSeverity::Error);
                }
            }
        }
        for change in self.plan.changes.iter().filter(|c| c.action == Action::NoOp) {
            let resource = change.address.config();
            let Some(block) = self.inputs.config.resource(&resource) else {
                continue;
            };
            let lifecycle = &block.lifecycle;
            let conditions = !(lifecycle.preconditions.is_empty() && lifecycle.postconditions.is_empty());
            let node = Block::Resource(resource);
            if conditions && unknown(&node.to_string()) && !self.depends_on_any(&node, &failed) {
                let _: Result<(), Reported> = self
                    .prepare_late(&node)
                    .await
                    .and_then(|()| self.conditions_of_unchanged(&change.address, block));
            }
        }
    }

    /// Evaluates what a block needs, when all operations are done.
    async fn prepare_late(&self, block: &Block) -> Result<(), Reported> {
        self.open_ephemerals(block).await?;
        self.dependency_evaluation.evaluate(self.evaluator, block)
    }

    fn conditions_of_unchanged(&self, address: &AbsResourceInstance, block: &config::Resource) -> Result<(), Reported> {
        let repetition = self
            .evaluator
            .resource_expansion(&address.module, &address.resource.resource)?
            .repetition(&address.resource.key);
        let of = Checked::Resource(address.clone());
        let conditions = [
            (&block.lifecycle.preconditions, ConditionKind::Precondition, None),
            (
                &block.lifecycle.postconditions,
                ConditionKind::Postcondition,
                self.evaluator.object(address),
            ),
        ];
        for (rules, kind, me) in conditions {
            let scope = self
                .evaluator
                .scope_with(&address.module, repetition.clone(), me)
                .ok_or(Reported)?;
            self.evaluator.check_all(&Conditions {
                rules,
                kind,
                scope: &scope,
                of: &of,
                severity: FailureSeverity::Error,
            })?;
        }
        Ok(())
    }

    /// Brings the root outputs up to date. Those that depend on something that failed keep their old value.
    async fn outputs(&self, diagnostics: &mut Diagnostics) {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let root = &self.inputs.config.root;
        let refresh_only = self.plan.mode == Mode::RefreshOnly;
        if refresh_only && !self.plan.is_applyable() {
            // What is known of them is as good as what could be found out.
            return;
        }
        let severity = if refresh_only {
            FailureSeverity::Warning
        } else {
            FailureSeverity::Error
        };
        for (name, planned) in &self.plan.outputs {
            let declared = root.module.outputs.get(name);
            if declared.is_none() || self.plan.mode == Mode::Destroy {
                if planned.action == Action::Delete && !diagnostics.has_errors() {
                    self.state().outputs.remove(name);
                }
                continue;
            }
            let block = Block::Output(Module::root(), name.clone());
            if self.depends_on_any(&block, &failed) {
                continue;
            }
            if self.open_ephemerals(&block).await.is_err() {
                continue;
            }
            let visited = self
                .dependency_evaluation
                .evaluate(self.evaluator, &block)
                .and_then(|()| block_visits::visit_output(self.evaluator, &Module::root(), name, severity))
                .and_then(|()| self.evaluator.output(&ModuleInstance::root(), root, name));
            let Ok(value) = visited else { continue };
            let (value, _) = value.unmark_deep();
            let mut state = self.state();
            if value.is_null() {
                state.outputs.remove(name);
            } else {
                state.outputs.insert(
                    name.clone(),
                    OutputValue {
                        // What a missing object would say is not known where nothing is created.
                        value: nulls_for_unknowns(&value),
                        sensitive: declared.is_some_and(|o| o.sensitive),
                    },
                );
            }
        }
    }
}
