//! Conversion of values to types, and unification: the common type of several types.
//!
//! Types alone decide if a conversion exists ([`can_convert`]). A conversion that fails for certain values is called
//! unsafe: text, for example, may not be a number. [`convert`] checks the types once for the whole value, then walks
//! the value. [`unify`] finds a common type.

mod mismatch;
mod unify;

use std::sync::Arc;

pub use mismatch::{conditional_mismatch, mismatch_message};
pub use unify::{unify, unify_safe, unify_values};

use crate::types::{ObjectAttribute, ObjectType};
use crate::{Kind, Number, Path, Refinements, Step, Type, Value};

/// A conversion that failed: the path inside of the value, and the reason.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ConvertError {
    /// Path inside of the value.
    pub path: Path,
    /// Reason, such as `a number is required`.
    pub message: String,
}

/// Converts a value to a type constraint, which may contain `any` and optional attributes (missing ones become null).
/// Marks and refinements that still hold are preserved.
pub fn convert(value: &Value, to: &Type) -> Result<Value, ConvertError> {
    if value.ty() == to {
        return Ok(value.clone());
    }
    // A type constraint with optional attributes describes values without such attributes.
    let plain = to.without_optional();
    if *value.ty() == plain {
        return Ok(value.clone());
    }
    if !can_convert(value.ty(), to, false) {
        return Err(ConvertError {
            path: Path::root(),
            message: mismatch_message(value.ty(), to),
        });
    }
    apply(value, to, &plain, &mut Vec::new())
}

/// Returns true if every value of type `from` (or at least some value, if not `safe_only`) converts to `to`.
#[must_use]
pub fn can_convert(from: &Type, to: &Type, safe_only: bool) -> bool {
    let can = |from: &Type, to: &Type| can_convert(from, to, safe_only);
    match (from, to) {
        (_, Type::Dynamic) => true,
        _ if from == to => true,
        (Type::Dynamic, _) => !safe_only,
        (Type::Number | Type::Bool, Type::String) => true,
        (Type::String, Type::Number | Type::Bool) => !safe_only,
        (Type::Object(has), Type::Object(wants)) => wants.attributes().iter().all(|want| match has.get(&want.name) {
            Some(ty) => can(ty, &want.ty),
            None => want.optional,
        }),
        (Type::Tuple(has), Type::Tuple(wants)) => {
            has.len() == wants.len() && has.iter().zip(wants.iter()).all(|(h, w)| can(h, w))
        }
        (Type::List(e) | Type::Set(e), Type::List(w)) | (Type::Set(e), Type::Set(w)) | (Type::Map(e), Type::Map(w)) => {
            can(e, w)
        }
        // Unsafe, because order and duplicates are lost.
        (Type::List(e), Type::Set(w)) => !safe_only && can(e, w),
        (Type::Tuple(has), Type::List(w) | Type::Set(w)) => match element_target(has, w, safe_only) {
            // The common type is `any` if one of the types is. Only if all of them are, the elements have one type,
            // which a collection requires.
            Some(Type::Dynamic) => has.iter().all(|t| *t == Type::Dynamic),
            Some(target) => distinct(has).into_iter().all(|t| can(t, &target)),
            None => false,
        },
        (Type::Object(has), Type::Map(w)) => {
            let types: Vec<Type> = has.attributes().iter().map(|a| a.ty.clone()).collect();
            element_target(&types, w, safe_only)
                .is_some_and(|target| distinct(&types).into_iter().all(|t| can(t, &target)))
        }
        // Only the value shows which attributes are present. An optional attribute may have a type that does not fit,
        // as long as the map has no such element.
        (Type::Map(e), Type::Object(wants)) => {
            !safe_only && wants.attributes().iter().all(|want| want.optional || can(e, &want.ty))
        }
        _ => false,
    }
}

/// Returns the type to which the parts of a tuple or object are converted in a collection: the element type or, if
/// that is `any`, the common type of the parts. `None` if the parts have no common type.
fn element_target(parts: &[Type], element_type: &Type, safe_only: bool) -> Option<Type> {
    if *element_type != Type::Dynamic || parts.is_empty() {
        return Some(element_type.clone());
    }
    unify::unify_types(parts, safe_only)
}

/// Returns the different types, in order of first occurrence.
fn distinct(types: &[Type]) -> Vec<&Type> {
    let Some(first) = types.first() else { return Vec::new() };
    // Elements of one type are the common case, which needs no set.
    if types.iter().all(|t| t == first) {
        return vec![first];
    }
    let mut seen = std::collections::HashSet::new();
    types.iter().filter(|t| seen.insert(*t)).collect()
}

type Steps = Vec<Step>;

