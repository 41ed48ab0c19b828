//! The one type that several types convert to.

use std::cmp::Ordering;

use super::{can_convert, convert, distinct};
use crate::{ConvertError, Type, Value};

/// The one type that all these convert to, if there is one. Conversions that can fail on some values are allowed, as in
/// conditionals and collections.
#[must_use]
pub fn unify(types: &[Type]) -> Option<Type> {
    unify_types(types, false)
}

/// The one type that all these convert to whatever the values, if there is one.
#[must_use]
pub fn unify_safe(types: &[Type]) -> Option<Type> {
    unify_types(types, true)
}

/// The values converted to the one type they all convert to; the type is `any` if there are none. `Ok(None)` if there is
/// no such type.
pub fn unify_values(values: &[Value]) -> Result<Option<(Type, Vec<Value>)>, ConvertError> {
    let types: Vec<Type> = values.iter().map(|v| v.ty().clone()).collect();
    if types.is_empty() {
        return Ok(Some((Type::Dynamic, Vec::new())));
    }
    let Some(ty) = unify(&types) else { return Ok(None) };
    let values = values
        .iter()
        .map(|v| convert(v, &ty))
        .collect::<Result<Vec<Value>, ConvertError>>()?;
    Ok(Some((ty, values)))
}

pub(super) fn unify_types(types: &[Type], safe_only: bool) -> Option<Type> {
    let all: Vec<&Type> = distinct(types);
    if let [only] = all.as_slice() {
        return Some((*only).clone());
    }
    unify_distinct(&all, safe_only)
}

fn unify_distinct(types: &[&Type], safe_only: bool) -> Option<Type> {
    let count = |f: fn(&Type) -> bool| types.iter().filter(|t| f(t)).count();
    let maps = count(|t| matches!(t, Type::Map(_)));
    let lists = count(|t| matches!(t, Type::List(_)));
    let sets = count(|t| matches!(t, Type::Set(_)));
    let objects = count(|t| matches!(t, Type::Object(_)));
    let tuples = count(|t| matches!(t, Type::Tuple(_)));
    let dynamics = count(|t| matches!(t, Type::Dynamic));
    let all = types.len();
    // Types of one kind can have a common type that is none of them. This must come first: an object also converts to
    // an object with fewer attributes, which is a much less useful answer.
    if maps > 0 && maps + dynamics == all {
        return unify_collections(Type::map, types, safe_only, dynamics > 0);
    } else if maps > 0 && maps + objects + dynamics == all {
        if let Some(found) = with_replaced(types, |t| matches!(t, Type::Object(_)), objects_to_map, safe_only)
            && matches!(found, Type::Map(_))
        {
            return Some(found);
        }
    } else if lists > 0 && lists + dynamics == all {
        return unify_collections(Type::list, types, safe_only, dynamics > 0);
    } else if lists > 0 && lists + tuples + dynamics == all {
        if let Some(found) = with_replaced(types, |t| matches!(t, Type::Tuple(_)), tuples_to_list, safe_only)
            && matches!(found, Type::List(_))
        {
            return Some(found);
        }
    } else if sets > 0 && sets + dynamics == all {
        return unify_collections(Type::set, types, safe_only, dynamics > 0);
    } else if objects > 0 && objects + dynamics == all {
        return if dynamics > 0 {
            Some(Type::Dynamic)
        } else {
            unify_objects(types, safe_only)
        };
    } else if tuples > 0 && tuples + dynamics == all {
        return if dynamics > 0 {
            Some(Type::Dynamic)
        } else {
            unify_tuples(types, safe_only)
        };
    } else if objects > 0 && tuples > 0 {
        return None;
    }
    let order = by_preference(types);
    order
        .into_iter()
        .map(|i| types[i])
        .find(|want| types.iter().all(|t| can_convert(t, want, safe_only)))
        .cloned()
}

/// Unifies some of the types by themselves first, then all with that result in their place.
fn with_replaced(
    types: &[&Type],
    which: fn(&Type) -> bool,
    merge: fn(&[&Type], bool) -> Option<Type>,
    safe_only: bool,
) -> Option<Type> {
    let chosen: Vec<&Type> = types.iter().copied().filter(|t| which(t)).collect();
    let merged = merge(&chosen, safe_only)?;
    let replaced: Vec<Type> = types
        .iter()
        .map(|t| if which(t) { merged.clone() } else { (*t).clone() })
        .collect();
    unify_types(&replaced, safe_only)
}

fn unify_collections(make: fn(Type) -> Type, types: &[&Type], safe_only: bool, dynamic: bool) -> Option<Type> {
    // What an unknown type will turn out to be cannot be foreseen.
    if dynamic {
        return Some(Type::Dynamic);
    }
    let elements: Vec<Type> = types.iter().filter_map(|t| t.element().cloned()).collect();
    let out = make(unify_types(&elements, safe_only)?);
    types.iter().all(|t| can_convert(t, &out, safe_only)).then_some(out)
}

