//! Access to parts of a value: `x[key]`, `x.name`, and the length.

use super::{OpError, length_bounds};
use crate::{Kind, Refinements, Type, Value, convert};

const INVALID_INDEX: &str = "Invalid index";
const UNSUPPORTED_ATTRIBUTE: &str = "Unsupported attribute";
const NO_ELEMENT: &str = "There is no element with this key";

/// Evaluates `x[key]` on lists, tuples, maps and objects.
pub fn index(collection: &Value, key: &Value) -> Result<Value, OpError> {
    if collection.is_null() {
        let detail = "The value is null, and null has no elements";
        return Err(OpError::new("Attempt to index null value", detail));
    }
    if key.is_null() {
        return Err(OpError::new(INVALID_INDEX, "The key is null"));
    }
    if *key.ty() == Type::Dynamic || *collection.ty() == Type::Dynamic {
        return Ok(Value::unknown(Type::Dynamic).with_marks(collection.marks()));
    }
    let key_type = match collection.ty() {
        Type::List(_) | Type::Tuple(_) => Type::Number,
        Type::Map(_) | Type::Object(_) => Type::String,
        Type::Set(_) => {
            return Err(OpError::new(
                INVALID_INDEX,
                "The elements of a set have no keys. Use a 'for' expression or a splat over all of them, or convert \
                 the set with tolist",
            ));
        }
        _ => return Err(OpError::new(INVALID_INDEX, "This value does not have any indices")),
    };
    let by_number = *key.ty() == Type::Number;
    let key = convert(key, &key_type).map_err(|e| OpError::new(INVALID_INDEX, format!("{NO_ELEMENT}: {e}")))?;
    element(collection, &key, by_number)
}

/// Returns the element with a key that has the type of the collection's keys. `by_number` is true if the key was a
/// number before its conversion.
fn element(collection: &Value, key: &Value, by_number: bool) -> Result<Value, OpError> {
    // An element that is not known yet has the marks of the collection; a known one has those of the key, too, as in
    // Terraform.
    let pending = |ty: Type| Ok(Value::unknown(ty).with_marks(collection.marks()));
    let marks = collection.marks() | key.marks();
    match collection.ty() {
        Type::Object(_) => {
            let Some(name) = key.as_str() else {
                return pending(Type::Dynamic);
            };
            if !collection.is_known() {
                return pending(Type::Dynamic);
            }
            match collection.get(name) {
                Some(found) => Ok(found.clone().with_marks(marks)),
                None if by_number => Err(OpError::new(
                    INVALID_INDEX,
                    format!("{NO_ELEMENT}. The attributes of an object have names, not numbers"),
                )),
                None => Err(OpError::new(INVALID_INDEX, NO_ELEMENT)),
            }
        }
        Type::Map(element) => {
            let Some(name) = key.as_str() else {
                return pending((**element).clone());
            };
            if !collection.is_known() {
                return pending((**element).clone());
            }
            match collection.get(name) {
                Some(found) => Ok(found.clone().with_marks(marks)),
                None => Err(OpError::new(INVALID_INDEX, NO_ELEMENT)),
            }
        }
        Type::Tuple(types) => {
            if key.as_number().is_none() {
                return pending(Type::Dynamic);
            }
            let at = position(key, Some(types.len()), false)?;
            match (collection.as_seq(), types.get(at)) {
                (Some(items), _) if at < items.len() => Ok(items[at].clone().with_marks(marks)),
                (None, Some(ty)) => Ok(Value::unknown(ty.clone()).with_marks(marks)),
                _ => Err(OpError::new(INVALID_INDEX, NO_ELEMENT)),
            }
        }
        Type::List(element) => {
            let Some(items) = collection.as_seq() else {
                return pending((**element).clone());
            };
            if key.as_number().is_none() {
                return pending((**element).clone());
            }
            let at = position(key, Some(items.len()), !collection.marks().is_empty())?;
            match items.get(at) {
                Some(found) => Ok(found.clone().with_marks(marks)),
                None => Err(OpError::new(INVALID_INDEX, NO_ELEMENT)),
            }
        }
        _ => Err(OpError::new(INVALID_INDEX, "This value does not have any indices")),
    }
}

