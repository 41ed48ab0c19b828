//! States from before version 4 of the format (Terraform before 0.12).
//!
//! Only parts without a counterpart in version 4 are lost: outputs of modules other than the root, and dependencies, which had another
//! form. The next apply records dependencies again. Attributes stay in the flat form until the provider upgrades them. Reading does not
//! change the file: it has its old version until the first change is saved.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResource, InstanceKey, ModuleInstance, Provider, Resource};
use cty::{Type, Value};
use serde::Deserialize;

use crate::shared::SharedMap;
use crate::syntax::parse;
use crate::{
    Attributes, ContentError, DeposedKey, FormatError, InstanceState, Object, ObjectStatus, OutputValue, ResourceState,
    State,
};

#[derive(Deserialize)]
struct FileV3<O> {
    #[serde(default)]
    terraform_version: Option<String>,
    #[serde(default)]
    serial: Option<u64>,
    #[serde(default)]
    lineage: Option<String>,
    #[serde(default = "Option::default")]
    modules: Option<Vec<ModuleV3<O>>>,
}

#[derive(Deserialize)]
struct ModuleV3<O> {
    #[serde(default)]
    path: Vec<String>,
    #[serde(default = "Option::default")]
    outputs: Option<BTreeMap<String, O>>,
    #[serde(default)]
    resources: Option<BTreeMap<String, ResourceV3>>,
}

#[derive(Deserialize)]
struct OutputV3 {
    #[serde(default)]
    sensitive: bool,
    #[serde(default)]
    value: serde_json::Value,
}

#[derive(Deserialize)]
struct ResourceV3 {
    #[serde(rename = "type", default)]
    ty: String,
    #[serde(default)]
    primary: Option<InstanceV3>,
    #[serde(default)]
    deposed: Option<Vec<InstanceV3>>,
    #[serde(default)]
    provider: String,
}

#[derive(Deserialize)]
struct InstanceV3 {
    #[serde(default)]
    id: String,
    #[serde(default)]
    attributes: Option<BTreeMap<String, String>>,
    #[serde(default)]
    meta: Option<BTreeMap<String, serde_json::Value>>,
    #[serde(default)]
    tainted: bool,
}

/// Reads version 1, whose outputs are plain text.
pub(crate) fn from_v1(text: &str) -> Result<State, FormatError> {
    upgrade(parse::<FileV3<String>>(text)?, |text| {
        Ok(OutputValue {
            value: Value::string(text),
            sensitive: false,
        })
    })
}

/// Reads versions 2 and 3.
pub(crate) fn from_v3(text: &str) -> Result<State, FormatError> {
    upgrade(parse::<FileV3<OutputV3>>(text)?, output)
}

fn output(output: OutputV3) -> Result<OutputValue, ContentError> {
    let value = cty::json::from_simple_json(&output.value).map_err(|e| ContentError::OldValue(e.to_string()))?;
    let value = cty::convert(&value, &collected(value.ty())).map_err(|e| ContentError::OldValue(e.to_string()))?;
    Ok(OutputValue {
        value,
        sensitive: output.sensitive,
    })
}

/// Returns the type that Terraform gives to an output of an old state. A collection whose elements all have one type becomes a list or a
/// map.
fn collected(ty: &Type) -> Type {
    // The recorded type is not used, because it does not include the types of elements.
    match ty {
        Type::Tuple(parts) => match parts.split_first() {
            Some((first, rest)) if rest.iter().all(|part| part == first) => Type::list(collected(first)),
            _ => ty.clone(),
        },
        Type::Object(object) => match object.attributes().split_first() {
            Some((first, rest)) if rest.iter().all(|part| part.ty == first.ty) => Type::map(collected(&first.ty)),
            _ => ty.clone(),
        },
        _ => ty.clone(),
    }
}

fn upgrade<O>(file: FileV3<O>, output: impl Fn(O) -> Result<OutputValue, ContentError>) -> Result<State, FormatError> {
    let content = |place: String, error| FormatError::Content { place, error };
    let mut state = State {
        terraform_version: file.terraform_version.unwrap_or_default(),
        serial: file.serial.unwrap_or_default(),
        lineage: file.lineage.unwrap_or_default(),
        ..State::default()
    };
    for old in file.modules.unwrap_or_default() {
        let names = match old.path.split_first() {
            Some((root, names)) if root == "root" => names,
            _ => {
                return Err(content("modules".into(), ContentError::ModulePath(old.path)));
            }
        };
        // Before version 4, modules have no instance keys.
        let module = names
            .iter()
            .fold(ModuleInstance::root(), |m, name| m.child(&**name, InstanceKey::None));
        // Version 4 stores only the outputs of the root module.
        if module.is_root() {
            for (name, old) in old.outputs.unwrap_or_default() {
                let value = output(old).map_err(|error| content(format!("output \"{name}\""), error))?;
                state.outputs.insert(name.into(), value);
            }
        }
        for (key, old) in old.resources.unwrap_or_default() {
            add_resource(&module, &key, old, &mut state).map_err(|error| {
                let dot = if module.is_root() { "" } else { "." };
                content(format!("{module}{dot}{key}"), error)
            })?;
        }
    }
    Ok(state)
}

