//! Output files and temporary files.
//!
//! [`Output`] is how every file is written that a user names or finds later: states, backups, plans, the dependency lock
//! file, formatted configuration, indexes of mirrors. Readers see the old contents or the new, and a rename never turns a
//! pipe, a device or a link into a file.
//!
//! [`temporary`] names what exists only while this program runs, so that the leftovers of one that was killed can be told
//! from what is in use, and are removed by the next.
//!
//! [`io_reason`] says in words why the operating system refused something.
//!
//! This crate depends on no other of the workspace.

mod output;
mod reason;
pub mod temporary;

pub use output::{Output, Policy, is_replaceable, replace};
pub use reason::{io_reason, plain};
