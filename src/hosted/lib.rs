//! Workspaces of HCP Terraform and Terraform Enterprise: operations that run on the server, and what the server says of states.
//!
//! A workspace whose execution mode is not `local` plans and applies on the server. [`workspace`] finds out from the record of the
//! last `init` whether the selected workspace is such a one; the store process of the backend is not needed for that. Then [`run`]
//! uploads the configuration, starts a run and follows it: its logs, tasks, costs and policies, and the questions on the way. A plan
//! that is kept on the server is known by a small file ([`bookmark`]), and shown by [`show`]. [`variables`] and [`outputs`] are read by
//! commands that run here in any case.
//!
//! [`remote`] and [`migrate`] are about states in such workspaces, whose store is a plugin as others are: whether this version may
//! write them, and how they get there.
//!
//! A [`Context`] has what is needed of a command's surroundings. Begin reading with `run.rs` and `workspace.rs`.

#![allow(
    missing_docs,
    reason = "an internal crate: a doc is written where the name and the type do not say it"
)]

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
