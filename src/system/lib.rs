//! One interface to the differences between operating systems.
//!
//! Other crates have no `cfg` of a system, except for features of Linux only (`tests/architecture/systems.rs` lists these
//! places). A module of this crate has the same items on every system:
//!
//! - [`files`]: modes, owners, identities, links; names of the extension traits are those of the standard library on Unix.
//! - [`locks`]: locks of state files, which Terraform respects.
//! - [`groups`]: programs that end with all that they have started.
//! - [`console`]: the terminal, and standard input for answers to questions.
//! - [`user`]: names of the user and the machine.
//! - [`signals`], [`streams`], [`listening`] (feature `tokio`): requests to end, connections between programs of one machine,
//!   sockets of plugins.
//!
//! [`rename`] and [`WhileInUse`] repeat what fails on Windows while another program has a file open.
//!
//! Decisions that do not query the system are functions of an [`Os`], and those about the text of paths are in [`paths`]: both
//! can be tested for every system on any system.
//!
//! Plugins use this crate, too, so it does not depend on the core.

mod in_use;
mod input;
mod interrupt;
mod listen;
mod os;
pub mod paths;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as own;
#[cfg(windows)]
use windows as own;

pub use in_use::{WhileInUse, rename};
pub use input::Event;
pub use interrupt::Interrupt;
pub use listen::{SocketRequest, first_free};
pub use os::{CliPaths, Os, Surroundings, Tool, Variables};
pub use own::{console, files, groups, locks, processes, user};
#[cfg(feature = "tokio")]
pub use own::{listening, signals, streams};
