//! A run: plan, apply, comparison with the expected failures, assertions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config::TestRun;
use engine::events::NoEvents;
use engine::functions::Functions;
use engine::inputs::{Inputs, PlanOptions};
use engine::plan::{Action, Mode, Plan};
use engine::planner::Planning;
use engine::results::{NoResults, ResultSink};
use state::State;
use syntax::diag::Extra;
use syntax::{Diagnostic, Diagnostics};

use crate::assertions::{After, Evaluated};
use crate::context::Recorder;
use crate::events::{Event, Outcome, Performed, Status};
use crate::file::FileRun;
use crate::setting::Setting;
use crate::substitutes::NoProviders;
use crate::{expected, run_providers};

/// Interval of the events that a run is still going on.
const TICK: Duration = Duration::from_secs(2);

/// Returns the options of a run's plan.
fn plan_options(run: &TestRun) -> PlanOptions {
    PlanOptions {
        mode: if run.options.refresh_only {
            Mode::RefreshOnly
        } else {
            Mode::Normal
        },
        refresh: run.options.refresh,
        targets: run.options.target.clone(),
        force_replace: run.options.replace.clone(),
        ..PlanOptions::default()
    }
}

impl<'s> FileRun<'s> {
    /// Carries out a run, reports its progress, and returns its result.
    pub(crate) async fn execute(&self, index: usize) -> Performed {
        self.suite.view.event(&Event::RunBegins(self.of, index));
        let (began, clock) = ((self.suite.clock)(), Instant::now());
        let work = self.execute_timed(index);
        tokio::pin!(work);
        // The first tick of an interval comes at once, unless its start is set.
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + TICK, TICK);
        let mut done = loop {
            tokio::select! {
                done = &mut work => break done,
                _ = ticks.tick() => {
                    self.suite.view.event(&Event::RunGoesOn(self.of, index, clock.elapsed()));
                }
            }
        };
        done.time = Some((began, clock.elapsed()));
        done
    }

    async fn execute_timed(&self, index: usize) -> Performed {
        let run = &self.of.file.runs[index];
        let mut done = Performed {
            status: Status::Error,
            ..Performed::default()
        };
        done.diagnostics
            .extend(run_providers::check_overrides_of_run(run, &self.of.modules[index]));
        let substituted = tokio::select! {
            substituted = self.substituted(index) => substituted,
            () = self.suite.stop.cancelled() => {
                self.interrupted(None, &mut done);
                return done;
            }
        };
        let (config, providers) = match substituted {
            Ok(substituted) => substituted,
            Err(NoProviders::Wrong(problems)) => {
                done.diagnostics.extend(problems);
                return done;
            }
            Err(NoProviders::OfFile) => {
                done.status = Status::Skip;
                return done;
            }
        };
        for range in &run.options.not_replaceable {
            let problem = Diagnostic::error(
                "Can only target managed resources for forced replacements.",
                "Only an object that is managed can be replaced: name instances of managed resources.",
            );
            done.diagnostics.push(problem.at(range));
        }
        if !run.options.not_replaceable.is_empty() {
            return done;
        }
        let (variables, problems) = self.run_variables(index, &config);
        let setting = Setting {
            run,
            index,
            config,
            providers,
            variables,
        };
        if problems.has_errors() {
            // A mistake in the module is the likely cause, and its report is more useful than an error about missing values.
            let invalid = self.validate(&setting).await;
            done.diagnostics
                .extend(if invalid.has_errors() { invalid } else { problems });
            return done;
        }
        done.diagnostics.extend(problems);
        self.plan_and_apply(&setting, &mut done).await;
        done
    }

    pub(crate) fn inputs<'a>(&'a self, setting: &'a Setting<'_, '_>, state: &'a State) -> Inputs<'a> {
        Inputs {
            config: &setting.config,
            state,
            variables: &setting.variables.declared,
            environment: self.suite.environment,
            providers: &setting.providers,
            events: &NoEvents,
            stop: &self.stop,
            parallelism: self.suite.parallelism,
            lanes: None,
        }
    }

    /// Returns the record of a state; `None` if all objects of the run are mocked, or if there is no record.
    pub(crate) fn recorder_of(&self, setting: &Setting<'_, '_>, key: &Arc<str>) -> Option<Arc<dyn Recorder>> {
        let providers = &setting.providers;
        let exist = !providers.real.is_empty() || !providers.configured.is_empty();
        exist.then(|| self.recorder(key)).flatten()
    }

    async fn validate(&self, setting: &Setting<'_, '_>) -> Diagnostics {
        let state = State::new();
        tokio::select! {
            problems = engine::validate::validate(self.inputs(setting, &state)) => problems,
            () = self.suite.stop.cancelled() => Diagnostics::new(),
        }
    }

    /// Makes a plan. The second interrupt cancels it.
    pub(crate) async fn planned(&self, inputs: Inputs<'_>, options: &PlanOptions) -> Planning {
        tokio::select! {
            planning = engine::planner::plan(inputs, options) => planning,
            () = self.suite.stop.cancelled() => Planning::default(),
        }
    }

    async fn plan_and_apply(&self, setting: &Setting<'_, '_>, done: &mut Performed) {
        let run = setting.run;
        let state = self.state(&run.key());
        let mut planning = self.planned(self.inputs(setting, &state), &plan_options(run)).await;
        self.locate_values(run, &mut planning.diagnostics);
        if self.suite.stop.is_cancelled() {
            return self.interrupted(None, done);
        }
        done.schemas = std::mem::take(&mut planning.schemas);
        if run.apply {
            self.applied(setting, planning, done).await;
            return;
        }
        if let (Some(coverage), Some(plan)) = (self.suite.coverage, &planning.plan) {
            coverage.planned(&setting.config, plan);
        }
        let all = planning.diagnostics.clone();
        let compared = expected::compare(run, planning.diagnostics);
        let failed = compared.rest.has_errors();
        done.diagnostics
            .extend(if self.suite.verbose { all } else { compared.rest });
        if failed {
            return;
        }
        done.status = Status::Pass;
        let empty = State::new();
        let prior = planning.plan.as_ref().map_or(&empty, |plan| &plan.prior_state);
        self.evaluate(
            setting,
            After {
                state: prior,
                plan: planning.plan.as_ref(),
                applied: false,
                ephemerals: &planning.ephemerals,
                timestamp: planning.plan.as_ref().map(|plan| plan.timestamp.as_str()),
            },
            done,
        )
        .await;
        done.outcome = planning.plan.map(|plan| Outcome::Planned(Box::new(plan)));
    }

    /// Sets the position of failed validations of variables to their values in this run or its file.
    fn locate_values(&self, run: &TestRun, problems: &mut Diagnostics) {
        for problem in &mut problems.0 {
            let Some(name) = problem.condition_of.as_deref().and_then(|of| of.strip_prefix("var.")) else {
                continue;
            };
            let given = run.variables.get(name).or_else(|| self.of.file.variables.get(name));
            if let Some(expr) = given {
                problem.subject = Some(expr.range().clone());
            }
        }
    }

    async fn applied(&self, setting: &Setting<'_, '_>, planning: Planning, done: &mut Performed) {
        let run = setting.run;
        let problems = planning.diagnostics;
        let plan = match planning.plan {
            Some(plan) if !problems.has_errors() => plan,
            _ => {
                done.diagnostics.extend(expected::explain(run, problems));
                return;
            }
        };
        // Assertions of check blocks are evaluated again by the apply.
        let kept = problems.into_iter().filter(|p| p.extra != Extra::OfCheck);
        done.diagnostics.extend(kept);
        let recorder = self.recorder_of(setting, &run.key());
        let sink: &dyn ResultSink = recorder.as_deref().map_or(&NoResults, |recorder| recorder);
        let result = engine::apply::apply(self.inputs(setting, &plan.prior_state), &plan, sink).await;
        // The state is recorded before anything else, because the objects must be destroyed at the end, even
        // after an error or an interrupt.
        self.set_state(run.key(), result.state.clone(), setting.index);
        if let Some(coverage) = self.suite.coverage {
            coverage.exist(&setting.config, &result.state);
        }
        if self.suite.stop.is_cancelled() {
            return self.interrupted(Some(&plan), done);
        }
        // An apply opens only the ephemeral resources that its operations need; the others have the values of the plan.
        let mut ephemerals = planning.ephemerals;
        ephemerals.extend(result.ephemerals);
        let mut problems = result.diagnostics;
        if plan.is_partial() {
            problems.push(Diagnostic::warning(
                "Applied changes may be incomplete",
                "The plan was limited by the \"target\" argument of plan_options, so that some of what the configuration asks for \
                 was left out, and output values may not be up to date.",
            ));
        }
        let all = problems.clone();
        let compared = expected::compare(run, problems);
        done.diagnostics
            .extend(if self.suite.verbose { all } else { compared.rest });
        if compared.other_errors {
            return;
        }
        done.status = if compared.missing { Status::Fail } else { Status::Pass };
        self.evaluate(
            setting,
            After {
                state: &result.state,
                plan: Some(&plan),
                applied: true,
                ephemerals: &ephemerals,
                timestamp: Some(&plan.timestamp),
            },
            done,
        )
        .await;
        let mut shown = result.state;
        // Ephemeral outputs are for assertions only: -verbose must not print them.
        let outputs = &setting.config.root.module.outputs;
        shown
            .outputs
            .retain(|name, _| outputs.get(name).is_none_or(|output| !output.ephemeral));
        done.outcome = Some(Outcome::Applied(Box::new(shown)));
    }

    /// Evaluates the assertions of a run, and stores its outputs.
    async fn evaluate(&self, setting: &Setting<'_, '_>, after: After<'_>, done: &mut Performed) {
        let functions = Functions::new(&setting.providers);
        let called = self.called_providers(setting);
        let mut problems = functions.start(called).await;
        let Evaluated {
            status,
            outputs,
            diagnostics,
            failed,
        } = self.evaluated(setting, after, &done.schemas, &functions);
        functions.close().await;
        problems.extend(diagnostics);
        done.status = done.status.max(status);
        done.failed_assertions = failed;
        done.diagnostics.extend(problems);
        // The outputs of a run with an error may be incomplete, so runs that refer to them are skipped.
        if matches!(done.status, Status::Pass | Status::Fail) {
            self.set_outputs(&setting.run.name, outputs);
        }
    }

    /// Returns the providers whose functions are called by a run's assertions, or by the configuration, whose local
    /// values and outputs are evaluated for them.
    fn called_providers(&self, setting: &Setting<'_, '_>) -> BTreeSet<addrs::Provider> {
        let required = &setting.config.root.module.required_providers;
        let rules = setting.run.asserts.iter();
        let by_assertions = rules
            .flat_map(|rule| [&rule.condition, &rule.error_message])
            .flat_map(lang::refs::provider_functions)
            .filter_map(|call| Some(required.get(&call.provider)?.provider.clone()));
        let mut out = engine::requirements::function_providers_needed(&setting.config);
        out.extend(by_assertions);
        out
    }

    /// Reports a run that a second interrupt has ended.
    fn interrupted(&self, plan: Option<&Plan>, done: &mut Performed) {
        let changes = plan.iter().flat_map(|plan| &plan.changes);
        let planned = changes.filter(|change| change.action == Action::Create);
        let planned = planned.map(|change| change.address.clone());
        self.set_planned(planned);
        done.diagnostics.push(Diagnostic::error(
            "Test interrupted",
            "The run was ended by a second interrupt. What it has created, and what earlier runs have, was not destroyed.",
        ));
        done.status = Status::Error;
    }
}
