//! `terraform_remote_state`: the outputs of another configuration, read from its state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use monoform_sdk::cty::{Value, json};
use monoform_sdk::schema::{Text, computed, optional, required};
use monoform_sdk::{
    Any, Attr, Context, DataSource, Diagnostic, Diagnostics, Result, Schema, async_trait, blocking, model,
};
use serde_json::Value as Json;

use crate::{Stores, is_mapping, stored};

model! {
    /// The outputs of another configuration.
    pub struct Model {
        /// The type of the backend that has the state of the other configuration.
        pub backend: Attr<String> = required(),
        /// The backend's arguments, as in its block in the other configuration.
        pub config: Any = optional(),
        /// The workspace; `default` if it is not set.
        pub workspace: Attr<String> = optional(),
        /// Values for outputs that the state does not have.
        pub defaults: Any = optional(),
        /// The values of all outputs of the other configuration's root module.
        pub outputs: Any = computed(),
    }
}

/// Backends of Terraform that can be read only if this executable has their state store.
const LATER: &[&str] = &["oci", "oss"];

/// Backends that Terraform has removed.
const REMOVED: &[&str] = &["artifactory", "azure", "etcd", "etcdv3", "manta", "swift"];

const BAD_CONFIG: &str = "Invalid backend configuration";

pub(crate) struct RemoteState(pub Stores);

#[async_trait]
impl DataSource for RemoteState {
    type Model = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        let mut schema = Schema::of::<Model>().describe("The outputs of another configuration, read from its state.");
        // As in Terraform, the description of the block is plain text, and those of its attributes are Markdown.
        schema.root.text = Text::Plain;
        schema
    }

    fn validate(&self, config: &Model) -> Diagnostics {
        let mut found = Diagnostics::new();
        if let Some(backend) = config.backend.as_str()
            && let Err(problem) = known_backend(backend, self.0)
        {
            found.push(problem);
        }
        for (Any(value), name, summary) in [
            (&config.config, "config", BAD_CONFIG),
            (&config.defaults, "defaults", "Invalid default values"),
        ] {
            if value.is_present() && !is_mapping(value) {
                let detail = format!("{name} must be an object or a map, not {}.", value.ty().friendly_name());
                found.push(Diagnostic::error(summary, detail).at_attribute(name));
            }
        }
        if !found.has_errors() && config.backend.known().is_some() && config.config.0.is_wholly_known() {
            match stored::find(self.0, config.backend.text()) {
                None => found.append(Local::new(&config.config.0).err().unwrap_or_default()),
                Some(store) => found.append(stored::validate(&store, &config.config.0)),
            }
        }
        found
    }

    async fn read(&self, config: Model, _cx: &mut Context<()>) -> Result<Model> {
        let backend = config.backend.text();
        known_backend(backend, self.0)?;
        let workspace = match config.workspace.text() {
            "" => "default".to_owned(),
            name => name.to_owned(),
        };
        let found = match stored::find(self.0, backend) {
            Some(store) => {
                let text = stored::read(&store, &config.config.0, &workspace).await?;
                let place = format!("the backend {backend:?}");
                text.map(|text| outputs(&place, &text)).transpose()?.flatten()
            }
            None => {
                let path = Local::new(&config.config.0)?.path(&workspace);
                blocking(move || local_outputs(&path)).await?
            }
        };
        let Some(found) = found else {
            return Err(Diagnostic::error(
                "Unable to find remote state",
                "The backend has no state for this workspace. Apply the other configuration first, or correct \
                 \"workspace\" or \"config\".",
            )
            .into());
        };
        let mut all: BTreeMap<Arc<str>, Value> = BTreeMap::new();
        if let Some(defaults) = config.defaults.0.entries() {
            all.extend(defaults.map(|(name, value)| (name.clone(), value.clone())));
        }
        // Outputs of the state have precedence over the defaults.
        all.extend(found);
        Ok(Model {
            outputs: Any(Value::object(all)),
            ..config
        })
    }
}

/// Checks that states of this backend can be read.
fn known_backend(name: &str, stores: Stores) -> std::result::Result<(), Diagnostic> {
    let detail = match name {
        // `_local` is another name of this backend in Terraform.
        "local" | "_local" => return Ok(()),
        name if stores.iter().any(|(store, _)| *store == name) => return Ok(()),
        name if LATER.contains(&name) => {
            let known: Vec<&str> = std::iter::once("local")
                .chain(stores.iter().map(|(name, _)| *name))
                .collect();
            format!(
                "State in the backend {name:?} cannot be read by this version yet. It can read these: {}.",
                known.join(", ")
            )
        }
        name if REMOVED.contains(&name) => {
            format!("The backend {name:?} is not supported any more since Terraform 1.3.")
        }
        name => format!("There is no backend type named {name:?}."),
    };
    Err(Diagnostic::error(BAD_CONFIG, detail).at_attribute("backend"))
}

/// Arguments of the `local` backend.
struct Local {
    path: PathBuf,
    workspace_dir: PathBuf,
}

impl Local {
    fn new(config: &Value) -> Result<Local> {
        let bad =
            |detail: String| -> Diagnostics { Diagnostic::error(BAD_CONFIG, detail).at_attribute("config").into() };
        let mut local = Local {
            path: "terraform.tfstate".into(),
            workspace_dir: "terraform.tfstate.d".into(),
        };
        let Some(entries) = config.entries() else {
            return Ok(local);
        };
        for (name, value) in entries {
            let argument = match &**name {
                "path" => &mut local.path,
                "workspace_dir" => &mut local.workspace_dir,
                other => return Err(bad(format!("The local backend has no argument named {other:?}."))),
            };
            if value.is_null() {
                continue;
            }
            // No schema converts the arguments of this backend, so a number is converted to text here.
            let number = value.as_number().map(ToString::to_string);
            match value.as_str().or(number.as_deref()) {
                Some(text) if !text.is_empty() => *argument = text.into(),
                _ => {
                    return Err(bad(format!(
                        "The argument {name:?} of the local backend must be a path."
                    )));
                }
            }
        }
        Ok(local)
    }

