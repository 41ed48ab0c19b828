//! Evaluation of expressions.
//!
//! [`evaluate`] computes the value of an expression in a [`Context`]. Every form of expression is defined for null,
//! unknown and marked operands. An error leaves an unknown value in its place and evaluation continues, so that one run
//! reports all problems.
//!
//! Errors come in two kinds. *Dynamic* ones (a missing element, a value that does not convert) are dropped by `try` and
//! `can`, and do not count in the branch of a conditional that is not chosen. *Static* ones (a name that is not
//! declared) always count.

mod call;
mod collections;
mod describe;
mod operators;
mod special;
mod template;
mod traversal;

use std::sync::Arc;

use cty::{Type, Value};
use syntax::ast::{Expr, Template};
use syntax::{Diagnostic, Diagnostics, Range};

use crate::scope::Scope;

pub use describe::{describe_value, with_expression, with_whole_expression};
pub(crate) use special::render;
pub use traversal::{apply_steps, get_attribute, get_index};

/// Depth limit of nested expressions. The parser allows fewer levels, but templates evaluate templates.
const MAX_DEPTH: usize = 400;

/// Environment of an expression: its scope, the current iterator variables (of `dynamic` blocks and `for`), and the
/// element of the enclosing splat.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    scope: &'a dyn Scope,
    variables: &'a [(Arc<str>, Value)],
    outer: Option<&'a Context<'a>>,
    splat_element: Option<&'a Value>,
}

impl<'a> Context<'a> {
    #[must_use]
    pub fn new(scope: &'a dyn Scope) -> Context<'a> {
        Context {
            scope,
            variables: &[],
            outer: None,
            splat_element: None,
        }
    }

    /// Returns an inner context with variables that take precedence over anything else of the same name.
    #[must_use]
    pub fn with_variables<'b>(&'b self, variables: &'b [(Arc<str>, Value)]) -> Context<'b> {
        Context {
            scope: self.scope,
            variables,
            outer: Some(self),
            splat_element: self.splat_element,
        }
    }

    fn with_splat_element<'b>(&'b self, element: &'b Value) -> Context<'b> {
        Context {
            scope: self.scope,
            variables: &[],
            outer: Some(self),
            splat_element: Some(element),
        }
    }

    #[must_use]
    pub fn scope(&self) -> &'a dyn Scope {
        self.scope
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        let mut at = Some(self);
        while let Some(context) = at {
            if let Some((_, value)) = context.variables.iter().rev().find(|(n, _)| &**n == name) {
                return Some(value);
            }
            at = context.outer;
        }
        None
    }
}

/// Evaluates an expression. If it has errors, the value or a part of it is unknown.
#[must_use]
pub fn evaluate(expr: &Expr, context: Context<'_>) -> (Value, Diagnostics) {
    if let Some(witness) = context.scope.witness() {
        witness.evaluated(expr.range());
    }
    let mut evaluator = ExpressionEvaluator::default();
    let value = evaluator.expr(expr, &context);
    // The choices are reported at the end, because conditionals inside of a discarded branch must not be reported, and
    // are removed only when the branch is discarded.
    if let Some(witness) = context.scope.witness() {
        for (at, yes) in std::mem::take(&mut evaluator.chosen) {
            witness.chosen(&at, yes);
        }
    }
    (value, evaluator.finish())
}

/// Evaluates an expression and converts the value to a type. A value that does not convert is an error.
#[must_use]
pub fn evaluate_as(expr: &Expr, ty: &Type, context: Context<'_>) -> (Value, Diagnostics) {
    let (value, mut diagnostics) = evaluate(expr, context);
    if diagnostics.has_errors() {
        return (Value::unknown(ty.without_optional()), diagnostics);
    }
    match cty::convert(&value, ty) {
        Ok(value) => (value, diagnostics),
        Err(error) => {
            let problem = Diagnostic::error(
                "Incorrect value type",
                format!("Invalid expression value: {}.", describe_convert_error(&error)),
            );
            diagnostics.push(with_expression(problem.at(expr.range()), expr, context));
            (Value::unknown(ty.without_optional()), diagnostics)
        }
    }
}

/// Evaluates a template for `templatefile` or `templatestring`. The caller has checked that it refers to variables of
/// `context` only.
pub(crate) fn evaluate_template(template: &Expr, context: &Context<'_>, depth: usize) -> (Value, Diagnostics) {
    let mut evaluator = ExpressionEvaluator {
        depth,
        in_template: true,
        ..ExpressionEvaluator::default()
    };
    let value = evaluator.expr(template, context);
    (value, evaluator.finish())
}

/// Describes a failed conversion, with the path to the part of the value that does not convert.
#[must_use]
pub fn describe_convert_error(error: &cty::ConvertError) -> String {
    if error.path.0.is_empty() {
        error.message.clone()
    } else {
        format!("{}: {}", error.path, error.message)
    }
}

