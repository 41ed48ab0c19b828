//! Operators of the language on values, with unknown operands, refinements and marks.
//!
//! Arithmetic, comparison and logic convert their operands first, as the language does. Equality never converts.

mod access;
mod conditional;
mod equality;

use std::cmp::Ordering;

pub use access::{get_attribute, index, length};
pub use conditional::{ConditionalError, conditional};
pub(crate) use equality::length_bounds;
pub use equality::{equals, not_equals};

use crate::{Marks, Number, Type, Value, convert};

/// Reason why an operation on values failed: summary and detail of a diagnostic without its range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{detail}")]
pub struct OpError {
    /// Summary, such as `Invalid operand`.
    pub summary: &'static str,
    /// Detail: one or more sentences, without the last full stop.
    pub detail: String,
}

impl OpError {
    fn new(summary: &'static str, detail: impl Into<String>) -> OpError {
        OpError {
            summary,
            detail: detail.into(),
        }
    }

    fn failed(why: &str) -> OpError {
        OpError::new("Operation failed", format!("Error during operation: {why}"))
    }
}

/// Evaluates `!` on a bool.
pub fn not(a: &Value) -> Result<Value, OpError> {
    let (a, marks) = operand(a, &Type::Bool, "unary")?;
    let out = match a.as_bool() {
        Some(b) => Value::bool(!b),
        None => Value::unknown_not_null(Type::Bool),
    };
    Ok(out.with_marks(marks))
}

/// Evaluates `&&` without short circuit.
pub fn and(a: &Value, b: &Value) -> Result<Value, OpError> {
    logic(a, b, |a, b| a && b)
}

/// Evaluates `||` without short circuit.
pub fn or(a: &Value, b: &Value) -> Result<Value, OpError> {
    logic(a, b, |a, b| a || b)
}

fn logic(a: &Value, b: &Value, f: fn(bool, bool) -> bool) -> Result<Value, OpError> {
    let (a, b, marks) = operands(a, b, &Type::Bool)?;
    let out = match (a.as_bool(), b.as_bool()) {
        (Some(a), Some(b)) => Value::bool(f(a, b)),
        // The result is unknown even if one operand decides it: a known result would hide an error in the other
        // operand.
        _ => Value::unknown_not_null(Type::Bool),
    };
    Ok(out.with_marks(marks))
}

/// An operand of a binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The operand before the operator.
    Left,
    /// The operand after the operator.
    Right,
}

/// Returns the result of `||` (`or`) or `&&` if one operand decides it or is unknown, with that operand: only its
/// problems are reported. `None` if both operands are known and none decides, if an operand cannot be converted to a
/// bool, or if both are unknown and `left_failed` is true.
///
/// `left_failed` is true if the evaluation of the left operand had errors; an operand with errors is unknown. Null is
/// not true, so it decides `&&`. The result has the marks of both operands.
pub fn short_circuit(or: bool, a: &Value, b: &Value, left_failed: bool) -> Option<(Value, Side)> {
    let (a, a_marks) = convert(a, &Type::Bool).ok()?.unmark();
    let (b, b_marks) = convert(b, &Type::Bool).ok()?.unmark();
    let known = |v: &Value| v.is_known().then(|| v.as_bool() == Some(true));
    let (value, side) = match (known(&a), known(&b)) {
        (None, None) if left_failed => return None,
        (None, None) => (None, Side::Left),
        (Some(a), _) if a == or => (Some(or), Side::Left),
        (_, Some(b)) if b == or => (Some(or), Side::Right),
        (None, Some(_)) => (None, Side::Left),
        (Some(_), None) => (None, Side::Right),
        (Some(_), Some(_)) => return None,
    };
    let value = value.map_or_else(|| Value::unknown_not_null(Type::Bool), Value::bool);
    Some((value.with_marks(a_marks | b_marks), side))
}

/// Evaluates the unary `-x`.
pub fn negate(a: &Value) -> Result<Value, OpError> {
    let (a, marks) = operand(a, &Type::Number, "unary")?;
    let out = match a.as_number() {
        Some(n) => Value::number(n.neg()),
        None => Value::unknown_not_null(Type::Number),
    };
    Ok(out.with_marks(marks))
}

/// Evaluates `+` on numbers.
pub fn add(a: &Value, b: &Value) -> Result<Value, OpError> {
    arithmetic(a, b, Number::add, "the sum of opposite infinities is not defined")
}

