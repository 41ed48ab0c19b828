//! JSON documents: plans, states, configurations and diagnostics.
//!
//! The documents have the format that tools around Terraform read. Keys are in the order in which Terraform writes them, and keys
//! without content are left out where Terraform leaves them out. Everything here is a function from the engine's data to a JSON
//! value; the commands print it.

pub mod actions;
mod checks;
pub mod configuration;
pub mod diagnostics;
pub mod documents;
mod expressions;
pub mod graph;
pub mod plan;
mod provider_configs;
pub mod read;
pub mod schemas;
pub mod state;
pub mod summary;
pub mod tested;
pub mod values;

use serde_json::{Map, Value as Json};

/// Format version of the plan document.
pub const PLAN_FORMAT: &str = "1.2";
/// Format version of the state document.
pub const STATE_FORMAT: &str = "1.0";

/// JSON object that is built key by key.
#[derive(Default)]
pub struct Object(Map<String, Json>);

impl Object {
    pub fn with(mut self, key: &str, value: impl Into<Json>) -> Object {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Adds a key, unless the value is null, false, an empty string, or an empty list or object.
    pub fn with_content(self, key: &str, value: impl Into<Json>) -> Object {
        let value = value.into();
        let empty = match &value {
            Json::Null => true,
            Json::Bool(b) => !b,
            Json::String(s) => s.is_empty(),
            Json::Array(items) => items.is_empty(),
            Json::Object(items) => items.is_empty(),
            Json::Number(_) => false,
        };
        if empty { self } else { self.with(key, value) }
    }

    /// Adds a key, if there is a value.
    pub fn with_some(self, key: &str, value: Option<impl Into<Json>>) -> Object {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }
}

impl From<Object> for Json {
    fn from(object: Object) -> Json {
        Json::Object(object.0)
    }
}

/// Converts an instance key to JSON, if there is one.
pub fn instance_key(key: &addrs::InstanceKey) -> Option<Json> {
    match key {
        addrs::InstanceKey::None => None,
        addrs::InstanceKey::Int(n) => Some((*n).into()),
        addrs::InstanceKey::String(s) => Some((**s).into()),
    }
}
