//! Reads plans and schemas from documents of Terraform and HCP Terraform, so that they can be displayed like our own.
//!
//! Missing members are empty; invalid ones are errors that name their position.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::parse::ParseError;
use addrs::{AbsProviderConfig, AbsResourceInstance};
use cty::json::TypeError;
use cty::msgpack::CodecError;
use cty::{Marks, Path, Step, Type, Value};
use engine::plan::{Action, Mode, OutputChange, PlanView, Reason, ResourceChange};
use provider::{ProviderSchema, SchemaMap, Schemas};
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, NestedObject, Nesting, Schema};
use serde_json::Value as Json;

/// The reason why a document cannot be read, as a part of a sentence.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("provider {name}: {}", source.detail)]
    Provider { name: String, source: ParseError },
    #[error("address {text}: {}", source.detail)]
    Address { text: String, source: ParseError },
    #[error(transparent)]
    Type(#[from] TypeError),
    #[error(transparent)]
    Value(#[from] CodecError),
    #[error("there is no schema for {0}")]
    NoSchema(Box<AbsResourceInstance>),
    #[error("{address}: {source}")]
    Object {
        address: Box<AbsResourceInstance>,
        source: Box<ReadError>,
    },
}

type Result<T> = std::result::Result<T, ReadError>;

/// Reads schemas from the document of `providers schema -json`.
///
/// # Errors
/// The document has another form.
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
        let provider = parse_provider(name)?;
        Ok((provider, Arc::new(schema)))
    };
    Ok(Schemas {
        providers: providers.map(provider).collect::<Result<_>>()?,
        ..Schemas::default()
    })
}

fn parse_provider(name: &str) -> Result<addrs::Provider> {
    addrs::Provider::parse(name).map_err(|source| ReadError::Provider {
        name: name.to_owned(),
        source,
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
                None => AttributeType::Plain(cty::json::type_from_json(&a["type"])?),
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

/// Reads a value of a type from its content and the documents of its unknown and sensitive parts.
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
        // An object whose attributes are all unknown has no content, but is not null.
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
        (Type::Dynamic, scalar) => cty::json::from_simple_json(scalar)?,
        (ty, scalar) => cty::json::from_json(scalar, ty)?,
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
            other => Step::Index(cty::json::from_simple_json(other)?),
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

const REASONS: [Reason; 15] = [
    Reason::ReplaceBecauseCannotUpdate,
    Reason::ReplaceBecauseTainted,
    Reason::ReplaceByRequest,
    Reason::ReplaceByTriggers,
    Reason::DeleteBecauseNoResourceConfig,
    Reason::DeleteBecauseWrongRepetition,
    Reason::DeleteBecauseCountIndex,
    Reason::DeleteBecauseEachKey,
    Reason::DeleteBecauseEnabledFalse,
    Reason::DeleteBecauseNoModule,
    Reason::DeleteBecauseNoMoveTarget,
    Reason::ForgetBecauseState,
    Reason::ReadBecauseConfigUnknown,
    Reason::ReadBecauseDependencyPending,
    Reason::ReadBecauseCheckNested,
];

fn address(text: &str) -> Result<AbsResourceInstance> {
    addrs::parse::resource_instance(text).map_err(|source| ReadError::Address {
        text: text.to_owned(),
        source,
    })
}

fn change(json: &Json, schemas: &Schemas) -> Result<ResourceChange> {
    let text = |name: &str| json[name].as_str().unwrap_or_default();
    let provider = text("provider_name");
    let provider = parse_provider(provider)?;
    let address = address(text("address"))?;
    let resource = &address.resource.resource;
    let schema = schemas.resource(&provider, resource.mode, &resource.ty);
    let ty = schema
        .ok_or_else(|| ReadError::NoSchema(Box::new(address.clone())))?
        .implied_type();
    let change = &json["change"];
    let side = |name: &str, unknown: &Json| {
        if change[name].is_null() {
            return Ok(Value::null(ty.clone()));
        }
        let sensitive = &change[format!("{name}_sensitive")];
        value(&change[name], unknown, sensitive, &ty).map_err(|source| ReadError::Object {
            address: Box::new(address.clone()),
            source: Box::new(source),
        })
    };
    let paths = change["replace_paths"].as_array().into_iter().flatten();
    Ok(ResourceChange {
        previous_address: json["previous_address"].as_str().map(self::address).transpose()?,
        deposed: json["deposed"].as_str().map(Into::into),
        provider: AbsProviderConfig::root(provider),
        action: action(change),
        // A reason from a later version is shown as no reason.
        reason: REASONS
            .into_iter()
            .find(|r| r.as_json() == json["action_reason"].as_str())
            .unwrap_or_default(),
        before: side("before", &Json::Null)?,
        after: side("after", &change["after_unknown"])?,
        replace_paths: paths.map(path).collect::<Result<_>>()?,
        // Only apply needs these, and a plan from a document is only shown.
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

/// Plan read from a document.
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
            // Invocations are not read from these documents.
            invocations: &[],
            outputs: &self.outputs,
            unread: None,
            relevant_attributes: &self.relevant_attributes,
            generated_config: &self.generated_config,
            errored: self.errored,
        }
    }
}

/// Reads a plan from the document of `show -json`, or from the one that HCP Terraform has for display.
///
/// # Errors
/// The document has another form, or its schemas do not fit its objects.
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
