//! Attribute steps in references to a `list` block: `.data[INDEX].state` or `.data[INDEX].identity`, followed by attributes of the listed
//! resource.

use lang::checks::block_steps;
use schema::BlockSchema;
use syntax::ast::TraversalStep;
use syntax::{Diagnostic, Range};

fn name(step: &TraversalStep) -> Option<&str> {
    match step {
        TraversalStep::Attribute { name, .. } => Some(name),
        _ => None,
    }
}

/// Checks the steps after the address of an instance of a `list` block. `listed` is the schema of the listed objects.
pub(super) fn list_steps(steps: &[TraversalStep], listed: Option<&BlockSchema>, range: &Range) -> Option<Diagnostic> {
    let invalid = |detail: &str| Some(Diagnostic::error("Invalid list resource traversal", detail).at(range));
    let (first, rest) = steps.split_first()?;
    if name(first) != Some("data") {
        return invalid("The only attribute of a list block is \"data\", the objects that it has found.");
    }
    let (second, rest) = rest.split_first()?;
    if matches!(second, TraversalStep::Attribute { .. }) {
        return invalid("The attribute \"data\" of a list block is a sequence: an index comes after it.");
    }
    let (third, rest) = rest.split_first()?;
    match (name(third), listed) {
        (Some("state"), Some(schema)) => block_steps(schema, rest).err(),
        (Some("state" | "identity"), _) => None,
        _ => invalid(
            "Each element of the attribute \"data\" is referred to by its attributes \"state\" and \"identity\".",
        ),
    }
}
