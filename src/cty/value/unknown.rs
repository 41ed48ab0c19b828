//! Unknown values and their refinements.

use std::sync::Arc;

use super::{Kind, Value};
use crate::{Refinements, Type};

/// Limit on the length of a list of unknown elements that is built from refinements, because a plugin may claim any
/// length.
const MAX_SPELLED_OUT: usize = 1 << 16;

impl Value {
    /// Creates an unknown value of this type, without refinements.
    #[must_use]
    pub fn unknown(ty: Type) -> Value {
        Value::build(ty, Kind::Unknown(None))
    }

    /// Creates an unknown value with refinements.
    ///
    /// Refinements that do not apply to the type are dropped. If they permit a single value, the result is known: a
    /// number between equal bounds, an empty collection, a list with a certain number of unknown elements.
    #[must_use]
    pub fn unknown_refined(ty: Type, refinements: Refinements) -> Value {
        let refinements = refinements.fit(&ty);
        if refinements.is_empty() {
            return Value::unknown(ty);
        }
        if let Some(known) = Value::permitted_by(&refinements, &ty) {
            return known;
        }
        Value::build(ty, Kind::Unknown(Some(Arc::new(refinements))))
    }

    /// Creates an unknown value that is not null.
    #[must_use]
    pub fn unknown_not_null(ty: Type) -> Value {
        Value::unknown_refined(ty, Refinements::not_null())
    }

    /// Creates a value of unknown content and type.
    #[must_use]
    pub fn dynamic() -> Value {
        Value::unknown(Type::Dynamic)
    }

    /// Returns the single value that refinements permit, if there is one. A list whose length is certain counts: its
    /// elements are unknown.
    fn permitted_by(refinements: &Refinements, ty: &Type) -> Option<Value> {
        if !refinements.not_null {
            return None;
        }
        if let (Some((low, true)), Some((high, true))) = (&refinements.number_min, &refinements.number_max)
            && low == high
        {
            return Some(Value::number(low.clone()));
        }
        let length = refinements.length_max?;
        if refinements.length_min.unwrap_or(0) != length {
            return None;
        }
        match ty {
            Type::List(e) if length <= MAX_SPELLED_OUT => {
                Some(Value::list((**e).clone(), vec![Value::unknown((**e).clone()); length]))
            }
            // Unknown elements may be equal, so a longer set cannot be written out.
            Type::Set(e) if length <= 1 => Some(Value::set((**e).clone(), vec![Value::unknown((**e).clone()); length])),
            Type::Map(e) if length == 0 => Some(Value::map((**e).clone(), std::collections::BTreeMap::new())),
            _ => None,
        }
    }
}