fn add_resource(module: &ModuleInstance, key: &str, old: ResourceV3, state: &mut State) -> Result<(), ContentError> {
    let (resource, key) = resource_key(key)?;
    let provider = provider(module, &resource, &old)?;
    let mut instance = InstanceState::default();
    if let Some(primary) = old.primary {
        instance.current = Some(Arc::new(object(primary)?));
    }
    for (i, deposed) in old.deposed.unwrap_or_default().into_iter().enumerate() {
        instance
            .deposed
            // Old formats have a list of deposed objects without keys. Keys are made from the positions, so that every reading gives the
            // same keys.
            .insert(DeposedKey(format!("{:08x}", i + 1).into()), Arc::new(object(deposed)?));
    }
    if !instance.is_empty() {
        state
            .resources
            .entry(AbsResource {
                module: module.clone(),
                resource,
            })
            .or_insert_with(|| ResourceState {
                provider,
                instances: SharedMap::default(),
            })
            .instances
            .insert(key, instance);
    }
    Ok(())
}

/// Parses `TYPE.NAME`, `TYPE.NAME.INDEX` or either with `data.` in front.
fn resource_key(text: &str) -> Result<(Resource, InstanceKey), ContentError> {
    let bad = || ContentError::ResourceKey;
    let (data, rest) = match text.strip_prefix("data.") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut parts = rest.split('.');
    let (Some(ty), Some(name)) = (parts.next(), parts.next()) else {
        return Err(bad());
    };
    if !addrs::parse::is_identifier(ty) || !addrs::parse::is_identifier(name) {
        return Err(bad());
    }
    let key = match (parts.next(), parts.next()) {
        (None, _) => InstanceKey::None,
        (Some(index), None) => InstanceKey::Int(index.parse().map_err(|_| bad())?),
        _ => return Err(bad()),
    };
    Ok((
        if data {
            Resource::data(ty, name)
        } else {
            Resource::managed(ty, name)
        },
        key,
    ))
}

fn provider(module: &ModuleInstance, resource: &Resource, old: &ResourceV3) -> Result<AbsProviderConfig, ContentError> {
    if old.provider.contains("provider.") {
        return Ok(addrs::parse::provider_config(&old.provider)?);
    }
    // Older states have a provider name, with an alias if there is one, relative to the module. An empty text means the provider that the
    // resource type implies.
    let (name, alias) = match old.provider.split_once('.') {
        Some((name, alias)) => (name, Some(alias)),
        None if old.provider.is_empty() => (resource.implied_provider(), None),
        None => (&*old.provider, None),
    };
    if ![Some(name), alias]
        .into_iter()
        .flatten()
        .all(addrs::parse::is_identifier)
    {
        return Err(ContentError::OldProvider {
            address: old.provider.clone(),
            ty: old.ty.clone(),
        });
    }
    Ok(AbsProviderConfig::new(
        module.module(),
        Provider::implied(name),
        alias.map(Arc::from),
    ))
}

fn object(old: InstanceV3) -> Result<Object, ContentError> {
    let mut attributes = old.attributes.unwrap_or_default();
    if !old.id.is_empty() {
        attributes.insert("id".into(), old.id);
    }
    let mut meta = old.meta.unwrap_or_default();
    // Old states have schema versions as strings or numbers; an empty string means 0.
    let schema_version = match meta.remove("schema_version") {
        None | Some(serde_json::Value::Null) => 0,
        Some(serde_json::Value::String(version)) if version.is_empty() => 0,
        Some(version) => {
            let text = version.as_str().map_or_else(|| version.to_string(), str::to_owned);
            text.parse()
                .map_err(|_| ContentError::SchemaVersion(version.to_string()))?
        }
    };
    let private = match meta.is_empty() {
        true => Vec::new(),
        false => serde_json::to_vec(&meta).map_err(|e| ContentError::Json(e.to_string()))?,
    };
    Ok(Object {
        status: if old.tainted {
            ObjectStatus::Tainted
        } else {
            ObjectStatus::Ready
        },
        private,
        ..Object::new(schema_version, Attributes::Flat(Arc::new(attributes)))
    })
}

