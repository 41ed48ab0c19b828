//! References and the steps from their values.

use cty::ops::OpError;
use cty::{Type, Value, ops};
use syntax::ast::{Expr, Traversal, TraversalStep};
use syntax::content::{hint, near};
use syntax::{Diagnostic, Range};

use super::{Context, ExpressionEvaluator};
use crate::refs;

impl ExpressionEvaluator {
    pub(super) fn traversal(&mut self, traversal: &Traversal, expr: &Expr, context: &Context<'_>) -> Value {
        // Iterator variables take precedence, even over names such as `var`.
        if let Some(value) = context.variable(&traversal.root) {
            return self.steps(value.clone(), &traversal.steps, expr, context);
        }
        // Where only constants are allowed, this error is reported even for a name that is not a reference.
        if context.scope.is_constant() {
            self.fixed.push(not_constant(traversal));
            return Value::dynamic();
        }
        if refs::is_type_name(traversal) {
            let word = &traversal.root;
            let detail = format!(
                "The word {word} names a type, and there is no variable of that name. For text, write it in quotes: \"{word}\"."
            );
            let problem = Diagnostic::error("Unknown variable", detail).at(&traversal.root_range);
            self.report(problem, expr, context);
            return Value::dynamic();
        }
        let reference = match refs::whole_reference(traversal) {
            Ok(reference) => reference,
            Err(problem) => {
                self.fixed.push(problem);
                return Value::dynamic();
            }
        };
        match context.scope.lookup(&reference) {
            Ok(value) => match apply_steps(value, &reference.remaining) {
                Ok(value) => value,
                Err(problem) => {
                    let problem = context.scope.explain(&reference, problem);
                    self.report(problem, expr, context);
                    Value::dynamic()
                }
            },
            Err(error) => {
                self.fixed.extend(error.unreported());
                Value::dynamic()
            }
        }
    }

    /// Applies static steps to a value, and reports problems.
    pub(super) fn steps(&mut self, value: Value, steps: &[TraversalStep], expr: &Expr, context: &Context<'_>) -> Value {
        match apply_steps(value, steps) {
            Ok(value) => value,
            Err(problem) => {
                self.report(problem, expr, context);
                Value::dynamic()
            }
        }
    }
}

/// Builds the error for a reference where only constants are allowed. Without a known root, it is likely text without
/// quotes.
fn not_constant(traversal: &Traversal) -> Diagnostic {
    let known = [
        "var",
        "local",
        "module",
        "data",
        "each",
        "count",
        "path",
        "terraform",
        "self",
        "resource",
        "ephemeral",
    ];
    let hint = if known.contains(&&*traversal.root) {
        String::new()
    } else {
        refs::as_text(traversal)
            .map(|text| format!(" If {text} is meant as text, write it in quotes: \"{text}\"."))
            .unwrap_or_default()
    };
    Diagnostic::error(
        "Variables not allowed",
        format!("Only constant values are possible here: nothing can be referred to.{hint}"),
    )
    .at(&traversal.range)
}

/// Applies static steps to a value.
pub fn apply_steps(value: Value, steps: &[TraversalStep]) -> Result<Value, Diagnostic> {
    let mut at = value;
    for step in steps {
        at = match step {
            TraversalStep::Attribute { name, range } => get_attribute(&at, name, range)?,
            TraversalStep::Index { key, range } => get_index(&at, key, range)?,
            TraversalStep::Splat { range } => {
                return Err(
                    Diagnostic::error("Invalid expression", "Splat expressions may not be used here.").at(range),
                );
            }
        };
    }
    Ok(at)
}

/// Returns the value of `object.name`.
pub fn get_attribute(object: &Value, name: &str, range: &Range) -> Result<Value, Diagnostic> {
    ops::get_attribute(object, name).map_err(|e| with_near(problem(&e, range), object, name, range))
}

/// Returns the value of `collection[key]`.
pub fn get_index(collection: &Value, key: &Value, range: &Range) -> Result<Value, Diagnostic> {
    ops::index(collection, key).map_err(|e| match key.as_str() {
        Some(name) if key.marks().is_empty() => with_near(problem(&e, range), collection, name, range),
        _ => problem(&e, range),
    })
}

/// Adds the nearest name in an object or map, unless its names are secret.
fn with_near(mut problem: Diagnostic, object: &Value, name: &str, range: &Range) -> Diagnostic {
    let (object, marks) = object.clone().unmark();
    let near = match object.ty() {
        _ if !marks.is_empty() => None,
        Type::Object(ty) => near(name, ty.attributes().iter().map(|a| &*a.name)),
        Type::Map(_) => object
            .entries()
            .and_then(|entries| near(name, entries.map(|(k, _)| &**k))),
        _ => None,
    };
    problem.detail.push_str(&hint(near.as_ref()));
    problem.misspelt(name, range, near.as_ref())
}

fn problem(error: &OpError, range: &Range) -> Diagnostic {
    // Some details end with a question.
    let stop = if error.detail.ends_with('?') { "" } else { "." };
    Diagnostic::error(error.summary, format!("{}{stop}", error.detail)).at(range)
}
