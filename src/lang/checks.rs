//! Checks of references against schemas, before any value is evaluated.

use addrs::{Referenceable, Resource};
use cty::{Type, Value};
use syntax::ast::TraversalStep;
use syntax::content::{hint, near};
use syntax::{Diagnostic, Range};

use crate::eval::apply_steps;
use schema::{BlockSchema, Nesting};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// One instance, without a key.
    None,
    Count,
    ForEach,
}

/// Checks the steps after a reference to a resource. No steps, or a splat, are always allowed. Otherwise an instance key must come
/// first if the resource has `count` or `for_each`, and must not if it has neither. The remaining steps must exist in the schema.
pub fn resource_steps(
    resource: &Resource,
    repetition: Repetition,
    schema: &BlockSchema,
    steps: &[TraversalStep],
    range: &Range,
) -> Result<(), Diagnostic> {
    let rest = match (repetition, steps) {
        (_, []) => return Ok(()),
        (_, [TraversalStep::Splat { .. }, ..]) => return Ok(()),
        (Repetition::None, [TraversalStep::Index { range, .. }, ..]) => {
            return Err(unexpected_key(resource, range));
        }
        (Repetition::None, rest) => rest,
        (_, [TraversalStep::Index { .. }, rest @ ..]) => rest,
        (repetition, _) => return Err(missing_key(resource, repetition, range)),
    };
    block_steps(schema, rest)
}

/// Builds the error for a key on a resource with a single instance.
#[must_use]
pub fn unexpected_key(resource: &Resource, range: &Range) -> Diagnostic {
    Diagnostic::error(
        "Unexpected resource instance key",
        format!(
            "{resource} has neither \"count\" nor \"for_each\", so it has one instance, without a key. Remove the \
             brackets and what is in them."
        ),
    )
    .at(range)
}

/// Builds the error for a missing key on a resource with several instances.
#[must_use]
pub fn missing_key(resource: &Resource, repetition: Repetition, range: &Range) -> Diagnostic {
    let (argument, key) = match repetition {
        Repetition::ForEach => ("for_each", "each.key"),
        _ => ("count", "count.index"),
    };
    Diagnostic::error(
        "Missing resource instance key",
        format!(
            "{resource} has \"{argument}\", so there can be several instances of it. Choose one by its key, for \
             example:\n    {resource}[{key}]"
        ),
    )
    .at(range)
}

/// Checks steps into an object of this schema.
pub fn block_steps(schema: &BlockSchema, steps: &[TraversalStep]) -> Result<(), Diagnostic> {
    let (name, range, rest) = match steps {
        [TraversalStep::Attribute { name, range }, rest @ ..] => (name, range, rest),
        [TraversalStep::Index { key, range }, ..] => {
            let detail = match key.as_str() {
                Some(name) => format!("Parts of this object are selected by name, after a dot: \".{name}\"."),
                None => "Parts of this object are selected by name, after a dot.".to_owned(),
            };
            return Err(Diagnostic::error("Invalid index operation", detail).at(range));
        }
        _ => return Ok(()),
    };
    if let Some(attribute) = schema.attributes.get(name) {
        return value_steps(attribute.implied_type(), rest);
    }
    if let Some(nested) = schema.blocks.get(name) {
        return match nested.nesting {
            Nesting::Single | Nesting::Group => block_steps(&nested.block, rest),
            Nesting::List => list_block_steps(name, &nested.block, rest),
            // A map's key can be written as attribute or as index; evaluation checks it.
            Nesting::Map => block_steps(&nested.block, rest.get(1..).unwrap_or_default()),
            Nesting::Set => match rest.first() {
                Some(TraversalStep::Attribute { range, .. } | TraversalStep::Index { range, .. }) => Err(Diagnostic::error(
                    "Cannot index a set value",
                    format!("The \"{name}\" blocks form a set, whose elements have no keys. Select them with a \"for\" expression."),
                )
                .at(range)),
                _ => Ok(()),
            },
        };
    }
    let near = near(name, schema.attributes.keys().chain(schema.blocks.keys()).map(|k| &**k));
    Err(Diagnostic::error(
        "Unsupported attribute",
        format!("The schema of this object has no \"{name}\".{}", hint(near.as_ref())),
    )
    .at(range)
    .misspelt(name, range, near.as_ref()))
}

/// Checks steps into blocks that form a list. Evaluation checks if the elements exist.
fn list_block_steps(name: &str, schema: &BlockSchema, steps: &[TraversalStep]) -> Result<(), Diagnostic> {
    match steps {
        [TraversalStep::Index { .. }, rest @ ..] => block_steps(schema, rest),
        [TraversalStep::Attribute { range, .. }, ..] => Err(Diagnostic::error(
            "Invalid operation",
            format!("The \"{name}\" blocks form a list: select one by its number first, as in .{name}[0]."),
        )
        .at(range)),
        _ => Ok(()),
    }
}

/// Checks steps into any value of a type.
fn value_steps(ty: Type, steps: &[TraversalStep]) -> Result<(), Diagnostic> {
    // Steps after a splat apply to each element, so they are checked during evaluation.
    let splat = steps
        .iter()
        .position(|s| matches!(s, TraversalStep::Splat { .. }))
        .unwrap_or(steps.len());
    apply_steps(Value::unknown(ty), &steps[..splat]).map(|_| ())
}

/// Returns the resource that a reference is about, if any.
#[must_use]
pub fn resource_of(subject: &Referenceable) -> Option<&Resource> {
    match subject {
        Referenceable::Resource(r) => Some(r),
        Referenceable::ResourceInstance(i) => Some(&i.resource),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema::{AttributeSchema, AttributeType};
    use syntax::Pos;

    #[test]
    fn keys_and_names_are_checked() {
        let mut schema = BlockSchema::default();
        let ty = AttributeType::Plain(Type::String);
        schema.attributes.insert(
            "name".into(),
            AttributeSchema {
                ty,
                ..AttributeSchema::default()
            },
        );
        let check = |text: &str, repetition| {
            let traversal = syntax::parse_traversal("x", text, Pos::default()).unwrap();
            let reference = crate::refs::whole_reference(&traversal).unwrap();
            let resource = resource_of(&reference.subject).unwrap().clone();
            resource_steps(&resource, repetition, &schema, &reference.remaining, &reference.range)
                .err()
                .map(|d| d.summary.clone())
        };
        assert_eq!(check("a.b.name", Repetition::None), None);
        assert_eq!(check("a.b[0].name", Repetition::Count), None);
        assert_eq!(
            check("a.b[0].name", Repetition::None).as_deref(),
            Some("Unexpected resource instance key")
        );
        assert_eq!(
            check("a.b.name", Repetition::ForEach).as_deref(),
            Some("Missing resource instance key")
        );
        assert_eq!(
            check("a.b.nmae", Repetition::None).as_deref(),
            Some("Unsupported attribute")
        );
        assert_eq!(
            check("a.b.name.x", Repetition::None).as_deref(),
            Some("Unsupported attribute")
        );
    }
}
