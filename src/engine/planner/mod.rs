//! Planning: compare the configuration with the state, and decide the changes.
//!
//! The planner ([`visit`]) visits the blocks of the configuration in dependency order. It evaluates them, configures providers, and plans
//! the resource instances of the configuration and of the state ([`tasks`], [`managed`], [`data`]). It sets planned objects in the
//! evaluator, where later blocks refer to them. After the walk the changes are sorted, and the execution graph is built from them
//! ([`finish`]).

mod actions;
mod data;
mod decide;
mod delete;
mod finish;
mod generate;
pub(crate) mod import;
mod kind;
mod list;
mod managed;
mod moves;
mod objects;
mod outputs;
mod reading;
mod relevance;
mod relevant_path;
mod targets;
mod tasks;
mod unmatched;
mod value_sources;
mod visit;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use addrs::AbsResourceInstance;
use cty::Value;
use lang::scope::MissingFiles;
use provider::Schemas;
use state::State;
use syntax::{Diagnostic, Diagnostics};

use crate::blocks::{Block, Blocks, ProviderBlocks};
use crate::context::OperationContext;
use crate::dependency_evaluation::DependencyEvaluation;
use crate::ephemeral::{Ephemerals, OpenedValues};
use crate::eval::{Evaluator, Reported};
use crate::events::Event;
use crate::inputs::{Inputs, PlanOptions};
use crate::plan::{Mode, Plan};
use crate::providers::Providers;
use crate::removals::Removals;
use crate::state_objects::StateObjects;
use crate::validate;
use crate::walk::{Outcome, walk};

use actions::ActionSelection;
use kind::PlanKind;
use reading::Reading;
use targets::Selection;
use value_sources::Sources;
use visit::{Limits, PlanSpec, PlannedResource, Planner, Progress, ResourceFacts};

/// Result of planning.
#[derive(Debug, Default)]
pub struct Planning {
    /// The plan. If there are errors, it is missing, or it is marked as errored and shows what was planned before the errors.
    pub plan: Option<Plan>,
    /// Schemas of the plugins, to render the plan with.
    pub schemas: Schemas,
    /// Diagnostics of validation and of planning.
    pub diagnostics: Diagnostics,
    /// Values of the ephemeral resources that were opened.
    pub ephemerals: BTreeMap<AbsResourceInstance, Value>,
}

/// Makes a plan.
///
/// First the whole configuration is validated, even for a partial plan, but not for the command `import`. So errors are found before
/// objects are refreshed, data sources read or ephemeral resources opened.
///
/// Unless the state is empty or `-refresh=false` is set, a destroy plan begins with a refresh pass: data sources are read and objects
/// refreshed as in any plan. The pass can fail, for example because a data source does not exist any more, or a `count` depends on an
/// object that was never created. Then objects are refreshed while their destruction is planned, and only the data sources that provider
/// configurations need are read.
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
                plan_once(inputs, options, PlanKind::Destroy, Validation::NotNeeded).await,
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
        // `warned` has only the warnings of validation. The destroy plan repeats the other warnings of the refresh pass that are still
        // relevant.
        let mut planning = whole(
            plan_once(inputs, &options, PlanKind::Destroy, Validation::NotNeeded).await,
            warned,
        );
        if let Some(plan) = &mut planning.plan {
            plan.previous_state = refreshed.previous_state;
        }
        return planning;
    }
    let kind = PlanKind::from(options.mode);
    // As in Terraform, the command `import` does not validate, because the resource block of its target may still lack arguments.
    let validation = match options.import {
        Some(_) => Validation::NotNeeded,
        None => Validation::Required,
    };
    whole(plan_once(inputs, options, kind, validation).await, Diagnostics::new())
}

/// Adds the warnings of validation to the result of planning, without duplicates. Errors make the plan an errored one.
fn whole(result: Result<(Planning, Diagnostics), Planning>, mut warned: Diagnostics) -> Planning {
    match result {
        Ok((planning, more)) => {
            warned.extend(more);
            // Providers repeat warnings of validation when they plan, so duplicates are removed.
            let known: HashSet<_> = warned.iter().map(same_warning).collect();
            let is_new = |d: &&Diagnostic| d.is_error() || !known.contains(&same_warning(d));
            let new: Vec<_> = planning.diagnostics.iter().filter(is_new).cloned().collect();
            warned.extend(new);
            let mut planning = Planning {
                diagnostics: warned,
                ..planning
            };
            if let Some(plan) = &mut planning.plan {
                plan.errored |= planning.diagnostics.has_errors();
            }
            planning
        }
        Err(planning) => planning,
    }
}

/// Returns the parts in which duplicate warnings are equal: summary, detail and position. The address is not one of them, so a warning
/// appears once for all instances of a block.
fn same_warning(d: &Diagnostic) -> (&str, &str, Option<(&str, u32)>) {
    let at = d.subject.as_ref().map(|range| (&*range.file, range.start.byte));
    (&d.summary, &d.detail, at)
}

/// Tells whether a plan begins with a validation of the configuration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Validation {
    Required,
    /// An earlier pass has validated the configuration, or the command does not validate.
    NotNeeded,
}