    fn path(&self, workspace: &str) -> PathBuf {
        match workspace {
            "default" => self.path.clone(),
            name => self.workspace_dir.join(name).join("terraform.tfstate"),
        }
    }
}

fn unreadable(place: &str, problem: String) -> Diagnostics {
    Diagnostic::error("Error loading state error", format!("{place}: {problem}")).into()
}

/// Reads the outputs of a state file; `None` if there is no state.
fn local_outputs(path: &Path) -> Result<Option<BTreeMap<Arc<str>, Value>>> {
    let place = path.display().to_string();
    match std::fs::read(path) {
        Ok(text) => outputs(&place, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&place, error.to_string())),
    }
}

/// Parses the outputs of a state; `None` if the text is empty.
fn outputs(place: &str, text: &[u8]) -> Result<Option<BTreeMap<Arc<str>, Value>>> {
    let bad = |problem: String| unreadable(place, problem);
    if text.trim_ascii().is_empty() {
        return Ok(None);
    }
    let state: Json = serde_json::from_slice(text)
        .map_err(|e| bad(format!("the state file is not JSON: {}", http::json_reason(e))))?;
    match state.get("version").and_then(Json::as_u64) {
        Some(4) => {}
        Some(version) => {
            return Err(bad(format!(
                "the state file has format version {version}, and this version reads only 4. Apply that configuration \
                 once with a current release"
            )));
        }
        None if state.get("encryption_version").is_some() => {
            return Err(bad(
                "the state is encrypted. Add a block \"remote_state_data_sources\" for it to the \"encryption\" block of the root \
                 module"
                    .to_owned(),
            ));
        }
        None => return Err(bad("this is no state file: it has no version".to_owned())),
    }
    let mut found = BTreeMap::new();
    let empty = serde_json::Map::new();
    for (name, output) in state.get("outputs").and_then(Json::as_object).unwrap_or(&empty) {
        let ty = output.get("type").unwrap_or(&Json::Null);
        let ty = json::type_from_json(ty).map_err(|e| bad(format!("the type of the output {name:?}: {e}")))?;
        let value = json::from_json(output.get("value").unwrap_or(&Json::Null), &ty)
            .map_err(|e| bad(format!("the value of the output {name:?}: {}", e.message)))?;
        found.insert(Arc::from(name.as_str()), value);
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::Type;
    use monoform_sdk_testing::Harness;

    use super::*;

    const STATE: &str = r#"{"version":4,"outputs":{
        "a":{"value":"x","type":"string","sensitive":true},
        "b":{"value":[1,2],"type":["list","number"]}}}"#;

    fn config(dir: &Path) -> Value {
        Value::object([
            ("path", Value::string(dir.join("s").to_str().unwrap())),
            ("workspace_dir", Value::string(dir.join("w").to_str().unwrap())),
        ])
    }

    #[tokio::test]
    async fn outputs_are_found_and_defaults_fill_in() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("s"), STATE).unwrap();
        let harness = Harness::new(crate::provider());
        let defaults = Value::object([("a", Value::string("unused")), ("c", Value::bool(true))]);
        let arguments = [
            ("backend", "local".into()),
            ("config", config(dir.path())),
            ("defaults", defaults),
        ];
        let state = harness.data("terraform_remote_state", &arguments).await.unwrap();
        let outputs = state.get("outputs").unwrap();
        assert_eq!(outputs.get("a"), Some(&"x".into()));
        assert_eq!(
            outputs.get("b"),
            Some(&Value::list(Type::Number, vec![1.into(), 2.into()]))
        );
        assert_eq!(outputs.get("c"), Some(&Value::bool(true)));
    }

    #[tokio::test]
    async fn workspaces_have_files_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("w/dev")).unwrap();
        std::fs::write(dir.path().join("w/dev/terraform.tfstate"), STATE).unwrap();
        let harness = Harness::new(crate::provider());
        for (workspace, found) in [("dev", true), ("default", false), ("other", false)] {
            let arguments = [
                ("backend", "local".into()),
                ("config", config(dir.path())),
                ("workspace", workspace.into()),
            ];
            let result = harness.data("terraform_remote_state", &arguments).await;
            match result {
                Ok(state) => assert!(found && state.get("workspace") == Some(&workspace.into())),
                Err(errors) => assert!(!found && errors.0[0].summary == "Unable to find remote state"),
            }
        }
    }

    #[tokio::test]
    async fn unreadable_states_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("s"), r#"{"version":3}"#).unwrap();
        let harness = Harness::new(crate::provider());
        let object = config(dir.path());
        for (backend, config, summary, word) in [
            ("local", object.clone(), "Error loading state error", "version 3"),
            ("oss", object.clone(), BAD_CONFIG, "yet"),
            ("etcd", object.clone(), BAD_CONFIG, "any more"),
            ("what", object, BAD_CONFIG, "no backend type"),
            ("local", "x".into(), BAD_CONFIG, "must be an object"),
            (
                "local",
                Value::object([("p", Value::bool(true))]),
                BAD_CONFIG,
                "no argument named",
            ),
        ] {
            let arguments = [("backend", backend.into()), ("config", config)];
            let errors = harness.data("terraform_remote_state", &arguments).await.unwrap_err();
            assert_eq!(errors.0[0].summary, summary);
            assert!(errors.0[0].detail.contains(word), "{}", errors.0[0].detail);
        }
    }
}
