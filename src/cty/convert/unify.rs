//! The common type of several types (unification).
//!
//! The first rule that applies decides:
//!
//! 1. One type is its own common type.
//! 2. Types of one kind have a common type of that kind, whose parts are the common types of their parts. Objects with
//!    different attributes become a map and tuples of different lengths a list, if all their parts have a common type.
//!    With an unknown type (`any`) among them the result is `any`, because the unknown type can turn out to be anything.
//! 3. Maps and objects together become a map, lists and tuples together a list.
//! 4. Objects and tuples have nothing in common.
//! 5. Otherwise the common type is one of the types: the most general one that all others convert to.

use std::cmp::Ordering;

use super::{can_convert, convert, distinct};
use crate::{ConvertError, Type, Value};

/// Returns the common type of `types`, or `None`. Conversions that fail for some values are allowed, as in conditionals
/// and collections.
#[must_use]
pub fn unify(types: &[Type]) -> Option<Type> {
    unify_types(types, false)
}

/// Returns the common type of `types`, or `None`. Only conversions that succeed for every value are allowed.
#[must_use]
pub fn unify_safe(types: &[Type]) -> Option<Type> {
    unify_types(types, true)
}

/// Converts values to their common type; `any` if there are no values. `Ok(None)` if they have no common type.
///
/// # Errors
/// The conversion that fails for one of the values.
pub fn unify_values(values: &[Value]) -> Result<Option<(Type, Vec<Value>)>, ConvertError> {
    if values.is_empty() {
        return Ok(Some((Type::Dynamic, Vec::new())));
    }
    let types: Vec<Type> = values.iter().map(|v| v.ty().clone()).collect();
    let Some(ty) = unify(&types) else { return Ok(None) };
    let converted: Result<Vec<Value>, ConvertError> = values.iter().map(|v| convert(v, &ty)).collect();
    Ok(Some((ty, converted?)))
}

pub(super) fn unify_types(types: &[Type], safe_only: bool) -> Option<Type> {
    Unification { safe_only }.common(types)
}

/// Kinds of types that the rules distinguish.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TypeKind {
    Primitive,
    Map,
    Object,
    List,
    Tuple,
    Set,
}

impl TypeKind {
    /// Returns the kind of a type; `None` for `any`.
    fn from_type(ty: &Type) -> Option<TypeKind> {
        Some(match ty {
            Type::Dynamic => return None,
            Type::Map(_) => TypeKind::Map,
            Type::Object(_) => TypeKind::Object,
            Type::List(_) => TypeKind::List,
            Type::Tuple(_) => TypeKind::Tuple,
            Type::Set(_) => TypeKind::Set,
            _ => TypeKind::Primitive,
        })
    }
}

struct Unification {
    safe_only: bool,
}

impl Unification {
    fn common(&self, types: &[Type]) -> Option<Type> {
        let types = distinct(types);
        if let [only] = types.as_slice() {
            return Some((*only).clone());
        }
        let with_any = types.contains(&&Type::Dynamic);
        let mut kinds: Vec<TypeKind> = types.iter().filter_map(|t| TypeKind::from_type(t)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        match kinds.as_slice() {
            [TypeKind::Primitive] => self.one_of(&types),
            [_] if with_any => Some(Type::Dynamic),
            [_] => self.part_by_part(&types),
            [TypeKind::Map, TypeKind::Object] => self
                .with_collections(&types, TypeKind::Object)
                .filter(|ty| matches!(ty, Type::Map(_)))
                .or_else(|| self.one_of(&types)),
            [TypeKind::List, TypeKind::Tuple] => self
                .with_collections(&types, TypeKind::Tuple)
                .filter(|ty| matches!(ty, Type::List(_)))
                .or_else(|| self.one_of(&types)),
            mixed if mixed.contains(&TypeKind::Object) && mixed.contains(&TypeKind::Tuple) => None,
            _ => self.one_of(&types),
        }
    }

    fn all_convert(&self, types: &[&Type], to: &Type) -> bool {
        types.iter().all(|from| can_convert(from, to, self.safe_only))
    }

    /// Applies rule 2, without `any`. An object is preferred to a map and a tuple to a list, because they preserve more
    /// of the types.
    fn part_by_part(&self, types: &[&Type]) -> Option<Type> {
        if let Some(places) = parts_by_place(types) {
            let parts: Option<Vec<Type>> = places.iter().map(|parts| self.common(parts)).collect();
            let whole = with_parts(types.first()?, parts?);
            // The parts were unified one by one. If the type of a part became `any`, the whole types may still not
            // convert to the result.
            if self.all_convert(types, &whole) {
                return Some(whole);
            }
        }
        self.as_collection(types)
    }

    /// Converts the types of objects to one map, of tuples to one list; `None` for other types.
    fn as_collection(&self, types: &[&Type]) -> Option<Type> {
        let collection = match types.first()? {
            Type::Object(_) => Type::map,
            Type::Tuple(_) => Type::list,
            _ => return None,
        };
        let parts: Vec<Type> = types.iter().flat_map(|t| parts_of(t)).collect();
        let whole = collection(self.common(&parts)?);
        self.all_convert(types, &whole).then_some(whole)
    }

    /// Applies rule 3: the types of one kind become a collection, which is then unified with the others.
    fn with_collections(&self, types: &[&Type], kind: TypeKind) -> Option<Type> {
        let (structural, mut others): (Vec<&Type>, Vec<&Type>) =
            types.iter().partition(|t| TypeKind::from_type(t) == Some(kind));
        let collection = self.as_collection(&structural)?;
        others.push(&collection);
        let others: Vec<Type> = others.into_iter().cloned().collect();
        self.common(&others)
    }

    /// Applies rule 5. The most general types are tried first, then less general ones.
    fn one_of(&self, types: &[&Type]) -> Option<Type> {
        let mut candidates = types.to_vec();
        while !candidates.is_empty() {
            let most_general = |ty: &&Type| {
                candidates
                    .iter()
                    .all(|other| generality(other, ty) != Ordering::Greater)
            };
            let (first, rest): (Vec<&Type>, Vec<&Type>) = candidates.iter().copied().partition(most_general);
            if let Some(common) = first.iter().find(|ty| self.all_convert(types, ty)) {
                return Some((*common).clone());
            }
            // Generality is only a partial order, so there may be no most general type.
            if first.is_empty() {
                break;
            }
            candidates = rest;
        }
        None
    }
}

/// Returns the types of the elements or attributes of a type.
fn parts_of(ty: &Type) -> Vec<Type> {
    match ty {
        Type::List(element) | Type::Set(element) | Type::Map(element) => vec![(**element).clone()],
        Type::Object(object) => object.attributes().iter().map(|a| a.ty.clone()).collect(),
        Type::Tuple(elements) => elements.to_vec(),
        _ => Vec::new(),
    }
}

/// Returns true if types of one kind have the same parts: objects the same attributes, tuples the same length.
fn same_parts(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Object(a), Type::Object(b)) => {
            let (a, b) = (a.attributes(), b.attributes());
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name == b.name)
        }
        (Type::Tuple(a), Type::Tuple(b)) => a.len() == b.len(),
        (Type::List(_), Type::List(_)) | (Type::Set(_), Type::Set(_)) | (Type::Map(_), Type::Map(_)) => true,
        _ => false,
    }
}