fn fail<T>(path: &Steps, message: impl Into<String>) -> Result<T, ConvertError> {
    Err(ConvertError {
        path: Path(path.clone()),
        message: message.into(),
    })
}

/// Converts a value. `plain` is `to` without optional attributes, computed once, so that all elements share one type.
fn apply(value: &Value, to: &Type, plain: &Type, path: &mut Steps) -> Result<Value, ConvertError> {
    // Marks are removed for the conversion, and added to its result.
    if !value.marks().is_empty() {
        let (bare, marks) = value.clone().unmark();
        return Ok(apply(&bare, to, plain, path)?.with_marks(marks));
    }
    if *to == Type::Dynamic || value.ty() == plain {
        return Ok(value.clone());
    }
    match value.kind() {
        Kind::Unknown(refinements) => {
            return Ok(convert_unknown(
                value.ty(),
                refinements.as_deref(),
                fill_dynamic(value.ty(), plain),
            ));
        }
        Kind::Null => return Ok(Value::null(fill_dynamic(value.ty(), plain))),
        _ => {}
    }
    match (value.kind(), value.ty(), to) {
        (Kind::Number(n), _, Type::String) => Ok(Value::shared_string(n.to_string().into())),
        (Kind::Bool(b), _, Type::String) => Ok(Value::shared_string(if *b { "true" } else { "false" }.into())),
        (Kind::String(s), _, Type::Number) => match Number::parse(s) {
            Some(n) => Ok(Value::number(n)),
            None => fail(path, "a number is required"),
        },
        (Kind::String(s), _, Type::Bool) => boolean(s, path),
        (Kind::Seq(items), Type::Object(has), Type::Object(wants)) => match plain.as_object() {
            Some(plain) => object_to_object(items, has, wants, plain, path),
            None => fail(path, mismatch_message(value.ty(), to)),
        },
        (Kind::Seq(items), Type::Tuple(_), Type::Tuple(wants)) if items.len() == wants.len() => {
            let Type::Tuple(plain) = plain else {
                return fail(path, mismatch_message(value.ty(), to));
            };
            let mut out = Vec::with_capacity(items.len());
            for (i, item) in items.iter().enumerate() {
                path.push(Step::Index(Value::number(i)));
                out.push(apply(item, &wants[i], &plain[i], path)?);
                path.pop();
            }
            Ok(Value::tuple(out))
        }
        (Kind::Seq(items), from, Type::List(want) | Type::Set(want)) if !matches!(from, Type::Object(_)) => {
            to_sequence(value, items, to, want, plain, path)
        }
        (Kind::Seq(_), Type::Object(has), Type::Map(want)) => {
            let types: Vec<Type> = has.attributes().iter().map(|a| a.ty.clone()).collect();
            let Some((want, plain_element)) = plain
                .element()
                .and_then(|plain_element| tuple_target(&types, want, plain_element))
            else {
                return fail(path, mismatch_message(value.ty(), to));
            };
            map_elements(value, &want, plain_element, path)
        }
        (Kind::Map(items), Type::Map(own), Type::Map(want)) => {
            let plain_element = if items.is_empty() && **want == Type::Dynamic {
                Some(&**own)
            } else {
                plain.element()
            };
            match plain_element {
                Some(plain_element) => map_elements(value, want, plain_element.clone(), path),
                None => fail(path, mismatch_message(value.ty(), to)),
            }
        }
        (Kind::Map(_), Type::Map(element), Type::Object(wants)) => match plain.as_object() {
            Some(plain) => map_to_object(value, element, wants, plain, path),
            None => fail(path, mismatch_message(value.ty(), to)),
        },
        _ => fail(path, mismatch_message(value.ty(), to)),
    }
}

fn boolean(text: &str, path: &Steps) -> Result<Value, ConvertError> {
    match text {
        "true" | "1" => Ok(Value::bool(true)),
        "false" | "0" => Ok(Value::bool(false)),
        other if other.eq_ignore_ascii_case("true") || other.eq_ignore_ascii_case("false") => {
            let lower = other.to_ascii_lowercase();
            fail(
                path,
                format!("a bool is required; as a string it is written \"{lower}\", in lower case"),
            )
        }
        _ => fail(path, "a bool is required"),
    }
}

