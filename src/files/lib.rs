//! Output files, temporary files, and environment variables.
//!
//! [`Output`] writes every file that users name or find later: states, backups, plans, the dependency lock file, formatted configuration,
//! indexes of mirrors. Readers see either the old or the new contents, and a pipe, a device or a link is never replaced by a regular file.
//!
//! [`temporary`] creates files and directories for the lifetime of a process. Leftovers of a killed process are
//! distinguished from files in use, and the next process removes them.
//!
//! [`mounts`] has directories in memory that look like directories of the file system.
//!
//! [`private_directory`] and [`open_private`] are for files that no other user may have written.
//!
//! [`Environment`] has the environment variables, for every crate that reads them.
//!
//! [`io_reason`] describes an error of the operating system as part of a sentence, [`json_reason`] an error of the JSON
//! parser.

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
