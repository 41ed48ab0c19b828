//! Configuration, services and storage of a test suite.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use config::Config;
use config::values::SetVariables;
use engine::inputs::EvaluationEnvironment;
use engine::results::ResultSink;
use engine::stop::Stop;
use provider::ProviderSource;
use syntax::{Diagnostic, Diagnostics};

use crate::coverage::Coverage;
use crate::events::View;
use crate::suite_file::SuiteFile;

/// Configuration and services of a suite.
#[derive(Clone, Copy)]
pub struct Suite<'s> {
    /// Files, in the order in which they are run.
    pub files: &'s [SuiteFile],
    /// Module in the directory of the test files.
    pub root: &'s Config,
    /// Values of variables from outside the test files.
    pub outside: &'s SetVariables,
    /// Values from outside the test files for the files in the test directory, which has variable files of its own.
    pub outside_in_tests: &'s SetVariables,
    pub providers: &'s dyn ProviderSource,
    /// Evaluation environment of all modules.
    pub environment: &'s EvaluationEnvironment,
    /// Clock for reports.
    pub clock: fn() -> SystemTime,
    pub view: &'s dyn View,
    /// Stop token: the first interrupt ends the suite after the current runs, the second one cancels their operations.
    pub stop: &'s Stop,
    /// Limit of concurrent operations within a plan or apply.
    pub parallelism: usize,
    /// Limit of concurrent runs of a file.
    pub run_parallelism: usize,
    /// True if expected failures are reported, too.
    pub verbose: bool,
    /// Records which resources had objects. The same recorder is set as `witness` of the evaluation environment, where it counts evaluated
    /// expressions.
    pub coverage: Option<&'s Coverage>,
    /// Storage for the states of objects that could not be destroyed.
    pub leftovers: Option<&'s dyn Leftovers>,
}

/// Storage for the states of objects that could not be destroyed, and for records of objects that would be lost if this
/// program were killed.
pub trait Leftovers: Send + Sync {
    /// Starts a record of the changes of a state's objects.
    ///
    /// # Errors
    /// The record cannot be created.
    fn record(&self, file: &str, key: &str) -> Result<Arc<dyn Recorder>, Diagnostic>;

    /// Saves a state, and returns its path.
    ///
    /// # Errors
    /// The state cannot be saved.
    fn keep(&self, file: &str, key: &str, state: &state::State) -> Result<PathBuf, Diagnostics>;
}

/// Records the changes of the objects in one state of a file.
pub trait Recorder: ResultSink {
    /// Removes the record: the objects do not exist any more, or their state is saved elsewhere.
    fn forget(&self);
}
