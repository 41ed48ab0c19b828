//! Conversion of values to types, and the one type that several types convert to.

use crate::{Path, Type, Value};

/// Why a value does not convert: where in it, and what is wrong there.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ConvertError {
    /// Where inside the value.
    pub path: Path,
    /// What is wrong there: `a number is required`.
    pub message: String,
}

/// Converts a value to a type constraint, which may contain `any` and optional attributes (missing ones become null).
/// Marks and refinements are kept as far as they hold.
pub fn convert(_value: &Value, _to: &Type) -> Result<Value, ConvertError> {
    todo!()
}

/// Whether every value of type `from` (or at least some, if not `safe_only`) converts to `to`.
#[must_use]
pub fn can_convert(_from: &Type, _to: &Type, _safe_only: bool) -> bool {
    todo!()
}

/// The one type that all these convert to, if there is one.
#[must_use]
pub fn unify(_types: &[Type]) -> Option<Type> {
    todo!()
}