/// State of an evaluation.
#[derive(Default)]
struct ExpressionEvaluator {
    /// Errors that `try`, `can` and conditionals can drop.
    dynamic: Diagnostics,
    /// Errors that `try`, `can` and conditionals cannot drop.
    fixed: Diagnostics,
    depth: usize,
    /// True if errors are only counted, so that descriptions of values would be wasted.
    quiet: bool,
    /// Chosen branches of conditionals, for the witness of the scope.
    chosen: Vec<(Range, bool)>,
    /// True inside of a template file.
    in_template: bool,
    /// Number of elements that `for` expressions have produced.
    produced: u64,
}

impl ExpressionEvaluator {
    fn finish(mut self) -> Diagnostics {
        // Two references to one object report the same problem, so one of them is dropped.
        let mut out: Vec<Diagnostic> = Vec::new();
        for diagnostic in std::mem::take(&mut self.fixed.0) {
            if !out.contains(&diagnostic) {
                out.push(diagnostic);
            }
        }
        out.append(&mut self.dynamic.0);
        Diagnostics(out)
    }

    /// Reports a dynamic error of an expression.
    fn report(&mut self, problem: Diagnostic, expr: &Expr, context: &Context<'_>) {
        let problem = if self.quiet {
            problem
        } else {
            with_expression(problem, expr, *context)
        };
        self.dynamic.push(problem);
    }

    /// Runs `f`, and returns its dynamic errors separately.
    fn apart<T>(&mut self, quiet: bool, f: impl FnOnce(&mut Self) -> T) -> (T, Diagnostics) {
        let outer = std::mem::take(&mut self.dynamic);
        let was_quiet = self.quiet;
        self.quiet |= quiet;
        let value = f(self);
        self.quiet = was_quiet;
        let own = std::mem::replace(&mut self.dynamic, outer);
        (value, own)
    }

    /// Number of errors so far: a difference shows that a part of the expression has failed.
    fn errors(&self) -> usize {
        self.dynamic.len() + self.fixed.len()
    }

    fn expr(&mut self, expr: &Expr, context: &Context<'_>) -> Value {
        if self.depth >= MAX_DEPTH {
            self.fixed.push(too_deep(expr.range()));
            return Value::dynamic();
        }
        self.depth += 1;
        let value = self.form(expr, context);
        self.depth -= 1;
        value
    }

    fn form(&mut self, expr: &Expr, context: &Context<'_>) -> Value {
        match expr {
            Expr::Literal { value, .. } => value.clone(),
            Expr::Template(template) => self.template(template, expr, context),
            Expr::Wrap { inner, .. } | Expr::Parens { inner, .. } => self.expr(inner, context),
            Expr::Traversal(t) => self.traversal(t, expr, context),
            Expr::Relative { source, steps, .. } => {
                let errors = self.errors();
                let value = self.expr(source, context);
                if self.errors() > errors {
                    return Value::dynamic();
                }
                self.steps(value, steps, expr, context)
            }
            Expr::Index {
                collection,
                key,
                brackets,
                ..
            } => {
                let errors = self.errors();
                let collection = self.expr(collection, context);
                let key = self.expr(key, context);
                if self.errors() > errors {
                    return Value::dynamic();
                }
                match get_index(&collection, &key, brackets) {
                    Ok(value) => value,
                    Err(problem) => {
                        self.report(problem, expr, context);
                        Value::dynamic()
                    }
                }
            }
            Expr::Splat {
                source, each, marker, ..
            } => self.splat(source, each, marker, expr, context),
            Expr::SplatElement { .. } => context.splat_element.cloned().unwrap_or_else(Value::dynamic),
            Expr::Call(call) => self.call(call, expr, context),
            Expr::Conditional { condition, yes, no, .. } => self.conditional(condition, yes, no, expr, context),
            Expr::Binary { .. } => self.binary(expr, context),
            Expr::Unary { op, operand, .. } => self.unary(*op, operand, expr, context),
            Expr::Tuple { items, .. } => Value::tuple(items.iter().map(|i| self.expr(i, context)).collect()),
            Expr::Object { items, .. } => self.object(items, expr, context),
            Expr::For(e) => self.for_expression(e, expr, context),
            Expr::Json(json) => {
                // Problems of the text, such as duplicate keys, are static errors.
                self.fixed.extend(json.problems().iter().cloned());
                self.expr(json.expr(), context)
            }
            // The parser has reported the error.
            Expr::Invalid { .. } => Value::dynamic(),
        }
    }

    fn template(&mut self, template: &Template, expr: &Expr, context: &Context<'_>) -> Value {
        match template.parts.as_slice() {
            [] => Value::string(""),
            [syntax::ast::TemplatePart::Literal { text, .. }] => Value::string(text),
            parts => self.parts(parts, expr, context),
        }
    }
}

fn too_deep(range: &Range) -> Diagnostic {
    Diagnostic::error(
        "Expression nested too deeply",
        format!("This expression is nested more than {MAX_DEPTH} levels deep, which is more than is supported."),
    )
    .at(range)
}
