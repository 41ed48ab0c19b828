//! Conversion between messages and the types of `provider`, for the parts that several requests have in common.
//!
//! Both protocols use the messages of version 6 here: see [`crate::grpc`].

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::msgpack::CodecError;
use cty::{Path, Type, Value};
use proto::tfplugin6 as pb;
use schema::{
    AttributeSchema, AttributeType, BlockSchema, Derived, Description, IdentityAttribute, IdentitySchema, NestedBlock,
    NestedObject, Nesting, Schema,
};
use syntax::Diagnostic;

use provider::{Capabilities, FunctionSchema, ParameterSchema, PluginDiagnostic, RawState};

/// Error of converting a value or a schema of a message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// Value that is malformed or not of its type.
    #[error(transparent)]
    Value(#[from] CodecError),
    #[error("{}", files::json_reason(.0))]
    Json(#[from] serde_json::Error),
    /// A message that is malformed.
    #[error("{0}")]
    Encoding(#[from] prost::DecodeError),
    /// Malformed address of a provider.
    #[error("{0}")]
    Provider(String),
    /// Schema with a negative version.
    #[error("version {0} is negative")]
    Version(i64),
    /// A nesting mode that the protocol does not have.
    #[error("nesting mode {0} is not known")]
    Nesting(i32),
    #[error("type {json} is not valid: {reason}")]
    Type { json: String, reason: String },
    /// Computed block with an invalid property, such as a minimum number of blocks. Contains the description.
    #[error("{0}")]
    ComputedBlock(String),
    /// An error within a part of a schema.
    #[error("{part}: {source}")]
    Within {
        /// Part of the schema, such as `attribute "a"`.
        part: String,
        source: Box<MessageError>,
    },
}

impl MessageError {
    pub(crate) fn within(self, part: impl Into<String>) -> MessageError {
        MessageError::Within {
            part: part.into(),
            source: Box::new(self),
        }
    }
}

// ---- values -------------------------------------------------------------------------------------------------------

/// Encodes a value for a request, always as MessagePack.
pub fn encode(value: &Value, ty: &Type) -> Result<pb::DynamicValue, MessageError> {
    // JSON, the other form that plugins accept, has no unknown values.
    let msgpack = cty::msgpack::encode(value, ty)?;
    Ok(pb::DynamicValue {
        msgpack,
        json: Vec::new(),
    })
}

/// Decodes a value of an answer: MessagePack, JSON, or nothing, which means null.
pub fn decode(value: Option<pb::DynamicValue>, ty: &Type) -> Result<Value, MessageError> {
    match value {
        Some(value) if !value.msgpack.is_empty() => Ok(cty::msgpack::decode(&value.msgpack, ty)?),
        Some(value) if !value.json.is_empty() => {
            let json = serde_json::from_slice(&value.json)?;
            Ok(cty::json::from_json(&json, ty)?)
        }
        _ => Ok(Value::null(ty.clone())),
    }
}

/// Converts a stored object for a request, without interpreting it.
#[must_use]
pub fn raw_state(state: RawState) -> pb::RawState {
    match state {
        RawState::Json(json) => pb::RawState {
            json: json.to_vec(),
            ..Default::default()
        },
        // The state is from before Terraform 0.12, and only the provider can upgrade it.
        RawState::Flatmap(map) => pb::RawState {
            flatmap: map.into_iter().collect(),
            ..Default::default()
        },
    }
}

// ---- diagnostics --------------------------------------------------------------------------------------------------

/// Converts diagnostics of a plugin. An unknown severity counts as an error.
#[must_use]
pub fn diagnostics(list: Vec<pb::Diagnostic>) -> Vec<PluginDiagnostic> {
    list.into_iter()
        .map(|d| {
            let warning = d.severity == pb::diagnostic::Severity::Warning as i32;
            let make = if warning {
                Diagnostic::warning
            } else {
                Diagnostic::error
            };
            let attribute = d.attribute.map(|p| path(p).0).unwrap_or_default();
            PluginDiagnostic {
                diagnostic: make(d.summary, d.detail),
                attribute,
            }
        })
        .collect()
}

/// Returns true if an error is among the diagnostics.
#[must_use]
pub fn has_errors(list: &[PluginDiagnostic]) -> bool {
    list.iter().any(|d| d.diagnostic.is_error())
}

/// Converts an attribute path up to its first step of an unknown kind. The second result is true if the whole path
/// was converted.
#[must_use]
pub fn path(path: pb::AttributePath) -> (Path, bool) {
    use pb::attribute_path::step::Selector;
    let mut steps = Vec::with_capacity(path.steps.len());
    for step in path.steps {
        steps.push(match step.selector {
            Some(Selector::AttributeName(name)) => cty::Step::Attribute(name.into()),
            Some(Selector::ElementKeyString(key)) => cty::Step::Index(Value::string(key)),
            Some(Selector::ElementKeyInt(key)) => cty::Step::Index(Value::number(key)),
            // The step is unknown, perhaps from a later version of the protocol, so the path ends at the
            // container.
            None => return (Path(steps), false),
        });
    }
    (Path(steps), true)
}

// ---- schemas ------------------------------------------------------------------------------------------------------

/// Converts the capabilities that a provider announces.
#[must_use]
pub fn capabilities(message: pb::ServerCapabilities) -> Capabilities {
    Capabilities {
        plan_destroy: message.plan_destroy,
        schema_optional: message.get_provider_schema_optional,
        move_resource_state: message.move_resource_state,
        generate_resource_config: message.generate_resource_config,
    }
}

/// Converts the capabilities of a provider to a message.
#[must_use]
pub fn capabilities_message(capabilities: &Capabilities) -> pb::ServerCapabilities {
    pb::ServerCapabilities {
        plan_destroy: capabilities.plan_destroy,
        get_provider_schema_optional: capabilities.schema_optional,
        move_resource_state: capabilities.move_resource_state,
        generate_resource_config: capabilities.generate_resource_config,
    }
}

/// Converts a schema and its version.
pub fn schema(schema: pb::Schema) -> Result<Schema, MessageError> {
    let version = u64::try_from(schema.version).map_err(|_| MessageError::Version(schema.version))?;
    let block = block(schema.block.unwrap_or_default())?;
    match block.computed_problem() {
        Some(problem) => Err(MessageError::ComputedBlock(problem)),
        None => Ok(Schema::new(version, block)),
    }
}

// The recursion is bounded, because prost refuses messages that are nested more than a hundred levels deep.
fn block(block: pb::schema::Block) -> Result<BlockSchema, MessageError> {
    let mut blocks = BTreeMap::new();
    for nested in block.block_types {
        let name: Arc<str> = nested.type_name.as_str().into();
        let converted = nested_block(nested).map_err(|error| error.within(format!("block \"{name}\"")))?;
        blocks.insert(name, converted);
    }
    Ok(BlockSchema {
        attributes: attributes(block.attributes)?,
        blocks,
        description: description(block.description, block.description_kind),
        deprecated: block.deprecated,
        deprecation_message: block.deprecation_message,
        computed: block.computed,
        derived: Derived::default(),
    })
}

fn nested_block(nested: pb::schema::NestedBlock) -> Result<NestedBlock, MessageError> {
    use pb::schema::nested_block::NestingMode;
    let nesting = match NestingMode::try_from(nested.nesting) {
        Ok(NestingMode::Single) => Nesting::Single,
        Ok(NestingMode::Group) => Nesting::Group,
        Ok(NestingMode::List) => Nesting::List,
        Ok(NestingMode::Set) => Nesting::Set,
        Ok(NestingMode::Map) => Nesting::Map,
        Ok(NestingMode::Invalid) | Err(_) => return Err(MessageError::Nesting(nested.nesting)),
    };
    Ok(NestedBlock {
        block: block(nested.block.unwrap_or_default())?,
        nesting,
        // A negative limit is invalid, and counts as zero, which means no limit.
        min_items: nested.min_items.try_into().unwrap_or(0),
        max_items: nested.max_items.try_into().unwrap_or(0),
    })
}

fn attributes(list: Vec<pb::schema::Attribute>) -> Result<BTreeMap<Arc<str>, AttributeSchema>, MessageError> {
    let mut out = BTreeMap::new();
    for a in list {
        let ty = attribute_type(&a.r#type, a.nested_type)
            .map_err(|error| error.within(format!("attribute \"{}\"", a.name)))?;
        let schema = AttributeSchema {
            ty,
            required: a.required,
            optional: a.optional,
            computed: a.computed,
            sensitive: a.sensitive,
            write_only: a.write_only,
            deprecated: a.deprecated,
            deprecation_message: a.deprecation_message,
            description: description(a.description, a.description_kind),
        };
        out.insert(a.name.into(), schema);
    }
    Ok(out)
}

fn attribute_type(json: &[u8], nested: Option<pb::schema::Object>) -> Result<AttributeType, MessageError> {
    use pb::schema::object::NestingMode;
    let Some(object) = nested else {
        return Ok(AttributeType::Plain(ty(json)?));
    };
    let nesting = match NestingMode::try_from(object.nesting) {
        Ok(NestingMode::Single) => Nesting::Single,
        Ok(NestingMode::List) => Nesting::List,
        Ok(NestingMode::Set) => Nesting::Set,
        Ok(NestingMode::Map) => Nesting::Map,
        Ok(NestingMode::Invalid) | Err(_) => return Err(MessageError::Nesting(object.nesting)),
    };
    Ok(AttributeType::Nested(NestedObject {
        attributes: attributes(object.attributes)?,
        nesting,
    }))
}

/// Parses a type from its JSON form.
fn ty(json: &[u8]) -> Result<Type, MessageError> {
    let invalid = |reason| MessageError::Type {
        json: String::from_utf8_lossy(json).into_owned(),
        reason,
    };
    let parsed = serde_json::from_slice(json).map_err(|error| invalid(files::json_reason(error)))?;
    cty::json::type_from_json(&parsed).map_err(|error| invalid(error.to_string()))
}

fn description(text: String, kind: i32) -> Description {
    Description {
        text,
        markdown: kind == pb::StringKind::Markdown as i32,
    }
}

/// Converts the signature of a function.
pub fn function(f: pb::Function) -> Result<FunctionSchema, MessageError> {
    let parameters = f.parameters.into_iter().map(parameter).collect::<Result<_, _>>()?;
    let variadic = f.variadic_parameter.map(parameter).transpose()?;
    let result = f
        .r#return
        .map(|r| ty(&r.r#type).map_err(|error| error.within("result")))
        .transpose()?;
    Ok(FunctionSchema {
        parameters,
        variadic,
        result,
        summary: f.summary,
        description: description(f.description, f.description_kind),
        deprecation_message: f.deprecation_message,
    })
}

fn parameter(p: pb::function::Parameter) -> Result<ParameterSchema, MessageError> {
    let ty = ty(&p.r#type).map_err(|error| error.within(format!("parameter \"{}\"", p.name)))?;
    Ok(ParameterSchema {
        name: p.name.into(),
        ty,
        allow_null: p.allow_null_value,
        allow_unknown: p.allow_unknown_values,
        description: description(p.description, p.description_kind),
    })
}

pub fn identity_schema(schema: pb::ResourceIdentitySchema) -> Result<IdentitySchema, MessageError> {
    let version = u64::try_from(schema.version).map_err(|_| MessageError::Version(schema.version))?;
    let mut attributes = BTreeMap::new();
    for a in schema.identity_attributes {
        let attribute = IdentityAttribute {
            ty: ty(&a.r#type).map_err(|error| error.within(format!("attribute \"{}\"", a.name)))?,
            required_for_import: a.required_for_import,
            optional_for_import: a.optional_for_import,
            description: a.description,
        };
        attributes.insert(a.name.into(), attribute);
    }
    Ok(IdentitySchema::new(version, attributes))
}
