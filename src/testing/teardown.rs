//! The end of a file: what its runs have created is destroyed, what was made last first.

use std::time::Duration;

use config::{Config, Module, ModuleNode};
use engine::inputs::PlanOptions;
use engine::plan::Mode;
use engine::results::NoResults;
use state::State;
use std::sync::Arc;
use syntax::{Diagnostic, Diagnostics};

use crate::events::{Destroyed, Event, objects};
use crate::file::{FileRun, Kept};
use crate::run::Setting;
use crate::substitutes::NoProviders;

/// The same configuration in which nothing is protected from being destroyed.
fn unprotected(config: &Arc<Config>) -> Arc<Config> {
    fn is_protected(node: &ModuleNode) -> bool {
        let mut resources = node.module.resources.values();
        resources.any(|r| r.lifecycle.prevent_destroy.is_some()) || node.children.values().any(is_protected)
    }
    fn remove(node: &mut ModuleNode) {
        let mut module = Module::clone(&node.module);
        for resource in module.resources.values_mut() {
            resource.lifecycle.prevent_destroy = None;
        }
        node.module = Arc::new(module);
        node.children.values_mut().for_each(remove);
    }
    if !is_protected(&config.root) {
        return config.clone();
    }
    let mut config = Config::clone(config);
    remove(&mut config.root);
    Arc::new(config)
}

impl FileRun<'_> {
    /// Destroys what exists in the states of the file. Returns whether something could not be.
    pub(crate) async fn teardown(&self) -> bool {
        let mut states = self.states();
        // What a run has created may depend on what earlier ones have.
        states.sort_by_key(|(_, kept)| std::cmp::Reverse(kept.run));
        let mut failed = false;
        for (key, kept) in states {
            if objects(&kept.state).is_empty() || self.suite.stop.is_cancelled() {
                continue;
            }
            let begin = Event::TeardownOfRun(self.of, kept.run, Duration::ZERO);
            self.suite.view.event(&begin);
            let (left, diagnostics) = self.destroy(&kept).await;
            let mut done = Destroyed {
                left,
                diagnostics,
                kept: None,
            };
            let remain = !objects(&done.left).is_empty();
            if remain && let Some(leftovers) = self.suite.leftovers {
                match leftovers.keep(&self.of.file.name, &key, &done.left) {
                    Ok(path) => done.kept = Some(path),
                    Err(problems) => done.diagnostics.extend(problems),
                }
            }
            failed |= remain || done.diagnostics.has_errors();
            self.suite
                .view
                .event(&Event::TeardownOfRunEnds(self.of, kept.run, &done));
            self.set_state(key, done.left, kept.run);
        }
        failed
    }

    async fn destroy(&self, kept: &Kept) -> (State, Diagnostics) {
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
        let options = PlanOptions {
            mode: Mode::Destroy,
            refresh: false,
            ..PlanOptions::default()
        };
        let planning = self.planned(self.inputs(&setting, &kept.state), &options).await;
        let plan = match planning.plan {
            Some(plan) if !planning.diagnostics.has_errors() => plan,
            _ => return (kept.state.clone(), errors(planning.diagnostics)),
        };
        let result = engine::apply::apply(self.inputs(&setting, &kept.state), &plan, &NoResults).await;
        (result.state, errors(result.diagnostics))
    }
}

/// Warnings have been shown when the objects were created.
fn errors(problems: Diagnostics) -> Diagnostics {
    problems.into_iter().filter(Diagnostic::is_error).collect()
}
