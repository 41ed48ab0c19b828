//! Plans and schemas read from their documents: those that Terraform writes, and those that a server has of its plans, so that they
//! are shown as ours are.
//!
//! What is missing in a document is empty; what is there and makes no sense is an error, which says where.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResourceInstance};
use cty::{Marks, Path, Step, Type, Value};
use engine::plan::{Action, Mode, OutputChange, PlanView, Reason, ResourceChange};
use provider::{ProviderSchema, SchemaMap, Schemas};
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, NestedObject, Nesting, Schema};
use serde_json::Value as Json;

type Result<T> = std::result::Result<T, String>;

/// The schemas in the document of `providers schema -json`.
///
/// # Errors
/// It is not such a document.
pub fn schemas(document: &Json) -> Result<Schemas> {
    let providers = document["provider_schemas"].as_object().into_iter().flatten();
    let each = |content: &Json| -> Result<SchemaMap<Schema>> {
        let all = content.as_object().into_iter().flatten();
        all.map(|(name, s)| Ok((name.as_str().into(), Schema::new(0, block(&s["block"])?))))
            .collect()
    };
    let provider = |(name, content): (&String, &Json)| {
        let schema = ProviderSchema {
            resources: each(&content["resource_schemas"])?,
            data_sources: each(&content["data_source_schemas"])?,
            actions: each(&content["action_schemas"])?,
            ..ProviderSchema::default()
        };
        let provider = addrs::Provider::parse(name).map_err(|e| format!("provider {name}: {}", e.detail))?;
        Ok((provider, Arc::new(schema)))
    };
    Ok(Schemas {
        providers: providers.map(provider).collect::<Result<_>>()?,
        ..Schemas::default()
    })
}

fn flag(json: &Json, name: &str) -> bool {
    json[name].as_bool().unwrap_or(false)
}