/// Evaluates `-` on numbers.
pub fn subtract(a: &Value, b: &Value) -> Result<Value, OpError> {
    arithmetic(a, b, Number::sub, "the difference of equal infinities is not defined")
}

/// Evaluates `*` on numbers.
pub fn multiply(a: &Value, b: &Value) -> Result<Value, OpError> {
    arithmetic(a, b, Number::mul, "the product of zero and infinity is not defined")
}

/// Evaluates `/` on numbers.
pub fn divide(a: &Value, b: &Value) -> Result<Value, OpError> {
    arithmetic(
        a,
        b,
        Number::div,
        "the quotient of two zeros or of two infinities is not defined",
    )
}

/// Evaluates `%` on numbers.
pub fn modulo(a: &Value, b: &Value) -> Result<Value, OpError> {
    arithmetic(a, b, Number::rem, "the remainder is not defined for zero and infinity")
}

fn arithmetic(a: &Value, b: &Value, f: fn(&Number, &Number) -> Option<Number>, error: &str) -> Result<Value, OpError> {
    let (a, b, marks) = operands(a, b, &Type::Number)?;
    let out = match (a.as_number(), b.as_number()) {
        (Some(a), Some(b)) => Value::number(f(a, b).ok_or_else(|| OpError::failed(error))?),
        // The operands' bounds do not give bounds for the result: a plan must not know more than Terraform's.
        _ => Value::unknown_not_null(Type::Number),
    };
    Ok(out.with_marks(marks))
}

/// Evaluates `<` on numbers.
pub fn less_than(a: &Value, b: &Value) -> Result<Value, OpError> {
    comparison(a, b, Ordering::Less, false)
}

/// Evaluates `<=` on numbers.
pub fn less_or_equal(a: &Value, b: &Value) -> Result<Value, OpError> {
    comparison(a, b, Ordering::Less, true)
}

/// Evaluates `>` on numbers.
pub fn greater_than(a: &Value, b: &Value) -> Result<Value, OpError> {
    comparison(a, b, Ordering::Greater, false)
}

/// Evaluates `>=` on numbers.
pub fn greater_or_equal(a: &Value, b: &Value) -> Result<Value, OpError> {
    comparison(a, b, Ordering::Greater, true)
}

fn comparison(a: &Value, b: &Value, expected: Ordering, or_equal: bool) -> Result<Value, OpError> {
    let (a, b, marks) = operands(a, b, &Type::Number)?;
    let out = match (a.as_number(), b.as_number()) {
        (Some(a), Some(b)) => Value::bool(a.compare(b) == expected || or_equal && a == b),
        _ => {
            // Ranges that do not overlap decide the comparison.
            let ((a_min, a_max), (b_min, b_max)) = (bounds(&a), bounds(&b));
            let order = if a_max.compare(&b_min).is_lt() {
                Some(Ordering::Less)
            } else if a_min.compare(&b_max).is_gt() {
                Some(Ordering::Greater)
            } else {
                None
            };
            match order {
                Some(order) if order == expected => Value::bool(true),
                Some(_) if !or_equal || equals(&a, &b).as_bool() == Some(false) => Value::bool(false),
                _ => Value::unknown_not_null(Type::Bool),
            }
        }
    };
    Ok(out.with_marks(marks))
}

/// Returns the least and the greatest number that a value can be.
fn bounds(value: &Value) -> (Number, Number) {
    if let Some(n) = value.as_number() {
        return (n.clone(), n.clone());
    }
    let known = value.refinements();
    (
        known
            .and_then(|r| r.number_min.as_ref())
            .map_or_else(Number::neg_infinity, |(n, _)| n.clone()),
        known
            .and_then(|r| r.number_max.as_ref())
            .map_or_else(Number::infinity, |(n, _)| n.clone()),
    )
}

/// Converts an operand to the operator's type, and separates its marks.
fn operand(value: &Value, ty: &Type, side: &str) -> Result<(Value, Marks), OpError> {
    let converted = convert(value, ty)
        .map_err(|e| OpError::new("Invalid operand", format!("The {side} operand does not fit: {e}")))?;
    if converted.is_null() {
        return Err(OpError::failed("argument must not be null"));
    }
    Ok(converted.unmark())
}

fn operands(a: &Value, b: &Value, ty: &Type) -> Result<(Value, Value, Marks), OpError> {
    let (a, a_marks) = operand(a, ty, "left")?;
    let (b, b_marks) = operand(b, ty, "right")?;
    Ok((a, b, a_marks | b_marks))
}

#[cfg(test)]
mod tests;
