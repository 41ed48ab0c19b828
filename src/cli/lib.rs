//! The command line: what people and the programs that drive us see.
//!
//! [`main`] is everything: it reads the arguments (`args`) and the environment (`env`), finds the command
//! (`commands`, one file each) and runs it. A command loads what it needs through `workdir` (configuration, values of
//! variables, where the state is), starts plugins through `plugin_source`, has the engine do the work (`operation`), and
//! shows what came of it: `views` for people, [`json`] for programs. `planfile` keeps a plan between plan and apply.
//!
//! What the user typed and what it means are two things: flags are read once, at the top of each command, and nothing
//! further in knows their names. Everything a user can do wrong is a diagnostic with exit status 1; only a bug of ours
//! panics, which is told as such, with status 11.
//!
//! This room may use all others below it. Nothing uses it but the executable.

mod args;
mod backend;
mod commands;
pub mod env;
mod interrupt;
pub mod json;
mod logging;
mod operation;
mod panics;
mod persist;
mod planfile;
mod planned_variables;
mod plugin_source;
mod process;
mod program;
mod prompt;
mod session;
mod state_session;
mod terminal;
mod ui;
mod verb;
mod views;
mod workdir;

use std::ffi::OsString;
use std::process::ExitCode;

pub use files::io_reason;

/// The version of Terraform we answer as: of the language, the state, the plans and the JSON.
pub const TERRAFORM_VERSION: &str = "1.11.4";

/// Our own version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How this program was called.
pub struct Invocation {
    /// The plugins that are part of the executable.
    pub builtins: packages::builtin::Builtins,
    /// The arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// Whether it was called by the name `terraform`.
    pub as_terraform: bool,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// Runs a command from its arguments to its exit status.
#[must_use]
pub fn main(invocation: Invocation) -> ExitCode {
    panics::install();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| commands::run(invocation)));
    ExitCode::from(result.unwrap_or(panics::STATUS))
}
