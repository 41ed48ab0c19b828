//! Options for loading the configuration of the working directory.

use config::manifest::Manifest;
use config::values::SetVariables;
use config::{LoadOptions, RootVariables};

use crate::core_version;
use crate::session::Session;

/// Returns the options for loading the configuration of the working directory. Const variables have the values that flags, files and the
/// environment give them, and are never prompted for.
pub fn options<'o>(session: &'o Session, manifest: &'o Manifest, set: &'o SetVariables) -> LoadOptions<'o> {
    LoadOptions {
        variables: RootVariables::Set(set),
        cwd: session.original_dir.to_str().unwrap_or("."),
        workspace: session.selected_workspace(),
        ..LoadOptions::new(core_version(), manifest)
    }
}