/// Transposes types of one shape: returns for each element or attribute its type in each of `types`. `None` if the shapes differ.
fn parts_by_place(types: &[&Type]) -> Option<Vec<Vec<Type>>> {
    let (first, others) = types.split_first()?;
    let mut places: Vec<Vec<Type>> = parts_of(first).into_iter().map(|part| vec![part]).collect();
    for other in others {
        if !same_parts(first, other) {
            return None;
        }
        for (place, part) in places.iter_mut().zip(parts_of(other)) {
            place.push(part);
        }
    }
    Some(places)
}

/// Returns a type of the same kind with these parts.
fn with_parts(ty: &Type, parts: Vec<Type>) -> Type {
    let mut parts = parts.into_iter();
    let mut element = |collection: fn(Type) -> Type| collection(parts.next().unwrap_or(Type::Dynamic));
    match ty {
        Type::List(_) => element(Type::list),
        Type::Set(_) => element(Type::set),
        Type::Map(_) => element(Type::map),
        Type::Object(object) => Type::object(object.attributes().iter().map(|a| a.name.clone()).zip(parts)),
        Type::Tuple(_) => Type::tuple(parts),
        other => other.clone(),
    }
}

/// Compares the generality of types: `Greater` if the first one is more general, `Equal` if neither is. `any` is the
/// least general, because it carries no information as a common type.
fn generality(a: &Type, b: &Type) -> Ordering {
    if same_parts(a, b) {
        let mut overall = Ordering::Equal;
        for (a, b) in parts_of(a).iter().zip(&parts_of(b)) {
            let part = generality(a, b);
            // If a type is more general in one part, and less general in another, neither is more general.
            if overall != Ordering::Equal && part == overall.reverse() {
                return Ordering::Equal;
            }
            overall = overall.then(part);
        }
        return overall;
    }
    match (a, b) {
        (Type::Dynamic, Type::Dynamic) => Ordering::Equal,
        (Type::Dynamic, _) => Ordering::Less,
        (_, Type::Dynamic) => Ordering::Greater,
        _ => match (position(a), position(b)) {
            (Some((a_chain, a)), Some((b_chain, b))) if a_chain == b_chain => b.cmp(&a),
            _ => Ordering::Equal,
        },
    }
}

/// Returns the chain of types that convert to each other, and the position in that chain, from the most general (0) on.
fn position(ty: &Type) -> Option<(TypeKind, u8)> {
    Some(match ty {
        Type::String => (TypeKind::Primitive, 0),
        Type::Number | Type::Bool => (TypeKind::Primitive, 1),
        Type::List(_) => (TypeKind::List, 0),
        Type::Tuple(_) => (TypeKind::List, 1),
        Type::Set(_) => (TypeKind::List, 2),
        Type::Map(_) => (TypeKind::Map, 0),
        Type::Object(_) => (TypeKind::Map, 1),
        _ => return None,
    })
}
