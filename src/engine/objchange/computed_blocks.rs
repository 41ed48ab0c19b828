//! Computed nested blocks, which the provider may set if the configuration has none.

use cty::Value;
use schema::{BlockSchema, Nesting, Schema};

use super::attribute;

/// Replaces empty collections of computed blocks by null in a configuration, which tells the provider that it may set them. An unknown
/// collection counts as configured and is not changed. The value must have no marks.
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

/// Returns true if the blocks of this name are computed and not configured, so that the provider sets them.
pub(super) fn is_set_by_provider(schema: &BlockSchema, name: &str, config: &Value) -> bool {
    schema.blocks.get(name).is_some_and(|nested| nested.block.computed) && attribute(config, name).is_null()
}

#[cfg(test)]
mod tests {
    use cty::Type;
    use schema::{AttributeSchema, AttributeType, NestedBlock};

    use super::super::{applied_problems, plan_problems};
    use super::*;

    fn schema(computed: bool) -> Schema {
        let attribute = AttributeSchema {
            ty: AttributeType::Plain(Type::String),
            optional: true,
            computed: true,
            ..AttributeSchema::default()
        };
        let block = BlockSchema {
            attributes: [("a".into(), attribute)].into(),
            computed,
            ..BlockSchema::default()
        };
        let nested = NestedBlock {
            block,
            nesting: Nesting::List,
            min_items: 0,
            max_items: 0,
        };
        let whole = BlockSchema {
            blocks: [("b".into(), nested)].into(),
            ..BlockSchema::default()
        };
        Schema::new(0, whole)
    }

    fn object(blocks: Vec<&str>) -> Value {
        let element = Type::object([("a", Type::String)]);
        let blocks = blocks.into_iter().map(|a| Value::object([("a", Value::string(a))]));
        Value::object([("b", Value::list(element, blocks.collect()))])
    }

    #[test]
    fn collection_that_the_provider_may_set_is_null_in_its_configuration() {
        let empty = object(vec![]);
        assert_eq!(with_null_blocks(&schema(false), &empty), empty);
        assert!(with_null_blocks(&schema(true), &empty).get("b").unwrap().is_null());
        let configured = object(vec!["x"]);
        assert_eq!(with_null_blocks(&schema(true), &configured), configured);
    }

    #[test]
    fn provider_sets_blocks_that_are_not_configured() {
        let schema = schema(true);
        let null = Value::null(schema.implied_type());
        let config = with_null_blocks(&schema, &object(vec![]));
        let problems = |planned: &Value| plan_problems(&schema.block, &null, &config, planned);
        assert!(problems(&object(vec!["set"])).is_empty());
        let unknown = Value::object([("b", Value::unknown(config.get("b").unwrap().ty().clone()))]);
        assert!(problems(&unknown).is_empty());
        assert_eq!(problems(&config).len(), 1, "null is no collection");
        // Configured blocks must be planned as configured.
        let problems = plan_problems(&schema.block, &null, &object(vec!["x"]), &object(vec!["x", "y"]));
        assert_eq!(problems.len(), 1);
        assert_eq!(applied_problems(&schema.block, &unknown, &object(vec!["now"])), []);
        let applied = applied_problems(&schema.block, &unknown, &config);
        assert_eq!(applied[0].message, "null block value after apply");
    }
}
