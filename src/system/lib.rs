//! What differs between operating systems, with one interface for all of them.
//!
//! Other crates have no `cfg` of a system, but for what exists on Linux only (`tests/architecture/systems.rs` lists these
//! places). A module of this crate has the same items on every system:
//!
//! - [`locks`]: locks of state files, which Terraform respects.
//! - [`files`]: space that is reserved for a file.
//! - [`processes`]: running processes with their parents and groups.
//! - [`signals`]: the disposition of signals.
//!
//! Plugins use it, too: it knows nothing of the core.

mod unix;

pub use unix::{files, locks, processes, signals};
