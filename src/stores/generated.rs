//! Files for generated configuration.

use syntax::Diagnostic;

/// Writes generated configuration to a new file. An existing file is never replaced.
pub fn write_new(path: &std::path::Path, text: &str) -> Result<(), Diagnostic> {
    let write = || {
        // A device such as /dev/stdout always exists, and can be written.
        if files::is_replaceable(path) && path.exists() {
            return Err(std::io::ErrorKind::AlreadyExists.into());
        }
        files::replace(path, text.as_bytes(), files::Policy::SHARED)
    };
    write().map_err(|e: std::io::Error| {
        Diagnostic::error(
            "Failed to write generated configuration",
            format!(
                "The configuration that was generated could not be written to {}: {}.",
                path.display(),
                files::io_reason(&e)
            ),
        )
    })
}

/// Returns an error if the file for generated configuration exists already. A pipe or a device is allowed.
pub fn target_exists(path: &str) -> Option<Diagnostic> {
    let exists = files::is_replaceable(path.as_ref()) && std::path::Path::new(path).exists();
    exists.then(|| {
        Diagnostic::error(
            "Target generated file already exists",
            "Generated configuration goes to a new file only. Choose another path, or copy this file to another path and delete \
             it.",
        )
    })
}