fn block(json: &Json) -> Result<BlockSchema> {
    let blocks = json["block_types"].as_object().into_iter().flatten();
    let nested = |(name, b): (&String, &Json)| {
        let nested = NestedBlock {
            block: block(&b["block"])?,
            nesting: nesting(b),
            min_items: 0,
            max_items: 0,
        };
        Ok((name.as_str().into(), nested))
    };
    Ok(BlockSchema {
        attributes: attributes(&json["attributes"])?,
        blocks: blocks.map(nested).collect::<Result<_>>()?,
        ..BlockSchema::default()
    })
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

fn attributes(json: &Json) -> Result<BTreeMap<Arc<str>, AttributeSchema>> {
    let attribute = |(name, a): (&String, &Json)| {
        let schema = AttributeSchema {
            ty: match a.get("nested_type") {
                Some(nested) => AttributeType::Nested(NestedObject {
                    attributes: attributes(&nested["attributes"])?,
                    nesting: nesting(nested),
                }),
                None => AttributeType::Plain(cty::json::type_from_json(&a["type"]).map_err(|e| e.to_string())?),
            },
            required: flag(a, "required"),
            optional: flag(a, "optional"),
            computed: flag(a, "computed"),
            sensitive: flag(a, "sensitive"),
            write_only: flag(a, "write_only"),
            ..AttributeSchema::default()
        };
        Ok((name.as_str().into(), schema))
    };
    json.as_object().into_iter().flatten().map(attribute).collect()
}

/// A value of this type: its content, and what of it is unknown and sensitive.
fn value(content: &Json, unknown: &Json, sensitive: &Json, ty: &Type) -> Result<Value> {
    let plain = match unknown {
        Json::Bool(true) => Value::unknown(ty.clone()),
        _ => parts(content, unknown, sensitive, ty)?,
    };
    Ok(match sensitive {
        Json::Bool(true) => plain.with_marks(Marks::SENSITIVE),
        _ => plain,
    })
}

fn parts(content: &Json, unknown: &Json, sensitive: &Json, ty: &Type) -> Result<Value> {
    let part = |key: &str, ty: &Type| {
        let at = |json: &Json| json.get(key).cloned().unwrap_or(Json::Null);
        value(&at(content), &at(unknown), &at(sensitive), ty)
    };
    let item = |i: usize, ty: &Type| {
        let at = |json: &Json| json.get(i).cloned().unwrap_or(Json::Null);
        value(&at(content), &at(unknown), &at(sensitive), ty)
    };
    let keys = || {
        let of = |json: &'_ Json| -> Vec<String> {
            json.as_object()
                .into_iter()
                .flatten()
                .map(|(key, _)| key.clone())
                .collect()
        };
        of(content).into_iter().chain(of(unknown))
    };
    let length = |json: &Json| json.as_array().map_or(0, Vec::len);
    let all = |ty: &Type| {
        let length = length(content).max(length(unknown));
        (0..length).map(|i| item(i, ty)).collect::<Result<Vec<_>>>()
    };
    Ok(match (ty, content) {
        (_, Json::Null) if !has_true(unknown) => Value::null(ty.clone()),
        (Type::Object(o), _) => {
            let values = o.attributes().iter().map(|a| part(&a.name, &a.ty));
            Value::object_of(o, values.collect::<Result<_>>()?)
        }
        (Type::Map(e), _) => {
            let entries = keys().map(|k| Ok((k.as_str().into(), part(&k, e)?)));
            Value::map((**e).clone(), entries.collect::<Result<_>>()?)
        }
        (Type::List(e), _) => Value::list((**e).clone(), all(e)?),
        (Type::Set(e), _) => Value::set((**e).clone(), all(e)?),
        (Type::Tuple(types), _) => {
            let items = types.iter().enumerate().map(|(i, ty)| item(i, ty));
            Value::tuple(items.collect::<Result<_>>()?)
        }
        (Type::Dynamic, Json::Object(_)) => {
            let entries = keys().map(|k| Ok((k.clone(), part(&k, &Type::Dynamic)?)));
            Value::object(entries.collect::<Result<Vec<_>>>()?)
        }
        (Type::Dynamic, Json::Array(_)) => Value::tuple(all(&Type::Dynamic)?),
        (Type::Dynamic, scalar) => cty::json::from_simple_json(scalar).map_err(|e| e.to_string())?,
        (ty, scalar) => cty::json::from_json(scalar, ty).map_err(|e| e.to_string())?,
    })
}

fn has_true(json: &Json) -> bool {
    match json {
        Json::Bool(b) => *b,
        Json::Array(items) => items.iter().any(has_true),
        Json::Object(items) => items.values().any(has_true),
        _ => false,
    }
}

fn path(json: &Json) -> Result<Path> {
    let step = |step: &Json| {
        Ok(match step {
            Json::String(name) => Step::Attribute(name.as_str().into()),
            other => Step::Index(cty::json::from_simple_json(other).map_err(|e| e.to_string())?),
        })
    };
    let steps = json.as_array().into_iter().flatten().map(step);
    Ok(Path(steps.collect::<Result<_>>()?))
}

