//! What happens in a suite, for those who watch.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use addrs::AbsResourceInstance;
use engine::plan::Plan;
use provider::Schemas;
use state::{DeposedKey, State};
use syntax::Diagnostics;

use crate::suite_file::SuiteFile;

/// How a run or a file went. The order is that of precedence: the status of a whole is the greatest of its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It was never reached.
    #[default]
    Pending,
    /// It was left out.
    Skip,
    /// All is as it should be.
    Pass,
    /// An assertion does not hold, or an expected failure did not happen.
    Fail,
    /// Something else went wrong.
    Error,
}

impl Status {
    /// The word for it.
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

/// What a run has come to, for those who want to see it.
#[derive(Debug)]
pub enum Outcome {
    /// The plan of a run that only plans.
    Planned(Box<Plan>),
    /// The state after a run that applies.
    Applied(Box<State>),
}

/// A run that is over.
#[derive(Debug, Default)]
pub struct Performed {
    /// How it went.
    pub status: Status,
    /// What was reported.
    pub diagnostics: Diagnostics,
    /// What it has come to, if it got that far.
    pub outcome: Option<Outcome>,
    /// The schemas of its providers.
    pub schemas: Schemas,
    /// When it began, and how long it took; `None` if it never began.
    pub time: Option<(SystemTime, Duration)>,
    /// The number of its assertions that do not hold.
    pub failed_assertions: usize,
}

/// What the end of a run's state has come to.
#[derive(Debug, Default)]
pub struct Destroyed {
    /// What is left.
    pub left: State,
    /// The problems.
    pub diagnostics: Diagnostics,
    /// The state file in which what is left is recorded.
    pub kept: Option<PathBuf>,
}

/// A state that was not destroyed because of a second interrupt.
#[derive(Debug)]
pub struct Left {
    /// The key of the state.
    pub key: Arc<str>,
    /// What is in it.
    pub state: State,
    /// Why it could not be kept.
    pub diagnostics: Diagnostics,
    /// The state file in which it is recorded.
    pub kept: Option<PathBuf>,
}

/// An event. Names of files are those of the suite.
#[derive(Debug)]
pub enum Event<'e> {
    SuiteBegins(&'e [SuiteFile]),
    FileBegins(&'e SuiteFile),
    RunBegins(&'e SuiteFile, usize),
    /// A run goes on: for how long it has.
    RunGoesOn(&'e SuiteFile, usize, Duration),
    /// A run is over.
    RunEnds(&'e SuiteFile, usize, &'e Performed),
    /// What the file has created is destroyed.
    TeardownBegins(&'e SuiteFile),
    /// What is in the state that a run was the last one to change is destroyed.
    TeardownOfRun(&'e SuiteFile, usize, Duration),
    /// What could not be destroyed of it, and why.
    TeardownOfRunEnds(&'e SuiteFile, usize, &'e Destroyed),
    /// A file is over.
    FileEnds(&'e SuiteFile, Status, &'e Diagnostics),
    /// A second interrupt has ended a file: what is in its states, and what its runs were about to create.
    Interrupted(&'e SuiteFile, &'e [Left], &'e [AbsResourceInstance]),
}

/// Watches a suite. Called from several tasks.
pub trait View: Send + Sync {
    /// Something has happened.
    fn event(&self, event: &Event<'_>);
}

/// The objects of a state, as they are listed: with the keys of deposed ones.
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
