//! The conditional operator: `condition ? a : b`.

use crate::convert::{conditional_mismatch, convert, unify};
use crate::{Kind, Number, Refinements, Type, Value};

use super::length_bounds;

/// Reason why a conditional has no result. The texts are for a diagnostic whose range only the caller knows.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConditionalError {
    /// Results without a common type.
    #[error("Both results of a conditional must convert to one type: {0}.")]
    InconsistentTypes(String),
    /// A condition that is null.
    #[error("The condition is null; it must be true or false.")]
    NullCondition,
    #[error("The condition expression must be of type bool.")]
    ConditionNotBool,
    /// A chosen result that does not convert to the common type, although its type does.
    #[error("The {} result value has the wrong type: {message}.", if *.chosen { "true" } else { "false" })]
    WrongType {
        /// True if the result before the colon was chosen.
        chosen: bool,
        /// Description of the failed conversion.
        message: String,
    },
}

impl ConditionalError {
    /// Returns the summary of the diagnostic.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        match self {
            ConditionalError::InconsistentTypes(_) | ConditionalError::WrongType { .. } => {
                "Inconsistent conditional result types"
            }
            ConditionalError::NullCondition => "Null condition",
            ConditionalError::ConditionNotBool => "Incorrect condition type",
        }
    }
}

/// Evaluates `condition ? yes : no` with both results evaluated already.
///
/// Both results are converted to one type, whichever is chosen. An unknown condition gives an unknown value with the
/// refinements that hold for both results. The result has the marks of all three, so that marks do not depend on the
/// choice.
pub fn conditional(condition: &Value, yes: &Value, no: &Value) -> Result<Value, ConditionalError> {
    let ty = result_type(yes, no)?;
    if condition.is_null() {
        return Err(ConditionalError::NullCondition);
    }
    let marks = condition.marks() | yes.marks() | no.marks();
    if !condition.is_known() {
        return Ok(either(&ty, yes, no).with_marks(marks));
    }
    let chosen = match convert(condition, &Type::Bool).ok().and_then(|c| c.as_bool()) {
        Some(chosen) => chosen,
        None => return Err(ConditionalError::ConditionNotBool),
    };
    let result = if chosen { yes } else { no };
    let result = match ty {
        // One of the results has an unknown type, so there is nothing to convert to.
        Type::Dynamic => result.clone(),
        ty => convert(result, &ty).map_err(|e| ConditionalError::WrongType {
            chosen,
            message: e.message,
        })?,
    };
    Ok(result.with_marks(marks))
}

fn result_type(yes: &Value, no: &Value) -> Result<Type, ConditionalError> {
    let untyped_null = |v: &Value| v.is_null() && *v.ty() == Type::Dynamic && v.marks().is_empty();
    if untyped_null(yes) {
        return Ok(no.ty().clone());
    }
    if untyped_null(no) {
        return Ok(yes.ty().clone());
    }
    if *yes.ty() == Type::Dynamic || *no.ty() == Type::Dynamic {
        return Ok(Type::Dynamic);
    }
    unify(&[yes.ty().clone(), no.ty().clone()])
        .ok_or_else(|| ConditionalError::InconsistentTypes(conditional_mismatch(yes.ty(), no.ty())))
}

/// Returns an unknown value that will be one of these two, or null if both are null.
fn either(ty: &Type, yes: &Value, no: &Value) -> Value {
    if yes.is_null() && no.is_null() {
        return Value::null(ty.clone());
    }
    let mut known = Refinements {
        not_null: yes.is_certainly_not_null() && no.is_certainly_not_null(),
        ..Refinements::default()
    };
    if *yes.ty() == Type::Number && *no.ty() == Type::Number {
        known.number_min = wider(lower(yes), lower(no), |a, b| a < b);
        known.number_max = wider(upper(yes), upper(no), |a, b| a > b);
    } else if yes.ty().is_collection() && yes.ty() == no.ty() {
        let ((yes_min, yes_max), (no_min, no_max)) = (length_bounds(yes), length_bounds(no));
        // A null value has no length, so the bounds of the other result stay correct.
        known.length_min = Some(yes_min.min(no_min));
        known.length_max = yes_max.zip(no_max).map(|(a, b)| a.max(b));
    }
    Value::unknown_refined(ty.clone(), known)
}

type Bound = Option<(Number, bool)>;

fn lower(value: &Value) -> Bound {
    match value.kind() {
        Kind::Number(n) => Some((n.clone(), true)),
        _ => value.refinements().and_then(|r| r.number_min.clone()),
    }
}

fn upper(value: &Value) -> Bound {
    match value.kind() {
        Kind::Number(n) => Some((n.clone(), true)),
        _ => value.refinements().and_then(|r| r.number_max.clone()),
    }
}

/// Returns the wider of two bounds, which holds for both values; `None` if one of the values has no bound.
fn wider(a: Bound, b: Bound, further: fn(&Number, &Number) -> bool) -> Bound {
    let ((a, a_inclusive), (b, b_inclusive)) = (a?, b?);
    if further(&a, &b) {
        Some((a, a_inclusive))
    } else if further(&b, &a) {
        Some((b, b_inclusive))
    } else {
        Some((a, a_inclusive || b_inclusive))
    }
}
