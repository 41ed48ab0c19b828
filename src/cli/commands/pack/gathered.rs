//! Contents of a pack, as they are collected before it is written.

use std::path::Path;

use addrs::platform::Platform;
use pack::write::{ConfigurationContents, ModuleContents};
use packages::gather::UnpackedPackage;

use super::Arguments;

#[derive(Default)]
pub(super) struct Gathered {
    pub providers: Vec<UnpackedPackage>,
    pub modules: Vec<ModuleContents<'static>>,
    pub configurations: Vec<ConfigurationContents<'static>>,
}

/// Options for collecting the contents of a pack.
pub(super) struct Gathering<'g> {
    pub arguments: &'g Arguments,
    pub platforms: &'g [Platform],
    /// Temporary directory for downloaded packages.
    pub staging: &'g Path,
}
