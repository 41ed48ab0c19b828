//! Events of a suite, which its view receives.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use addrs::AbsResourceInstance;
use engine::plan::Plan;
use provider::Schemas;
use state::{DeposedKey, State};
use syntax::Diagnostics;

use crate::suite_file::SuiteFile;

/// Result of a run or a file. The order is that of precedence: the status of a whole is the greatest of its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// The run or file was not reached.
    #[default]
    Pending,
    Skip,
    Pass,
    /// An assertion does not hold, or an expected failure did not happen.
    Fail,
    Error,
}

impl Status {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Skip => "skip",
            Status::Pass => "pass",
            Status::Fail => "fail",
            Status::Error => "error",
        }
    }
}

/// Result of a run, for -verbose.
#[derive(Debug)]
pub enum Outcome {
    /// Plan of a run that only plans.
    Planned(Box<Plan>),
    /// State after a run that applies.
    Applied(Box<State>),
}

/// Result of a run that has ended.
#[derive(Debug, Default)]
pub struct Performed {
    pub status: Status,
    pub diagnostics: Diagnostics,
    /// Plan or state, if the run has reached it.
    pub outcome: Option<Outcome>,
    pub schemas: Schemas,
    /// Start and duration; `None` if the run never began.
    pub time: Option<(SystemTime, Duration)>,
    /// Number of assertions that do not hold.
    pub failed_assertions: usize,
}

/// Result of destroying the objects of a state.
#[derive(Debug, Default)]
pub struct Destroyed {
    /// Objects that could not be destroyed.
    pub left: State,
    pub diagnostics: Diagnostics,
    /// State file with the remaining objects.
    pub kept: Option<PathBuf>,
}

/// A state that was not destroyed because of a second interrupt.
#[derive(Debug)]
pub struct Left {
    /// Key of the state.
    pub key: Arc<str>,
    pub state: State,
    /// Errors that occurred while the state was saved.
    pub diagnostics: Diagnostics,
    /// File in which the state is saved.
    pub kept: Option<PathBuf>,
}

/// An event. Names of files are those of the suite.
#[derive(Debug)]
pub enum Event<'e> {
    SuiteBegins(&'e [SuiteFile]),
    FileBegins(&'e SuiteFile),
    RunBegins(&'e SuiteFile, usize),
    /// Progress of a run, with the time since its start.
    RunGoesOn(&'e SuiteFile, usize, Duration),
    RunEnds(&'e SuiteFile, usize, &'e Performed),
    /// Start of the destruction of a file's objects.
    TeardownBegins(&'e SuiteFile),
    /// Progress of the destruction of one state's objects, with the run that changed the state last.
    TeardownOfRun(&'e SuiteFile, usize, Duration),
    /// End of the destruction of one state's objects.
    TeardownOfRunEnds(&'e SuiteFile, usize, &'e Destroyed),
    /// End of a file.
    FileEnds(&'e SuiteFile, Status, &'e Diagnostics),
    /// End of a file by a second interrupt, with its states, and the objects that its runs were about to create.
    Interrupted(&'e SuiteFile, &'e [Left], &'e [AbsResourceInstance]),
}

/// Receiver of the events of a suite. It is called from several tasks.
pub trait View: Send + Sync {
    fn event(&self, event: &Event<'_>);
}

/// Lists the managed objects of a state, with the keys of deposed ones.
#[must_use]
pub fn objects(state: &State) -> Vec<(AbsResourceInstance, Option<DeposedKey>)> {
    let mut out = Vec::new();
    for (resource, _, key, instance) in state.instances() {
        if resource.resource.mode != addrs::Mode::Managed {
            continue;
        }
        let address = resource.instance(key.clone());
        if instance.current.is_some() {
            out.push((address.clone(), None));
        }
        out.extend(instance.deposed.keys().map(|key| (address.clone(), Some(key.clone()))));
    }
    out
}
