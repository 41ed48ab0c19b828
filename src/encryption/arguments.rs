//! Schemas of the arguments of key providers and methods.

use cty::Type;
use schema::{AttributeSchema, AttributeType, BlockSchema};

/// Builds a schema from the name and type of each argument, and whether the argument is required.
pub(crate) fn schema_of(attributes: &[(&str, Type, bool)]) -> BlockSchema {
    let mut schema = BlockSchema::default();
    for (name, ty, required) in attributes {
        let attribute = AttributeSchema {
            ty: AttributeType::Plain(ty.clone()),
            required: *required,
            optional: !*required,
            ..AttributeSchema::default()
        };
        schema.attributes.insert((*name).into(), attribute);
    }
    schema
}
