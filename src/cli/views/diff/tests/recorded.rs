//! Plans and schemas read from the JSON that Terraform writes of them, so that what it showed of a plan can be compared
//! with what we show of the same plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::AbsProviderConfig;
use cty::{Marks, Path, Step, Type, Value};
use engine::execgraph::ExecGraph;
use engine::plan::{Action, Mode, OutputChange, Plan, Reason, ResourceChange};
use provider::ProviderSchema;
use provider::Schemas;
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, NestedObject, Nesting, Schema};
use serde_json::Value as Json;

/// The schemas in the document of `providers schema -json`.
pub(super) fn schemas(document: &Json) -> Schemas {
    let providers = document["provider_schemas"].as_object().unwrap();
    let each = |content: &Json| -> BTreeMap<Arc<str>, Schema> {
        let all = content.as_object().into_iter().flatten();
        all.map(|(name, s)| (name.as_str().into(), Schema::new(0, block(&s["block"]))))
            .collect()
    };
    Schemas {
        providers: providers
            .iter()
            .map(|(name, content)| {
                let schema = ProviderSchema {
                    resources: each(&content["resource_schemas"]).into_iter().collect(),
                    data_sources: each(&content["data_source_schemas"]).into_iter().collect(),
                    ..ProviderSchema::default()
                };
                (addrs::Provider::parse(name).unwrap(), Arc::new(schema))
            })
            .collect(),
        ..Schemas::default()
    }
}

fn flag(json: &Json, name: &str) -> bool {
    json[name].as_bool().unwrap_or(false)
}

fn block(json: &Json) -> BlockSchema {
    let blocks = json["block_types"].as_object().into_iter().flatten();
    BlockSchema {
        attributes: attributes(&json["attributes"]),
        blocks: blocks
            .map(|(name, b)| {
                let nested = NestedBlock {
                    block: block(&b["block"]),
                    nesting: nesting(b),
                    min_items: 0,
                    max_items: 0,
                };
                (name.as_str().into(), nested)
            })
            .collect(),
        ..BlockSchema::default()
    }
}

fn nesting(json: &Json) -> Nesting {
    match json["nesting_mode"].as_str() {
        Some("single") => Nesting::Single,
        Some("group") => Nesting::Group,
        Some("list") => Nesting::List,
        Some("set") => Nesting::Set,
        _ => Nesting::Map,
    }
}

fn attributes(json: &Json) -> BTreeMap<Arc<str>, AttributeSchema> {
    let attribute = |a: &Json| AttributeSchema {
        ty: match a.get("nested_type") {
            Some(nested) => AttributeType::Nested(NestedObject {
                attributes: attributes(&nested["attributes"]),
                nesting: nesting(nested),
            }),
            None => AttributeType::Plain(cty::json::type_from_json(&a["type"]).unwrap()),
        },
        required: flag(a, "required"),
        optional: flag(a, "optional"),
        computed: flag(a, "computed"),
        sensitive: flag(a, "sensitive"),
        write_only: flag(a, "write_only"),
        ..AttributeSchema::default()
    };
    json.as_object()
        .into_iter()
        .flatten()
        .map(|(name, a)| (name.as_str().into(), attribute(a)))
        .collect()
}

