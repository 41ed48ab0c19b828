//! Explanations of why a value of one type does not convert to another type.

use super::{can_convert, distinct};
use crate::Type;
use crate::types::ObjectType;

/// Explains why a value of type `got` does not convert to `want`. Call it only if it does not.
#[must_use]
pub fn mismatch_message(got: &Type, want: &Type) -> String {
    match (got, want) {
        (Type::Object(got), Type::Object(want)) => objects(got, want),
        (Type::Tuple(_), Type::List(e)) if **e == Type::Dynamic => "all list elements must have the same type".into(),
        (Type::Tuple(_), Type::Set(e)) if **e == Type::Dynamic => "all set elements must have the same type".into(),
        (Type::Object(_), Type::Map(e)) if **e == Type::Dynamic => "all map elements must have the same type".into(),
        (Type::Tuple(parts), Type::List(want) | Type::Set(want)) => {
            // A long tuple has few different types: each is compared only once.
            let bad: Vec<&Type> = distinct(parts)
                .into_iter()
                .filter(|t| !can_convert(t, want, false))
                .collect();
            match parts.iter().enumerate().find(|(_, t)| bad.contains(t)) {
                Some((i, part)) => format!("element {i}: {}", mismatch_message(part, want)),
                None => format!("all elements must be {}", constraint_name(want)),
            }
        }
        (Type::Object(parts), Type::Map(want)) => {
            match parts.attributes().iter().find(|a| !can_convert(&a.ty, want, false)) {
                Some(a) => format!("element {:?}: {}", a.name, mismatch_message(&a.ty, want)),
                None => format!("all elements must be {}", constraint_name(want)),
            }
        }
        (Type::List(g) | Type::Set(g), Type::List(w)) => {
            format!("incorrect list element type: {}", mismatch_message(g, w))
        }
        (Type::List(g) | Type::Set(g), Type::Set(w)) => {
            format!("incorrect set element type: {}", mismatch_message(g, w))
        }
        (Type::Map(g), Type::Map(w)) => format!("incorrect map element type: {}", mismatch_message(g, w)),
        _ if names_distinguish(got, want) => {
            format!("{} required, but have {}", constraint_name(want), got.friendly_name())
        }
        _ => format!("{} required", constraint_name(want)),
    }
}

/// Returns true if naming both types explains the mismatch. Otherwise the cause is deeper: in an element type, in an
/// attribute, or in the value.
fn names_distinguish(got: &Type, want: &Type) -> bool {
    match (got, want) {
        _ if got.is_primitive() != want.is_primitive() => true,
        (_, Type::String) | (Type::Number, Type::Bool) | (Type::Bool, Type::Number) => true,
        (Type::List(g) | Type::Set(g) | Type::Map(g), Type::List(w) | Type::Set(w) | Type::Map(w)) => {
            !g.has_dynamic() && w.has_dynamic()
        }
        (Type::Tuple(_), Type::Object(_)) => true,
        _ => false,
    }
}

/// Returns the name of a required type, as messages have it: `list of any single type`, `any type`.
fn constraint_name(ty: &Type) -> String {
    match ty {
        Type::Dynamic => "any type".into(),
        Type::List(t) => format!("list of {}", element_constraint_name(t)),
        Type::Set(t) => format!("set of {}", element_constraint_name(t)),
        Type::Map(t) => format!("map of {}", element_constraint_name(t)),
        Type::Object(_) | Type::Tuple(_) | Type::String | Type::Number | Type::Bool => ty.friendly_name(),
    }
}

fn element_constraint_name(ty: &Type) -> String {
    match ty {
        Type::Dynamic => "any single type".into(),
        other => constraint_name(other),
    }
}

fn objects(got: &ObjectType, want: &ObjectType) -> String {
    let missing: Vec<String> = want
        .attributes()
        .iter()
        .filter(|a| !a.optional && got.index_of(&a.name).is_none())
        .map(|a| format!("{:?}", a.name))
        .collect();
    match missing.as_slice() {
        [] => {}
        [one] => return format!("attribute {one} is required"),
        [one, two] => return format!("attributes {one} and {two} are required"),
        [most @ .., last] => return format!("attributes {}, and {last} are required", most.join(", ")),
    }
    // The first pass allows unsafe conversions, so it finds an attribute whose type never converts. The second pass
    // finds one that fails for some values only.
    for safe_only in [false, true] {
        for a in want.attributes() {
            if let Some(ty) = got.get(&a.name)
                && !can_convert(ty, &a.ty, safe_only)
            {
                return format!("attribute {:?}: {}", a.name, mismatch_message(ty, &a.ty));
            }
        }
    }
    "incorrect object attributes".into()
}

/// Explains the difference between the types of a conditional's results, if they have no common type.
#[must_use]
pub fn conditional_mismatch(yes: &Type, no: &Type) -> String {
    match (yes, no) {
        (Type::Object(a), Type::Object(b)) => {
            for attribute in a.attributes() {
                let name = &attribute.name;
                match b.get(name) {
                    None => {
                        return format!(
                            "the object after \"?\" has the attribute {name:?}, and the one after \":\" has not"
                        );
                    }
                    Some(other) if *other != attribute.ty => {
                        let why = conditional_mismatch(&attribute.ty, other);
                        return format!("in the attribute {name:?}: {why}");
                    }
                    Some(_) => {}
                }
            }
            if let Some(extra) = b.attributes().iter().find(|x| a.index_of(&x.name).is_none()) {
                let name = &extra.name;
                return format!("the object after \":\" has the attribute {name:?}, and the one after \"?\" has not");
            }
        }
        (Type::Tuple(a), Type::Tuple(b)) => {
            if a.len() != b.len() {
                return format!(
                    "the tuple after \"?\" has {} elements, and the one after \":\" has {}",
                    a.len(),
                    b.len()
                );
            }
            if let Some((i, (a, b))) = a.iter().zip(b.iter()).enumerate().find(|(_, (a, b))| a != b) {
                return format!("in the tuple element {i}: {}", conditional_mismatch(a, b));
            }
        }
        // Only objects and tuples need a closer comparison: for other element types, the names of the types show the
        // difference.
        (Type::List(a), Type::List(b)) | (Type::Set(a), Type::Set(b)) | (Type::Map(a), Type::Map(b))
            if matches!(
                (&**a, &**b),
                (Type::Object(_), Type::Object(_)) | (Type::Tuple(_), Type::Tuple(_))
            ) =>
        {
            let kind = match yes {
                Type::List(_) => "list",
                Type::Set(_) => "set",
                _ => "map",
            };
            return format!("in the {kind} elements: {}", conditional_mismatch(a, b));
        }
        _ => {}
    }
    let (yes, no) = (yes.friendly_name(), no.friendly_name());
    if yes == no {
        return "the types differ in an attribute or element further inside".into();
    }
    format!("the result after \"?\" is {yes}, and the one after \":\" is {no}")
}
