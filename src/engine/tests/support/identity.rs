//! Identities of the fake provider's objects, and its responses to requests to list objects and to generate configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Type, Value};
use provider::{Answer, ListRequest, ListSchema, Listed, ProviderSchema};
use schema::{IdentityAttribute, IdentitySchema, Schema};
use syntax::{Diagnostic, Diagnostics};

use super::provider::{block, call, fine, text, twisted};
use super::remote::{FakeRemote, with};

/// Returns the identity schema. `id` is required for import, and `region` is optional.
fn schema(version: u64) -> IdentitySchema {
    let attribute = |required: bool| IdentityAttribute {
        ty: Type::String,
        required_for_import: required,
        optional_for_import: !required,
        description: String::new(),
    };
    IdentitySchema::new(
        version,
        BTreeMap::from([("id".into(), attribute(true)), ("region".into(), attribute(false))]),
    )
}

/// Adds identities, list resources and generated configuration to the schema, as the remote's settings say.
pub fn with_identities(remote: &FakeRemote, name: &str, mut all: ProviderSchema) -> ProviderSchema {
    let data = remote.lock();
    if let Some(version) = data.identities {
        let ty: Arc<str> = format!("{name}_thing").into();
        all.resources.get_mut(&ty).unwrap().identity = Some(Arc::new(schema(version)));
        let config = block(&[("prefix", Type::String, "o")]);
        all.lists.insert(ty, ListSchema::new(Schema::new(0, config)));
    }
    all.capabilities.generate_resource_config = data.generates;
    all
}

/// Returns the identity of an object; `None` if the remote has no identities. If the `id` of the object is unknown or null, the identity
/// stays as before.
pub fn identity_of(remote: &FakeRemote, name: &str, object: &Value, before: Option<Value>) -> Option<Value> {
    remote.lock().identities?;
    let identity = match object.get("id") {
        Some(id) if id.is_known() && !id.is_null() => identity(id.as_str().unwrap()),
        _ => before.unwrap_or_else(|| Value::null(schema(0).implied_type())),
    };
    let identity = twisted(remote, &format!("identity {name}"), identity);
    (!identity.is_null()).then_some(identity)
}

pub fn identity(id: &str) -> Value {
    Value::object([("id", Value::string(id)), ("region", Value::string("here"))])
}

/// Upgrades a stored identity. Version 0 has the ID in `id`, later versions have it in `name`.
pub fn upgraded(remote: &FakeRemote, version: u64, json: &[u8]) -> Result<Answer<Option<Value>>, Diagnostics> {
    let json: serde_json::Value =
        serde_json::from_slice(json).map_err(|e| Diagnostic::error("Bad identity", e.to_string()))?;
    let name = if version == 0 { "id" } else { "name" };
    let id = json[name].as_str().unwrap_or("?");
    fine(Some(twisted(remote, &format!("identity upgrade {id}"), identity(id))))
}

/// Returns the configuration of an object, which consists of its `name` and its `rule` blocks.
pub async fn configuration(remote: &FakeRemote, object: &Value) -> Result<Answer<Value>, Diagnostics> {
    let name = text(object, "name").to_owned();
    call(remote, &format!("generate {name}")).await?;
    let mut config = object.clone();
    for (attribute, _) in object.entries().into_iter().flatten() {
        if &**attribute != "name" && &**attribute != "rule" {
            let ty = object.get(attribute).unwrap().ty().clone();
            config = with(&config, attribute, Value::null(ty));
        }
    }
    fine(twisted(remote, &format!("generate {name}"), config))
}

/// Returns the objects whose names begin with the prefix in the request, up to the limit of the request.
pub async fn listed(remote: &FakeRemote, request: ListRequest) -> Result<Answer<Vec<Listed>>, Diagnostics> {
    let prefix = request
        .config
        .get("prefix")
        .and_then(Value::as_str)
        .unwrap_or("")
        .to_owned();
    let failing = call(remote, &format!("list {prefix}")).await?;
    if failing {
        return Err(Diagnostic::error("Cannot list", "It is closed.").into());
    }
    let mut data = remote.lock();
    data.listed
        .push((request.config.clone(), request.include_object, request.limit));
    let found = data
        .objects
        .iter()
        .filter(|(_, o)| text(o, "name").starts_with(&prefix));
    let found = found.take(usize::try_from(request.limit).unwrap());
    fine(
        found
            .map(|(id, object)| Listed {
                display_name: text(object, "name").to_uppercase(),
                identity: identity(id),
                object: if request.include_object {
                    object.clone()
                } else {
                    Value::null(object.ty().clone())
                },
            })
            .collect(),
    )
}
