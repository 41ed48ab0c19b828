//! Operations of workspaces in HCP Terraform and Terraform Enterprise that run on the server, and the server's rules
//! for their states.
//!
//! A workspace whose execution mode is not `local` plans and applies on the server. [`workspace`] finds the selected workspace and its mode
//! from the record of the last `init`, without starting the plugin of the backend. Then [`run`] uploads the configuration, starts a run and
//! follows it: logs, tasks, costs, policies and questions. A plan that is saved on the server is represented by a small file
//! ([`bookmark`]), and shown by [`show`]. [`variables`] and [`outputs`] serve commands that always run locally.
//!
//! The states of such workspaces are in a store that is a plugin, like those of other backends. [`remote`] checks versions before a state
//! is written, and [`migrate`] migrates states into such workspaces.
//!
//! A [`Context`] provides the services of a command. Begin reading with `run.rs` and `workspace.rs`.

pub mod bookmark;
mod checks;
mod confirm;
mod context;
mod follow;
mod logs;
pub mod migrate;
mod output;
pub mod outputs;
mod perform;
pub mod remote;
mod request;
pub mod run;
pub mod show;
mod tasks;
mod upload;
pub mod variables;
mod waiting;
pub mod workspace;

pub use context::{Context, Interrupts};
pub use perform::perform;
pub use remote::RemoteVersion;
pub use run::Request;
pub use workspace::Hosted;
