//! Apply: carries out the execution graph of a plan. Apply decides nothing. An operation evaluates the configuration of its object again,
//! has the provider plan again if the configuration was not wholly known or the object is replaced, calls the provider, and records the
//! result in the state, also after a failure. Operations whose dependencies failed are skipped.

mod actions;
mod admission;
mod closings;
mod data;
mod destroy;
mod finish;
mod intents;
mod managed;
mod objects;
mod openings;
mod problems;
mod provision;
mod slot;
mod tally;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addrs::{AbsResourceInstance, ConfigResource, ModuleInstance, Target};
use cty::{Path, Value};
use provider::{Answer, Applied, PluginDiagnostic, Provider};
use schema::Schema;
use state::journal::Answers;
use state::{CheckStatus, DeposedKey, Object, State};
use syntax::{Diagnostic, Diagnostics};

use crate::blocks::{Block, Blocks, create_before_destroy};
use crate::context::OperationContext;
use crate::dependency_evaluation::DependencyEvaluation;
use crate::ephemeral::{Ephemerals, OpenedValues};
use crate::eval::{Evaluator, Reported};
use crate::events::Event;
use crate::execgraph::Operation;
use crate::inputs::Inputs;
use crate::object_config;
use crate::plan::{Action, Mode, Plan, ResourceChange};
use crate::providers::Providers;
use crate::removals::Removals;
use crate::results::ResultSink;
use crate::state_objects::StateObjects;
use crate::validate;
use crate::walk::{Outcome, walk};

use actions::Triggered;
use closings::Closings;
use openings::Openings;
use slot::{SETTLING, Slot, Slots};
use tally::Tally;
pub use tally::{Completion, Recorded, UnfinishedOperation};

#[derive(Debug)]
pub struct ApplyResult {
    /// Resulting state, also after errors.
    pub state: State,
    pub diagnostics: Diagnostics,
    /// Counts of completed and failed operations, and lists of the unfinished ones.
    pub completion: Completion,
    /// Values of the ephemeral resources that were opened.
    pub ephemerals: BTreeMap<AbsResourceInstance, Value>,
}

