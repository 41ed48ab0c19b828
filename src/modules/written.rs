//! The manifest during an installation, on the disk or in memory. At any time it contains only modules that are
//! completely installed.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use config::manifest::{Manifest, ManifestEntry};
use syntax::Diagnostic;

pub(crate) struct Written {
    /// Path on the disk; `None` if the manifest is in memory only.
    pub path: Option<PathBuf>,
    pub manifest: Mutex<Manifest>,
}

impl Written {
    fn manifest(&self) -> std::sync::MutexGuard<'_, Manifest> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note(&self, key: String, entry: ManifestEntry) {
        self.manifest().modules.insert(key, entry);
    }

    /// Removes a module, and all modules inside its package.
    pub fn forget(&self, key: &str) {
        let inside = format!("{key}.");
        self.manifest()
            .modules
            .retain(|k, _| k != key && !k.starts_with(&inside));
    }

    pub fn save(&self) -> Result<(), Diagnostic> {
        match &self.path {
            Some(path) => write(path, &self.manifest()),
            None => Ok(()),
        }
    }
}

/// Writes a manifest, completely or not at all.
pub(crate) fn write(path: &Path, manifest: &Manifest) -> Result<(), Diagnostic> {
    let failed = |e: std::io::Error| {
        Diagnostic::error(
            "Failed to update module manifest",
            format!(
                "The file {} cannot be written: {}.",
                path.display(),
                files::io_reason(&e)
            ),
        )
    };
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut manifest = manifest.clone();
    // The root is an entry of the manifest, too, as Terraform writes it.
    let root = ManifestEntry {
        source: String::new(),
        version: None,
        dir: ".".to_owned(),
    };
    manifest.modules.entry(String::new()).or_insert(root);
    let text = manifest.to_json();
    // Nothing is written without a change, so that `init` succeeds with a read-only data directory.
    if std::fs::read(path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    std::fs::create_dir_all(dir).map_err(failed)?;
    files::replace(path, text.as_bytes(), files::Policy::SHARED).map_err(failed)
}