fn object_to_object(
    items: &[Value],
    has: &ObjectType,
    wants: &ObjectType,
    plain: &Arc<ObjectType>,
    path: &mut Steps,
) -> Result<Value, ConvertError> {
    let attributes = has.attributes();
    let mut out = Vec::with_capacity(wants.len());
    // Both lists of attributes are sorted by name, so one pass over each is enough.
    let mut at = 0;
    for (want, plain) in wants.attributes().iter().zip(plain.attributes()) {
        while at < attributes.len() && attributes[at].name < want.name {
            at += 1;
        }
        if at < attributes.len() && attributes[at].name == want.name {
            path.push(Step::Attribute(want.name.clone()));
            out.push(apply(&items[at], &want.ty, &plain.ty, path)?);
            path.pop();
        } else if want.optional {
            out.push(Value::null(plain.ty.clone()));
        } else {
            return fail(path, format!("attribute {:?} is required", want.name));
        }
    }
    Ok(Value::object_of(plain, out))
}

/// Converts the elements of a list, set or tuple to the list or set type `to`, with elements of type `want`.
fn to_sequence(
    value: &Value,
    items: &[Value],
    to: &Type,
    want: &Type,
    plain: &Type,
    path: &mut Steps,
) -> Result<Value, ConvertError> {
    let to_set = matches!(to, Type::Set(_));
    let from = value.ty();
    let Some(plain_element) = plain.element() else {
        return fail(path, mismatch_message(from, to));
    };
    if matches!(from, Type::Set(_)) && !to_set && items.len() > 1 && !value.is_wholly_known() {
        // The length of the list is unknown until the set's elements are: some of them may be equal.
        return Ok(Value::unknown(fill_dynamic(from, plain)));
    }
    let (want, plain_element) = match from {
        Type::Tuple(types) => match tuple_target(types, want, plain_element) {
            Some(target) => target,
            None => return fail(path, mismatch_message(from, to)),
        },
        _ => (want.clone(), plain_element.clone()),
    };
    let collected = |element: Type, items: Vec<Value>| match to_set {
        true => Value::set(element, items),
        false => Value::list(element, items),
    };
    // An empty collection has no elements to determine the type that replaces `any`, so the source's element type is
    // used.
    if items.is_empty() {
        let element = match from.element() {
            Some(own) if want == Type::Dynamic => own.clone(),
            _ => plain_element,
        };
        return Ok(collected(element, Vec::new()));
    }
    let mut out = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        path.push(Step::Index(Value::number(i)));
        out.push(apply(item, &want, &plain_element, path)?);
        path.pop();
    }
    let mismatch = format!(
        "element types must all match for conversion to {}",
        if to_set { "set" } else { "list" }
    );
    let (element, out) = uniform(out, &plain_element, path, Value::number, &mismatch)?;
    Ok(collected(element, out))
}

/// Converts a map with elements of type `element` to an object.
fn map_to_object(
    value: &Value,
    element: &Type,
    wants: &ObjectType,
    plain: &Arc<ObjectType>,
    path: &mut Steps,
) -> Result<Value, ConvertError> {
    // The elements are checked before the attributes are converted: `can_convert` has accepted the map because
    // the attributes are optional, but this map has an element for one whose type does not fit.
    let misfit = |a: &&ObjectAttribute| value.get(&a.name).is_some() && !can_convert(element, &a.ty, false);
    if let Some(a) = wants.attributes().iter().find(misfit) {
        let why = mismatch_message(element, &a.ty);
        return fail(
            path,
            format!("map element type is incompatible with attribute {:?}: {why}", a.name),
        );
    }
    let mut out = Vec::with_capacity(wants.len());
    for (want, plain) in wants.attributes().iter().zip(plain.attributes()) {
        match value.get(&want.name) {
            Some(item) => {
                path.push(Step::Index(Value::shared_string(want.name.clone())));
                out.push(apply(item, &want.ty, &plain.ty, path)?);
                path.pop();
            }
            None if want.optional => out.push(Value::null(plain.ty.clone())),
            None => {
                return fail(
                    path,
                    format!("map has no element for required attribute {:?}", want.name),
                );
            }
        }
    }
    Ok(Value::object_of(plain, out))
}

/// Returns the element type to convert to, with and without optional attributes. `None` if `want` is `any` and the
/// parts have no common type.
fn tuple_target(parts: &[Type], want: &Type, plain: &Type) -> Option<(Type, Type)> {
    if *want == Type::Dynamic {
        let target = element_target(parts, want, false)?;
        return Some((target.clone(), target));
    }
    Some((want.clone(), plain.clone()))
}

fn map_elements(value: &Value, want: &Type, plain: Type, path: &mut Steps) -> Result<Value, ConvertError> {
    let mut keys: Vec<Arc<str>> = Vec::new();
    let mut out = Vec::new();
    for (key, item) in value.entries().into_iter().flatten() {
        path.push(Step::Index(Value::shared_string(key.clone())));
        out.push(apply(item, want, &plain, path)?);
        path.pop();
        keys.push(key.clone());
    }
    let parts = if value.ty().is_collection() {
        "element"
    } else {
        "attribute"
    };
    let mismatch = format!("{parts} types must all match for conversion to map");
    let (element, out) = uniform(out, &plain, path, |i| Value::shared_string(keys[i].clone()), &mismatch)?;
    Ok(Value::map_of_sorted(element, keys.iter().cloned().zip(out).collect()))
}

