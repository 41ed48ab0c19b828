//! What every plugin is written against: ours, and those of anybody else.
//!
//! A plugin is a program that does one kind of work for Terraform, OpenTofu or Monoform: it is started by them, and
//! answers their calls over gRPC on a local socket. An author who uses this crate sees nothing of that. A provider is
//! a struct that implements [`Provider`] and lists its members: each type of managed resource implements [`Resource`],
//! each data source [`DataSource`], each ephemeral resource [`EphemeralResource`], and a [`Function`] is a signature
//! with a closure. A provisioner implements [`Provisioner`]. `main` is then one line:
//!
//! ```ignore
//! fn main() -> std::process::ExitCode {
//!     monoform_sdk::serve_provider(provider())
//! }
//! ```
//!
//! The same implementation is served as protocol 5 or 6, whichever the caller asks for; see [`serve_provider`] for what
//! happens between the start of the process and its end.
//!
//! What makes the work short:
//! - Attributes are fields of a struct, declared together with their schema by [`model!`]; [`model::Attr`] says whether
//!   a value is known, null or unknown. Nobody walks maps by hand.
//! - Plans are put together from the schema ([`plan`]): defaults, what becomes unknown, what is kept, what means
//!   replacement. A resource adds only what is special about it.
//! - The usual rules for configurations are in the schema too ([`validate`]).
//! - States of earlier schema versions are read with their own models ([`Upgrader`]).
//!
//! What holds everywhere:
//! - A schema is compiled once, when the plugin starts; no call converts it again.
//! - A panic in a plugin's code is a diagnostic for that call, and the plugin goes on.
//! - Calls run on one thread. Work that keeps a processor or a disk busy belongs in [`blocking`].
//! - No plugin outlives the program that started it.
//!
//! Left out on purpose: attributes with nested attributes of their own (protocol 6 alone has them, and blocks or
//! object types say the same in both), and whatever Terraform 1.11 does not call: list resources, actions, state stores.
//!
//! This crate may use `proto` (the messages) and `cty` (types and values) of ours and nothing else. To read it, begin
//! with [`provider`] and [`resource`], then [`mod@model`], [`schema`], [`plan`]; the server is below `server/`.

pub mod context;
pub mod data;
pub mod diag;
pub mod function;
pub mod model;
pub mod plan;
pub mod program;
pub mod provider;
pub mod provisioner;
pub mod resource;
pub mod schema;
mod server;
mod state;
pub mod testing;
pub mod validate;

#[doc(no_inline)]
pub use async_trait::async_trait;
pub use cty;

pub use context::{Context, Stop};
pub use data::{DataSource, EphemeralResource, Opened};
pub use diag::{Diagnostic, Diagnostics, Result, Severity};
pub use function::{Arguments, Function, FunctionError, Parameter};
pub use model::{Any, Attr, Cty, Empty, Model, Set};
pub use plan::{Modifier, Plan};
pub use provider::{Members, Provider};
pub use provisioner::{Output, Provisioner};
pub use resource::{IdentityAttribute, MoveSource, Resource, Upgrader};
pub use schema::Schema;
pub use server::{HANDSHAKE_VARIABLES, serve_provider, serve_provisioner};
pub use validate::{Check, Validator};

/// Runs work that keeps a processor or a disk busy on a thread of its own, so that other calls go on meanwhile.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is being torn down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}