fn action(json: &Json) -> Action {
    let words = json["actions"].as_array().into_iter().flatten();
    let words: Vec<&str> = words.filter_map(Json::as_str).collect();
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

const REASONS: [Reason; 14] = [
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
    Reason::ForgetBecauseState,
    Reason::ReadBecauseConfigUnknown,
    Reason::ReadBecauseDependencyPending,
    Reason::ReadBecauseCheckNested,
];

fn address(text: &str) -> Result<AbsResourceInstance> {
    addrs::parse::resource_instance(text).map_err(|e| format!("address {text}: {}", e.detail))
}

fn change(json: &Json, schemas: &Schemas) -> Result<ResourceChange> {
    let text = |name: &str| json[name].as_str().unwrap_or_default();
    let provider = text("provider_name");
    let provider = addrs::Provider::parse(provider).map_err(|e| format!("provider {provider}: {}", e.detail))?;
    let address = address(text("address"))?;
    let resource = &address.resource.resource;
    let schema = schemas.resource(&provider, resource.mode, &resource.ty);
    let ty = schema
        .ok_or_else(|| format!("there is no schema for {address}"))?
        .implied_type();
    let change = &json["change"];
    let side = |name: &str, unknown: &Json| {
        if change[name].is_null() {
            return Ok(Value::null(ty.clone()));
        }
        let sensitive = &change[format!("{name}_sensitive")];
        value(&change[name], unknown, sensitive, &ty).map_err(|e| format!("{address}: {e}"))
    };
    let paths = change["replace_paths"].as_array().into_iter().flatten();
    Ok(ResourceChange {
        previous_address: json["previous_address"].as_str().map(self::address).transpose()?,
        deposed: json["deposed"].as_str().map(Into::into),
        provider: AbsProviderConfig::root(provider),
        action: action(change),
        reason: REASONS
            .into_iter()
            .find(|r| r.as_json() == json["action_reason"].as_str())
            .unwrap_or_default(),
        before: side("before", &Json::Null)?,
        after: side("after", &change["after_unknown"])?,
        replace_paths: paths.map(path).collect::<Result<_>>()?,
        private: Vec::new(),
        config_known: true,
        importing: change["importing"]["id"]
            .as_str()
            .map(|id| engine::plan::ImportedBy::Id(id.into())),
        identity: None,
        address,
    })
}

fn output(json: &Json) -> Result<OutputChange> {
    let (known, any) = (Json::Null, Type::Dynamic);
    Ok(OutputChange {
        action: action(json),
        before: value(&json["before"], &known, &json["before_sensitive"], &any)?,
        after: value(&json["after"], &json["after_unknown"], &json["after_sensitive"], &any)?,
        sensitive: false,
    })
}

/// A plan as a document has it.
#[derive(Clone, Debug, Default)]
pub struct PlanDocument {
    pub mode: Mode,
    pub changes: Vec<ResourceChange>,
    pub drift: Vec<ResourceChange>,
    pub outputs: BTreeMap<Arc<str>, OutputChange>,
    pub relevant_attributes: Vec<(AbsResourceInstance, Path)>,
    pub generated_config: BTreeMap<AbsResourceInstance, String>,
    pub errored: bool,
}

impl PlanDocument {
    #[must_use]
    pub fn view(&self) -> PlanView<'_> {
        PlanView {
            mode: self.mode,
            changes: &self.changes,
            drift: &self.drift,
            // These documents are not read for their invocations.
            invocations: &[],
            outputs: &self.outputs,
            relevant_attributes: &self.relevant_attributes,
            generated_config: &self.generated_config,
            errored: self.errored,
        }
    }
}

/// The plan in the document of `show -json`, or in the one that a server has for showing it.
///
/// # Errors
/// It is not such a document, or the schemas are not those of its objects.
pub fn plan(json: &Json, schemas: &Schemas) -> Result<PlanDocument> {
    let list = |name: &str| json[name].as_array().into_iter().flatten();
    let changes = |name: &str| list(name).map(|c| change(c, schemas)).collect::<Result<Vec<_>>>();
    let relevant = |r: &Json| {
        Ok((
            address(r["resource"].as_str().unwrap_or_default())?,
            path(&r["attribute"])?,
        ))
    };
    let outputs = json["output_changes"].as_object().into_iter().flatten();
    let generated = list("resource_changes").filter_map(|c| {
        let text = c["change"]["generated_config"].as_str()?;
        Some(address(c["address"].as_str()?).map(|address| (address, text.to_owned())))
    });
    Ok(PlanDocument {
        mode: match json["mode"].as_str() {
            Some("destroy") => Mode::Destroy,
            Some("refresh-only") => Mode::RefreshOnly,
            _ => Mode::Normal,
        },
        changes: changes("resource_changes")?,
        drift: changes("resource_drift")?,
        outputs: outputs
            .map(|(name, o)| Ok((name.as_str().into(), output(o)?)))
            .collect::<Result<_>>()?,
        relevant_attributes: list("relevant_attributes").map(relevant).collect::<Result<_>>()?,
        generated_config: generated.collect::<Result<_>>()?,
        errored: flag(json, "errored"),
    })
}
