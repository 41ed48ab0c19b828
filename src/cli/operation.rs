//! Operations of plan, apply, destroy, refresh, import and console: from arguments to a plan, and from a plan to a new state.

mod import;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use config::Config;
use cty::Value;
use engine::apply::Completion;
use engine::events::{EventSink, NoEvents};
use engine::functions::Functions;
use engine::inputs::{Inputs, PlanOptions, Variables};
use engine::lanes::Lanes;
use engine::plan::{Mode, Plan};
use engine::planner::Planning;
use engine::stop::Stop;
use packages::lock_file;
use provider::Schemas;
use state::{Claims, State};
use stores::backend::{self, StateBackend, StateLocation};
use stores::journal;
use stores::persist::Persister;
use stores::planfile::{self, SavedPlan};
use stores::session::{Opening, StateSession};
use stores::workspace;
use syntax::{Diagnostic, Diagnostics, SourceMap};
use tokio::runtime::Runtime;
use views::live::Work;
use views::reporter::{Done, Reporter};
use views::verb::Verb;

use crate::VERSION;
use crate::args::operation::OperationArguments;
use crate::claimed::{Claimed, Locking, PartLocks, Subject, check_saved};
use crate::interrupt::{self, LastResort};
use crate::lanes;
use crate::last_reads::LastReadsFile;
use crate::outcome::{Failure, Outcome, Within as _};
use crate::planned_variables;
use crate::plugin_source::Plugins;
use crate::reporting;
use crate::session::Session;
use crate::state_session::{opening_of_operation, warn_of_state_flag};
use crate::validation::beyond_loading;
use crate::workdir::{self, Project};

/// One operation: the loaded configuration, the locked state and the plugins it uses.
pub struct Operation<'s> {
    session: &'s Session,
    runtime: Runtime,
    stop: Stop,
    states: StateSession<'s>,
    last_resort: Arc<LastResort>,
    /// State at the start of the operation.
    pub state: State,
    pub project: Project,
    pub variables: Variables,
    backend: StateBackend,
    /// Selected workspace.
    pub workspace: String,
    /// Name of the operation in the lock record.
    operation: &'static str,
    parts: PartLocks,
    plugins: Plugins,
    parallelism: usize,
    /// Limits of the operations on the objects of single providers.
    lanes: Option<Arc<Lanes>>,
    /// Warnings from before the operation, which are shown after the plan.
    warnings: Mutex<Diagnostics>,
}

/// Result of applying a plan.
pub struct Applied {
    pub state: State,
    /// Numbers of changed objects.
    pub done: Done,
    /// Operations that were done, aborted and not begun.
    pub completion: Completion,
    pub problems: Diagnostics,
}

