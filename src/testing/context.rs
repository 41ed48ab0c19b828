//! Everything that a suite is run with.

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
