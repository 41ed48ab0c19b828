//! The API of HCP Terraform and Terraform Enterprise (version 2), as far as it is needed to keep states there: workspaces, their
//! locks, and the versions of their states.
//!
//! - [`Settings`]: what a `backend "remote"` or a `cloud` block says, with what the environment adds.
//! - [`Connection`]: an organization of a host, found by service discovery.
//! - `workspaces`: finding, creating, listing, deleting and locking them.
//! - `states`: reading a state, and writing a new version of it.
//! - [`compatible`]: which versions of the program may change the state of a workspace.
//!
//! The documents are those of JSON:API. Sources: the published documentation of the API, and what Terraform 1.11 to 1.16 send.
//!
//! Where to begin: [`Connection::open`].

mod api;
mod connection;
mod settings;
mod states;
mod versions;
mod workspaces;

pub use api::ApiError;
pub use connection::Connection;
pub use settings::{Arguments, Kind, Mapping, Settings, Tags};
pub use states::{Snapshot, Upload};
pub use versions::{Compatibility, compatible};
pub use workspaces::{LockProblem, Workspace};

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
