//! Equality: `==` and `!=`.

use crate::{Kind, Type, Value};

/// Evaluates `==`. Returns unknown if the unknown parts of the operands could change the result.
///
/// Operands are not converted: values of different types are not equal, except that null equals null. The result has all marks of
/// both operands, at any depth.
#[must_use]
pub fn equals(a: &Value, b: &Value) -> Value {
    let marks = a.deep_marks() | b.deep_marks();
    answer(compare(a, b)).with_marks(marks)
}

/// Evaluates `!=`, as the negation of `==`.
#[must_use]
pub fn not_equals(a: &Value, b: &Value) -> Value {
    let marks = a.deep_marks() | b.deep_marks();
    answer(compare(a, b).map(|equal| !equal)).with_marks(marks)
}

fn answer(equal: Option<bool>) -> Value {
    equal.map_or_else(|| Value::unknown_not_null(Type::Bool), Value::bool)
}

/// Compares two values, ignoring marks; `None` if the result is unknown.
fn compare(a: &Value, b: &Value) -> Option<bool> {
    if (a.is_null() && b.is_certainly_not_null()) || (b.is_null() && a.is_certainly_not_null()) {
        return Some(false);
    }
    match (a.is_known(), b.is_known()) {
        (false, false) => return None,
        (true, false) => return known_with_unknown(a, b),
        (false, true) => return known_with_unknown(b, a),
        (true, true) => {}
    }
    if a.is_null() && b.is_null() {
        return Some(true);
    }
    if has_open_type(a) || has_open_type(b) {
        // If neither type can become the other, the values are not equal.
        return if a.ty().conforms_to(b.ty()) || b.ty().conforms_to(a.ty()) {
            None
        } else {
            Some(false)
        };
    }
    if a.ty() != b.ty() {
        return Some(false);
    }
    match (a.kind(), b.kind()) {
        (Kind::Bool(a), Kind::Bool(b)) => Some(a == b),
        (Kind::Number(a), Kind::Number(b)) => Some(a == b),
        (Kind::String(a), Kind::String(b)) => Some(a == b),
        (Kind::Seq(x), Kind::Seq(y)) if matches!(a.ty(), Type::Set(_)) => {
            if x.iter().chain(y.iter()).any(|v| !v.is_known()) {
                return None;
            }
            // Both sets are in canonical order. A value with unknown parts equals no element of another set.
            let same = |v: &Value, w: &Value| v.is_wholly_known() && compare(v, w) == Some(true);
            Some(x.len() == y.len() && x.iter().zip(y.iter()).all(|(v, w)| same(v, w)))
        }
        (Kind::Seq(x), Kind::Seq(y)) => {
            if x.len() != y.len() {
                return Some(false);
            }
            all(x.iter().zip(y.iter()))
        }
        (Kind::Map(x), Kind::Map(y)) => {
            if x.len() != y.len() || x.iter().zip(y.iter()).any(|((k, _), (l, _))| k != l) {
                return Some(false);
            }
            all(x.iter().zip(y.iter()).map(|((_, v), (_, w))| (v, w)))
        }
        _ => Some(false),
    }
}

/// Compares pairs until one differs or is unknown.
fn all<'v>(pairs: impl Iterator<Item = (&'v Value, &'v Value)>) -> Option<bool> {
    for (a, b) in pairs {
        match compare(a, b) {
            Some(true) => {}
            decided => return decided,
        }
    }
    Some(true)
}

fn known_with_unknown(known: &Value, unknown: &Value) -> Option<bool> {
    if !can_be(unknown, known) {
        return Some(false);
    }
    if known.is_null() || unknown.ty().has_dynamic() || known.ty() == unknown.ty() {
        None
    } else {
        Some(false)
    }
}

/// Returns true if the refinements of an unknown value permit this known value.
fn can_be(unknown: &Value, known: &Value) -> bool {
    if known.is_null() {
        return !unknown.is_certainly_not_null();
    }
    if !known.ty().conforms_to(unknown.ty()) {
        // The unknown value will not become a value of another type, even if it may be null.
        return false;
    }
    let Some(facts) = unknown.refinements() else {
        return true;
    };
    match known.kind() {
        Kind::String(s) => facts.prefix.as_ref().is_none_or(|prefix| s.starts_with(&**prefix)),
        Kind::Number(n) => {
            let above = facts
                .number_min
                .as_ref()
                .is_none_or(|(min, inclusive)| n > min || (*inclusive && n == min));
            let below = facts
                .number_max
                .as_ref()
                .is_none_or(|(max, inclusive)| n < max || (*inclusive && n == max));
            above && below
        }
        Kind::Seq(_) | Kind::Map(_) => {
            let (min, max) = length_bounds(known);
            facts.length_min.is_none_or(|least| max.is_none_or(|max| max >= least))
                && facts.length_max.is_none_or(|most| min <= most)
        }
        _ => true,
    }
}

/// Returns the minimum and maximum number of elements of a value. Unknown elements of a set may be equal.
pub(crate) fn length_bounds(value: &Value) -> (usize, Option<usize>) {
    match (value.kind(), value.ty()) {
        (Kind::Seq(items), Type::Set(_)) if items.len() > 1 && !value.is_wholly_known() => (1, Some(items.len())),
        (_, Type::Tuple(types)) => (types.len(), Some(types.len())),
        (_, Type::Object(o)) => (o.len(), Some(o.len())),
        (Kind::Unknown(facts), _) => {
            let facts = facts.as_ref();
            (
                facts.and_then(|r| r.length_min).unwrap_or(0),
                facts.and_then(|r| r.length_max),
            )
        }
        _ => (value.len().unwrap_or(0), value.len()),
    }
}

/// Returns true if the value is, or contains, an unknown value of unknown type.
fn has_open_type(value: &Value) -> bool {
    match value.kind() {
        Kind::Unknown(_) => value.ty().has_dynamic(),
        _ if value.is_wholly_known() => false,
        Kind::Seq(items) => items.iter().any(has_open_type),
        Kind::Map(items) => items.iter().any(|(_, v)| has_open_type(v)),
        _ => false,
    }
}
