//! Paths of relevant attributes: the steps of a reference, cut at the first step that the schema does not have. A path never leads into an
//! attribute of dynamic type or into a set. Indexes are converted to the collection's key type.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Path, Step, Type, Value};
use schema::{AttributeSchema, AttributeType, BlockSchema, Nesting};

/// Returns the steps that exist in an object of this schema.
pub(super) fn known_steps(schema: &BlockSchema, steps: Path) -> Path {
    let mut out = Vec::new();
    block(schema, &steps.0, &mut out);
    Path(out)
}

fn block(schema: &BlockSchema, steps: &[Step], out: &mut Vec<Step>) {
    let Some((name, rest)) = attribute_step(steps) else {
        return;
    };
    if let Some(attribute) = schema.attributes.get(&name) {
        out.push(Step::Attribute(name));
        attribute_type(attribute, rest, out);
    } else if let Some(nested) = schema.blocks.get(&name) {
        out.push(Step::Attribute(name));
        if let Some(rest) = element(nested.nesting, rest, out) {
            block(&nested.block, rest, out);
        }
    }
}

fn attributes(schemas: &BTreeMap<Arc<str>, AttributeSchema>, steps: &[Step], out: &mut Vec<Step>) {
    let Some((name, rest)) = attribute_step(steps) else {
        return;
    };
    if let Some(attribute) = schemas.get(&name) {
        out.push(Step::Attribute(name));
        attribute_type(attribute, rest, out);
    }
}

fn attribute_type(attribute: &AttributeSchema, steps: &[Step], out: &mut Vec<Step>) {
    match &attribute.ty {
        AttributeType::Plain(ty) => plain(ty, steps, out),
        AttributeType::Nested(nested) => {
            if let Some(rest) = element(nested.nesting, steps, out) {
                attributes(&nested.attributes, rest, out);
            }
        }
    }
}

fn plain(ty: &Type, steps: &[Step], out: &mut Vec<Step>) {
    match ty {
        Type::List(inner) => {
            if let Some(rest) = index(&Type::Number, steps, out) {
                plain(inner, rest, out);
            }
        }
        Type::Map(inner) => {
            if let Some(rest) = index(&Type::String, steps, out) {
                plain(inner, rest, out);
            }
        }
        Type::Object(object) => {
            let Some((name, rest)) = attribute_step(steps) else {
                return;
            };
            if let Some(inner) = object.get(&name) {
                out.push(Step::Attribute(name));
                plain(inner, rest, out);
            }
        }
        Type::Tuple(elements) => {
            let before = out.len();
            let Some(rest) = index(&Type::Number, steps, out) else {
                return;
            };
            let at = match out.last() {
                Some(Step::Index(key)) => key.as_number().and_then(cty::Number::to_i64),
                _ => None,
            };
            match at.and_then(|i| usize::try_from(i).ok()).and_then(|i| elements.get(i)) {
                Some(inner) => plain(inner, rest, out),
                // The tuple has no element at this index, so the path ends at the tuple.
                None => out.truncate(before),
            }
        }
        _ => {}
    }
}

/// Moves the index of a nested block or object to `out`, if its nesting has one. Returns the remaining steps.
fn element<'s>(nesting: Nesting, steps: &'s [Step], out: &mut Vec<Step>) -> Option<&'s [Step]> {
    match nesting {
        Nesting::Single | Nesting::Group => Some(steps),
        Nesting::List => index(&Type::Number, steps, out),
        Nesting::Map => index(&Type::String, steps, out),
        Nesting::Set => None,
    }
}

/// Returns the first step as the name of an attribute, and the remaining steps.
fn attribute_step(steps: &[Step]) -> Option<(Arc<str>, &[Step])> {
    let (first, rest) = steps.split_first()?;
    let name = match first {
        Step::Attribute(name) => name.clone(),
        Step::Index(key) => cty::convert(key, &Type::String).ok()?.as_arc_str()?.clone(),
    };
    Some((name, rest))
}

/// Moves the first step to `out`, as an index of this type. Returns the remaining steps.
fn index<'s>(ty: &Type, steps: &'s [Step], out: &mut Vec<Step>) -> Option<&'s [Step]> {
    let (first, rest) = steps.split_first()?;
    let key = match first {
        Step::Attribute(name) => cty::convert(&Value::shared_string(name.clone()), ty),
        Step::Index(key) => cty::convert(key, ty),
    };
    out.push(Step::Index(key.ok()?));
    Some(rest)
}

#[cfg(test)]
mod tests {
    use schema::NestedBlock;

    use super::*;

    #[test]
    fn steps_end_where_the_schema_does() {
        let attribute = |ty: Type| AttributeSchema {
            ty: AttributeType::Plain(ty),
            computed: true,
            ..AttributeSchema::default()
        };
        let mut inner = BlockSchema::default();
        inner.attributes.insert("port".into(), attribute(Type::Number));
        let mut whole = BlockSchema::default();
        let port = Type::object([(Arc::from("port"), Type::Number)]);
        for (name, ty) in [
            ("any", Type::Dynamic),
            ("id", Type::String),
            ("ports", Type::list(port.clone())),
            ("by_name", Type::map(port.clone())),
            ("a_set", Type::set(port)),
        ] {
            whole.attributes.insert(name.into(), attribute(ty));
        }
        for (name, nesting) in [
            ("rule", Nesting::List),
            ("one", Nesting::Single),
            ("some", Nesting::Set),
        ] {
            let block = NestedBlock {
                block: inner.clone(),
                nesting,
                min_items: 0,
                max_items: 0,
            };
            whole.blocks.insert(name.into(), block);
        }
        let of = |text: &str| -> String {
            let step = |word: &str| match word.parse::<i64>() {
                Ok(n) => Step::Index(Value::number(n)),
                Err(_) => Step::Attribute(word.into()),
            };
            let steps = text.split('.').map(step).collect();
            known_steps(&whole, Path(steps)).to_string()
        };
        for (steps, known) in [
            ("any.thing.at_all", ".any"),
            ("id.x", ".id"),
            ("nothing", ""),
            ("ports.0.port", ".ports[0].port"),
            ("ports.first", ".ports"),
            ("by_name.web.port", ".by_name[\"web\"].port"),
            ("by_name.0", ".by_name[\"0\"]"),
            ("by_name.web.nothing", ".by_name[\"web\"]"),
            ("a_set.0.port", ".a_set"),
            ("rule.1.port", ".rule[1].port"),
            ("one.port", ".one.port"),
            ("some.0.port", ".some"),
        ] {
            assert_eq!(of(steps), known, "{steps}");
        }
    }
}
