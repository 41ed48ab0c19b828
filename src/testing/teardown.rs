//! Teardown of a file: destroys the objects of its runs. States are destroyed in the reverse order of their
//! dependencies, and independent ones concurrently.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use config::{Config, Module, ModuleNode};
use engine::inputs::PlanOptions;
use engine::plan::Mode;
use engine::results::{NoResults, ResultSink};
use state::State;
use std::sync::Arc;
use syntax::{Diagnostic, Diagnostics};

use crate::events::{Destroyed, Event, objects};
use crate::file::{FileRun, Kept};
use crate::order;
use crate::setting::Setting;
use crate::substitutes::NoProviders;
use crate::walk::walk;

/// Returns the configuration without `prevent_destroy`.
fn unprotected(config: &Arc<Config>) -> Arc<Config> {
    fn is_protected(node: &ModuleNode) -> bool {
        let mut resources = node.module.resources.values();
        resources.any(|r| r.lifecycle.may_prevent_destroy()) || node.children.values().any(is_protected)
    }
    fn remove(node: &mut ModuleNode) {
        let mut module = Module::clone(&node.module);
        for resource in module.resources.values_mut() {
            resource.lifecycle.prevent_destroy = None;
            resource.lifecycle.prevent_destroy_if = None;
        }
        node.module = Arc::new(module);
        node.children.values_mut().for_each(remove);
    }
    // Most configurations have no `prevent_destroy`, and stay shared.
    if !is_protected(&config.root) {
        return config.clone();
    }
    let mut config = Config::clone(config);
    remove(&mut config.root);
    Arc::new(config)
}

impl FileRun<'_> {
    /// Destroys the objects in the states of the file. Returns true if some remain, or if there was an error.
    pub(crate) async fn teardown(&self) -> bool {
        let mut states = self.states();
        states.retain(|(_, kept)| !objects(&kept.state).is_empty());
        // Independent states start in reverse order of the run that changed them last.
        states.sort_by_key(|(_, kept)| std::cmp::Reverse(kept.run));
        let keys: Vec<Arc<str>> = states.iter().map(|(key, _)| key.clone()).collect();
        let none = Vec::new();
        let runs = self.before.get().unwrap_or(&none);
        let before = order::teardown(&self.of.file, runs, &keys);
        let failed = AtomicBool::new(false);
        walk(&before, self.suite.run_parallelism, async |i| {
            let (key, kept) = &states[i];
            if self.teardown_of(key, kept).await {
                failed.store(true, Ordering::Relaxed);
            }
        })
        .await;
        failed.into_inner()
    }

    /// Destroys the objects in one state. Returns true if some remain, or if there was an error. After a second interrupt, does nothing and
    /// returns false.
    async fn teardown_of(&self, key: &Arc<str>, kept: &Kept) -> bool {
        if self.suite.stop.is_cancelled() {
            return false;
        }
        let begin = Event::TeardownOfRun(self.of, kept.run, Duration::ZERO);
        self.suite.view.event(&begin);
        let (left, diagnostics) = self.destroy(key, kept).await;
        self.set_state(key.clone(), left.clone(), kept.run);
        if self.suite.stop.is_cancelled() {
            // The objects that remain in all states are reported together.
            return true;
        }
        let mut done = Destroyed {
            left,
            diagnostics,
            kept: None,
        };
        let remain = !objects(&done.left).is_empty();
        if remain && let Some(leftovers) = self.suite.leftovers {
            match leftovers.keep(&self.of.file.name, key, &done.left) {
                Ok(path) => {
                    self.forget_record(key);
                    done.kept = Some(path);
                }
                Err(problems) => done.diagnostics.extend(problems),
            }
        }
        let failed = remain || done.diagnostics.has_errors();
        let end = Event::TeardownOfRunEnds(self.of, kept.run, &done);
        self.suite.view.event(&end);
        failed
    }

    async fn destroy(&self, key: &Arc<str>, kept: &Kept) -> (State, Diagnostics) {
        let (config, providers) = match self.substituted(kept.run).await {
            Ok(substituted) => substituted,
            Err(NoProviders::Wrong(problems)) => return (kept.state.clone(), problems),
            Err(NoProviders::OfFile) => {
                let problem = Diagnostic::error(
                    "Provider not available",
                    "A provider of the file could not be configured, so that nothing could be destroyed.",
                );
                return (kept.state.clone(), problem.into());
            }
        };
        let (variables, problems) = self.run_variables(kept.run, &config);
        if problems.has_errors() {
            return (kept.state.clone(), problems);
        }
        let setting = Setting {
            run: &self.of.file.runs[kept.run],
            index: kept.run,
            config: unprotected(&config),
            providers,
            variables,
        };
        // As in Terraform, objects of a test are destroyed at its end even if they are protected.
        let options = PlanOptions {
            mode: Mode::Destroy,
            // The objects were created or read just before.
            refresh: false,
            ..PlanOptions::default()
        };
        let planning = self.planned(self.inputs(&setting, &kept.state), &options).await;
        let plan = match planning.plan {
            Some(plan) if !planning.diagnostics.has_errors() => plan,
            _ => return (kept.state.clone(), errors(planning.diagnostics)),
        };
        let recorder = self.recorder_of(&setting, key);
        let sink: &dyn ResultSink = recorder.as_deref().map_or(&NoResults, |recorder| recorder);
        let result = engine::apply::apply(self.inputs(&setting, &kept.state), &plan, sink).await;
        (result.state, errors(result.diagnostics))
    }
}

/// Removes warnings, which were shown when the objects were created.
fn errors(problems: Diagnostics) -> Diagnostics {
    problems.into_iter().filter(Diagnostic::is_error).collect()
}
