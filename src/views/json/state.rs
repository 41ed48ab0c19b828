//! Document of a state.

use std::collections::{BTreeMap, BTreeSet};

use ::state::{Object as StoredObject, ObjectStatus, State};
use addrs::ModuleInstance;
use cty::{Type, Value};
use engine::instance::{decode, stored_marks};
use provider::Schemas;
use serde_json::{Map, Value as Json};

use super::checks::checks;
use super::values::{known_part, output, sensitive_parts};
use super::{Object, STATE_FORMAT, instance_key};

/// Resources by module instance, for nesting.
pub struct ModuleTree(pub(crate) BTreeMap<ModuleInstance, Vec<Json>>);

impl ModuleTree {
    /// Returns the document of a module instance and all its descendants.
    pub fn document(&self, at: &ModuleInstance) -> Json {
        let children: BTreeSet<ModuleInstance> = self
            .0
            .keys()
            .filter(|m| m.0.len() > at.0.len() && at.contains(m))
            .map(|m| ModuleInstance(m.0[..=at.0.len()].into()))
            .collect();
        let children: Vec<Json> = children.iter().map(|child| self.document(child)).collect();
        Object::default()
            .with_content("resources", self.0.get(at).cloned().unwrap_or_default())
            .with_content("address", at.to_string())
            .with_content("child_modules", children)
            .into()
    }
}

/// Returns the document of `show -json` for a state. Without schemas, or for objects that do not fit them, it has the stored
/// attributes.
#[must_use]
pub fn state_document(state: &State, schemas: Option<&Schemas>, tool_version: &str) -> Json {
    let document = Object::default().with("format_version", STATE_FORMAT);
    if state.is_empty() {
        return document.into();
    }
    let outputs: Map<String, Json> = state
        .outputs
        .iter()
        .map(|(name, o)| (name.to_string(), output(&o.value, o.sensitive, true)))
        .collect();
    let mut modules: BTreeMap<ModuleInstance, Vec<Json>> = BTreeMap::new();
    for (resource, existing, key, instance) in state.instances() {
        let address = resource.instance(key.clone());
        let schema = schemas.and_then(|s| {
            s.resource(
                &existing.provider.provider,
                resource.resource.mode,
                &resource.resource.ty,
            )
        });
        let entry = |object: &std::sync::Arc<StoredObject>, deposed: Option<&str>| -> Json {
            let value = schema.and_then(|s| decode(s, object, &address).ok().map(|stored| stored.marked(s)));
            let (values, sensitive) = match &value {
                Some(value) => (known_part(value).unwrap_or(Json::Null), sensitive_parts(value)),
                None => plain(object),
            };
            let depends_on: Vec<String> = object.dependencies.iter().map(ToString::to_string).collect();
            let version = match resource.resource.mode {
                // As in Terraform, data sources have version 0. States of earlier releases may have the schema's version.
                addrs::Mode::Data => 0,
                _ => object.schema_version,
            };
            let identity = object.identity.as_ref().and_then(|i| i.value.as_ref()?.to_value().ok());
            // Terraform writes the version for current objects only.
            let said = identity.is_some() && deposed.is_none();
            let identity_version = object.identity.as_ref().filter(|_| said).map(|i| i.schema_version);
            Object::default()
                .with("address", address.to_string())
                .with("mode", resource.resource.mode.as_str())
                .with("type", &*resource.resource.ty)
                .with("name", &*resource.resource.name)
                .with_some("index", instance_key(key))
                .with("provider_name", existing.provider.provider.to_string())
                .with("schema_version", version)
                .with("values", values)
                .with("sensitive_values", sensitive)
                .with_content("depends_on", depends_on)
                .with_content("tainted", object.status == ObjectStatus::Tainted)
                .with_some("deposed_key", deposed)
                .with_some("identity_schema_version", identity_version)
                .with_some("identity", identity)
                .into()
        };
        let list = modules.entry(resource.module.clone()).or_default();
        list.extend(instance.current.iter().map(|o| entry(o, None)));
        list.extend(instance.deposed.iter().map(|(key, o)| entry(o, Some(&key.0))));
    }
    let values = Object::default()
        .with_content("outputs", outputs)
        .with("root_module", ModuleTree(modules).document(&ModuleInstance::root()));
    document
        .with("terraform_version", tool_version)
        .with("values", values)
        .with_content("checks", checks(state.check_results.as_deref().unwrap_or_default()))
        .into()
}

/// Returns the document of the only object in a state.
#[must_use]
pub fn single_object(state: &State, schemas: &Schemas) -> Json {
    let document = state_document(state, Some(schemas), "");
    let mut module = &document["values"]["root_module"];
    while module["resources"].is_null() && !module["child_modules"].is_null() {
        module = &module["child_modules"][0];
    }
    module["resources"][0].clone()
}

/// Returns the stored attributes of an object without its schema, and their sensitive parts.
fn plain(object: &StoredObject) -> (Json, Json) {
    let ::state::Attributes::Json(raw) = &object.attributes else {
        return (Json::Null, Json::Object(Map::new()));
    };
    let json = raw.to_value().unwrap_or(Json::Null);
    let value = cty::json::from_simple_json(&json)
        .unwrap_or_else(|_| Value::null(Type::Dynamic))
        .mark_paths(&stored_marks(object));
    (json, sensitive_parts(&value))
}
