//! Client of the API of HCP Terraform and Terraform Enterprise (version 2), for states and runs: workspaces, their
//! locks, variables and state versions; configurations, runs, and the checks in them.
//!
//! - [`Settings`]: the arguments of a `backend "remote"` or a `cloud` block, completed from the environment.
//! - [`Connection`]: an organization of a host, found by service discovery.
//! - `workspaces`: finding, creating, listing, deleting and locking them.
//! - `states`: reading a state, and writing a new version of it.
//! - `configurations`: uploading the configuration of a run as a [`Slug`], an archive of a directory without the files
//!   that `ignore` excludes.
//! - `runs`: starting a run and following it; [`Log`]: the output of its plan and its apply; `checks` and `stages`:
//!   policies, costs and tasks.
//! - `variables`: the variables of a workspace; `outputs`: those of its newest state.
//! - [`compatible`]: which versions of the program may change the state of a workspace.
//!
//! The documents are those of JSON:API. Sources: the published documentation of the API, and what Terraform 1.11 to 1.16 send.
//!
//! Where to begin: [`Connection::open`].

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

/// A problem with a setting or a request, to be shown to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub summary: String,
    /// Reason, and advice.
    pub detail: String,
    /// Argument of the block that the problem is about; `None` for a problem of no single argument.
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
