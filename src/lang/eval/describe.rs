//! Descriptions of the values in a failed expression, for diagnostics.

use cty::{Kind, Type, Value};
use syntax::Diagnostic;
use syntax::ast::{Expr, Traversal, TraversalStep};
use syntax::diag::{ExpressionContext, Extra};

use super::{Context, apply_steps};
use crate::refs;

/// Adds descriptions of the values that an expression refers to. Unknown and sensitive values are mentioned only if the
/// diagnostic's [`Extra`] names them as the cause: set that first.
#[must_use]
pub fn with_expression(diagnostic: Diagnostic, expr: &Expr, context: Context<'_>) -> Diagnostic {
    described(diagnostic, expr, context, Hidden::LeftOut)
}

/// Adds descriptions of values as [`with_expression`] does, with placeholders for sensitive and ephemeral values.
#[must_use]
pub fn with_whole_expression(diagnostic: Diagnostic, expr: &Expr, context: Context<'_>) -> Diagnostic {
    described(diagnostic, expr, context, Hidden::Named)
}

/// Treatment of values that must not be displayed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hidden {
    LeftOut,
    Named,
}

fn described(mut diagnostic: Diagnostic, expr: &Expr, context: Context<'_>, hidden: Hidden) -> Diagnostic {
    let mut values: Vec<(String, String)> = Vec::new();
    for traversal in refs::traversals(expr) {
        if let Some(found) = describe_traversal(traversal, &diagnostic.extra, &context, hidden)
            && !values.iter().any(|(name, _)| *name == found.0)
        {
            values.push(found);
        }
    }
    if values.is_empty() {
        return diagnostic;
    }
    // The values are sorted, as in Terraform, so that the output does not depend on the order of references.
    values.sort();
    match &mut diagnostic.expression {
        Some(known) => known.values = values,
        none => {
            *none = Some(Box::new(ExpressionContext {
                values,
                ..ExpressionContext::default()
            }))
        }
    }
    diagnostic
}

/// Returns the longest part of a traversal that has a value, with the description of that value. `None` if no part has
/// a value, or if the value must not be mentioned.
fn describe_traversal(
    traversal: &Traversal,
    extra: &Extra,
    context: &Context<'_>,
    hidden: Hidden,
) -> Option<(String, String)> {
    let (value, steps) = match context.variable(&traversal.root) {
        Some(value) => (value.clone(), traversal.steps.as_slice()),
        None => {
            let reference = refs::whole_reference(traversal).ok()?;
            let own = traversal.steps.len().saturating_sub(reference.remaining.len());
            (context.scope.lookup(&reference).ok()?, &traversal.steps[own..])
        }
    };
    let own = traversal.steps.len() - steps.len();
    // The longest prefix is tried first: the step that failed has no value.
    for taken in (0..=steps.len()).rev() {
        if own + taken == 0 {
            break;
        }
        if let Ok(value) = apply_steps(value.clone(), &steps[..taken]) {
            let name = traversal_text(traversal, own + taken);
            return Some((name, statement(&value, extra, hidden)?));
        }
    }
    None
}

fn statement(value: &Value, extra: &Extra, hidden: Hidden) -> Option<String> {
    let marks = value.marks();
    if hidden == Hidden::Named && marks.is_ephemeral() {
        return Some("is \"(ephemeral value)\"".into());
    }
    if hidden == Hidden::Named && marks.is_sensitive() {
        return Some("is \"(sensitive value)\"".into());
    }
    if marks.is_ephemeral() && !marks.is_sensitive() {
        return None;
    }
    // A sensitive value is mentioned only if it is the cause; otherwise the mention would be misleading.
    if marks.is_sensitive() {
        return (*extra == Extra::CausedBySensitive).then(|| "has a sensitive value".into());
    }
    if !value.is_known() {
        let dynamic = *value.ty() == Type::Dynamic;
        let ty = value.ty().friendly_name();
        return match (extra, dynamic) {
            (Extra::CausedByUnknown, true) => Some("will be known only after apply".into()),
            (Extra::CausedByUnknown, false) => Some(format!("is a {ty}, known only after apply")),
            (_, true) => None,
            (_, false) => Some(format!("is a {ty}")),
        };
    }
    Some(format!("is {}", describe_value(value)))
}

/// Describes a value in a few words: `"text"`, `list of string with 2 elements`.
#[must_use]
pub fn describe_value(value: &Value) -> String {
    if value.marks().is_sensitive() {
        return "(sensitive value)".into();
    }
    if value.marks().is_ephemeral() {
        return "(ephemeral value)".into();
    }
    let ty = value.ty().friendly_name();
    match (value.kind(), value.ty()) {
        (Kind::Null, _) => "null".into(),
        (Kind::Unknown(_), _) => "(not yet known)".into(),
        (Kind::Bool(b), _) => b.to_string(),
        (Kind::Number(n), _) => n.to_string(),
        (Kind::String(s), _) => addrs::text::quoted(s),
        (Kind::Seq(_), Type::Object(o)) => match o.attributes() {
            [] => "object with no attributes".into(),
            [one] => format!("object with 1 attribute {:?}", one.name),
            many => format!("object with {} attributes", many.len()),
        },
        (Kind::Seq(_) | Kind::Map(_), _) => match value.len().unwrap_or_default() {
            0 => format!("empty {ty}"),
            1 => format!("{ty} with 1 element"),
            n => format!("{ty} with {n} elements"),
        },
    }
}

/// Renders the root and the first steps of a traversal as in the source.
fn traversal_text(traversal: &Traversal, steps: usize) -> String {
    let mut out = traversal.root.to_string();
    for step in &traversal.steps[..steps] {
        match step {
            TraversalStep::Attribute { name, .. } => {
                out.push('.');
                out.push_str(name);
            }
            TraversalStep::Index { key, .. } => match key.kind() {
                Kind::Number(n) => out.push_str(&format!("[{n}]")),
                Kind::String(s) => out.push_str(&format!("[{}]", addrs::text::quoted(s))),
                _ => out.push_str("[...]"),
            },
            TraversalStep::Splat { .. } => out.push_str("[*]"),
        }
    }
    out
}