/// Carries out a plan. `results` receives the result of each operation. Operations start from the prior state of the plan. The state of
/// the inputs is only compared with that prior state: the differences are changes that the plan made, and are passed to `results` first.
/// When the cancellation token of the inputs is canceled, running operations are dropped.
pub async fn apply(inputs: Inputs<'_>, plan: &Plan, results: &dyn ResultSink) -> ApplyResult {
    let tally = Tally::new(plan);
    let unchanged = |diagnostics| ApplyResult {
        state: plan.prior_state.clone(),
        diagnostics,
        completion: tally.completion(plan, &plan.prior_state),
        ephemerals: BTreeMap::new(),
    };
    let opened = OpenedValues::default();
    let needed = tokio::select! {
        needed = Providers::start_required(inputs.providers, inputs.config, &plan.prior_state) => needed,
        () = inputs.stop.cancelled() => Err(canceled().into()),
    };
    let providers = match needed {
        Ok(providers) => providers.in_lanes(inputs.lanes),
        Err(diagnostics) => return unchanged(diagnostics),
    };
    let (state, diagnostics) = {
        let work = with_providers(inputs, plan, (&providers, &opened), results, &tally);
        tokio::pin!(work);
        tokio::select! {
            result = &mut work => result,
            () = inputs.stop.requested() => {
                inputs.events.event(Event::Stopping);
                // Running operations are asked to stop, and apply waits for them; no other operation starts.
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
    inputs.report_settled_lanes();
    // After a second interrupt, apply does not wait: plugins that are not closed here are killed when they are dropped.
    tokio::select! {
        () = providers.close() => {}
        () = inputs.stop.cancelled() => {}
    }
    let completion = tally.completion(plan, &state);
    ApplyResult {
        state,
        diagnostics,
        completion,
        ephemerals: opened.into_values(),
    }
}

fn canceled() -> Diagnostic {
    Diagnostic::error(
        "Operation canceled",
        "The apply was canceled by a second interrupt. Completed operations are in the state. Running operations were not waited \
         for: \
         each may have taken effect, in whole or in part. A new object may exist without being in the state. If only its provisioners or \
         actions were cut short, it is in the state as tainted, and the next apply replaces it.",
    )
}

async fn with_providers(
    inputs: Inputs<'_>,
    plan: &Plan,
    (providers, opened): (&Providers<'_>, &OpenedValues),
    sink: &dyn ResultSink,
    tally: &Tally,
) -> (State, Diagnostics) {
    let blocks = match Blocks::build_with_state(inputs.config, providers.schemas(), &plan.prior_state) {
        Ok(blocks) => blocks,
        Err(diagnostics) => return (plan.prior_state.clone(), diagnostics),
    };
    // The user approved the plan with these results of provider functions, so a function that returns another result now causes an error.
    providers.functions().expect(&plan.function_results);
    let state = Arc::new(Mutex::new(plan.prior_state.clone()));
    let evaluator = evaluator(inputs, plan, providers, state.clone());
    let context = OperationContext {
        inputs,
        providers,
        blocks: &blocks,
        evaluator: &evaluator,
    };
    let operations = operations_by_resource(plan);
    let ephemerals = Ephemerals::new(context, opened, |block| match block {
        Block::Resource(resource) => operations.get(resource).copied().unwrap_or_default(),
        // Output values and check blocks are evaluated once, after all operations. Only root outputs are evaluated then.
        Block::Output(module, _) => usize::from(module.is_root()),
        Block::Check(..) => 1,
        _ => 0,
    });
    let dependency_evaluation = DependencyEvaluation::new(&blocks, plan.mode != Mode::Destroy);
    let applier = Applier {
        context,
        plan,
        openings: Openings::new(context, &ephemerals, &dependency_evaluation),
        closings: Closings::new(context, plan),
        ephemerals: &ephemerals,
        dependency_evaluation: &dependency_evaluation,
        removals: Removals::new(inputs.config),
        facts: StoredFacts::new(inputs, &blocks),
        results: ApplyResults::new(state, sink),
        tally,
        triggered: Triggered::new(plan),
        total: plan.graph.operations(),
        slots: Slots::new(inputs.parallelism, inputs.local_parallelism()),
    };
    run(&applier).await
}

/// Creates the evaluator of an apply that changes this state.
fn evaluator<'a>(
    inputs: Inputs<'a>,
    plan: &Plan,
    providers: &'a Providers<'_>,
    state: Arc<Mutex<State>>,
) -> Evaluator<'a> {
    let mut environment = inputs.environment.clone();
    // Functions like `timestamp` return known values now. In a plan, their results are unknown.
    environment.functions.pure = false;
    environment.functions.plan_timestamp = Some(plan.timestamp.clone());
    environment.applying = true;
    let objects = StateObjects {
        state,
        schemas: providers.schemas(),
    };
    let source = objects::object_source(plan, objects);
    Evaluator::new(inputs.config, environment, &inputs.variables.values, source)
        .with_functions(providers.functions())
        .with_schemas(providers.schemas())
        .with_module_outputs(inputs.providers)
}

/// Carries out the execution graph, and returns the resulting state.
async fn run(applier: &Applier<'_>) -> (State, Diagnostics) {
    let OperationContext {
        inputs,
        providers,
        evaluator,
        ..
    } = applier.context;
    let plan = applier.plan;
    let graph = plan.graph.to_walk();
    // A saved plan was validated in another process, so its warnings about providers have not been shown here.
    if plan.saved {
        let changed = plan.changes.iter().filter(|c| c.action != Action::NoOp);
        let resources = changed.map(|c| c.address.config()).collect();
        evaluator.report(validate::warnings_of_providers(inputs, providers, resources).await);
    }
    // The changes that the plan made to the state are recorded first, so that the journal contains every change that the results of
    // operations are based on.
    applier.pass_changes_before_apply();
    let work = async {
        // An imported object without changes has no operation that reports the import.
        for change in plan.changes.iter().filter(|c| c.action == Action::NoOp) {
            applier.report_import(change);
        }
        // The walk runs more operations than there are slots, because an operation that waits for the disk has returned its slot.
        let limit = inputs.at_once(inputs.parallelism.saturating_add(SETTLING));
        walk(&graph, limit, |node| applier.visit(graph[node])).await;
        applier.closings.finish();
        applier.finish().await
    };
    let work = async { tokio::join!(work, applier.closings.close_ended()).0 };
    let mut diagnostics = tokio::select! {
        diagnostics = work => diagnostics,
        never = applier.ephemerals.renew_until_closed() => match never {},
        () = inputs.stop.cancelled() => canceled().into(),
    };
    tokio::select! {
        () = applier.ephemerals.close_all() => {}
        () = inputs.stop.cancelled() => {}
    }
    diagnostics.extend(evaluator.take_diagnostics());
    let mut state = applier.state().clone();
    let results = evaluator.check_results(&checks_before(plan), |_| false);
    state.check_results = (!results.is_empty()).then(|| results.into());
    drop_data(plan, &mut state);
    (state, diagnostics)
}

/// Returns the number of operations on the objects of each resource.
fn operations_by_resource(plan: &Plan) -> HashMap<ConfigResource, usize> {
    let mut operations: HashMap<ConfigResource, usize> = HashMap::new();
    for operation in &plan.graph.nodes {
        if let Operation::Change(i) | Operation::Destroy(i) = operation
            && let Some(change) = plan.changes.get(*i as usize)
        {
            *operations.entry(change.address.config()).or_default() += 1;
        }
    }
    operations
}

/// Returns the results of conditions before apply. The results of data sources become unknown, because apply may read a data source again
/// after its dependencies have changed.
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

/// Removes the data sources that the plan drops, unless an object of the state depends on them.
fn drop_data(plan: &Plan, state: &mut State) {
    if plan.dropped_data.is_empty() {
        return;
    }
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

/// Properties of a resource that the state stores with each of its objects.
struct StoredFacts {
    /// Dependencies of each resource, sorted by address as in states.
    dependencies: BTreeMap<ConfigResource, Arc<[ConfigResource]>>,
    /// Resources that are replaced with create_before_destroy.
    create_before_destroy: BTreeSet<ConfigResource>,
}

impl StoredFacts {
    fn new(inputs: Inputs<'_>, blocks: &Blocks) -> StoredFacts {
        let managed = blocks.resource_dependencies(false);
        let all = blocks.resource_dependencies(true);
        let dependencies = all.into_iter().map(|(resource, needs)| {
            let mut needs: Vec<ConfigResource> = needs.into_iter().collect();
            needs.sort_by_cached_key(ToString::to_string);
            (resource, needs.into())
        });
        StoredFacts {
            dependencies: dependencies.collect(),
            // Resources outside the targets of a partial plan count as well, because the next plan may include them.
            create_before_destroy: create_before_destroy::resources(inputs.config, &managed, |_| true),
        }
    }
}

/// Results of the operations so far.
struct ApplyResults<'a> {
    state: Arc<Mutex<State>>,
    sink: &'a dyn ResultSink,
    /// Deposed object of each replacement, by the index of the change in the plan.
    deposed: Mutex<HashMap<u32, DeposedKey>>,
    failed: Mutex<HashSet<ConfigResource>>,
    /// Check blocks whose data source could not be read, by module instance.
    unread_checks: Mutex<HashSet<(ModuleInstance, Arc<str>)>>,
    /// Number of completed and failed operations.
    ended: AtomicUsize,
}

impl<'a> ApplyResults<'a> {
    fn new(state: Arc<Mutex<State>>, sink: &'a dyn ResultSink) -> ApplyResults<'a> {
        ApplyResults {
            state,
            sink,
            deposed: Mutex::default(),
            failed: Mutex::default(),
            unread_checks: Mutex::default(),
            ended: AtomicUsize::new(0),
        }
    }

    fn failed(&self) -> MutexGuard<'_, HashSet<ConfigResource>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deposed(&self) -> MutexGuard<'_, HashMap<u32, DeposedKey>> {
        self.deposed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unread_checks(&self) -> MutexGuard<'_, HashSet<(ModuleInstance, Arc<str>)>> {
        self.unread_checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One run of apply.
struct Applier<'a> {
    context: OperationContext<'a>,
    plan: &'a Plan,
    openings: Openings<'a>,
    closings: Closings<'a>,
    ephemerals: &'a Ephemerals<'a>,
    dependency_evaluation: &'a DependencyEvaluation<'a>,
    removals: Removals<'a>,
    facts: StoredFacts,
    results: ApplyResults<'a>,
    tally: &'a Tally,
    /// Invocations of actions that changes trigger.
    triggered: Triggered<'a>,
    /// Number of all operations.
    total: usize,
    /// Limits of concurrent operations.
    slots: Slots,
}

struct ObjectOperation<'s> {
    change: &'s ResourceChange,
    address: &'s AbsResourceInstance,
    ty: &'s str,
    schema: &'s Schema,
    provider: Arc<dyn Provider>,
    slot: &'s Slot<'s>,
}

/// Builds the result of an apply call to which the provider did not respond: the object, the private data and the identity stay as given.
fn without_response(
    diagnostics: Diagnostics,
    state: Value,
    private: Vec<u8>,
    identity: Option<Value>,
) -> Answer<Applied> {
    Answer {
        value: Applied {
            state,
            private,
            identity,
            legacy_type_system: false,
        },
        diagnostics: diagnostics
            .into_iter()
            .map(|diagnostic| PluginDiagnostic {
                diagnostic,
                attribute: Path::root(),
            })
            .collect(),
    }
}

impl Applier<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.results.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the objects of an instance in the state, and passes them to the result sink. `answers` tells the sink which of the
    /// instance's intents this result belongs to.
    fn update<T>(&self, change: &ResourceChange, answers: Answers, update: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let result = update(&mut state);
        let objects = state.instance(&change.address).cloned();
        // The state is still locked here, so that results of an instance arrive in order.
        self.results
            .sink
            .instance(&change.address, &change.provider, objects, answers);
        result
    }

    /// Sets the current object of the changed instance.
    fn update_current(&self, change: &ResourceChange, object: Option<Arc<Object>>) {
        self.update(change, Answers::Current, |state| {
            state.set_current(&change.address, &change.provider, object)
        });
    }

    fn update_deposed(&self, change: &ResourceChange, key: DeposedKey, object: Option<Arc<Object>>) {
        self.update(change, Answers::Deposed(key.clone()), |state| {
            state.set_deposed(&change.address, &change.provider, key, object);
        });
    }

    async fn visit(&self, operation: Operation) -> Outcome {
        let index = match operation {
            Operation::GroupStart(_) | Operation::GroupEnd(_) => return Outcome::Done,
            Operation::Invoke(i) => return self.visit_invocation(operation, i).await,
            Operation::Change(i) | Operation::Destroy(i) => i,
        };
        let Some(change) = self.plan.changes.get(index as usize) else {
            return Outcome::Failed;
        };
        let slot = self.admit(operation, change).await;
        if self.context.inputs.stop.is_requested() {
            self.note_failed(change);
            return Outcome::Failed;
        }
        let begun = self.tally.begin(operation);
        let result = self.carry_out(operation, index, change, &slot).await;
        if change.address.resource.resource.mode == addrs::Mode::Managed {
            // Dependents begin only when no crash can lose the result that they build on.
            self.settle(&slot).await;
        }
        begun.end(result.is_ok());
        if change.action != Action::Forget {
            self.closings.count_end(&change.provider);
        }
        if !self.ephemerals.is_empty() {
            self.ephemerals.used(&Block::Resource(change.address.config())).await;
        }
        self.count_ended();
        match result {
            Ok(()) => Outcome::Done,
            Err(Reported) => {
                self.note_failed(change);
                Outcome::Failed
            }
        }
    }

    /// Carries out an invocation that the user has requested.
    async fn visit_invocation(&self, operation: Operation, index: u32) -> Outcome {
        let Some(invocation) = self.plan.invocations.get(index as usize) else {
            return Outcome::Failed;
        };
        let slot = self.slots.admit().await;
        slot.run().await;
        // The stop may have been requested while the invocation waited for its slot, so it is checked only now.
        if self.context.inputs.stop.is_requested() {
            return Outcome::Failed;
        }
        let begun = self.tally.begin(operation);
        let result = self.invoke_requested(invocation).await;
        begun.end(result.is_ok());
        self.count_ended();
        if result.is_ok() { Outcome::Done } else { Outcome::Failed }
    }

    fn count_ended(&self) {
        let done = self.results.ended.fetch_add(1, Ordering::Relaxed) + 1;
        let total = self.total;
        self.context.inputs.events.event(Event::Progress { done, total });
        self.context.inputs.report_lanes();
    }

    fn note_failed(&self, change: &ResourceChange) {
        self.results.failed().insert(change.address.config());
    }

    /// Waits until the results of an operation are durable. Another operation can use the slot meanwhile, because
    /// this one only waits.
    async fn settle(&self, slot: &Slot<'_>) {
        slot.release();
        self.results.sink.settled().await;
    }

    /// Carries out an operation. The futures of rare steps are boxed: hundreds of operations run at once, and the future of each is as
    /// large as its largest unboxed step.
    async fn carry_out(
        &self,
        operation: Operation,
        index: u32,
        change: &ResourceChange,
        slot: &Slot<'_>,
    ) -> Result<(), Reported> {
        // Forgetting needs no provider, because nothing happens to the object itself.
        if change.action == Action::Forget {
            match &change.deposed {
                Some(key) => self.update_deposed(change, DeposedKey(key.clone()), None),
                None => {
                    self.update_current(change, None);
                    self.context.evaluator.remove_object(&change.address);
                }
            }
            return Ok(());
        }
        self.openings.open(&change.provider).await?;
        // A destruction evaluates no other blocks: its provisioners may refer only to `self`, `count.index` and `each.key`.
        if matches!(operation, Operation::Change(_)) {
            self.report_import(change);
            let block = Block::Resource(change.address.config());
            self.openings.open_ephemerals(&block).await?;
            self.dependency_evaluation.evaluate(self.context.evaluator, &block)?;
        }
        let resource = &change.address.resource.resource;
        let schemas = self.context.providers.schemas();
        let schema = object_config::resource_schema(schemas, &change.provider.provider, resource, None)
            .map_err(|d| self.context.fail(d))?;
        let provider = self
            .context
            .providers
            .for_object(&change.provider, &change.address)
            .await
            .map_err(|d| self.context.fail(d))?;
        let subject = ObjectOperation {
            change,
            address: &change.address,
            ty: &resource.ty,
            schema,
            provider,
            slot,
        };
        // A replacement is one change with two operations: the kind of operation selects the part to carry out.
        match (operation, change.action) {
            (Operation::Destroy(_), _) => self.destroy(index, &subject).await,
            (_, Action::Read) => Box::pin(self.read(&subject)).await,
            _ => self.change(index, &subject).await,
        }
    }

    /// Sends the event for an import. The plan has already put the object into the prior state, so the import cannot fail any more.
    fn report_import(&self, change: &ResourceChange) {
        if let Some(target) = &change.importing {
            self.context.inputs.events.event(Event::Imported {
                address: change.address.clone(),
                target: target.clone(),
            });
        }
    }

    /// Returns an object without attributes, with the facts that the state stores about its resource: schema version, dependencies,
    /// `create_before_destroy`, `skip_destroy`, and the destroy-time provisioners.
    fn record(&self, address: &AbsResourceInstance, schema: &Schema) -> Object {
        let resource = address.config();
        let block = self.context.inputs.config.resource(&resource);
        Object {
            dependencies: self.facts.dependencies.get(&resource).cloned().unwrap_or_default(),
            create_before_destroy: self.facts.create_before_destroy.contains(&resource),
            skip_destroy: block.is_some_and(|block| block.lifecycle.keeps_object()),
            destroy_provisioners: block.map(config::Resource::destroy_provisioners).unwrap_or_default(),
            ..Object::new(schema.version, state::Attributes::Flat(Arc::default()))
        }
    }

    fn depends_on_any(&self, block: &Block, resources: &HashSet<ConfigResource>) -> bool {
        !resources.is_empty()
            && self
                .context
                .blocks
                .resources_before(block)
                .iter()
                .any(|r| resources.contains(r))
    }
}
