//! The configuration of computed blocks, as providers get it for planning.

use cty::Value;
use schema::{BlockSchema, Nesting, Schema};

use super::attribute;

/// A configuration in which collections of computed blocks are null where there are none: the provider may set them. An
/// unknown collection is configured in some way, and stays. The value has no marks.
#[must_use]
pub fn with_null_blocks(schema: &Schema, config: &Value) -> Value {
    if schema.has_computed_blocks {
        block(&schema.block, config)
    } else {
        config.clone()
    }
}

fn block(schema: &BlockSchema, config: &Value) -> Value {
    if !config.is_present() || !schema.has_computed_blocks() {
        return config.clone();
    }
    config.map_parts(|part, value| {
        let nested = match part {
            cty::value::Part::Attribute(name) => schema.blocks.get(name),
            _ => None,
        };
        let Some(nested) = nested.filter(|_| value.is_present()) else {
            return value.clone();
        };
        match nested.nesting {
            Nesting::Single | Nesting::Group => block(&nested.block, value),
            _ if nested.block.computed && value.len() == Some(0) => Value::null(value.ty().clone()),
            _ => value.map_parts(|_, element| block(&nested.block, element)),
        }
    })
}

/// Whether the provider has set the blocks of this name, which the configuration does not have.
pub(super) fn is_set_by_provider(schema: &BlockSchema, name: &str, config: &Value) -> bool {
    schema.blocks.get(name).is_some_and(|nested| nested.block.computed) && attribute(config, name).is_null()
}
