//! One test file: the states of its runs, and their order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use addrs::{AbsResourceInstance, LocalProviderConfig};
use config::{Config, ProviderConfig};
use cty::Value;
use engine::stop::Stop;
use provider::Provider;
use state::State;
use syntax::{Diagnostic, Diagnostics, SourceMap};

use crate::context::{Recorder, Suite};
use crate::events::{Event, Left, Performed, Status, objects};
use crate::mock::Source;
use crate::order::{self, Needs};
use crate::providers::Pool;
use crate::suite_file::SuiteFile;
use crate::walk::walk;
use crate::{expected, run_providers};

/// A state, and the run that changed it last.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub state: State,
    pub run: usize,
}

/// Results of the runs so far, and the values that runs share.
#[derive(Default)]
struct Memory {
    statuses: Vec<Status>,
    outputs: HashMap<Arc<str>, Value>,
    /// Variables of the file; `None` for one that is being evaluated.
    variables: HashMap<Arc<str>, Option<Result<Value, ()>>>,
    mocks: BTreeMap<LocalProviderConfig, Arc<Source>>,
    /// Modules with the provider configurations of the file, by module, and by run if that chooses its own.
    modules: HashMap<(usize, Option<usize>), Arc<Config>>,
    states: BTreeMap<Arc<str>, Kept>,
    diagnostics: Diagnostics,
    sources: SourceMap,
    /// Records of the changes to the objects of a state; `None` where a record could not be created.
    recorders: BTreeMap<Arc<str>, Option<Arc<dyn Recorder>>>,
    /// Objects that runs were about to create when a second interrupt ended them.
    planned: Vec<AbsResourceInstance>,
}

type Configured = BTreeMap<(addrs::Provider, LocalProviderConfig), Result<Arc<dyn Provider>, ()>>;

/// A file that is being run.
pub struct FileRun<'s> {
    pub(crate) suite: Suite<'s>,
    pub(crate) of: &'s SuiteFile,
    pub(crate) pool: &'s Pool<'s>,
    /// Token that stops operations. The first interrupt does not trigger it: the current runs are completed, and no
    /// other run begins.
    pub(crate) stop: Stop,
    memory: Mutex<Memory>,
    configured: tokio::sync::Mutex<Configured>,
    /// Runs that each run waits for.
    pub(crate) before: OnceLock<Vec<BTreeSet<usize>>>,
}

#[derive(Debug)]
pub struct FileResult {
    pub status: Status,
    /// Statuses of the file's runs.
    pub runs: Vec<Status>,
}

