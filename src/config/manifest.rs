//! Module manifest (`modules.json`): the directories in which the modules of the tree are installed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use syntax::Diagnostic;

use crate::files::{FileSource, join};

/// Directories of a configuration's modules. The key of a module is the names of the calls that lead to it, joined by
/// dots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The entries by key; the root's key is empty.
    pub modules: BTreeMap<String, ManifestEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Source address of the call; empty for the root.
    pub source: String,
    /// The selected version, of registry modules only.
    pub version: Option<String>,
    /// Directory, relative to the working directory.
    pub dir: String,
}

#[derive(Serialize, Deserialize)]
struct File {
    #[serde(rename = "Modules")]
    modules: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    #[serde(rename = "Key")]
    key: String,
    #[serde(rename = "Source", default)]
    source: String,
    #[serde(rename = "Version", default, skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(rename = "Dir")]
    dir: String,
}

/// An invalid module manifest. The text is a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// Content that is not JSON of the expected form.
    #[error("The module manifest is not valid: {0}.")]
    Json(String),
    /// Two entries with one key.
    #[error("The module manifest has two entries for \"{0}\".")]
    TwoEntries(String),
}

impl Manifest {
    /// Path of the file inside the data directory.
    pub const PATH: &'static str = "modules/modules.json";

    /// Reads the manifest file inside a data directory. Without the file, the manifest is empty.
    pub fn read(files: &dyn FileSource, data_dir: &str) -> Result<Manifest, Diagnostic> {
        let path = join(data_dir, Manifest::PATH);
        let problem = |detail: String| Diagnostic::error("Failed to read module manifest", detail);
        match files.read(&path) {
            Ok(bytes) => Manifest::parse(&bytes).map_err(|e| {
                problem(format!(
                    "{path}: {e} Remove the file and run \"init\" to have it written again."
                ))
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Manifest::default()),
            Err(error) => Err(problem(format!(
                "The file {path} cannot be read: {}.",
                files::io_reason(&error)
            ))),
        }
    }

    /// Parses the content of a manifest file.
    ///
    /// # Errors
    /// The content is not JSON of the expected form, or names a module twice.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        // Terraform treats an empty file as an empty manifest, too.
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Manifest::default());
        }
        let file: File = serde_json::from_slice(bytes).map_err(|e| ManifestError::Json(files::json_reason(e)))?;
        let mut manifest = Manifest::default();
        for Entry {
            key,
            source,
            version,
            dir,
        } in file.modules
        {
            // The manifest may have been written on Windows.
            let dir = crate::files::clean(&dir.replace('\\', "/"));
            if manifest
                .modules
                .insert(key.clone(), ManifestEntry { source, version, dir })
                .is_some()
            {
                return Err(ManifestError::TwoEntries(key));
            }
        }
        Ok(manifest)
    }

    /// Renders the manifest as JSON: entries sorted by key, without line breaks.
    #[must_use]
    pub fn to_json(&self) -> String {
        let entry = |(key, e): (&String, &ManifestEntry)| Entry {
            key: key.clone(),
            source: e.source.clone(),
            version: e.version.clone(),
            dir: e.dir.clone(),
        };
        let file = File {
            modules: self.modules.iter().map(entry).collect(),
        };
        // The manifest has only strings, so its serialization cannot fail.
        serde_json::to_string(&file).unwrap_or_default()
    }

    /// Returns the entries of the modules below a module, with keys relative to that module.
    #[must_use]
    pub fn below(&self, path: &addrs::Module) -> Manifest {
        let prefix = format!("{}.", Manifest::key(path));
        let inner = self.modules.iter().filter_map(|(key, entry)| {
            let key = key.strip_prefix(&prefix)?;
            Some((key.to_owned(), entry.clone()))
        });
        Manifest {
            modules: inner.collect(),
        }
    }

    #[must_use]
    pub fn key(path: &addrs::Module) -> String {
        path.0.join(".")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_manifest_is_empty() {
        let read = |content: Option<&str>| {
            let files: crate::files::MemoryFiles = content
                .map(|c| (".terraform/modules/modules.json", c))
                .into_iter()
                .collect();
            Manifest::read(&files, ".terraform")
        };
        assert_eq!(read(None), Ok(Manifest::default()));
        assert_eq!(read(Some("{\"Modules\":[]}")), Ok(Manifest::default()));
        assert!(
            read(Some("{"))
                .unwrap_err()
                .detail
                .contains(".terraform/modules/modules.json")
        );
    }

    #[test]
    fn manifests_round_trip() {
        let text = r#"{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"a","Source":"registry.terraform.io/x/y/z","Version":"1.0.0","Dir":".terraform/modules/a"}]}"#;
        let manifest = Manifest::parse(text.as_bytes()).unwrap();
        assert_eq!(manifest.modules["a"].version.as_deref(), Some("1.0.0"));
        assert_eq!(manifest.to_json(), text);
        assert!(matches!(Manifest::parse(b"{"), Err(ManifestError::Json(_))));
        assert_eq!(
            Manifest::parse(br#"{"Modules":[{"Key":"a","Dir":"."},{"Key":"a","Dir":"."}]}"#),
            Err(ManifestError::TwoEntries("a".to_owned()))
        );
    }
}
