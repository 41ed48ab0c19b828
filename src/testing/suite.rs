//! A suite: its files, one after the other.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use config::values::SetVariables;
use config::{Config, TestFile};
use engine::inputs::EvaluationEnvironment;
use engine::results::ResultSink;
use engine::stop::Stop;
use provider::ProviderSource;
use syntax::{Diagnostic, Diagnostics, SourceMap};

use crate::coverage::Coverage;
use crate::events::{Event, Status, View};
use crate::file::FileRun;
use crate::providers::Pool;

/// A test file with the modules that its runs are about.
#[derive(Clone, Debug)]
pub struct SuiteFile {
    /// The file.
    pub file: Arc<TestFile>,
    /// The module of each run.
    pub modules: Vec<Arc<Config>>,
}

impl SuiteFile {
    /// The name of a run.
    #[must_use]
    pub fn run_name(&self, run: usize) -> &str {
        self.file.runs.get(run).map_or("", |run| &run.name)
    }
}

/// Everything that a suite is run with.
#[derive(Clone, Copy)]
pub struct Suite<'s> {
    /// The files, in order.
    pub files: &'s [SuiteFile],
    /// The module beside which the files stand.
    pub root: &'s Config,
    /// Values of variables from outside.
    pub outside: &'s SetVariables,
    /// The same for files in the directory for tests, which has variable files of its own.
    pub outside_in_tests: &'s SetVariables,
    /// Where providers come from.
    pub providers: &'s dyn ProviderSource,
    /// How expressions are evaluated.
    pub environment: &'s EvaluationEnvironment,
    /// Tells the time, for reports.
    pub clock: fn() -> SystemTime,
    /// Who watches.
    pub view: &'s dyn View,
    /// Stops the suite.
    pub stop: &'s Stop,
    /// How many operations of a plan or apply may go on at a time.
    pub parallelism: usize,
    /// How many runs of a file may go on at a time.
    pub run_parallelism: usize,
    /// Whether expected failures are reported, too.
    pub verbose: bool,
    /// Notes which objects runs have had. What they have evaluated is noted by the witness of the environment.
    pub coverage: Option<&'s Coverage>,
    /// Where what could not be destroyed is kept.
    pub leftovers: Option<&'s dyn Leftovers>,
}

/// Keeps the states of objects that could not be destroyed, and records what may become one if this program is killed.
pub trait Leftovers: Send + Sync {
    /// Begins to record what is done to the objects of a state.
    ///
    /// # Errors
    /// It cannot be recorded.
    fn record(&self, file: &str, key: &str) -> Result<Arc<dyn Recorder>, Diagnostic>;

    /// Keeps a state, and returns where.
    ///
    /// # Errors
    /// It cannot be kept.
    fn keep(&self, file: &str, key: &str, state: &state::State) -> Result<PathBuf, Diagnostics>;
}

/// Records what is done to the objects of one state of a file.
pub trait Recorder: ResultSink {
    /// Forgets the record: the objects are gone, or their state is kept elsewhere.
    fn forget(&self);
}

/// How many runs had which status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All is as it should be.
    pub passed: usize,
    /// An assertion does not hold.
    pub failed: usize,
    /// Something else went wrong.
    pub errored: usize,
    /// Left out.
    pub skipped: usize,
}

impl Counts {
    /// Counts a run.
    pub fn add(&mut self, status: Status) {
        match status {
            Status::Pending => {}
            Status::Skip => self.skipped += 1,
            Status::Pass => self.passed += 1,
            Status::Fail => self.failed += 1,
            Status::Error => self.errored += 1,
        }
    }
}

/// What a suite has come to.
#[derive(Debug, Default)]
pub struct SuiteResult {
    /// The status of the whole.
    pub status: Status,
    /// The runs.
    pub counts: Counts,
    /// The files that were run, and how they went.
    pub files: Vec<(Arc<str>, Status)>,
    /// Texts that came up on the way, such as values of variables.
    pub sources: SourceMap,
}

/// Runs a suite.
pub async fn run(suite: Suite<'_>) -> SuiteResult {
    let pool = Pool::new(suite.providers);
    suite.view.event(&Event::SuiteBegins(suite.files));
    let mut out = SuiteResult {
        status: Status::Pass,
        ..SuiteResult::default()
    };
    for file in suite.files {
        if suite.stop.is_cancelled() {
            break;
        }
        let done = FileRun::new(suite, file, &pool).perform().await;
        out.status = out.status.max(done.status);
        out.files.push((file.file.name.clone(), done.status));
        for status in done.runs {
            out.counts.add(status);
        }
    }
    if suite.stop.is_requested() {
        // Runs were left out, and nobody may take that for a success.
        out.status = out.status.max(Status::Error);
    }
    tokio::select! {
        () = pool.close() => {}
        () = suite.stop.cancelled() => {}
    }
    out
}
