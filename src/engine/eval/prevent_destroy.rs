//! Values of the lifecycle argument `prevent_destroy` that are not constant.

use addrs::ModuleInstance;
use cty::{Marks, Type};
use lang::eval::{Context, with_expression};
use syntax::Diagnostic;
use syntax::ast::Expr;

use super::{Evaluator, ModuleScope, Reported};

impl Evaluator<'_> {
    /// Evaluates a `prevent_destroy` expression in a module instance. The outer `None` means that the configuration does not have this
    /// module instance any more, the inner `None` that the value is unknown.
    pub fn prevents_destroy(&self, module: &ModuleInstance, expr: &Expr) -> Option<Result<Option<bool>, Reported>> {
        let mut at = module.clone();
        while let Some((parent, step)) = at.parent() {
            match self.call_expansion(&parent, &step.name) {
                Ok(expansion) if expansion.has(&step.key) => {}
                Ok(_) => return None,
                Err(reported) => return Some(Err(reported)),
            }
            at = parent;
        }
        let scope = self.scope(module)?;
        Some(self.prevent_destroy_in(expr, &scope))
    }

    /// Evaluates a `prevent_destroy` expression in a scope. Null is false.
    pub(crate) fn prevent_destroy_in(&self, expr: &Expr, scope: &ModuleScope<'_>) -> Result<Option<bool>, Reported> {
        let (value, marks) = self.evaluate_used(expr, scope)?.unmark();
        let invalid = |detail: String| {
            let problem = Diagnostic::error("Invalid value for prevent_destroy", detail).at(expr.range());
            self.report([with_expression(problem, expr, Context::new(scope))]);
            Reported
        };
        if marks.contains(Marks::SENSITIVE) || marks.contains(Marks::EPHEMERAL) {
            return Err(invalid(
                "The value cannot be sensitive or ephemeral, since plans that destroy the object would disclose it."
                    .into(),
            ));
        }
        let value = cty::convert(&value, &Type::Bool)
            .map_err(|e| invalid(format!("The value must be true or false: {}.", e.message)))?;
        Ok(value.is_known().then(|| value.as_bool().unwrap_or(false)))
    }
}