#[cfg(test)]
mod tests {
    use crate::document::{decode, encode};

    const V3: &str = r#"{"version":3,"terraform_version":"0.11.14","serial":4,"lineage":"aaaa","modules":[
        {"path":["root"],"outputs":{},"resources":{
            "null_resource.c.0":{"type":"null_resource","depends_on":["null_resource.a"],
                "primary":{"id":"1","attributes":{"id":"1"},"meta":{"schema_version":"3","t":{"create":600}},"tainted":true},
                "deposed":[{"id":"9","attributes":{}}],"provider":"module.m.provider.null.west"},
            "data.null_data_source.d":{"type":"null_data_source","primary":{"id":"s","attributes":{"id":"s"}},"provider":""}}},
        {"path":["root","m"],"resources":{"aws_x.y":{"type":"aws_x","primary":{"id":"1"}}}}]}"#;

    #[test]
    fn version_3_becomes_version_4() {
        let state = decode(V3.as_bytes()).unwrap().unwrap();
        let text = String::from_utf8(encode(&state).unwrap()).unwrap();
        let flat: String = text.split_whitespace().collect();
        assert_eq!((state.serial, &*state.lineage), (4, "aaaa"));
        for part in [
            r#""mode":"data","type":"null_data_source","name":"d","provider":"provider[\"registry.terraform.io/hashicorp/null\"]","instances":[{"schema_version":0,"attributes_flat":{"id":"s"},"sensitive_attributes":[],"identity_schema_version":0}]"#,
            r#""provider":"module.m.provider[\"registry.terraform.io/hashicorp/null\"].west","instances":[{"index_key":0,"status":"tainted","schema_version":3,"attributes_flat":{"id":"1"},"sensitive_attributes":[],"identity_schema_version":0,"private":"eyJ0Ijp7ImNyZWF0ZSI6NjAwfX0="},{"index_key":0,"deposed":"00000001","schema_version":0,"attributes_flat":{"id":"9"},"sensitive_attributes":[],"identity_schema_version":0}]"#,
            r#""module":"module.m","mode":"managed","type":"aws_x","name":"y","provider":"module.m.provider[\"registry.terraform.io/hashicorp/aws\"]""#,
        ] {
            assert!(flat.contains(part), "{part}\nis not in\n{text}");
        }
    }

    #[test]
    fn outputs_get_the_types_terraform_gives_them() {
        for (json, ty) in [
            ("\"1\"", "\"string\""),
            ("[]", r#"["tuple",[]]"#),
            ("{}", r#"["object",{}]"#),
            ("[\"1\",\"2\"]", r#"["list","string"]"#),
            ("{\"a\":\"b\"}", r#"["map","string"]"#),
            ("[{\"a\":\"1\"},{\"a\":\"2\"}]", r#"["list",["map","string"]]"#),
            (
                "[[\"1\"],[\"2\",\"3\"]]",
                r#"["tuple",[["tuple",["string"]],["tuple",["string","string"]]]]"#,
            ),
            ("[1,\"a\"]", r#"["tuple",["number","string"]]"#),
        ] {
            let text = format!(
                r#"{{"version":3,"modules":[{{"path":["root"],"outputs":{{"o":{{"type":"list","value":{json}}}}}}}]}}"#
            );
            let state = decode(text.as_bytes()).unwrap().unwrap();
            let found = cty::json::type_to_json(state.outputs["o"].value.ty());
            assert_eq!(cty::json::to_text(&found, None), ty, "{json}");
        }
    }

    #[test]
    fn invalid_old_states_are_refused() {
        for (text, part) in [
            (r#"{"version":3,"modules":[{"path":[]}]}"#, "does not begin at the root"),
            (
                r#"{"version":3,"modules":[{"path":["root"],"resources":{"x":{}}}]}"#,
                "x: this is not a resource type",
            ),
            (
                r#"{"version":2,"modules":[{"path":["root","m"],"resources":{"a.b":{"provider":"1x"}}}]}"#,
                "module.m.a.b",
            ),
            (
                r#"{"version":1,"modules":[{"path":["root"],"outputs":{"a":1}}]}"#,
                "line 1",
            ),
        ] {
            let error = decode(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