fn unify_objects(types: &[&Type], safe_only: bool) -> Option<Type> {
    let objects: Vec<_> = types.iter().filter_map(|t| t.as_object()).collect();
    let first = objects.first()?;
    let same_names = objects.iter().all(|o| {
        o.len() == first.len()
            && o.attributes()
                .iter()
                .zip(first.attributes())
                .all(|(a, b)| a.name == b.name)
    });
    if !same_names {
        return objects_to_map(types, safe_only);
    }
    let mut attributes = Vec::with_capacity(first.len());
    for (i, attribute) in first.attributes().iter().enumerate() {
        let across: Vec<Type> = objects.iter().map(|o| o.attributes()[i].ty.clone()).collect();
        attributes.push((attribute.name.clone(), unify_types(&across, safe_only)?));
    }
    let out = Type::object(attributes);
    if types.iter().all(|t| can_convert(t, &out, safe_only)) {
        Some(out)
    } else {
        objects_to_map(types, safe_only)
    }
}

fn objects_to_map(types: &[&Type], safe_only: bool) -> Option<Type> {
    let parts: Vec<Type> = types
        .iter()
        .filter_map(|t| t.as_object())
        .flat_map(|o| o.attributes().iter().map(|a| a.ty.clone()))
        .collect();
    let out = Type::map(unify_types(&parts, safe_only)?);
    types.iter().all(|t| can_convert(t, &out, safe_only)).then_some(out)
}

fn unify_tuples(types: &[&Type], safe_only: bool) -> Option<Type> {
    let tuples: Vec<&Vec<Type>> = types.iter().filter_map(|t| as_tuple(t)).collect();
    let first = tuples.first()?;
    if tuples.iter().any(|t| t.len() != first.len()) {
        return tuples_to_list(types, safe_only);
    }
    let mut elements = Vec::with_capacity(first.len());
    for i in 0..first.len() {
        let across: Vec<Type> = tuples.iter().map(|t| t[i].clone()).collect();
        elements.push(unify_types(&across, safe_only)?);
    }
    let out = Type::tuple(elements);
    if types.iter().all(|t| can_convert(t, &out, safe_only)) {
        Some(out)
    } else {
        tuples_to_list(types, safe_only)
    }
}

fn tuples_to_list(types: &[&Type], safe_only: bool) -> Option<Type> {
    let parts: Vec<Type> = types.iter().filter_map(|t| as_tuple(t)).flatten().cloned().collect();
    let out = Type::list(unify_types(&parts, safe_only)?);
    types.iter().all(|t| can_convert(t, &out, safe_only)).then_some(out)
}

fn as_tuple(ty: &Type) -> Option<&Vec<Type>> {
    match ty {
        Type::Tuple(ts) => Some(ts),
        _ => None,
    }
}

/// The positions of the types, the most general first, and otherwise as they stand.
fn by_preference(types: &[&Type]) -> Vec<usize> {
    let mut less_general: Vec<Vec<usize>> = vec![Vec::new(); types.len()];
    let mut above = vec![0_usize; types.len()];
    for i in 0..types.len() {
        for j in i + 1..types.len() {
            let (from, to) = match generality(types[i], types[j]) {
                Ordering::Less => (i, j),
                Ordering::Greater => (j, i),
                Ordering::Equal => continue,
            };
            less_general[from].push(to);
            above[to] += 1;
        }
    }
    let mut order: Vec<usize> = (0..types.len()).filter(|i| above[*i] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        for j in &less_general[order[next]] {
            above[*j] -= 1;
            if above[*j] == 0 {
                order.push(*j);
            }
        }
        next += 1;
    }
    order
}

/// `Less` where the first type is to be preferred as the more general one.
fn generality(a: &Type, b: &Type) -> Ordering {
    match (a, b) {
        (Type::Dynamic, Type::Dynamic) => Ordering::Equal,
        (Type::Dynamic, _) => Ordering::Greater,
        (_, Type::Dynamic) => Ordering::Less,
        (Type::String, Type::Number | Type::Bool) => Ordering::Less,
        (Type::Number | Type::Bool, Type::String) => Ordering::Greater,
        (Type::List(a), Type::List(b)) | (Type::Set(a), Type::Set(b)) | (Type::Map(a), Type::Map(b)) => {
            generality(a, b)
        }
        (Type::List(_), Type::Tuple(_)) | (Type::Map(_), Type::Object(_)) => Ordering::Less,
        (Type::Tuple(_), Type::List(_)) | (Type::Object(_), Type::Map(_)) => Ordering::Greater,
        (Type::Tuple(_) | Type::List(_), Type::Set(_)) => Ordering::Less,
        (Type::Set(_), Type::Tuple(_) | Type::List(_)) => Ordering::Greater,
        (Type::Object(a), Type::Object(b)) => {
            let (a, b) = (a.attributes(), b.attributes());
            if a.len() != b.len() || a.iter().zip(b).any(|(a, b)| a.name != b.name) {
                return Ordering::Equal;
            }
            overall(a.iter().zip(b).map(|(a, b)| generality(&a.ty, &b.ty)))
        }
        (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
            overall(a.iter().zip(b.iter()).map(|(a, b)| generality(a, b)))
        }
        _ => Ordering::Equal,
    }
}

/// One answer out of those for the parts: none if they point both ways.
fn overall(parts: impl Iterator<Item = Ordering>) -> Ordering {
    let mut found = Ordering::Equal;
    for part in parts {
        match (found, part) {
            (_, Ordering::Equal) => {}
            (Ordering::Equal, part) => found = part,
            (found, part) if found == part => {}
            _ => return Ordering::Equal,
        }
    }
    found
}
