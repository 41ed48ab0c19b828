//! Operators and conditionals.

use cty::ops::{ConditionalError, OpError, Side};
use cty::{Type, Value, ops};
use syntax::ast::{BinaryOp, Expr, UnaryOp};
use syntax::{Diagnostic, Diagnostics};

use super::{Context, ExpressionEvaluator};

/// Returns advice about the operator `+`, if an operand is a collection, a structure or a string.
fn how_to_join(a: &Value, b: &Value) -> Option<&'static str> {
    let any = |is: fn(&Type) -> bool| is(a.ty()) || is(b.ty());
    if any(|ty| matches!(ty, Type::List(_) | Type::Tuple(_) | Type::Set(_))) {
        return Some(
            " The operator \"+\" adds numbers only. To join lists, use concat(a, b); for sets, setunion(a, b).",
        );
    }
    if any(|ty| matches!(ty, Type::Map(_) | Type::Object(_))) {
        return Some(" The operator \"+\" adds numbers only. To join maps, use merge(a, b).");
    }
    any(|ty| *ty == Type::String)
        .then_some(" The operator \"+\" adds numbers only. To join strings, use a template: \"${a}${b}\".")
}

/// Operands of a binary operator: expression, value, and dynamic errors of the evaluation.
struct Operands<'a> {
    left: (&'a Expr, Value, Diagnostics),
    right: (&'a Expr, Value, Diagnostics),
}

impl ExpressionEvaluator {
    /// Evaluates a binary operation. The left operands of long chains are nested deeply, so they are visited without
    /// recursion.
    pub(super) fn binary(&mut self, expr: &Expr, context: &Context<'_>) -> Value {
        let mut chain = Vec::new();
        let mut at = expr;
        while let Expr::Binary { op, left, right, .. } = at {
            chain.push((*op, &**left, &**right, at));
            at = left;
        }
        let fixed = self.fixed.len();
        let (mut value, mut problems) = self.apart(false, |e| e.expr(at, context));
        for (op, left, right, whole) in chain.into_iter().rev() {
            let (right_value, right_problems) = self.apart(false, |e| e.expr(right, context));
            let failed = self.fixed.len() > fixed;
            let operands = Operands {
                left: (left, value, problems),
                right: (right, right_value, right_problems),
            };
            (value, problems) = self.apart(false, |e| e.apply_binary(op, operands, whole, failed, context));
        }
        self.dynamic.extend(problems);
        value
    }

    /// Applies an operator. `failed` is true if an operand had a static error.
    fn apply_binary(
        &mut self,
        op: BinaryOp,
        operands: Operands<'_>,
        whole: &Expr,
        failed: bool,
        context: &Context<'_>,
    ) -> Value {
        let (operand, result) = match op {
            BinaryOp::Or | BinaryOp::And => (Type::Bool, Type::Bool),
            BinaryOp::Equal | BinaryOp::NotEqual => (Type::Dynamic, Type::Bool),
            BinaryOp::Less | BinaryOp::LessOrEqual | BinaryOp::Greater | BinaryOp::GreaterOrEqual => {
                (Type::Number, Type::Bool)
            }
            _ => (Type::Number, Type::Number),
        };
        let Operands {
            left: (left, a, left_problems),
            right: (right, b, right_problems),
        } = operands;
        // An operand with errors has an unknown type, so it is not reported again.
        self.check_operand(&a, &operand, "left", left, whole, context);
        self.check_operand(&b, &operand, "right", right, whole, context);
        if !self.dynamic.is_empty() {
            if op == BinaryOp::Add
                && let Some(hint) = how_to_join(&a, &b)
                && let Some(first) = self.dynamic.0.first_mut()
            {
                first.detail.push_str(hint);
            }
            self.dynamic.extend(left_problems);
            self.dynamic.extend(right_problems);
            return Value::unknown(result);
        }
        // If an operand has no effect on the result, its errors are dropped.
        if matches!(op, BinaryOp::Or | BinaryOp::And) {
            let short = ops::short_circuit(op == BinaryOp::Or, &a, &b, left_problems.has_errors());
            if let Some((value, side)) = short {
                self.dynamic = match side {
                    Side::Left => left_problems,
                    Side::Right => right_problems,
                };
                return value;
            }
        }
        self.dynamic = left_problems;
        self.dynamic.extend(right_problems);
        if failed || self.dynamic.has_errors() {
            return Value::unknown(result);
        }
        let outcome = match op {
            BinaryOp::Or => ops::or(&a, &b),
            BinaryOp::And => ops::and(&a, &b),
            BinaryOp::Equal => Ok(ops::equals(&a, &b)),
            BinaryOp::NotEqual => Ok(ops::not_equals(&a, &b)),
            BinaryOp::Less => ops::less_than(&a, &b),
            BinaryOp::LessOrEqual => ops::less_or_equal(&a, &b),
            BinaryOp::Greater => ops::greater_than(&a, &b),
            BinaryOp::GreaterOrEqual => ops::greater_or_equal(&a, &b),
            BinaryOp::Add => ops::add(&a, &b),
            BinaryOp::Subtract => ops::subtract(&a, &b),
            BinaryOp::Multiply => ops::multiply(&a, &b),
            BinaryOp::Divide => ops::divide(&a, &b),
            BinaryOp::Modulo => ops::modulo(&a, &b),
        };
        self.operation(outcome, result, whole, context)
    }

    pub(super) fn unary(&mut self, op: UnaryOp, operand: &Expr, whole: &Expr, context: &Context<'_>) -> Value {
        let ty = match op {
            UnaryOp::Negate => Type::Number,
            UnaryOp::Not => Type::Bool,
        };
        let errors = self.errors();
        let value = self.expr(operand, context);
        if self.errors() == errors {
            self.check_operand(&value, &ty, "unary", operand, whole, context);
        }
        if self.errors() > errors {
            return Value::unknown(ty);
        }
        let outcome = match op {
            UnaryOp::Negate => ops::negate(&value),
            UnaryOp::Not => ops::not(&value),
        };
        self.operation(outcome, ty, whole, context)
    }

    /// Reports an operand that does not convert to the type that the operator takes.
    fn check_operand(
        &mut self,
        value: &Value,
        ty: &Type,
        which: &str,
        operand: &Expr,
        whole: &Expr,
        context: &Context<'_>,
    ) {
        if value.ty() != ty
            && let Err(error) = cty::convert(value, ty)
        {
            let detail = format!("The {which} operand does not fit: {}.", error.message);
            let problem = Diagnostic::error("Invalid operand", detail)
                .at(operand.range())
                .within(whole.range());
            self.report(problem, operand, context);
        }
    }

    fn operation(&mut self, outcome: Result<Value, OpError>, ty: Type, whole: &Expr, context: &Context<'_>) -> Value {
        match outcome {
            Ok(value) => value,
            Err(error) => {
                let problem = Diagnostic::error(error.summary, format!("{}.", error.detail)).at(whole.range());
                self.report(problem, whole, context);
                Value::unknown(ty)
            }
        }
    }

    /// Evaluates a conditional. Both results are evaluated, but only the errors of the chosen one count.
    pub(super) fn conditional(
        &mut self,
        condition: &Expr,
        yes: &Expr,
        no: &Expr,
        whole: &Expr,
        context: &Context<'_>,
    ) -> Value {
        let before = self.chosen.len();
        let yes_result = self.apart(false, |e| e.expr(yes, context));
        let between = self.chosen.len();
        let no_result = self.apart(false, |e| e.expr(no, context));
        let after = self.chosen.len();
        // The condition is evaluated last, so that its errors are not mistaken for those of a result.
        let value = self.choose(condition, (yes, yes_result), (no, no_result), whole, context);
        // Drop the recorded decisions of conditionals nested in a branch that was not taken (in both, if the condition is unknown):
        // coverage must not count them.
        if self.chosen.len() > before {
            let last = self.chosen.last().filter(|(at, _)| at == whole.range());
            let not_taken = match last {
                Some((_, true)) => between..after,
                Some((_, false)) => before..between,
                None => before..after,
            };
            self.chosen.drain(not_taken);
        }
        value
    }

    /// Chooses between two results, each with the errors of its evaluation and the expression that they are reported
    /// for.
    pub(super) fn choose(
        &mut self,
        condition: &Expr,
        (yes, (yes_value, yes_problems)): (&Expr, (Value, Diagnostics)),
        (no, (no_value, no_problems)): (&Expr, (Value, Diagnostics)),
        whole: &Expr,
        context: &Context<'_>,
    ) -> Value {
        let errors = self.errors();
        let condition_value = self.expr(condition, context);
        if self.errors() > errors {
            return Value::dynamic();
        }
        let outcome = ops::conditional(&condition_value, &yes_value, &no_value);
        // If the types are inconsistent, only that is reported, and not the errors of the results.
        if !matches!(outcome, Err(ConditionalError::InconsistentTypes(_))) {
            let chosen = cty::convert(&condition_value, &Type::Bool)
                .ok()
                .and_then(|c| c.as_bool());
            if let (Some(yes), Expr::Conditional { range, .. }) = (chosen, whole)
                && context.scope.witness().is_some()
            {
                self.chosen.push((range.clone(), yes));
            }
            match chosen {
                Some(true) => self.dynamic.extend(yes_problems),
                Some(false) => self.dynamic.extend(no_problems),
                None => {}
            }
        }
        match outcome {
            Ok(value) => value,
            Err(error) => {
                let (at, about) = match &error {
                    ConditionalError::InconsistentTypes(_) => (yes.range().to(no.range()), whole),
                    ConditionalError::WrongType { chosen: true, .. } => (yes.range().clone(), yes),
                    ConditionalError::WrongType { chosen: false, .. } => (no.range().clone(), no),
                    _ => (condition.range().clone(), condition),
                };
                let problem = Diagnostic::error(error.summary(), error.to_string())
                    .at(&at)
                    .within(whole.range());
                self.report(problem, about, context);
                Value::dynamic()
            }
        }
    }
}