impl<'s> Operation<'s> {
    /// Prepares planning: loads configuration and values, locks and reads the state, selects plugins.
    pub fn begin(
        session: &'s Session,
        arguments: &OperationArguments,
        mode: Mode,
        verb: Verb,
    ) -> Result<Operation<'s>, Failure> {
        if !workdir::has_configuration() && mode != Mode::Destroy {
            let advice = if verb == Verb::Plan {
                "To see what destroying everything would do, run plan with the -destroy option. To keep the \
                     objects, run the command in the directory of the configuration files (.tf)."
                    .to_owned()
            } else {
                format!("To destroy everything, run \"{} destroy\".", session.ui.program.command)
            };
            return Err(Failure::new(
                "No configuration files",
                format!(
                    "{} needs configuration files, and there are none in this directory. {} without them would plan \
                     to destroy every object in the state, which is hardly ever intended. {advice}",
                    verb.name(),
                    verb.gerund()
                ),
            ));
        }
        warn_of_state_flag(session, &arguments.files);
        let (project, mut problems) = workdir::read(session);
        if problems.has_errors() {
            // No plan will be made, so the errors of later checks are reported here as well.
            problems.extend(beyond_loading(session, &project, &problems));
            return Err(Failure::within(problems, &project.sources));
        }
        let operation = Operation::with_project(session, arguments, project, verb, None)?;
        operation.warn_later(problems);
        Ok(operation)
    }

    /// Prepares an import, with a configuration that is already loaded.
    pub fn for_import(
        session: &'s Session,
        arguments: &OperationArguments,
        project: Project,
    ) -> Result<Operation<'s>, Failure> {
        Operation::with_project(session, arguments, project, Verb::Import, None)
    }

    /// Prepares a query, with a configuration that is already loaded, and the warnings about it.
    pub fn for_query(
        session: &'s Session,
        arguments: &OperationArguments,
        project: Project,
        warnings: Diagnostics,
    ) -> Result<Operation<'s>, Failure> {
        let operation = Operation::with_project(session, arguments, project, Verb::Plan, None)?;
        operation.warn_later(warnings);
        Ok(operation)
    }

    /// Prepares an operation on a configuration that is already loaded, perhaps with known values of variables.
    pub(crate) fn with_project(
        session: &'s Session,
        arguments: &OperationArguments,
        project: Project,
        verb: Verb,
        known: Option<BTreeMap<Arc<str>, Value>>,
    ) -> Result<Operation<'s>, Failure> {
        Operation::at_location(session, arguments, project, verb, known, None)
    }

    /// Prepares an operation on a state at a known location.
    fn at_location(
        session: &'s Session,
        arguments: &OperationArguments,
        mut project: Project,
        verb: Verb,
        known: Option<BTreeMap<Arc<str>, Value>>,
        location: Option<StateLocation>,
    ) -> Result<Operation<'s>, Failure> {
        let mut before = Diagnostics::new();
        let location = match location {
            Some(location) => location,
            None => backend::selected(&session.stores(), Some(&project.config)).within(&project.sources)?,
        };
        before.extend(location.backend.take_warnings());
        let runtime = session.runtime()?;
        let stop = Stop::new();
        let last_resort = Arc::new(LastResort::default());
        {
            let _inside = runtime.enter();
            // Installed before the lock is requested, so that waiting for the lock can be interrupted.
            interrupt::listen_with_messages(
                session.ui.clone(),
                session.stream.clone(),
                stop.clone(),
                last_resort.clone(),
            );
        }
        let locking = Locking::of(&location.backend, verb, arguments.lock.timeout);
        let states = StateSession::open(
            session.stores(),
            &Opening {
                cancelled: &|| stop.is_requested(),
                ..opening_of_operation(&location, &arguments.files, verb.lock_operation(), locking.whole())
            },
        )?;
        let mut state = states.state.clone().unwrap_or_default();
        crate::state_addresses::translate(session, &project.config, &mut state);
        // From here on, a forced end of the process must release the lock.
        last_resort.protect(states.store());
        let variables = match known {
            Some(values) => Variables {
                values,
                ..Variables::default()
            },
            None => {
                let (variables, warnings) =
                    workdir::variables_of_operation(session, &mut project, verb, arguments.input)?;
                before.extend(warnings);
                variables
            }
        };
        let plugins = session.plugins()?;
        let warnings = plugins.resolve(&project.config, &state).within(&project.sources)?;
        let lanes = lanes::for_operation(&arguments.parallelism, &project.config, &state)?;
        let (development, warnings): (Vec<_>, Vec<_>) = warnings
            .into_iter()
            .partition(|w| w.summary == packages::selection::DEVELOPMENT);
        before.extend(warnings);
        // The warnings are shown immediately, as in Terraform: a user who tests a development build should see that it is used, even if it
        // then fails.
        session.show_now(&Diagnostics(development), &project.sources);
        Ok(Operation {
            warnings: Mutex::new(before),
            session,
            runtime,
            stop,
            states,
            last_resort,
            state,
            project,
            variables,
            backend: location.backend,
            workspace: location.workspace,
            operation: verb.lock_operation(),
            parts: PartLocks::new(locking),
            plugins,
            parallelism: arguments.parallelism.number,
            lanes,
        })
    }

    /// Prepares applying a saved plan: its configuration and values, and the state that it was made for.
    pub fn saved(
        session: &'s Session,
        arguments: &OperationArguments,
        path: &Path,
    ) -> Result<(Operation<'s>, SavedPlan), Failure> {
        warn_of_state_flag(session, &arguments.files);
        let saved = planfile::read(path, VERSION, session.ui.program, &session.plan_codec()?)?;
        let loaded = workdir::load_planned(session, &saved);
        let mut project = Project {
            config: loaded.config,
            sources: loaded.sources,
        };
        if loaded.diagnostics.has_errors() {
            return Err(Failure::within(loaded.diagnostics, &project.sources));
        }
        let variables = planned_variables::read(session, &mut project, &saved.plan)?;
        let selected = workspace::selected(&session.stores())?;
        if saved.workspace != selected {
            return Err(Failure::new(
                "Saved plan is for another workspace",
                format!(
                    "The plan describes changes to the workspace \"{0}\", and the workspace \"{selected}\" is selected. To apply \
                     this plan, select the other one first: \"{1} workspace select {0}\".",
                    saved.workspace, session.ui.program.command
                ),
            ));
        }
        // Packages other than the planned ones could behave differently.
        lock_file::check_planned(saved.lock_file.as_deref(), Path::new("."))?;
        // A plan is applied to the backend that it was made for, even if the working directory has another one by now.
        let location = match &saved.backend {
            None => None,
            Some(backend) => Some(StateLocation {
                backend: backend::of_saved(&session.stores(), backend)?,
                workspace: saved.workspace.clone(),
            }),
        };
        let operation = Operation::at_location(session, arguments, project, Verb::Apply, Some(variables), location)?;
        // Where states are locked as a whole, a change of any object makes the plan stale.
        check_saved(&saved.plan.previous_state, &operation.state, operation.parts.are_used())?;
        Ok((operation, saved))
    }

    /// Returns the schemas of the plugins for the objects of the configuration and the state. Without objects, no plugin is
    /// started.
    pub(crate) fn schemas(&self) -> Result<Schemas, Diagnostics> {
        let config = &self.project.config;
        let declared = config.nodes().iter().any(|n| !n.module.resources.is_empty());
        if !declared && self.state.resources.is_empty() {
            return Ok(Schemas::default());
        }
        let problems = self.runtime.block_on(self.plugins.ask_all(Some(config), &self.state));
        problems.into_result(self.plugins.schemas())
    }

    /// Starts the providers whose functions are called, unless they run already.
    pub(crate) fn start_functions(
        &self,
        functions: &Functions<'_>,
        providers: BTreeSet<addrs::Provider>,
    ) -> Diagnostics {
        self.runtime.block_on(functions.start(providers))
    }

    /// Returns the functions of the providers, of which none is started yet.
    pub(crate) fn functions(&self) -> Functions<'_> {
        Functions::new(&self.plugins)
    }

    /// Ends the providers whose functions were called.
    pub(crate) fn end_functions(&self, functions: &Functions<'_>) {
        self.runtime.block_on(functions.close());
    }

    /// Makes a plan without showing progress.
    pub(crate) fn plan_silently(&self, options: &PlanOptions) -> Planning {
        let environment = workdir::environment(self.session, &self.workspace);
        let inputs = self.inputs(&NoEvents, &self.state, &environment);
        self.runtime.block_on(engine::planner::plan(inputs, options))
    }

    /// Makes a plan, and shows progress.
    pub fn plan(&self, options: &PlanOptions) -> Planning {
        let title = match options.mode {
            _ if options.query.is_some() => "Querying",
            Mode::RefreshOnly if options.invoke.is_none() => "Refreshing",
            _ => "Planning",
        };
        // With targets, the number of instances in the state says nothing about the number of operations.
        let limited = !options.targets.is_empty() || !options.excludes.is_empty() || options.invoke.is_some();
        let instances = self.state.instances().count();
        let work = Work {
            expected: Some(instances).filter(|n| *n > 0 && !limited && options.query.is_none()),
            ..Work::named(title)
        };
        self.plan_with(options, &reporting::reporter(self.session, work))
    }

    /// Adds warnings that are shown with those of the operation, after the plan.
    fn warn_later(&self, warnings: Diagnostics) {
        let mut all = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        all.0.splice(0..0, warnings);
    }

    /// Takes the warnings from before the operation.
    pub(crate) fn take_warnings(&self) -> Diagnostics {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn plan_with(&self, options: &PlanOptions, reporter: &Reporter) -> Planning {
        let mut options = options.clone();
        options.strict_addresses |= self.session.env.strict_addresses();
        let last_reads = LastReadsFile::of_plan(self.session.env.data_dir(), &self.state.lineage, &mut options);
        let environment = workdir::environment(self.session, &self.workspace);
        let mut result = self.runtime.block_on(async {
            let inputs = self.inputs(reporter, &self.state, &environment);
            tokio::select! {
                result = engine::planner::plan(inputs, &options) => result,
                never = reporter.tick() => match never {},
                // Cancellation drops the plan; nothing was changed yet.
                () = self.stop.cancelled() => Planning {
                    diagnostics: Diagnostic::error(
                        "Operation canceled",
                        "Planning was canceled by a second interrupt. Nothing was changed.",
                    )
                    .into(),
                    ..Planning::default()
                },
            }
        });
        reporter.end();
        result.diagnostics.0.splice(0..0, self.take_warnings());
        let unrecorded = result.plan.as_ref().and_then(|plan| last_reads?.add_plan(plan));
        result.diagnostics.extend(unrecorded);
        for change in result.plan.iter().flat_map(|plan| &plan.changes) {
            tracing::trace!(address = %change.address, action = ?change.action, reason = ?change.reason, "decided");
        }
        result
    }

    /// Returns true if the operation is about parts of its state.
    pub fn uses_parts(&self) -> bool {
        self.parts.are_used()
    }

    /// Locks the parts of the state that a plan is about: see [`PartLocks::claim`].
    pub fn claim(&mut self, plan: &Plan) -> Result<bool, Diagnostics> {
        self.claim_parts(plan, |config, schemas| engine::claims::of_plan(config, schemas, plan))
    }

    fn claim_parts(
        &mut self,
        plan: &Plan,
        claims: impl FnOnce(&Config, &Schemas) -> Result<Claims, Diagnostics>,
    ) -> Result<bool, Diagnostics> {
        if !self.parts.are_used() {
            return Ok(true);
        }
        let schemas = self.schemas()?;
        let claims = claims(&self.project.config, &schemas)?;
        let stop = &self.stop;
        let subject = Subject {
            session: self.session,
            states: &self.states,
            config: &self.project.config,
            cancelled: &|| stop.is_requested(),
        };
        self.parts.claim(&subject, &mut self.state, plan, claims)
    }

    fn location(&self) -> StateLocation {
        StateLocation {
            backend: self.backend.clone(),
            workspace: self.workspace.clone(),
        }
    }

    /// Returns the error for a stale plan: see [`PartLocks::stale`].
    pub fn stale(&self, summary: &str) -> Diagnostic {
        self.parts.stale(summary, &self.location())
    }

    /// Returns the warning for a stale plan that is made again: see [`PartLocks::planned_again`].
    pub fn planned_again(&self) -> Diagnostic {
        self.parts.planned_again(&self.location())
    }

    /// Applies a plan that was [claimed](Operation::claim), reports progress, and saves the results: in intervals, and at the end.
    pub fn apply(&self, plan: &Plan) -> Applied {
        match &self.parts.claimed {
            Some(claimed) => self.carry_out(&claimed.plan, &claimed.state, Some(claimed)),
            None => self.carry_out(plan, &self.state, None),
        }
    }

    /// Applies a plan to a state that is locked, or to the parts of it that are claimed.
    fn carry_out(&self, plan: &Plan, state: &State, claimed: Option<&Claimed>) -> Applied {
        let reporter = reporting::reporter(
            self.session,
            Work {
                counted: true,
                ..Work::named(match plan.mode {
                    Mode::Destroy => "Destroying",
                    _ => "Applying",
                })
            },
        );
        let environment = workdir::environment(self.session, &self.workspace);
        let (interval, warnings) = match &self.backend {
            StateBackend::Local(_) => self.session.env.persist_interval(),
            StateBackend::Store(_) => self.session.env.persist_interval_of_stores(),
        };
        let mut problems = warnings.map(Diagnostics::from).unwrap_or_default();
        let last_reads = LastReadsFile::open(self.session.env.data_dir(), &self.state.lineage, false);
        // The journal is opened first: there must be a record of each object that is created.
        let (journal, warnings) = journal::begin(state, plan, self.states.store(), self.operation);
        problems.extend(warnings);
        let store = self.states.store().clone();
        let persister = match Persister::start(plan.prior_state.clone(), store, journal, interval) {
            Ok(persister) => persister,
            Err(e) => {
                problems.push(Diagnostic::error(
                    "Cannot start",
                    format!("The thread for saving results cannot be started: {e}. Nothing was changed."),
                ));
                return Applied {
                    state: state.clone(),
                    done: Done::default(),
                    completion: Completion::default(),
                    problems,
                };
            }
        };
        let results = persister.results();
        self.last_resort.follow(Some(results.clone()));
        let work = || {
            self.runtime.block_on(async {
                let inputs = self.inputs(&reporter, state, &environment);
                tokio::select! {
                    result = engine::apply::apply(inputs, plan, &results) => result,
                    never = reporter.tick() => match never {},
                }
            })
        };
        // Objects may exist that only the results know, so a panic must not end the process before they are saved.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        reporter.end();
        self.last_resort.follow(None);
        match result {
            Ok(mut result) => {
                if let Some(claimed) = claimed {
                    claimed.keep_unclaimed_outputs(&mut result.state);
                }
                persister.discard();
                problems.extend(self.take_warnings());
                problems.extend(result.diagnostics);
                if plan.is_partial() && plan.invoke.is_none() {
                    problems.push(views::plan::incomplete_warning(self.session.ui.program.command));
                }
                let unsaved = self.save(&result.state);
                problems.extend(last_reads.and_then(|file| file.add_applied(plan, &result.state)));
                // The journal is removed only when the state has everything.
                if !unsaved.has_errors() {
                    problems.extend(journal::end(self.states.store()));
                }
                problems.extend(unsaved);
                Applied {
                    state: result.state,
                    done: reporter.done(),
                    completion: result.completion,
                    problems,
                }
            }
            Err(panic) => {
                let mut problems = self.save(persister.end().as_ref().unwrap_or(&plan.prior_state));
                // The journal stays, so that the next command reports the operations that were running.
                problems.extend(self.states.unlock().err().unwrap_or_default());
                self.session.show_now(&problems, &SourceMap::default());
                std::panic::resume_unwind(panic)
            }
        }
    }

    /// Writes the state, or a rescue file if that fails: see [`StateSession::write_or_rescue`].
    pub fn save(&self, state: &State) -> Diagnostics {
        self.states.write_or_rescue(state)
    }

    /// Ends the journal of an operation whose results are saved.
    pub fn end_journal(&self) -> Diagnostics {
        journal::end(self.states.store())
    }

    pub fn save_plan(&self, path: &Path, plan: Plan) -> Result<(), Diagnostics> {
        let backend = match &self.backend {
            StateBackend::Local(_) => None,
            StateBackend::Store(store) => Some(store.saved()?),
        };
        let schemas = planfile::schemas_of(&self.plugins.schemas(), &self.project.config, &plan);
        let saved = SavedPlan {
            backend,
            // The schemas are saved, too, so that the plan can be shown where its plugins are not installed.
            schemas: Some(schemas),
            plan,
            snapshot: self.project.config.snapshot(),
            lock_file: lock_file::contents(Path::new("."))?,
            workspace: self.workspace.clone(),
        };
        let codec = self.session.plan_codec()?;
        self.session.warn_of_plain_plan(&codec, path);
        planfile::write(path, &saved, VERSION, &codec).map_err(Diagnostics::from)
    }

    /// Returns true if an interrupt was received.
    pub fn interrupted(&self) -> bool {
        self.stop.is_requested()
    }

    /// Releases the lock. If that fails, the command fails, whatever its result is.
    pub fn finish(self, result: Result<Outcome, Failure>) -> Result<Outcome, Failure> {
        let problems = self.end();
        match result {
            Ok(outcome) => Ok(outcome.and_unplaced(problems)),
            Err(failure) => Err(failure.and(problems.into())),
        }
    }

    /// Releases the lock.
    pub fn end(self) -> Diagnostics {
        let result = self.states.unlock();
        if self.stop.is_cancelled() {
            // The runtime is shut down in the background, so that a call that hangs is not waited for.
            self.runtime.shutdown_background();
        }
        result.err().unwrap_or_default()
    }

    fn inputs<'a>(
        &'a self,
        events: &'a dyn EventSink,
        state: &'a State,
        environment: &'a engine::inputs::EvaluationEnvironment,
    ) -> Inputs<'a> {
        Inputs {
            config: &self.project.config,
            state,
            variables: &self.variables,
            environment,
            providers: &self.plugins,
            events,
            stop: &self.stop,
            parallelism: self.parallelism,
            lanes: self.lanes.as_ref(),
        }
    }
}
