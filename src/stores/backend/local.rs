//! The backend `local`: states in files of the working directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use cty::{Type, Value};
use schema::{AttributeSchema, AttributeType, BlockSchema, Schema};
use syntax::{Diagnostic, Diagnostics};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// File of the default workspace's state.
    pub path: Option<String>,
    /// Directory for the states of all workspaces except the default one.
    pub workspace_dir: Option<String>,
}

pub fn schema() -> Arc<Schema> {
    static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| {
        let text = || AttributeSchema {
            ty: AttributeType::Plain(Type::String),
            optional: true,
            ..AttributeSchema::default()
        };
        let attributes = ["path", "workspace_dir"].map(|name| (Arc::from(name), text()));
        let block = BlockSchema {
            attributes: BTreeMap::from(attributes),
            ..BlockSchema::default()
        };
        Arc::new(Schema::new(0, block))
    });
    SCHEMA.clone()
}

/// Checks a configuration; returns problems with their attributes.
pub fn problems(config: &Value) -> Vec<(&'static str, Diagnostic)> {
    let empty = |(name, summary): &(&'static str, &str)| {
        let found = config.get(name).and_then(Value::as_str) == Some("");
        let detail = format!("The \"{name}\" attribute value must not be empty.");
        found.then(|| (*name, Diagnostic::error(*summary, detail)))
    };
    [
        ("path", "Invalid local state file path"),
        ("workspace_dir", "Invalid local workspace directory path"),
    ]
    .iter()
    .filter_map(empty)
    .collect()
}

impl Local {
    /// Reads the settings from a configuration of the schema's type.
    #[must_use]
    pub fn from_config(config: &Value) -> Local {
        let text = |name: &str| config.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
        Local {
            path: text("path"),
            workspace_dir: text("workspace_dir"),
        }
    }

    /// Returns the file of the default workspace's state.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.path.as_deref().unwrap_or("terraform.tfstate").into()
    }

    #[must_use]
    pub fn others(&self) -> PathBuf {
        self.workspace_dir.as_deref().unwrap_or("terraform.tfstate.d").into()
    }

    /// Returns the file of a workspace's state.
    #[must_use]
    pub fn state(&self, workspace: &str) -> PathBuf {
        if workspace == "default" {
            self.file()
        } else {
            self.others().join(workspace).join("terraform.tfstate")
        }
    }

    /// Lists the workspaces, the default one first.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn workspaces(&self) -> Result<Vec<String>, Diagnostic> {
        let mut names = Vec::new();
        let dir = self.others();
        match std::fs::read_dir(&dir) {
            Ok(entries) => {
                for entry in entries.filter_map(Result::ok) {
                    if entry.path().is_dir() {
                        names.push(entry.file_name().to_string_lossy().into_owned());
                    }
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => {
                return Err(Diagnostic::error(
                    "Failed to list workspaces",
                    format!(
                        "The directory {} cannot be read: {}.",
                        dir.display(),
                        files::io_reason(&e)
                    ),
                ));
            }
        }
        // The state of the default workspace is elsewhere, so a directory with that name is not a workspace.
        names.sort();
        names.retain(|n| n != "default");
        names.insert(0, "default".to_owned());
        Ok(names)
    }
}

/// Returns true if two paths are textually the same file. The file system is not accessed.
#[must_use]
pub fn same_file(a: &Path, b: &Path) -> bool {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute(a) == absolute(b)
}

/// Copies a state file to its backup and empties it, as Terraform does with a file whose state was migrated.
///
/// # Errors
/// A file cannot be read or written.
pub fn empty_with_backup(path: &Path) -> Result<(), Diagnostics> {
    let failed = |e: String| Diagnostics::from(Diagnostic::error("Cannot empty the previous state file", e));
    let text = match std::fs::read(path) {
        Ok(text) if !text.is_empty() => text,
        Ok(_) => return Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => {
            return Err(failed(format!(
                "The file {} cannot be read: {}.",
                path.display(),
                files::io_reason(&e)
            )));
        }
    };
    let mut backup = path.as_os_str().to_owned();
    backup.push(".backup");
    // The backup must be complete and on the disk before the file is emptied.
    files::replace(Path::new(&backup), &text, files::Policy::STATE)
        .map_err(|e| failed(format!("{}.", files::io_reason(&e))))?;
    files::replace(path, b"", files::Policy::STATE).map_err(|e| failed(format!("{}.", files::io_reason(&e))))
}
