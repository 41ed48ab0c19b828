//! From expression to value.

use std::sync::Arc;

use cty::{Type, Value};
use syntax::ast::Expr;
use syntax::{Diagnostic, Diagnostics};

use crate::scope::Scope;

/// The surroundings of an evaluation: a scope, and the iterator variables in force (of `dynamic` blocks, `for`).
#[derive(Clone, Copy)]
pub struct Context<'a> {
    scope: &'a dyn Scope,
    variables: &'a [(Arc<str>, Value)],
}

impl<'a> Context<'a> {
    /// Nothing but a scope.
    #[must_use]
    pub fn new(scope: &'a dyn Scope) -> Context<'a> {
        Context { scope, variables: &[] }
    }

    /// With variables whose names stand for their values before any reference of the scope is considered.
    #[must_use]
    pub fn with_variables(scope: &'a dyn Scope, variables: &'a [(Arc<str>, Value)]) -> Context<'a> {
        Context { scope, variables }
    }
}

/// The value of an expression. Where it has errors, the value (or a part of it) is unknown.
#[must_use]
pub fn evaluate(expr: &Expr, context: Context<'_>) -> (Value, Diagnostics) {
    let _ = (expr, context.scope, context.variables);
    todo!()
}

/// The value of an expression, converted to a type. A value that does not convert is an "Incorrect value type".
#[must_use]
pub fn evaluate_as(expr: &Expr, ty: &Type, context: Context<'_>) -> (Value, Diagnostics) {
    let _ = (expr, context, ty);
    todo!()
}

/// Adds to a diagnostic about an expression what is known of the values it refers to. Unknown and sensitive ones are
/// mentioned only if the diagnostic's [`syntax::diag::Extra`] says that they are the cause: set that first.
#[must_use]
pub fn with_expression(diagnostic: Diagnostic, expr: &Expr, context: Context<'_>) -> Diagnostic {
    let _ = (expr, context);
    diagnostic
}
