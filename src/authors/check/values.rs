//! Configurations and objects that are made from a schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Type, Value};
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, Nesting};

/// Selection of the attributes that are set in a sample object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The required arguments only, as in a minimal configuration.
    Required,
    /// Everything: an object in a state.
    All,
}

/// Returns a configuration in which every argument is unknown.
pub fn unknown(schema: &BlockSchema) -> Value {
    object(schema, &|attribute| {
        let ty = attribute.implied_type();
        match attribute.required || attribute.optional {
            true => Value::unknown(ty),
            false => Value::null(ty),
        }
    })
}

/// Returns an object with plausible values.
pub fn sample(schema: &BlockSchema, fill: Fill) -> Value {
    let attributes = schema
        .attributes
        .iter()
        .map(|(name, attribute)| (name.clone(), sample_attribute(attribute, fill)));
    let blocks = schema
        .blocks
        .iter()
        .map(|(name, nested)| (name.clone(), sample_blocks(nested, fill)));
    Value::object(attributes.chain(blocks))
}

/// Returns the object of a block whose attributes are made by a function, with as many blocks as are required.
fn object(schema: &BlockSchema, attribute: &dyn Fn(&AttributeSchema) -> Value) -> Value {
    let attributes = schema.attributes.iter().map(|(name, a)| (name.clone(), attribute(a)));
    let blocks = schema.blocks.iter().map(|(name, nested)| {
        let number = nested.min_items.min(4);
        let one = || object(&nested.block, attribute);
        (name.clone(), collected(nested, number, &one))
    });
    Value::object(attributes.chain(blocks))
}

fn sample_blocks(nested: &NestedBlock, fill: Fill) -> Value {
    let least = if fill == Fill::All { 1 } else { 0 };
    collected(nested, nested.min_items.clamp(least, 4), &|| {
        sample(&nested.block, fill)
    })
}

/// Returns the value of a nested block type with `number` equal blocks.
fn collected(nested: &NestedBlock, number: u64, one: &dyn Fn() -> Value) -> Value {
    let ty = nested.block.implied_type();
    let items = || (0..number).map(|_| one()).collect::<Vec<_>>();
    let is_dynamic = ty.has_dynamic();
    match nested.nesting {
        Nesting::Single if number == 0 => Value::null(ty),
        Nesting::Single | Nesting::Group => one(),
        Nesting::List if is_dynamic => Value::tuple(items()),
        Nesting::List => Value::list(ty, items()),
        Nesting::Set => Value::set(ty, items()),
        Nesting::Map => {
            let entries = (0..number).map(|at| (Arc::from(format!("key{at}")), one()));
            match is_dynamic {
                true => Value::object(entries),
                false => Value::map(ty, entries.collect::<BTreeMap<_, _>>()),
            }
        }
    }
}

fn sample_attribute(schema: &AttributeSchema, fill: Fill) -> Value {
    // Write-only values are in no state.
    let is_set = schema.required || fill == Fill::All;
    if !is_set || (fill == Fill::All && schema.write_only) {
        return Value::null(schema.implied_type());
    }
    match &schema.ty {
        AttributeType::Plain(ty) => sample_value(&ty.without_optional()),
        AttributeType::Nested(nested) => {
            let attributes = nested.attributes.iter();
            let one = Value::object(attributes.map(|(name, a)| (name.clone(), sample_attribute(a, fill))));
            let ty = nested.object_type();
            match nested.nesting {
                Nesting::Single | Nesting::Group => one,
                Nesting::List => Value::list(ty, vec![one]),
                Nesting::Set => Value::set(ty, vec![one]),
                Nesting::Map => Value::map(ty, BTreeMap::from([(Arc::from("key"), one)])),
            }
        }
    }
}

fn sample_value(ty: &Type) -> Value {
    match ty {
        Type::String | Type::Dynamic => Value::string("example"),
        Type::Number => Value::number(1),
        Type::Bool => Value::bool(true),
        Type::List(element) => Value::list((**element).clone(), vec![sample_value(element)]),
        Type::Set(element) => Value::set((**element).clone(), vec![sample_value(element)]),
        Type::Map(element) => {
            let entries = BTreeMap::from([(Arc::from("key"), sample_value(element))]);
            Value::map((**element).clone(), entries)
        }
        Type::Tuple(elements) => Value::tuple(elements.iter().map(sample_value).collect()),
        Type::Object(object) => Value::object(
            object
                .attributes()
                .iter()
                .map(|part| (part.name.clone(), sample_value(&part.ty))),
        ),
    }
}

/// Returns a planned object as it could be after apply: unknown values are replaced by plausible ones.
pub fn known(planned: &Value) -> Value {
    planned.transform(|_, value| match value.is_known() {
        true => value,
        false => sample_value(value.ty()),
    })
}
