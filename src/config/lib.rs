//! Configuration files and modules: typed blocks, override files, the module tree, and the values of the root module's
//! variables.
//!
//! [`loader::load`] reads a directory and the modules it calls and returns a [`Config`]: a tree of [`Module`]s, each a
//! collection of typed blocks ([`model`]). Loading determines the static part of a block (names, addresses, types,
//! constants, which provider a resource belongs to); everything that needs values stays an expression for the engine.
//! Every problem of every file is reported with its position, and the valid parts are returned nevertheless.
//!
//! Files come from a [`files::FileSource`]: the disk, or a snapshot inside a plan file ([`snapshot`]). Nothing else
//! here does input or output. Modules are installed elsewhere; a [`manifest::Manifest`] records their directories.
//!
//! Where to begin: [`model`], then [`loader`], `decode` (from tree to typed blocks), `overrides`, `providers` (the
//! provider configurations of each module). [`values`] reads variable files and flags.

mod assemble;
mod decode;
mod early;
pub mod file_names;
pub mod files;
pub mod known;
pub mod loader;
mod losses;
pub mod manifest;
pub mod model;
mod overrides;
mod parse;
mod provider_instances;
mod providers;
pub mod snapshot;
pub mod source_address;
pub mod test_files;
pub mod values;
pub mod version;

#[cfg(test)]
mod fixture_tests;

pub use early::{ConstValues, RootVariables};
pub use loader::{
    LoadOptions, Loaded, RootModule, load, load_alone, load_for_installation, load_for_tests, load_root,
    load_with_queries,
};
pub use model::*;
