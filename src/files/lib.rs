//! Output files and temporary files, and the environment variables that name directories.
//!
//! [`Output`] is how every file is written that a user names or finds later: states, backups, plans, the dependency lock
//! file, formatted configuration, indexes of mirrors. Readers see the old contents or the new, and a rename never turns a
//! pipe, a device or a link into a file.
//!
//! [`temporary`] creates files and directories for the time that a process runs. Leftovers of a killed process are
//! distinguished from those in use, and removed by the next one.
//!
//! [`mounts`] holds directories in memory that have paths in the file system.
//!
//! [`private_directory`] and [`open_private`] are for what a user keeps for later and nobody else may have written.
//!
//! [`Environment`] holds the environment variables, for every crate that reads them.
//!
//! [`io_reason`] is the operating system's reason for an error, as part of a sentence; [`json_reason`] that of JSON that cannot be
//! read.

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

mod environment;
pub mod mounts;
mod output;
mod private;
mod reason;
pub mod temporary;

pub use environment::Environment;
pub use output::{Output, Policy, is_replaceable, replace, replace_here, sync_directory_of};
pub use private::{open_private, private_directory};
pub use reason::{io_reason, json_mistake, json_reason, plain};
