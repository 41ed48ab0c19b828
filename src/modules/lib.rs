//! Module installation: what `init` and `get` do so that every call of a configuration has its module in the working directory.
//!
//! [`install`] walks the configuration from its root. Local modules are read where they are; every other one is looked up
//! in the manifest (`modules.json`, [`config::manifest`]) and, where it is missing or no longer what the call asks for,
//! fetched: [`registry`] finds the version and the address of a registry module, [`fetch`] brings a package from any
//! address (git, archives, S3, Google Cloud Storage, directories). The modules of a fetched package are walked in turn.
//!
//! What is in the modules directory under its name, and in the manifest, is whole: a package is fetched into a directory of
//! another name, unpacked there, and renamed at the end; before that, the manifest has forgotten what was there before. So an
//! interrupted run leaves nothing that could be taken for a module. Archives are unpacked by the crate `archive`.
//!
//! Packages are fetched side by side, and told in the order of the calls. [`from_module`] fills an empty directory. [`mirror`]
//! carries modules to where nothing can be fetched: in a directory, or in a pack.
//! Those of a pack can also be installed in memory (`Install::in_memory`), where nothing can be written.
//! The modules that runs of test files name are installed with the others.
//!
//! Where to begin: [`install`].

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

mod available;
mod carried;
pub mod fetch;
pub mod from_module;
mod in_memory;
pub mod install;
pub mod mirror;
mod moved;
pub mod registry;
mod shown;
mod test_run_modules;
mod tree;
mod written;

pub use fetch::Fetcher;
pub use install::{Event, Install, Outcome, name_modules};
pub use mirror::Mirror;
