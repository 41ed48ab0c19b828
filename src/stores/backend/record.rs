//! The record of the backend: `.terraform/terraform.tfstate`.

use std::path::Path;

use addrs::program::core_version;
use cty::{Type, Value};
use schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use syntax::{Diagnostic, Diagnostics};

use super::additions::is_recorded;
use super::local::Local;

const FILE: &str = "terraform.tfstate";

/// Backend type that represents a `cloud` block.
pub const CLOUD: &str = "cloud";

/// Record of the backend that the last `init` has configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Recorded backend; `None` for the local backend with default settings.
    pub backend: Option<Saved>,
    /// True if the file exists.
    pub exists: bool,
}

/// A backend in a record or in a saved plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    pub ty: String,
    /// Settings, including those of the command line.
    pub config: Map<String, Json>,
    /// Hash of the settings in the block, without those of the command line.
    pub hash: u32,
    /// Third-party provider that serves the state store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<SavedProvider>,
}

impl Saved {
    /// Creates the record of a backend whose settings are of the schema's type.
    ///
    /// # Errors
    /// A value cannot be represented in JSON.
    pub fn new(ty: &str, config: &Value, schema: &Schema, hash: u32) -> Result<Saved, Diagnostics> {
        let json = cty::json::to_json(config, &schema.implied_type()).map_err(|e| {
            Diagnostics::from(Diagnostic::error(
                "Failed to write to the data directory",
                format!("The settings of the backend \"{ty}\" cannot be recorded: {e}."),
            ))
        })?;
        let mut config = json.as_object().cloned().unwrap_or_default();
        config.retain(|name, value| is_recorded(ty, name, value.is_null()));
        Ok(Saved {
            ty: ty.to_owned(),
            config,
            hash,
            provider: None,
        })
    }

    #[must_use]
    pub fn noun(&self) -> &'static str {
        if self.provider.is_some() {
            "state store"
        } else {
            "backend"
        }
    }

    #[must_use]
    pub fn is_of(&self, block: &config::model::Backend) -> bool {
        *self.ty == *block.ty && self.provider.is_some() == block.provider.is_some()
    }

    /// Returns the settings of the backend `local`; `None` for any other backend.
    #[must_use]
    pub fn local(&self) -> Option<Local> {
        let text = |name: &str| self.config.get(name).and_then(Json::as_str).map(ToOwned::to_owned);
        (self.ty == "local" && self.provider.is_none()).then(|| Local {
            path: text("path"),
            workspace_dir: text("workspace_dir"),
        })
    }

    /// Returns the settings as a value of the schema's type. The record may be from another version of the schema: an argument that only
    /// one version has is ignored if it is not set.
    ///
    /// # Errors
    /// The settings do not fit the schema.
    pub fn value(&self, schema: &Schema) -> Result<Value, Diagnostics> {
        let failed = |why: String| {
            Diagnostics::from(Diagnostic::error(
                "Cannot read the backend record",
                format!(
                    "The settings of the backend \"{}\" that the last init recorded cannot be used: {why}. Run init with \
                     -reconfigure to record them again.",
                    self.ty
                ),
            ))
        };
        let empty = |value: &Json| match value {
            Json::Null => true,
            Json::Array(items) => items.is_empty(),
            _ => false,
        };
        let ty = &schema.ty.0;
        let foreign = |(name, value): &(&String, &Json)| ty.get(name).is_none() && !empty(value);
        if let Some((name, _)) = self.config.iter().find(foreign) {
            return Err(failed(format!("this version has no argument \"{name}\"")));
        }
        let mut config = Map::new();
        for part in ty.attributes() {
            let none = match part.ty {
                // Nested blocks are never null: without blocks, the value is an empty list.
                Type::List(_) | Type::Set(_) if schema.block.blocks.contains_key(&part.name) => json!([]),
                _ => Json::Null,
            };
            let value = self.config.get(&*part.name).cloned().unwrap_or(none);
            config.insert(part.name.to_string(), value);
        }
        cty::json::from_json(&config.into(), &schema.implied_type()).map_err(|e| failed(e.to_string()))
    }
}

/// How the executable of a provider is supplied, named as in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupplyMode {
    /// `init` and the lock file select the version.
    ManagedByTerraform,
    /// The provider is built into the program.
    BuiltIn,
    /// `dev_overrides` of the CLI configuration has the path of a development build.
    DevOverride,
    /// The user has started the provider (`TF_REATTACH_PROVIDERS`).
    Reattached,
}

impl SupplyMode {
    /// Returns a warning if the lock file does not record the version of the provider.
    pub(super) fn warning(self) -> Option<Diagnostic> {
        let (summary, what) = match self {
            SupplyMode::ManagedByTerraform => return None,
            SupplyMode::BuiltIn => ("State store is from a builtin provider", "is a part of this program"),
            SupplyMode::DevOverride => (
                "State store is from a developer override provider",
                "is taken from where dev_overrides of the CLI configuration say",
            ),
            SupplyMode::Reattached => (
                "State store provider is not managed by Terraform",
                "runs already, as TF_REATTACH_PROVIDERS says",
            ),
        };
        Some(Diagnostic::warning(
            summary,
            format!(
                "The provider of the state store {what}, so its version is not recorded. If another version of it stores states in \
                 another way, init cannot detect that."
            ),
        ))
    }
}

/// Third-party provider of a state store, as in records and saved plans.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedProvider {
    /// Selected version; `None` for providers without version selection (built-in, reattached or from `dev_overrides`).
    pub version: Option<String>,
    pub source: String,
    pub config: Map<String, Json>,
    pub supply_mode: SupplyMode,
}