/// A value of this type: its content, and what of it is unknown and sensitive.
fn value(content: &Json, unknown: &Json, sensitive: &Json, ty: &Type) -> Value {
    let plain = if unknown == &Json::Bool(true) {
        Value::unknown(ty.clone())
    } else {
        let at = |json: &Json, key: &str| json.get(key).cloned().unwrap_or(Json::Null);
        let part = |key: &str, ty: &Type| value(&at(content, key), &at(unknown, key), &at(sensitive, key), ty);
        let item = |i: usize, ty: &Type| {
            let at = |json: &Json| json.get(i).cloned().unwrap_or(Json::Null);
            value(&at(content), &at(unknown), &at(sensitive), ty)
        };
        let keys = || {
            let mut keys: Vec<&String> = content.as_object().into_iter().flatten().map(|(k, _)| k).collect();
            keys.extend(unknown.as_object().into_iter().flatten().map(|(k, _)| k));
            keys
        };
        let length = || {
            content
                .as_array()
                .map_or(0, Vec::len)
                .max(unknown.as_array().map_or(0, Vec::len))
        };
        match (ty, content) {
            (_, Json::Null) if !has_true(unknown) => Value::null(ty.clone()),
            (Type::Object(o), _) => Value::object_of(o, o.attributes().iter().map(|a| part(&a.name, &a.ty)).collect()),
            (Type::Map(e), _) => Value::map(
                (**e).clone(),
                keys().into_iter().map(|k| (k.as_str().into(), part(k, e))).collect(),
            ),
            (Type::List(e), _) => Value::list((**e).clone(), (0..length()).map(|i| item(i, e)).collect()),
            (Type::Set(e), _) => Value::set((**e).clone(), (0..length()).map(|i| item(i, e)).collect()),
            (Type::Tuple(ts), _) => Value::tuple(ts.iter().enumerate().map(|(i, t)| item(i, t)).collect()),
            (Type::Dynamic, Json::Object(_)) => {
                Value::object(keys().into_iter().map(|k| (k.as_str(), part(k, &Type::Dynamic))))
            }
            (Type::Dynamic, Json::Array(_)) => Value::tuple((0..length()).map(|i| item(i, &Type::Dynamic)).collect()),
            (Type::Dynamic, scalar) => cty::json::from_simple_json(scalar).unwrap(),
            (ty, scalar) => cty::json::from_json(scalar, ty).unwrap(),
        }
    };
    if sensitive == &Json::Bool(true) {
        plain.with_marks(Marks::SENSITIVE)
    } else {
        plain
    }
}

fn has_true(json: &Json) -> bool {
    match json {
        Json::Bool(b) => *b,
        Json::Array(items) => items.iter().any(has_true),
        Json::Object(items) => items.values().any(has_true),
        _ => false,
    }
}

fn path(json: &Json) -> Path {
    Path(
        json.as_array()
            .into_iter()
            .flatten()
            .map(|step| match step {
                Json::String(name) => Step::Attribute(name.as_str().into()),
                other => Step::Index(cty::json::from_simple_json(other).unwrap()),
            })
            .collect(),
    )
}

