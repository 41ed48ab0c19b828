//! Module installation: `init` and `get` install the modules that a configuration calls in the working directory.
//!
//! [`install`] walks the configuration from its root. Local modules are read in place. All others are searched in the manifest
//! (`modules.json`, [`config::manifest`]), and fetched if the manifest has no entry that fits the call: [`registry`] finds the version and
//! the address of a registry module, [`fetch`] downloads a package from any address (git, archives, S3, Google Cloud Storage, directories).
//! The modules of a fetched package are walked in turn.
//!
//! Every module that the manifest names is complete. A package is fetched and unpacked into a directory of another name, which is renamed
//! at the end; the manifest drops its old entry before that. An interrupted run therefore leaves nothing that could be taken for a module.
//! Archives are unpacked by the crate `archive`.
//!
//! Packages are fetched concurrently, and reported in the order of the calls. [`from_module`] fills an empty directory. [`mirror`] carries
//! modules to networks where nothing can be fetched, in a directory or in a pack. Modules of a pack can also be installed in memory
//! (`Install::in_memory`), where nothing can be written. Modules that runs of test files name are installed with the others.
//!
//! Where to begin: [`install`].

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