/// Makes one plan, and returns the warnings of validation separately. The error is the result for an invalid
/// configuration.
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
        schemas,
        diagnostics,
        ..Planning::default()
    };
    let providers = match Providers::start_required(inputs.providers, inputs.config, inputs.state).await {
        Ok(providers) => providers.in_lanes(inputs.lanes),
        Err(diagnostics) => return Err(nothing(Schemas::default(), diagnostics)),
    };
    // Files that arguments read may have been deleted before the resources are destroyed. Such missing files must not prevent the
    // destruction.
    let mut without_files = inputs.environment.clone();
    without_files.functions.missing_files = Some(MissingFiles::default());
    let destroys = matches!(kind, PlanKind::Destroy | PlanKind::DestroyRefresh);
    let opened = OpenedValues::default();
    let work = async {
        let mut warned = Diagnostics::new();
        if validation == Validation::Required {
            // The configuration is validated without the empty blocks for imports, because they lack required arguments.
            let on_written = Inputs {
                config: written,
                environment: if destroys { &without_files } else { inputs.environment },
                ..inputs
            };
            warned = validate::with_providers(on_written, &providers, ProviderBlocks::Used).await;
            if warned.has_errors() {
                return Err(warned);
            }
        }
        let inputs = Inputs {
            // A destroy plan evaluates only provider configurations, for which a missing file must be an error.
            environment: match kind {
                PlanKind::DestroyRefresh => &without_files,
                _ => inputs.environment,
            },
            ..inputs
        };
        let mut reading = Reading::default();
        loop {
            let running = (&providers, &opened, &reading);
            let (plan, found, required) = with_providers(inputs, written, options, kind, running).await;
            match required {
                // The pass has found more objects that a partial refresh must read, so another pass follows.
                Some(required) if !inputs.stop.is_requested() => reading.required = required,
                _ => return Ok((plan, found, warned)),
            }
        }
    };
    let result = tokio::select! {
        result = work => result,
        () = stopped(inputs, &providers) => Ok((None, interrupted(), Diagnostics::new())),
    };
    inputs.report_settled_lanes();
    providers.close().await;
    let schemas = providers.schemas().clone();
    match result {
        Ok((plan, found, warned)) => Ok((
            Planning {
                plan,
                ephemerals: opened.into_values(),
                ..nothing(schemas, found)
            },
            warned,
        )),
        Err(problems) => Err(nothing(schemas, problems)),
    }
}

/// Waits for a request to stop, and passes it on to the plugins. Never returns, so that the plan itself decides when it ends.
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

/// Makes a plan with running providers. The last result is set if another pass must read these sources first.
async fn with_providers(
    inputs: Inputs<'_>,
    written: &config::Config,
    options: &PlanOptions,
    kind: PlanKind,
    (providers, opened, reading): (&Providers<'_>, &OpenedValues, &Reading),
) -> (Option<Plan>, Diagnostics, Option<Sources>) {
    let removals = Removals::new(inputs.config);
    let still_declared = removals.still_declared(inputs.config);
    if still_declared.has_errors() {
        return (None, still_declared, None);
    }
    let before = inputs.state;
    let statements = moves::statements(inputs.config, before);
    let mut moved = inputs.state.clone();
    let moves = match moves::apply(&statements, &mut moved, providers).await {
        Ok(moves) => moves,
        Err(diagnostics) => return (None, diagnostics, None),
    };
    if let Some(problem) = moves.left_out(&options.targets, &options.excludes) {
        let problems = [problem].into_iter().chain(targets::warning(options)).collect();
        return (None, problems, None);
    }
    // From here on, the state has moved objects at their new addresses.
    let inputs = Inputs {
        state: &moved,
        ..inputs
    };
    let build = match options.import {
        Some(_) => Blocks::build_for_import,
        None => Blocks::build_with_state,
    };
    let blocks = match build(inputs.config, providers.schemas(), inputs.state) {
        Ok(blocks) => blocks,
        Err(diagnostics) => return (None, diagnostics, None),
    };
    let prior = Arc::new(Mutex::new(inputs.state.clone()));
    let evaluator = evaluator(inputs, options, kind, providers, prior.clone());
    let actions = ActionSelection::new(inputs.config, providers.schemas(), options);
    let selection = Selection::new(&blocks, options, inputs.state, &actions);
    let context = OperationContext {
        inputs,
        providers,
        blocks: &blocks,
        evaluator: &evaluator,
    };
    let ephemerals = Ephemerals::new(context, opened, |_| 1);
    let mut of_providers = Sources::default();
    if options.partial_refresh.is_some() {
        value_sources::of_providers(inputs.config, selection.providers(), &mut of_providers);
    }
    let planner = Planner {
        context,
        spec: PlanSpec {
            kind,
            options,
            written,
            selection: &selection,
            moves: &moves,
            removals: &removals,
        },
        resources: ResourceFacts::new(inputs, &blocks, &selection, kind),
        ephemerals: &ephemerals,
        dependency_evaluation: DependencyEvaluation::new(&blocks, false),
        limits: Limits::new(&inputs),
        reading,
        of_providers,
        prior,
        results: Mutex::default(),
        progress: Progress::default(),
    };
    let (plan, diagnostics) = run(&planner, &statements, before).await;
    let required = plan.as_ref().and_then(|plan| planner.sources_to_read(plan));
    (plan, diagnostics, required)
}

/// Creates the evaluator of a plan that starts from this state.
fn evaluator<'a>(
    inputs: Inputs<'a>,
    options: &PlanOptions,
    kind: PlanKind,
    providers: &'a Providers<'_>,
    prior: Arc<Mutex<State>>,
) -> Evaluator<'a> {
    let mut environment = inputs.environment.clone();
    // The results of functions like `timestamp` are unknown in a plan, because they are different in apply.
    environment.functions.pure = true;
    let partial = !(options.targets.is_empty() && options.excludes.is_empty());
    let objects = StateObjects {
        state: prior,
        schemas: providers.schemas(),
    };
    let source = objects::object_source(kind, partial, objects);
    Evaluator::new(inputs.config, environment, &inputs.variables.values, source)
        .with_functions(providers.functions())
        .with_schemas(providers.schemas())
        .with_module_outputs(inputs.providers)
}

