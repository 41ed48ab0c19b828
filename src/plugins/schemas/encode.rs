//! Encoding of converted schemas as messages of protocol 6, for files and saved plans.

use cty::Type;
use proto::tfplugin6 as pb;
use schema::{AttributeSchema, AttributeType, BlockSchema, Description, IdentitySchema, NestedBlock, Nesting, Schema};

/// Converts a schema and its version.
pub(super) fn schema(schema: &Schema) -> pb::Schema {
    pb::Schema {
        version: signed(schema.version),
        block: Some(block(&schema.block)),
    }
}

pub(super) fn identity_schema(schema: &IdentitySchema) -> pb::ResourceIdentitySchema {
    let attribute = |(name, of): (&std::sync::Arc<str>, &schema::IdentityAttribute)| {
        pb::resource_identity_schema::IdentityAttribute {
            name: name.to_string(),
            r#type: ty(&of.ty),
            required_for_import: of.required_for_import,
            optional_for_import: of.optional_for_import,
            description: of.description.clone(),
        }
    };
    pb::ResourceIdentitySchema {
        version: signed(schema.version),
        identity_attributes: schema.attributes.iter().map(attribute).collect(),
    }
}

fn block(block: &BlockSchema) -> pb::schema::Block {
    pb::schema::Block {
        version: 0,
        attributes: block.attributes.iter().map(|(name, of)| attribute(name, of)).collect(),
        block_types: block.blocks.iter().map(|(name, of)| nested_block(name, of)).collect(),
        description: block.description.text.clone(),
        description_kind: kind(&block.description),
        deprecated: block.deprecated,
        deprecation_message: block.deprecation_message.clone(),
        computed: block.computed,
    }
}

fn nested_block(name: &str, nested: &NestedBlock) -> pb::schema::NestedBlock {
    use pb::schema::nested_block::NestingMode;
    let nesting = match nested.nesting {
        Nesting::Single => NestingMode::Single,
        Nesting::Group => NestingMode::Group,
        Nesting::List => NestingMode::List,
        Nesting::Set => NestingMode::Set,
        Nesting::Map => NestingMode::Map,
    };
    pb::schema::NestedBlock {
        type_name: name.to_owned(),
        block: Some(block(&nested.block)),
        nesting: nesting as i32,
        min_items: signed(nested.min_items),
        max_items: signed(nested.max_items),
    }
}

fn attribute(name: &str, attribute: &AttributeSchema) -> pb::schema::Attribute {
    let (plain, nested_type) = match &attribute.ty {
        AttributeType::Plain(plain) => (ty(plain), None),
        AttributeType::Nested(nested) => (Vec::new(), Some(object(nested))),
    };
    pb::schema::Attribute {
        name: name.to_owned(),
        r#type: plain,
        description: attribute.description.text.clone(),
        required: attribute.required,
        optional: attribute.optional,
        computed: attribute.computed,
        sensitive: attribute.sensitive,
        description_kind: kind(&attribute.description),
        deprecated: attribute.deprecated,
        nested_type,
        write_only: attribute.write_only,
        deprecation_message: attribute.deprecation_message.clone(),
    }
}

fn object(nested: &schema::NestedObject) -> pb::schema::Object {
    use pb::schema::object::NestingMode;
    let nesting = match nested.nesting {
        // In the protocol, objects of attributes have no groups.
        Nesting::Single | Nesting::Group => NestingMode::Single,
        Nesting::List => NestingMode::List,
        Nesting::Set => NestingMode::Set,
        Nesting::Map => NestingMode::Map,
    };
    pb::schema::Object {
        attributes: nested.attributes.iter().map(|(name, of)| attribute(name, of)).collect(),
        nesting: nesting as i32,
        ..Default::default()
    }
}

fn ty(ty: &Type) -> Vec<u8> {
    cty::json::type_to_json(ty).to_string().into_bytes()
}

fn kind(description: &Description) -> i32 {
    match description.markdown {
        true => pb::StringKind::Markdown as i32,
        false => pb::StringKind::Plain as i32,
    }
}

/// Converts a number of a schema to the signed type of messages. It was checked to be positive when
/// it was received.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
