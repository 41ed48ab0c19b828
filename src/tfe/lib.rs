//! The API of HCP Terraform and Terraform Enterprise (version 2), as far as it is needed to keep states there and to have runs
//! there: workspaces, their locks, variables and the versions of their states; configurations, runs, and what is checked in them.
//!
//! - [`Settings`]: what a `backend "remote"` or a `cloud` block says, with what the environment adds.
//! - [`Connection`]: an organization of a host, found by service discovery.
//! - `workspaces`: finding, creating, listing, deleting and locking them.
//! - `states`: reading a state, and writing a new version of it.
//! - `configurations`: uploading the configuration that a run works with, a [`Slug`] of a directory without what `ignore` leaves
//!   out.
//! - `runs`: starting a run and following it; [`Log`]: what its plan and its apply print; `checks` and `stages`: policies, costs and
//!   tasks.
//! - `variables`: the variables of a workspace; `outputs`: those of its newest state.
//! - [`compatible`]: which versions of the program may change the state of a workspace.
//!
//! The documents are those of JSON:API. Sources: the published documentation of the API, and what Terraform 1.11 to 1.16 send.
//!
//! Where to begin: [`Connection::open`].

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

mod api;
mod checks;
mod configurations;
mod connection;
pub mod ignore;
mod included;
mod logs;
mod outputs;
mod runs;
mod settings;
mod slug;
mod stages;
mod states;
mod variables;
mod versions;
mod workspaces;

pub use api::{ApiError, Server};
pub use checks::{CostEstimate, PolicyCheck};
pub use configurations::{Configuration, Purpose};
pub use connection::Connection;
pub use included::Included;
pub use logs::{Log, LogOf};
pub use outputs::StateOutput;
pub use runs::{Run, RunOptions, RunPlan, RunStatus};
pub use settings::{Arguments, Kind, Mapping, Settings, Tags};
pub use slug::{Slug, SlugError};
pub use stages::{Evaluation, PolicyOutcome, SetOutcome, Stage, TaskResult};
pub use states::{Snapshot, Upload};
pub use variables::WorkspaceVariable;
pub use versions::{Compatibility, compatible};
pub use workspaces::{EnsureError, LockProblem, Workspace};

/// Something that a person is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub summary: String,
    /// Why, and what to do.
    pub detail: String,
    /// The argument of the block that it is about.
    pub argument: Option<&'static str>,
}

impl Problem {
    fn new(summary: impl Into<String>, detail: impl Into<String>) -> Problem {
        Problem {
            summary: summary.into(),
            detail: detail.into(),
            argument: None,
        }
    }

    fn about(mut self, argument: &'static str) -> Problem {
        self.argument = Some(argument);
        self
    }
}
