//! The command line: commands, their arguments and their output.
//!
//! [`main`] reads the arguments (`args`) and the environment (`env`), finds the command (`commands`, one file each) and runs it.
//! Each command has one struct of arguments, which is parsed once; the crates below know no flag names. A command loads the
//! configuration and the values of variables through `workdir`, opens its state through `state_session`, starts plugins through
//! `plugin_source`, has the engine plan and apply through `operation`, and prints results through the crate `views`. Operations
//! that a workspace of HCP Terraform runs on the server go through the crate `hosted` instead. `process` has the state that the
//! whole process shares: working directory, clock, exit.
//!
//! A command returns an outcome, which only the dispatcher (`commands/mod.rs`) renders; see `outcome`.
//! Every error that a user can cause is a diagnostic, with exit status 1. A panic is a bug, reported as one, with status 11.

mod args;
mod asking;
mod browser;
mod carried_modules;
mod claimed;
mod commands;
mod credentials;
mod downloads;
mod encryption;
pub mod env;
mod guards;
mod guide;
mod interrupt;
mod json_into;
mod lanes;
mod last_reads;
mod loading;
mod logging;
mod operation;
mod outcome;
mod panics;
mod planned_variables;
mod plugin_source;
mod process;
mod remote_run;
mod remote_states;
mod reporting;
mod session;
mod spans;
mod state_addresses;
mod state_session;
mod store_context;
mod tested;
mod validation;
mod watch;
mod workdir;

use std::ffi::OsString;
use std::process::ExitCode;

use addrs::program::{MODE_VARIABLE, Mode};
pub use addrs::program::{TERRAFORM_VERSION, core_version};
pub use files::{Environment, io_reason};

/// Version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Inputs of this process: built-in plugins, arguments, name and environment.
pub struct Invocation {
    /// Plugins in this executable.
    pub builtins: packages::builtin::Builtins,
    /// Arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// Name by which the program was called, without the directory.
    pub called_as: String,
    pub environment: Vec<(OsString, OsString)>,
}

/// Selects the mode of the process: that of `MONOFORM_MODE`, or else that of the name by which the program was called.
/// An invalid value is reported by [`main`].
pub fn select_mode(called_as: &str, environment: &[(OsString, OsString)]) {
    let set = environment.iter().find(|(name, _)| name == MODE_VARIABLE);
    let named = set.and_then(|(_, value)| Mode::from_name(value.to_str()?));
    named.unwrap_or_else(|| Mode::called_as(called_as)).select();
}

/// Runs the command that the arguments name. Returns the exit status.
#[must_use]
pub fn main(invocation: Invocation) -> ExitCode {
    panics::install();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| commands::run(invocation)));
    // A panic on another thread counts, too.
    ExitCode::from(match result {
        Ok(status) if !panics::happened() => status,
        _ => panics::status(),
    })
}

#[doc(hidden)]
pub mod fuzzing {
    //! Decoders for fuzz targets, which are outside of this crate.
    pub use stores::planfile::{PlanFileError, reread_document};
}
