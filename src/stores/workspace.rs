//! The selected workspace.

use std::path::Path;

use syntax::{Diagnostic, Diagnostics};

use crate::Context;

/// Name of the default workspace.
pub const DEFAULT: &str = "default";

/// Returns the selected workspace.
///
/// # Errors
/// The name is not valid for a workspace.
pub fn selected(context: &Context<'_>) -> Result<String, Diagnostics> {
    let name = match context.workspace {
        Some(name) => name.to_owned(),
        // Terraform stores the selection in the same file, so both programs select the same workspace.
        None => std::fs::read_to_string(Path::new(context.data_dir).join("environment"))
            .map(|text| text.trim().to_owned())
            .unwrap_or_default(),
    };
    let name = if name.is_empty() { DEFAULT.to_owned() } else { name };
    if !is_name(&name) {
        let summary = if context.workspace.is_some() {
            "Invalid workspace name set using TF_WORKSPACE"
        } else {
            "Invalid workspace name"
        };
        return Err(Diagnostic::error(
            summary,
            format!("The selected workspace is named \"{name}\", which is not a name a workspace may have."),
        )
        .into());
    }
    Ok(name)
}

/// Returns true if a workspace may have this name. Names are used in paths and URLs without escaping.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let fits =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '$' | '&' | '+' | ':' | '=' | '@');
    !name.is_empty() && name != "." && name != ".." && name.chars().all(fits)
}

/// Selects a workspace for later commands.
///
/// # Errors
/// The data directory cannot be written.
pub fn select(data_dir: &str, name: &str) -> Result<(), Diagnostics> {
    let path = Path::new(data_dir).join("environment");
    let write = || {
        std::fs::create_dir_all(data_dir)?;
        files::replace(&path, name.as_bytes(), files::Policy::SHARED)
    };
    write().map_err(|e| {
        Diagnostic::error(
            "Failed to select workspace",
            format!("{} cannot be written: {}.", path.display(), files::io_reason(&e)),
        )
        .into()
    })
}
