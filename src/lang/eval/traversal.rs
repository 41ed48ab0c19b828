//! References and the steps from their values.

use cty::ops::OpError;
use cty::{Value, ops};
use syntax::ast::{Expr, Traversal, TraversalStep};
use syntax::{Diagnostic, Range};

use super::{Context, Evaluator};
use crate::refs;

impl Evaluator {
    pub(super) fn traversal(&mut self, traversal: &Traversal, expr: &Expr, context: &Context<'_>) -> Value {
        if let Some(value) = context.variable(&traversal.root) {
            return self.steps(value.clone(), &traversal.steps, expr, context);
        }
        let reference = match refs::whole_reference(traversal) {
            Ok(reference) => reference,
            Err(problem) => {
                self.fixed.push(problem);
                return Value::dynamic();
            }
        };
        match context.scope.lookup(&reference) {
            Ok(value) => self.steps(value, &reference.remaining, expr, context),
            Err(problems) => {
                self.fixed.extend(problems);
                Value::dynamic()
            }
        }
    }

    /// Goes on from a value by static steps.
    pub(super) fn steps(&mut self, value: Value, steps: &[TraversalStep], expr: &Expr, context: &Context<'_>) -> Value {
        match apply_steps(value, steps) {
            Ok(value) => value,
            Err(problem) => {
                self.report(*problem, expr, context);
                Value::dynamic()
            }
        }
    }
}

/// Goes on from a value by static steps.
pub fn apply_steps(value: Value, steps: &[TraversalStep]) -> Result<Value, Box<Diagnostic>> {
    let mut at = value;
    for step in steps {
        at = match step {
            TraversalStep::Attribute { name, range } => get_attribute(&at, name, range)?,
            TraversalStep::Index { key, range } => get_index(&at, key, range)?,
            TraversalStep::Splat { range } => {
                return Err(Box::new(
                    Diagnostic::error("Invalid expression", "Splat expressions may not be used here.").at(range),
                ));
            }
        };
    }
    Ok(at)
}

/// The value of `object.name`.
pub fn get_attribute(object: &Value, name: &str, range: &Range) -> Result<Value, Box<Diagnostic>> {
    ops::get_attribute(object, name).map_err(|e| problem(&e, range))
}

/// The value of `collection[key]`.
pub fn get_index(collection: &Value, key: &Value, range: &Range) -> Result<Value, Box<Diagnostic>> {
    ops::index(collection, key).map_err(|e| problem(&e, range))
}

fn problem(error: &OpError, range: &Range) -> Box<Diagnostic> {
    // Some of the sentences are questions.
    let stop = if error.detail.ends_with('?') { "" } else { "." };
    Box::new(Diagnostic::error(error.summary, format!("{}{stop}", error.detail)).at(range))
}