/// Walks the configuration, and makes the plan from the results.
async fn run(planner: &Planner<'_>, statements: &[moves::Statement], before: &State) -> (Option<Plan>, Diagnostics) {
    let (inputs, kind) = (planner.context.inputs, planner.spec.kind);
    let blocks = planner.context.blocks;
    let query = planner.spec.options.query.is_some();
    let unmatched = planner.unmatched_blocks();
    if unmatched.has_errors() {
        return (None, unmatched);
    }
    let missing = planner.missing_action();
    if missing.has_errors() {
        return (None, missing);
    }
    if kind.imports() && !query {
        planner.check_imports();
    }
    let visit = |node| planner.visit(&blocks.graph[node]);
    let outcomes = tokio::select! {
        outcomes = walk(&blocks.graph, inputs.at_once(blocks_at_once(inputs.parallelism)), visit) => outcomes,
        never = planner.ephemerals.renew_until_closed() => match never {},
    };
    if let Some(target) = &planner.spec.options.invoke
        && !outcomes.contains(&Outcome::Failed)
    {
        // `plan_requested` reports its failures itself.
        let _: Result<(), Reported> = planner.plan_requested(target).await;
    }
    if kind.imports() && !query {
        planner.check_ids_of_unconfigured();
    }
    let mut diagnostics = in_order_of_files(planner.context.evaluator.take_diagnostics());
    diagnostics.extend(unmatched);
    if inputs.stop.is_requested() {
        diagnostics.extend(interrupted());
    }
    if !kind.is_destroy() && !query {
        let problems = moves::validate(statements, planner.context.evaluator, before);
        // The walk has reported failures of expansion, so those of `moves::validate` are dropped.
        planner.context.evaluator.take_diagnostics();
        if problems.has_errors() {
            // Only the errors about moves are reported, because other errors are probably consequences of them.
            return (None, problems);
        }
    }
    if !diagnostics.has_errors() && !query {
        diagnostics.extend(planner.unmatched_instances());
    }
    // A failure without a diagnostic is a bug. Without this error, it would look like a successful empty plan.
    if !diagnostics.has_errors() && outcomes.contains(&Outcome::Failed) {
        diagnostics.push(Diagnostic::error(
            "Planning failed without a reason",
            "Some part of the configuration could not be planned, and no problem was reported. This is a bug in \
             Monoform; please report it.",
        ));
    }
    let skipped = |block: &Block| {
        let outcome = blocks.find(block).and_then(|n| outcomes.get(n.index()));
        outcome.is_some_and(|o| *o != Outcome::Done)
    };
    // A query neither shows nor stores outputs.
    let outputs = if query {
        BTreeMap::new()
    } else {
        outputs::changes(planner, skipped)
    };
    planner.ephemerals.close_all().await;
    diagnostics.extend(planner.context.evaluator.take_diagnostics());
    if kind == PlanKind::Normal {
        diagnostics.extend(planner.needed_outside());
    }
    if kind != PlanKind::DestroyRefresh {
        diagnostics.extend(planner.lost_provisioners());
    }
    let plan = planner.finish(outputs, diagnostics.has_errors(), skipped);
    planner.conclude(plan, diagnostics)
}

/// Sorts diagnostics by position, since providers respond in any order.
fn in_order_of_files(mut diagnostics: Diagnostics) -> Diagnostics {
    diagnostics.0.sort_by_cached_key(|d| {
        let at = d.subject.as_ref().map(|r| (r.file.to_string(), r.start.byte));
        (at, d.address.clone(), d.summary.clone())
    });
    diagnostics
}

/// Returns the maximum number of blocks that are visited at the same time. Calls to providers have their own limits; this one bounds the
/// memory of blocks that wait for a permit.
fn blocks_at_once(parallelism: usize) -> usize {
    parallelism.max(MIN_BLOCKS_AT_ONCE)
}

/// Minimum for [`blocks_at_once`], so that blocks without calls to providers proceed while others wait for slow responses.
const MIN_BLOCKS_AT_ONCE: usize = 256;
