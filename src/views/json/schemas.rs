//! Document of a provider's schemas, for `providers schema -json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use provider::{FunctionSchema, ParameterSchema, ProviderSchema, SchemaMap};
use schema::{AttributeSchema, AttributeType, BlockSchema, Description, IdentitySchema, Nesting, Schema};
use serde_json::{Map, Value as Json};

use super::Object;

/// Returns the schemas of one provider.
#[must_use]
pub fn provider(schema: &ProviderSchema) -> Json {
    let functions: Map<String, Json> = schema
        .functions
        .iter()
        .map(|(n, f)| (n.to_string(), function(f)))
        .collect();
    let lists: Map<String, Json> = schema
        .lists
        .iter()
        .map(|(name, list)| (name.to_string(), versioned(&list.config)))
        .collect();
    let identities: Map<String, Json> = schema
        .resources
        .iter()
        .filter_map(|(name, resource)| Some((name.to_string(), identity(resource.identity.as_deref()?))))
        .collect();
    Object::default()
        .with("provider", versioned(&schema.provider))
        .with_content("resource_schemas", all(&schema.resources))
        .with_content("data_source_schemas", all(&schema.data_sources))
        .with_content("ephemeral_resource_schemas", all(&schema.ephemeral))
        .with_content("list_resource_schemas", lists)
        .with_content("functions", functions)
        .with_content("resource_identity_schemas", identities)
        .with_content("action_schemas", actions(&schema.actions))
        .with_content("state_store_schemas", all(&schema.state_stores))
        .into()
}

fn all(schemas: &SchemaMap<Schema>) -> Map<String, Json> {
    schemas
        .iter()
        .map(|(name, schema)| (name.to_string(), versioned(schema)))
        .collect()
}

/// Returns the schemas of actions, which have no versions.
fn actions(schemas: &SchemaMap<Schema>) -> Map<String, Json> {
    let documents = schemas.iter().map(|(name, schema)| {
        (
            name.to_string(),
            Object::default().with("block", block(&schema.block)).into(),
        )
    });
    documents.collect()
}

fn versioned(schema: &Schema) -> Json {
    Object::default()
        .with("version", schema.version)
        .with("block", block(&schema.block))
        .into()
}

fn identity(schema: &IdentitySchema) -> Json {
    let attributes: Map<String, Json> = schema
        .attributes
        .iter()
        .map(|(name, attribute)| {
            let told = Object::default()
                .with("type", cty::json::type_to_json(&attribute.ty))
                .with_content("description", attribute.description.clone())
                .with_content("required_for_import", attribute.required_for_import)
                .with_content("optional_for_import", attribute.optional_for_import);
            (name.to_string(), told.into())
        })
        .collect();
    Object::default()
        .with("version", schema.version)
        .with_content("attributes", attributes)
        .into()
}

fn kind(description: &Description) -> &'static str {
    if description.markdown { "markdown" } else { "plain" }
}

fn nesting(nesting: Nesting) -> &'static str {
    match nesting {
        Nesting::Single => "single",
        Nesting::Group => "group",
        Nesting::List => "list",
        Nesting::Set => "set",
        Nesting::Map => "map",
    }
}

fn block(schema: &BlockSchema) -> Json {
    let nested: Map<String, Json> = schema
        .blocks
        .iter()
        .map(|(name, nested)| {
            let mut object = Object::default()
                .with("nesting_mode", nesting(nested.nesting))
                .with("block", block(&nested.block));
            // Zero means no limit, which is left out of the document, as in Terraform.
            if nested.min_items > 0 {
                object = object.with("min_items", nested.min_items);
            }
            if nested.max_items > 0 {
                object = object.with("max_items", nested.max_items);
            }
            (name.to_string(), object.into())
        })
        .collect();
    Object::default()
        .with_content("attributes", attributes(&schema.attributes))
        .with_content("block_types", nested)
        .with_content("description", schema.description.text.clone())
        .with("description_kind", kind(&schema.description))
        .with_content("deprecated", schema.deprecated)
        .with_content("deprecation_message", schema.deprecation_message.clone())
        .into()
}

fn attributes(schemas: &BTreeMap<Arc<str>, AttributeSchema>) -> Map<String, Json> {
    schemas
        .iter()
        .map(|(name, schema)| (name.to_string(), attribute(schema)))
        .collect()
}

fn attribute(schema: &AttributeSchema) -> Json {
    let object = match &schema.ty {
        AttributeType::Plain(ty) => Object::default().with("type", cty::json::type_to_json(ty)),
        AttributeType::Nested(nested) => {
            let inner = Object::default()
                .with_content("attributes", attributes(&nested.attributes))
                .with("nesting_mode", nesting(nested.nesting));
            Object::default().with("nested_type", inner)
        }
    };
    object
        .with_content("description", schema.description.text.clone())
        .with("description_kind", kind(&schema.description))
        .with_content("deprecated", schema.deprecated)
        .with_content("deprecation_message", schema.deprecation_message.clone())
        .with_content("required", schema.required)
        .with_content("optional", schema.optional)
        .with_content("computed", schema.computed)
        .with_content("sensitive", schema.sensitive)
        .with_content("write_only", schema.write_only)
        .into()
}

fn function(schema: &FunctionSchema) -> Json {
    let parameters: Vec<Json> = schema.parameters.iter().map(parameter).collect();
    Object::default()
        .with_content("description", schema.description.text.clone())
        .with_content("summary", schema.summary.clone())
        .with_content("deprecation_message", schema.deprecation_message.clone())
        .with(
            "return_type",
            schema
                .result
                .as_ref()
                .map_or_else(|| "dynamic".into(), cty::json::type_to_json),
        )
        .with_content("parameters", parameters)
        .with_some("variadic_parameter", schema.variadic.as_ref().map(parameter))
        .into()
}

fn parameter(schema: &ParameterSchema) -> Json {
    Object::default()
        .with_content("name", &*schema.name)
        .with_content("description", schema.description.text.clone())
        .with_content("is_nullable", schema.allow_null)
        .with("type", cty::json::type_to_json(&schema.ty))
        .into()
}