impl<'s> FileRun<'s> {
    #[must_use]
    pub fn new(suite: Suite<'s>, of: &'s SuiteFile, pool: &'s Pool<'s>) -> FileRun<'s> {
        FileRun {
            suite,
            of,
            pool,
            stop: Stop::new(),
            memory: Mutex::new(Memory {
                statuses: vec![Status::Pending; of.file.runs.len()],
                ..Memory::default()
            }),
            configured: tokio::sync::Mutex::default(),
            before: OnceLock::new(),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the file, destroys its objects at the end, and returns the result.
    pub async fn perform(self) -> FileResult {
        self.suite.view.event(&Event::FileBegins(self.of));
        // Only the second interrupt is passed on to operations. After the first one, the current runs are completed, as
        // in Terraform.
        let (whole, own) = (self.suite.stop.clone(), self.stop.clone());
        let link = tokio::spawn(async move {
            whole.cancelled().await;
            own.cancel();
        });
        if self.check() && self.perform_runs().await {
            self.evaluate_the_rest();
        }
        let mut status = self.status_of_runs();
        // After a second interrupt, nothing more is created or destroyed.
        if !self.suite.stop.is_cancelled() && !self.of.file.runs.is_empty() {
            self.suite.view.event(&Event::TeardownBegins(self.of));
            if self.teardown().await {
                status = Status::Error;
            }
        }
        link.abort();
        if !self.suite.stop.is_cancelled() {
            self.forget_empty_records();
        }
        if self.suite.stop.is_cancelled() {
            self.tell_interrupted();
        }
        // The providers are closed last, because the destruction needs the configured ones, too.
        self.close().await;
        let (diagnostics, runs) = {
            let mut memory = self.memory();
            (std::mem::take(&mut memory.diagnostics), memory.statuses.clone())
        };
        if diagnostics.has_errors() {
            status = Status::Error;
        }
        if !self.suite.stop.is_cancelled() {
            self.suite.view.event(&Event::FileEnds(self.of, status, &diagnostics));
        }
        FileResult { status, runs }
    }

    fn status_of_runs(&self) -> Status {
        let memory = self.memory();
        let runs = memory.statuses.iter().copied().max();
        // A file of which no run was carried out counts as skipped, not as pending.
        runs.map_or(Status::Pass, |worst| worst.max(Status::Skip))
    }

    /// Checks what can be checked before the runs, and reports problems. Returns false if no run may begin.
    fn check(&self) -> bool {
        let mut fine = true;
        for problem in run_providers::check_overrides_of_file(&self.of.file, &self.of.modules) {
            self.report(problem);
        }
        let of_runs = self.suite.files.iter().flat_map(|file| &file.modules);
        let modules: Vec<&Config> = std::iter::once(self.suite.root)
            .chain(of_runs.map(|module| &**module))
            .collect();
        for problem in run_providers::check_known_providers(&self.of.file, &modules) {
            fine = false;
            self.report(problem);
        }
        for (i, run) in self.of.file.runs.iter().enumerate() {
            let mut problems = expected::check(run);
            problems.extend(run_providers::check_providers(&self.of.file, run));
            if problems.has_errors() {
                fine = false;
                self.end(
                    i,
                    &Performed {
                        status: Status::Error,
                        diagnostics: problems,
                        ..Performed::default()
                    },
                );
            }
        }
        fine
    }

    /// Carries out the runs. Returns false if they depend on each other in a cycle, so that none can begin.
    async fn perform_runs(&self) -> bool {
        let runs = self.of.file.runs.iter().zip(&self.of.modules);
        let needs: Vec<Needs> = runs
            .map(|(run, module)| order::needs(&self.of.file, run, module))
            .collect();
        let before = match order::order(&self.of.file, &needs) {
            Ok(before) => before,
            Err(cycle) => {
                self.report(cycle);
                return false;
            }
        };
        let before = self.before.get_or_init(|| before);
        walk(before, self.suite.run_parallelism, async |i| {
            self.perform_run(i, &before[i], &needs[i]).await;
        })
        .await;
        true
    }

    async fn perform_run(&self, index: usize, before: &BTreeSet<usize>, needs: &Needs) {
        if self.suite.stop.is_cancelled() {
            return;
        }
        let runnable = {
            let memory = self.memory();
            before
                .iter()
                // A failed run still has outputs and a state. After an error they may be incomplete, so its
                // dependents are skipped.
                .all(|i| matches!(memory.statuses[*i], Status::Pass | Status::Fail))
        };
        let has_variables = runnable && needs.variables.iter().all(|name| self.file_variable(name).is_ok());
        let done = if !has_variables || self.suite.stop.is_requested() {
            Performed {
                status: Status::Skip,
                ..Performed::default()
            }
        } else {
            self.execute(index).await
        };
        self.end(index, &done);
    }

    /// Records the end of a run.
    fn end(&self, index: usize, done: &Performed) {
        self.memory().statuses[index] = done.status;
        self.suite.view.event(&Event::RunEnds(self.of, index, done));
    }

    /// Evaluates the variables that no run has used, because their errors are reported, too.
    fn evaluate_the_rest(&self) {
        if self.suite.stop.is_requested() {
            return;
        }
        let file = &self.of.file;
        for name in file.variables.keys().chain(file.definitions.keys()) {
            // A variable that refers to a run which was not carried out cannot be evaluated.
            let mut named = order::Named::default();
            file.variables.get(name).into_iter().for_each(|expr| named.add(expr));
            let done = |run: &Arc<str>| !self.has_run(run) || self.outputs_of(run).is_some();
            if !named.runs.keys().all(done) {
                continue;
            }

            // `file_variable` has reported the error.
            let _: Result<Value, ()> = self.file_variable(name);
        }
    }

    async fn close(&self) {
        let configured = std::mem::take(&mut *self.configured.lock().await);
        // A provider that does not end must not prevent a second interrupt from ending the program.
        let close = futures::future::join_all(configured.values().flatten().map(|p| p.close()));
        tokio::select! {
            _ = close => {}
            () = self.suite.stop.cancelled() => {}
        }
    }

    /// Saves the states of the file after a second interrupt, and reports their objects.
    fn tell_interrupted(&self) {
        let planned = std::mem::take(&mut self.memory().planned);
        let mut left = Vec::new();
        for (key, kept) in self.states() {
            if objects(&kept.state).is_empty() {
                continue;
            }
            let path = self
                .suite
                .leftovers
                .map(|l| l.keep(&self.of.file.name, &key, &kept.state));
            let (path, diagnostics) = match path {
                Some(Ok(path)) => {
                    self.forget_record(&key);
                    (Some(path), Diagnostics::new())
                }
                Some(Err(problems)) => (None, problems),
                None => (None, Diagnostics::new()),
            };
            left.push(Left {
                key,
                state: kept.state,
                diagnostics,
                kept: path,
            });
        }
        self.suite.view.event(&Event::Interrupted(self.of, &left, &planned));
    }

    // ---- results so far -----------------------------------------------------------------------------------------

    /// Reports a problem of the file.
    pub(crate) fn report(&self, problem: Diagnostic) {
        self.memory().diagnostics.push(problem);
    }

    /// Reports problems of the file that several runs may find, only once.
    pub(crate) fn report_once(&self, problems: Diagnostics) {
        let known = &mut self.memory().diagnostics;
        for problem in problems {
            if !known.iter().any(|k| *k == problem) {
                known.push(problem);
            }
        }
    }

    /// Adds the source texts of values from outside the test files.
    pub(crate) fn add_sources(&self, sources: SourceMap) {
        self.memory().sources.extend(sources);
    }

    pub(crate) fn has_run(&self, name: &str) -> bool {
        self.of.file.runs.iter().any(|run| &*run.name == name)
    }

    /// Returns the outputs of a run, if it was carried out.
    pub(crate) fn outputs_of(&self, name: &str) -> Option<Value> {
        self.memory().outputs.get(name).cloned()
    }

    pub(crate) fn set_outputs(&self, name: &Arc<str>, outputs: Value) {
        self.memory().outputs.insert(name.clone(), outputs);
    }

    /// Returns the value of a variable, `Err` if its evaluation failed; `None` if it was not evaluated yet.
    pub(crate) fn known_variable(&self, name: &str) -> Option<Result<Value, ()>> {
        self.memory().variables.get(name).cloned().flatten()
    }

    /// Marks a variable as being evaluated; returns false if it was marked already.
    pub(crate) fn begin_variable(&self, name: &Arc<str>) -> bool {
        let mut memory = self.memory();
        if memory.variables.contains_key(name) {
            return false;
        }
        memory.variables.insert(name.clone(), None);
        true
    }

    pub(crate) fn end_variable(&self, name: &Arc<str>, value: Result<Value, ()>) {
        self.memory().variables.insert(name.clone(), Some(value));
    }

    pub(crate) fn known_mock(&self, address: &LocalProviderConfig) -> Option<Arc<Source>> {
        self.memory().mocks.get(address).cloned()
    }

    pub(crate) fn remember_mock(&self, address: &LocalProviderConfig, source: Arc<Source>) {
        self.memory().mocks.insert(address.clone(), source);
    }

    /// Returns a module with these provider blocks. Runs of one module share the result, unless they set their
    /// providers.
    pub(crate) fn with_blocks(
        &self,
        index: usize,
        module: &Arc<Config>,
        blocks: Vec<ProviderConfig>,
    ) -> Result<Arc<Config>, Diagnostics> {
        // Sharing saves memory, and the time to check the module, which can be large.
        let own = !self.of.file.runs[index].providers.is_empty();
        let key = (Arc::as_ptr(module) as usize, own.then_some(index));
        if let Some(known) = self.memory().modules.get(&key) {
            return Ok(known.clone());
        }
        let (config, problems) = module.with_root_providers(blocks);
        let config = problems.into_result(Arc::new(config))?;
        self.memory().modules.insert(key, config.clone());
        Ok(config)
    }

    /// Records the objects that a run was about to create when a second interrupt ended it.
    pub(crate) fn set_planned(&self, planned: impl IntoIterator<Item = AbsResourceInstance>) {
        self.memory().planned.extend(planned);
    }

    /// Returns the record of a state; `None` without a storage for records. If the record cannot be created, the result is `None`, too,
    /// with a warning.
    pub(crate) fn recorder(&self, key: &Arc<str>) -> Option<Arc<dyn Recorder>> {
        let leftovers = self.suite.leftovers?;
        if let Some(known) = self.memory().recorders.get(key) {
            return known.clone();
        }
        let recorder = match leftovers.record(&self.of.file.name, key) {
            Ok(recorder) => Some(recorder),
            Err(problem) => {
                self.report_once(problem.into());
                None
            }
        };
        // Another run may have created a recorder at the same time; the first one is kept.
        self.memory().recorders.entry(key.clone()).or_insert(recorder).clone()
    }

    /// Removes the record of a state whose objects are destroyed or saved elsewhere.
    pub(crate) fn forget_record(&self, key: &str) {
        let recorder = self.memory().recorders.remove(key);
        if let Some(recorder) = recorder.flatten() {
            recorder.forget();
        }
    }

    /// Removes the records of all states without objects.
    fn forget_empty_records(&self) {
        let keys: Vec<Arc<str>> = self.memory().recorders.keys().cloned().collect();
        for key in keys {
            if objects(&self.state(&key)).is_empty() {
                self.forget_record(&key);
            }
        }
    }

    /// Returns the state with this key, which is empty at first.
    pub(crate) fn state(&self, key: &str) -> State {
        let memory = self.memory();
        memory
            .states
            .get(key)
            .map(|kept| kept.state.clone())
            .unwrap_or_default()
    }

    /// Stores a state that a run has changed.
    pub(crate) fn set_state(&self, key: Arc<str>, state: State, run: usize) {
        self.memory().states.insert(key, Kept { state, run });
    }

    /// Returns all states with their keys.
    pub(crate) fn states(&self) -> Vec<(Arc<str>, Kept)> {
        let memory = self.memory();
        memory
            .states
            .iter()
            .map(|(key, kept)| (key.clone(), kept.clone()))
            .collect()
    }

    /// Returns the provider that a block of the file configures, started once for all runs. Its problems are reported
    /// for the file.
    pub(crate) async fn configured(
        &self,
        provider: &addrs::Provider,
        block: &ProviderConfig,
    ) -> Result<Arc<dyn Provider>, ()> {
        // The map is locked while the provider starts, so that runs that need it at the same time do not start
        // it twice.
        let mut all = self.configured.lock().await;
        let key = (provider.clone(), block.address.clone());
        if let Some(known) = all.get(&key) {
            return known.clone();
        }
        let started = self
            .pool
            .configured(provider, |schema| self.provider_value(block, schema))
            .await;
        let result = match started {
            Ok((running, problems)) => {
                let failed = problems.iter().any(|p| p.diagnostic.is_error());
                for problem in problems {
                    let mut diagnostic = problem.diagnostic;
                    if diagnostic.subject.is_none() {
                        diagnostic = diagnostic.at(&block.range);
                    }
                    self.report(diagnostic);
                }
                if failed { Err(()) } else { Ok(running) }
            }
            Err(problems) => {
                problems.into_iter().for_each(|problem| self.report(problem));
                Err(())
            }
        };
        all.insert(key, result.clone());
        result
    }
}