/// Converts a number to a position in a sequence of this length. Messages do not disclose a hidden length.
fn position(key: &Value, length: Option<usize>, hidden: bool) -> Result<usize, OpError> {
    let error = |why: &str| {
        let detail = if why.is_empty() {
            NO_ELEMENT.to_owned()
        } else {
            format!("{NO_ELEMENT}: {why}")
        };
        OpError::new(INVALID_INDEX, detail)
    };
    let Some(n) = key.as_number() else {
        return Err(error(""));
    };
    if !n.is_integer() && !n.is_infinite() {
        return Err(error("the key of a list or tuple element is a whole number"));
    }
    if n.is_negative() {
        return Err(error("keys of list and tuple elements begin with 0"));
    }
    let at = n.to_usize().unwrap_or(usize::MAX);
    match length {
        Some(length) if at < length => Ok(at),
        _ if hidden => Err(error("")),
        Some(0) if at == 0 => Err(error("the collection has no elements")),
        // Only the first index after the end has this hint: it is a typical error.
        Some(length) if at == length => Err(error("the last element has the key that is one less than the length")),
        _ => Err(error("")),
    }
}

/// Evaluates `x.name` on objects and maps.
pub fn get_attribute(object: &Value, name: &str) -> Result<Value, OpError> {
    if object.is_null() {
        return Err(OpError::new(
            "Attempt to get attribute from null value",
            "The value is null, and null has no attributes",
        ));
    }
    let unsupported = |detail: String| Err(OpError::new(UNSUPPORTED_ATTRIBUTE, detail));
    let marks = object.marks();
    match object.ty() {
        Type::Dynamic => Ok(Value::dynamic().with_marks(marks)),
        Type::Object(o) => match (o.get(name), object.get(name)) {
            (None, _) => unsupported(format!("This object does not have an attribute named {name:?}")),
            (Some(_), Some(found)) => Ok(found.clone().with_marks(marks)),
            (Some(ty), None) => Ok(Value::unknown(ty.clone()).with_marks(marks)),
        },
        // An unknown map may have any key.
        Type::Map(element) if !object.is_known() => Ok(Value::unknown((**element).clone()).with_marks(marks)),
        Type::Map(_) => match object.get(name) {
            Some(found) => Ok(found.clone().with_marks(marks)),
            None => Err(OpError::new(
                "Missing map element",
                format!("The map has no element {name:?}"),
            )),
        },
        Type::List(element) if element.as_object().is_some() => {
            let what = if element.as_object().is_some_and(|o| o.get(name).is_some()) {
                format!("attribute {name:?}")
            } else {
                "an attribute".into()
            };
            unsupported(format!(
                "A list has no attributes; its elements have. Choose an element by its key, or write a splat for \
                 {what} of all of them"
            ))
        }
        Type::Set(element) if element.as_object().is_some() => unsupported(
            "A set has no attributes; its elements have. Write a splat for an attribute of all of them".into(),
        ),
        ty if ty.is_primitive() => unsupported(format!(
            "Can't access attributes on a primitive-typed value ({})",
            ty.friendly_name()
        )),
        _ => unsupported("This value does not have any attributes".into()),
    }
}

/// Returns the number of elements of collections and structural values (not of strings), as the function `length`.
pub fn length(collection: &Value) -> Result<Value, OpError> {
    if collection.is_null() {
        return Err(OpError::failed("argument must not be null"));
    }
    if *collection.ty() == Type::Dynamic {
        return Ok(Value::unknown_not_null(Type::Number).with_marks(collection.marks()));
    }
    if collection.ty().is_primitive() {
        return Err(OpError::failed(
            "the argument must be a string, a collection, a tuple or an object",
        ));
    }
    let out = match (collection.kind(), collection.ty(), length_bounds(collection)) {
        (_, _, (min, Some(max))) if min == max => Value::number(min),
        // Unknown elements of a set may be equal, so its length is not known.
        (Kind::Unknown(_), _, (min, max)) | (_, Type::Set(_), (min, max)) => Value::unknown_refined(
            Type::Number,
            Refinements {
                not_null: true,
                number_min: Some((min.into(), true)),
                number_max: max.map(|max| (max.into(), true)),
                ..Refinements::default()
            },
        ),
        (_, _, (min, _)) => Value::number(min),
    };
    Ok(out.with_marks(collection.marks()))
}