fn action(json: &Json) -> Action {
    let words: Vec<&str> = json["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w.as_str().unwrap())
        .collect();
    match words.as_slice() {
        ["create"] => Action::Create,
        ["read"] => Action::Read,
        ["update"] => Action::Update,
        ["delete"] => Action::Delete,
        ["delete", "create"] => Action::DeleteThenCreate,
        ["create", "delete"] => Action::CreateThenDelete,
        ["forget"] => Action::Forget,
        ["create", "forget"] => Action::CreateThenForget,
        _ => Action::NoOp,
    }
}

const REASONS: [Reason; 13] = [
    Reason::ReplaceBecauseCannotUpdate,
    Reason::ReplaceBecauseTainted,
    Reason::ReplaceByRequest,
    Reason::ReplaceByTriggers,
    Reason::DeleteBecauseNoResourceConfig,
    Reason::DeleteBecauseWrongRepetition,
    Reason::DeleteBecauseCountIndex,
    Reason::DeleteBecauseEachKey,
    Reason::DeleteBecauseNoModule,
    Reason::DeleteBecauseNoMoveTarget,
    Reason::ReadBecauseConfigUnknown,
    Reason::ReadBecauseDependencyPending,
    Reason::ReadBecauseCheckNested,
];

fn change(json: &Json, schemas: &Schemas) -> ResourceChange {
    let address = addrs::parse::resource_instance(json["address"].as_str().unwrap()).unwrap();
    let provider = addrs::Provider::parse(json["provider_name"].as_str().unwrap()).unwrap();
    let resource = &address.resource.resource;
    let ty = schemas
        .resource(&provider, resource.mode, &resource.ty)
        .unwrap()
        .implied_type();
    let change = &json["change"];
    let known = Json::Null;
    let side = |name: &str, unknown: &Json| {
        if change[name].is_null() {
            Value::null(ty.clone())
        } else {
            value(&change[name], unknown, &change[format!("{name}_sensitive")], &ty)
        }
    };
    ResourceChange {
        previous_address: json["previous_address"]
            .as_str()
            .map(|a| addrs::parse::resource_instance(a).unwrap()),
        deposed: json["deposed"].as_str().map(Into::into),
        provider: AbsProviderConfig::root(provider),
        action: action(change),
        reason: REASONS
            .into_iter()
            .find(|r| r.as_json() == json["action_reason"].as_str())
            .unwrap_or_default(),
        before: side("before", &known),
        after: side("after", &change["after_unknown"]),
        replace_paths: change["replace_paths"]
            .as_array()
            .into_iter()
            .flatten()
            .map(path)
            .collect(),
        private: Vec::new(),
        config_known: true,
        importing: change["importing"]["id"]
            .as_str()
            .map(|id| provider::ImportTarget::Id(id.into())),
        identity: None,
        address,
    }
}

fn output(json: &Json) -> OutputChange {
    OutputChange {
        action: action(json),
        before: value(&json["before"], &Json::Null, &json["before_sensitive"], &Type::Dynamic),
        after: value(
            &json["after"],
            &json["after_unknown"],
            &json["after_sensitive"],
            &Type::Dynamic,
        ),
        sensitive: false,
    }
}

/// The plan in the document of `show -json`.
pub(super) fn plan(json: &Json, schemas: &Schemas) -> Plan {
    let changes = |name: &str| {
        json[name]
            .as_array()
            .into_iter()
            .flatten()
            .map(|c| change(c, schemas))
            .collect()
    };
    let relevant = json["relevant_attributes"].as_array().into_iter().flatten();
    let outputs = json["output_changes"].as_object().into_iter().flatten();
    Plan {
        mode: match json["mode"].as_str() {
            Some("destroy") => Mode::Destroy,
            Some("refresh-only") => Mode::RefreshOnly,
            _ => Mode::Normal,
        },
        changes: changes("resource_changes"),
        drift: changes("resource_drift"),
        outputs: outputs.map(|(name, o)| (name.as_str().into(), output(o))).collect(),
        relevant_attributes: relevant
            .map(|r| {
                let address = addrs::parse::resource_instance(r["resource"].as_str().unwrap()).unwrap();
                (address, path(&r["attribute"]))
            })
            .collect(),
        generated_config: json["resource_changes"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|c| {
                let address = addrs::parse::resource_instance(c["address"].as_str()?).unwrap();
                Some((address, c["change"]["generated_config"].as_str()?.to_owned()))
            })
            .collect(),
        errored: flag(json, "errored"),
        saved: false,
        ..empty_plan()
    }
}

/// A plan without changes.
pub(super) fn empty_plan() -> Plan {
    Plan {
        mode: Mode::Normal,
        timestamp: String::new(),
        variables: BTreeMap::new(),
        given_variables: BTreeMap::new(),
        targets: Vec::new(),
        excludes: Vec::new(),
        force_replace: Vec::new(),
        changes: Vec::new(),
        drift: Vec::new(),
        outputs: BTreeMap::new(),
        previous_state: state::State::new(),
        prior_state: state::State::new(),
        graph: ExecGraph::default(),
        relevant_attributes: Vec::new(),
        function_results: Default::default(),
        checks: Vec::new(),
        generated_config: BTreeMap::new(),
        invocations: Vec::new(),
        invoke: None,
        dropped_data: Vec::new(),
        errored: false,
        saved: false,
    }
}
