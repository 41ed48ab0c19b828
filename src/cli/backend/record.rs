//! The record of the backend: `.terraform/terraform.tfstate`.

use std::path::Path;

use serde_json::{Map, Value as Json, json};
use syntax::{Diagnostic, Diagnostics};

use super::Local;
use crate::TERRAFORM_VERSION;

const FILE: &str = "terraform.tfstate";

/// What the last `init` wrote down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The backend; `None` if there is none beside the default one.
    pub backend: Option<Saved>,
    /// Whether the file exists.
    pub exists: bool,
}

/// A backend in a record.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// Its type.
    pub ty: String,
    /// Its settings, with what came from the command line.
    pub config: Map<String, Json>,
    /// The number of the block, without what came from the command line.
    pub hash: u32,
}

impl Saved {
    /// One for the backend `local`.
    #[must_use]
    pub fn new(local: &Local, hash: u32) -> Saved {
        let text = |setting: &Option<String>| setting.clone().map_or(Json::Null, Json::String);
        let mut config = Map::new();
        config.insert("path".into(), text(&local.path));
        config.insert("workspace_dir".into(), text(&local.workspace_dir));
        Saved {
            ty: "local".into(),
            config,
            hash,
        }
    }

    /// The settings, if it is the backend `local`.
    #[must_use]
    pub fn local(&self) -> Option<Local> {
        let text = |name: &str| self.config.get(name).and_then(Json::as_str).map(ToOwned::to_owned);
        (self.ty == "local").then(|| Local {
            path: text("path"),
            workspace_dir: text("workspace_dir"),
        })
    }
}

impl Record {
    /// Reads it; an empty one if there is none.
    pub fn read(data_dir: &str) -> Result<Record, Diagnostics> {
        let path = Path::new(data_dir).join(FILE);
        let failed = |why: String| {
            Diagnostics::from(Diagnostic::error(
                "Cannot read the backend record",
                format!(
                    "The file {}, in which the last init wrote down where the state is kept, cannot be read: {why}. Restore it, or \
                     remove it and run init again.",
                    path.display()
                ),
            ))
        };
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(e)
                if matches!(
                    e.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Record::default());
            }
            Err(e) => return Err(failed(files::io_reason(&e))),
        };
        let json: Json = serde_json::from_slice(&text).map_err(|e| failed(format!("it is not valid JSON ({e})")))?;
        if json.get("version").and_then(Json::as_u64).is_none() {
            return Err(failed("it has no version".into()));
        }
        let backend = match json.get("backend") {
            None | Some(Json::Null) => None,
            Some(backend) => {
                let saved = || {
                    Some(Saved {
                        ty: backend.get("type")?.as_str()?.to_owned(),
                        config: backend
                            .get("config")
                            .and_then(Json::as_object)
                            .cloned()
                            .unwrap_or_default(),
                        hash: u32::try_from(backend.get("hash")?.as_u64()?).ok()?,
                    })
                };
                Some(saved().ok_or_else(|| failed("its backend has no type or no hash".into()))?)
            }
        };
        Ok(Record { backend, exists: true })
    }

    /// Writes it.
    pub fn write(&self, data_dir: &str) -> Result<(), Diagnostics> {
        let mut document = json!({"version": 3, "terraform_version": TERRAFORM_VERSION});
        if let (Some(saved), Some(object)) = (&self.backend, document.as_object_mut()) {
            object.insert(
                "backend".into(),
                json!({"type": saved.ty, "config": saved.config, "hash": saved.hash}),
            );
        }
        let text = cty::json::to_text(&document, Some(2));
        let path = Path::new(data_dir).join(FILE);
        let write = || {
            std::fs::create_dir_all(data_dir)?;
            files::replace(&path, text.as_bytes(), files::Policy::SECRET)
        };
        write().map_err(|e| {
            Diagnostic::error(
                "Failed to write to the data directory",
                format!("The record of the backend cannot be written: {}.", files::io_reason(&e)),
            )
            .into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data").to_string_lossy().into_owned();
        assert_eq!(Record::read(&data).unwrap(), Record::default());
        let local = Local {
            path: Some("a.tfstate".into()),
            workspace_dir: None,
        };
        let record = Record {
            backend: Some(Saved::new(&local, local.hash())),
            exists: true,
        };
        record.write(&data).unwrap();
        let again = Record::read(&data).unwrap();
        assert_eq!(again, record);
        assert_eq!(again.backend.and_then(|saved| saved.local()), Some(local));
    }

    #[test]
    fn a_damaged_record_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().to_string_lossy().into_owned();
        for text in ["", "{", "{}", "{\"version\": 3, \"backend\": {}}"] {
            std::fs::write(dir.path().join(FILE), text).unwrap();
            assert!(Record::read(&data).is_err(), "{text}");
        }
    }
}