impl SavedProvider {
    /// Returns the record of a state store that this provider serves.
    #[must_use]
    pub fn record(&self, saved: &Saved) -> Json {
        json!({
            "type": saved.ty,
            "provider": {"version": self.version, "source": self.source, "config": self.config},
            "config": saved.config,
            "hash": saved.hash,
            "provider_supply_mode": self.supply_mode,
        })
    }

    /// Reads the result of [`SavedProvider::record`], or a record written by Terraform. Returns `None` if a part is missing.
    #[must_use]
    pub fn read_record(json: &Json) -> Option<Saved> {
        let object = |json: &Json| {
            json.get("config")
                .and_then(Json::as_object)
                .cloned()
                .unwrap_or_default()
        };
        let provider = json.get("provider")?;
        Some(Saved {
            ty: json.get("type")?.as_str()?.to_owned(),
            config: object(json),
            hash: u32::try_from(json.get("hash")?.as_u64()?).ok()?,
            provider: Some(SavedProvider {
                version: provider.get("version").and_then(Json::as_str).map(ToOwned::to_owned),
                source: provider.get("source")?.as_str()?.to_owned(),
                config: object(provider),
                supply_mode: serde_json::from_value(json.get("provider_supply_mode")?.clone()).ok()?,
            }),
        })
    }

    pub(super) fn address(&self) -> Result<addrs::Provider, Diagnostics> {
        addrs::Provider::parse(&self.source).map_err(|e| {
            Diagnostic::error(
                "Cannot read the backend record",
                format!(
                    "The provider of the recorded state store is \"{}\". {}",
                    self.source, e.detail
                ),
            )
            .into()
        })
    }
}

impl Record {
    /// Reads the record. A missing file gives an empty record.
    pub fn read(data_dir: &str) -> Result<Record, Diagnostics> {
        let path = Path::new(data_dir).join(FILE);
        let failed = |why: String| {
            Diagnostics::from(Diagnostic::error(
                "Cannot read the backend record",
                format!(
                    "The file {}, in which the last init recorded the backend, cannot be read: {why}. Restore it, or \
                     remove it and run init again.",
                    path.display()
                ),
            ))
        };
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(e)
                // Without a data directory, or if its path is a file, there is no record.
                if matches!(
                    e.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(Record::default());
            }
            Err(e) => return Err(failed(files::io_reason(&e))),
        };
        let json: Json = serde_json::from_slice(&text).map_err(|e| failed(files::json_reason(e)))?;
        if json.get("version").and_then(Json::as_u64).is_none() {
            return Err(failed("it has no version".into()));
        }
        let part = |name: &str| json.get(name).filter(|part| !part.is_null());
        let backend = match (part("backend"), part("state_store")) {
            (None, None) => None,
            (None, Some(store)) => Some(
                SavedProvider::read_record(store).ok_or_else(|| failed("its state store is not complete".into()))?,
            ),
            (Some(backend), _) => {
                let saved = || {
                    Some(Saved {
                        ty: backend.get("type")?.as_str()?.to_owned(),
                        config: backend
                            .get("config")
                            .and_then(Json::as_object)
                            .cloned()
                            .unwrap_or_default(),
                        hash: u32::try_from(backend.get("hash")?.as_u64()?).ok()?,
                        provider: None,
                    })
                };
                Some(saved().ok_or_else(|| failed("its backend has no type or no hash".into()))?)
            }
        };
        Ok(Record { backend, exists: true })
    }

    pub fn write(&self, data_dir: &str) -> Result<(), Diagnostics> {
        // Version number of this file format in Terraform.
        let mut document = json!({"version": 3, "terraform_version": core_version()});
        if let (Some(saved), Some(object)) = (&self.backend, document.as_object_mut()) {
            match &saved.provider {
                Some(provider) => object.insert("state_store".into(), provider.record(saved)),
                None => object.insert(
                    "backend".into(),
                    json!({"type": saved.ty, "config": saved.config, "hash": saved.hash}),
                ),
            };
        }
        let text = cty::json::to_text(&document, Some(2));
        let path = Path::new(data_dir).join(FILE);
        let write = || {
            std::fs::create_dir_all(data_dir)?;
            // The settings may contain secrets, so only the owner may read the file.
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
    use crate::backend::local;

    #[test]
    fn what_is_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data").to_string_lossy().into_owned();
        assert_eq!(Record::read(&data).unwrap(), Record::default());
        let schema = local::schema();
        let config = Value::object([
            ("path", Value::string("a.tfstate")),
            ("workspace_dir", Value::null(Type::String)),
        ]);
        let record = Record {
            backend: Some(Saved::new("local", &config, &schema, 7).unwrap()),
            exists: true,
        };
        record.write(&data).unwrap();
        let again = Record::read(&data).unwrap();
        assert_eq!(again, record);
        assert_eq!(again.backend.unwrap().value(&schema).unwrap(), config);
    }

    #[test]
    fn settings_of_other_versions_are_read_unless_they_are_set() {
        let schema = local::schema();
        let saved = |config: Json| Saved {
            ty: "local".into(),
            config: config.as_object().cloned().unwrap(),
            hash: 0,
            provider: None,
        };
        let value = saved(json!({"path": "p", "newer": null})).value(&schema).unwrap();
        assert_eq!(Local::from_config(&value).path.as_deref(), Some("p"));
        assert!(saved(json!({"newer": "x"})).value(&schema).is_err());
        assert!(saved(json!({"path": {}})).value(&schema).is_err());
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