/// Converts the elements to one common type: they may have different types if the target type contains `any`.
fn uniform(
    items: Vec<Value>,
    plain: &Type,
    path: &mut Steps,
    key: impl Fn(usize) -> Value,
    mismatch: &str,
) -> Result<(Type, Vec<Value>), ConvertError> {
    let Some(first) = items.first().map(|v| v.ty().clone()) else {
        return Ok((plain.clone(), items));
    };
    if items.iter().all(|item| *item.ty() == first) {
        return Ok((first, items));
    }
    let types: Vec<Type> = items.iter().map(|v| v.ty().clone()).collect();
    let Some(common) = unify(&types) else {
        return fail(path, mismatch);
    };
    let mut out = Vec::with_capacity(items.len());
    for (i, item) in items.iter().enumerate() {
        path.push(Step::Index(key(i)));
        out.push(apply(item, &common, &common, path)?);
        path.pop();
    }
    match out.first().map(|v| v.ty().clone()) {
        Some(ty) if out.iter().all(|item| *item.ty() == ty) => Ok((ty, out)),
        _ => fail(path, mismatch),
    }
}

/// Converts an unknown value, and keeps the refinements that hold for the new type.
fn convert_unknown(from: &Type, known: Option<&Refinements>, to: Type) -> Value {
    let mut out = Refinements {
        not_null: known.is_some_and(|r| r.not_null),
        ..Refinements::default()
    };
    match (from, &to) {
        (Type::Object(o), Type::Map(_)) => {
            out.length_min = Some(o.len());
            out.length_max = Some(o.len());
        }
        (Type::Tuple(ts), Type::List(_)) => {
            out.length_min = Some(ts.len());
            out.length_max = Some(ts.len());
        }
        (Type::Tuple(ts), Type::Set(_)) => {
            out.length_min = Some(ts.len().min(1));
            out.length_max = Some(ts.len());
        }
        (from, to) if from.is_collection() && to.is_collection() => {
            out.length_min = known.and_then(|r| r.length_min);
            out.length_max = known.and_then(|r| r.length_max);
            if matches!(to, Type::Set(_)) {
                // If all elements are equal, the set has one element, but never none.
                out.length_min = out.length_min.map(|n| n.min(1));
            }
        }
        _ => {}
    }
    Value::unknown_refined(to, out)
}

/// Returns the target type with every `any` replaced by the corresponding part of the source type.
fn fill_dynamic(from: &Type, to: &Type) -> Type {
    if !to.has_dynamic() {
        return to.clone();
    }
    match (from, to) {
        (Type::Dynamic, _) => to.clone(),
        (_, Type::Dynamic) => from.clone(),
        (Type::Map(f), Type::Map(t)) => Type::map(fill_dynamic(f, t)),
        (Type::List(f) | Type::Set(f), Type::List(t)) => Type::list(fill_dynamic(f, t)),
        (Type::List(f) | Type::Set(f), Type::Set(t)) => Type::set(fill_dynamic(f, t)),
        (Type::Object(f), Type::Map(t)) => {
            let types: Vec<Type> = f.attributes().iter().map(|a| a.ty.clone()).collect();
            Type::map(unify(&types).map_or_else(|| (**t).clone(), |f| fill_dynamic(&f, t)))
        }
        (Type::Tuple(f), Type::List(t)) => Type::list(unify(f).map_or_else(|| (**t).clone(), |f| fill_dynamic(&f, t))),
        (Type::Tuple(f), Type::Set(t)) => Type::set(unify(f).map_or_else(|| (**t).clone(), |f| fill_dynamic(&f, t))),
        (Type::Tuple(f), Type::Tuple(t)) if f.len() == t.len() => {
            Type::tuple(f.iter().zip(t.iter()).map(|(f, t)| fill_dynamic(f, t)))
        }
        (Type::Map(f), Type::Object(t)) => {
            Type::object(t.attributes().iter().map(|a| (a.name.clone(), fill_dynamic(f, &a.ty))))
        }
        (Type::Object(f), Type::Object(t)) => Type::object(t.attributes().iter().map(|a| {
            let ty = f.get(&a.name).map_or_else(|| a.ty.clone(), |f| fill_dynamic(f, &a.ty));
            (a.name.clone(), ty)
        })),
        _ => to.clone(),
    }
}

#[cfg(test)]
mod tests;
