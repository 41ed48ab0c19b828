//! The history of a state in a store that stores each object separately: runs, earlier states, queries.

use addrs::{AbsResource, AbsResourceInstance, InstanceKey, Mode, Resource};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use state::sealed::Sealer;
use state::{Codec, State};
use syntax::{Diagnostic, Diagnostics};

use super::store::Store;

/// A run that has written a state.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    pub run: i64,
    /// Operation of the run's lock, such as `OperationTypeApply`.
    pub operation: String,
    /// `user@host`.
    pub who: String,
    pub program_version: String,
    /// Start time in RFC 3339.
    pub started_at: String,
    /// `finished`, `interrupted` or `running`.
    pub result: String,
    /// Serial of the last snapshot of the run.
    pub serial: Option<u64>,
    pub changes: Vec<Change>,
}

/// An object or output that a run has changed.
#[derive(Clone, Debug, Deserialize)]
pub struct Change {
    /// `object` or `output`.
    pub kind: String,
    module: String,
    mode: String,
    #[serde(rename = "type")]
    ty: String,
    name: String,
    instance_key: String,
    pub deposed: String,
    /// `create`, `update` or `delete`.
    pub action: String,
}

impl Change {
    /// Returns the address for display.
    #[must_use]
    pub fn address(&self) -> String {
        if self.kind == "output" {
            return format!("output.{}", self.name);
        }
        let module = addrs::parse::module_instance(&self.module).unwrap_or_default();
        let resource = Resource {
            mode: if self.mode == "data" { Mode::Data } else { Mode::Managed },
            ty: (&*self.ty).into(),
            name: (&*self.name).into(),
        };
        let key = match serde_json::from_str::<Json>(&self.instance_key) {
            Ok(Json::String(text)) => InstanceKey::String(text.into()),
            Ok(Json::Number(number)) => InstanceKey::Int(number.as_u64().unwrap_or_default()),
            _ => InstanceKey::None,
        };
        AbsResource { module, resource }.instance(key).to_string()
    }
}

/// Result of a query: the names of the columns, and the rows.
#[derive(Clone, Debug, Deserialize)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Json>>,
}

/// Objects for which a history is requested.
#[derive(Clone, Debug)]
pub enum Subject {
    /// All instances of a resource.
    Resource(AbsResource),
    Instance(AbsResourceInstance),
}

impl Subject {
    fn question(&self) -> Json {
        let (resource, key) = match self {
            Subject::Resource(resource) => (resource.clone(), None),
            Subject::Instance(instance) => (instance.containing_resource(), Some(&instance.resource.key)),
        };
        let mut question = json!({
            "module": resource.module.to_string(),
            "mode": resource.resource.mode.as_str(),
            "type": &*resource.resource.ty,
            "name": &*resource.resource.name,
        });
        if let Some(key) = key {
            question["instance_key"] = match key {
                InstanceKey::None => "".into(),
                InstanceKey::Int(number) => number.to_string().into(),
                // Escaped as in the text of a state, because the store compares keys as text.
                InstanceKey::String(text) => cty::json::to_text(&Json::from(&**text), None).into(),
            };
        }
        question
    }
}

impl Store {
    fn answer<T: serde::de::DeserializeOwned>(&self, workspace: &str, question: &Json) -> Result<T, Diagnostics> {
        let plugin = self.process().plugin();
        let text = self.process().wait(plugin.inquire(workspace, &question.to_string()))?;
        serde_json::from_slice(&text).map_err(|e| {
            Diagnostic::error(
                "Error reading the history",
                format!(
                    "The answer of the backend \"{}\" cannot be read: {}.",
                    self.ty(),
                    files::json_reason(e)
                ),
            )
            .into()
        })
    }

    /// Lists the runs that have changed a state, or certain objects of it, the newest first.
    ///
    /// # Errors
    /// The store does not answer.
    pub fn runs(&self, workspace: &str, subject: Option<&Subject>) -> Result<Vec<Run>, Diagnostics> {
        let address = subject.map(Subject::question);
        self.answer(workspace, &json!({"history": {"address": address}}))
    }

    /// Returns the state as it was after a run.
    ///
    /// # Errors
    /// There is no such run, or the store does not answer.
    pub fn state_at(&self, workspace: &str, run: i64, codec: &Codec) -> Result<State, Diagnostics> {
        let question = json!({"state_at": {"run": run}}).to_string();
        let text = self
            .process()
            .wait(self.process().plugin().inquire(workspace, &question))?;
        let decoded = Sealer::new(codec.clone()).decode(text).map_err(|e| {
            let detail = format!("The state after the run {run} cannot be read: {e}.");
            Diagnostics::from(Diagnostic::error(e.summary(), detail))
        })?;
        Ok(decoded.map(|decoded| decoded.state).unwrap_or_default())
    }

    /// Runs a query in a read-only transaction.
    ///
    /// # Errors
    /// The query fails, or is not a single statement that returns rows.
    pub fn query(&self, workspace: &str, sql: &str) -> Result<Rows, Diagnostics> {
        self.answer(workspace, &json!({"query": {"sql": sql}}))
    }
}
