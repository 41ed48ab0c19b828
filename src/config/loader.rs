//! From a directory to a tree of modules.

use syntax::{Diagnostics, SourceMap};

use crate::files::FileSource;
use crate::manifest::Manifest;
use crate::model::Config;
use crate::source_address::ModuleSource;

/// What loading must know beside files.
#[derive(Clone, Debug)]
pub struct LoadOptions<'o> {
    /// The version of the language's tool that `required_version` is compared with.
    pub tool_version: &'o str,
    /// Where remote modules were installed.
    pub manifest: &'o Manifest,
}

/// What loading gives.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration, as far as it could be understood. Whole if there are no errors.
    pub config: Config,
    /// The text of every file.
    pub sources: SourceMap,
    /// Every problem.
    pub diagnostics: Diagnostics,
    /// The modules that must be installed first. Each is an error among the diagnostics.
    pub missing: Vec<MissingModule>,
}

/// A module that must be installed before the configuration is whole.
#[derive(Clone, Debug)]
pub struct MissingModule {
    /// Its path.
    pub path: addrs::Module,
    /// Where it comes from.
    pub source: ModuleSource,
    /// Where that is written.
    pub range: syntax::Range,
}

/// Reads the root module in a directory and all the modules it calls.
#[must_use]
pub fn load(_files: &dyn FileSource, _dir: &str, _options: &LoadOptions<'_>) -> Loaded {
    todo!()
}
