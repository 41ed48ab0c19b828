//! The JSON form of values and types in the plugin protocol, the state file and the plan's JSON.
//!
//! There are two forms: the typed one (`to_json`, `from_json`), in which a value of type `any` carries its type, and
//! the simple one (`to_simple_json`, `from_simple_json`), which users write and read. With the feature `serde_json`,
//! documents are those of that library; [`Json`] needs no library.

mod document;
#[cfg(feature = "serde_json")]
mod encode;
mod error;
#[cfg(feature = "serde_json")]
mod library;
mod parse;
mod text;
mod tree;
mod types;

pub use document::Json;
pub use error::JsonError;
#[cfg(feature = "serde_json")]
pub use library::{
    from_json, from_json_text, from_simple_json, to_json, to_json_text, to_simple_json, to_simple_text, to_text,
    type_from_json, type_to_json,
};
pub(crate) use types::type_from_text;
pub use types::{TypeError, type_text};

use std::sync::Arc;

use self::tree::{Members, Node, Tree};
use crate::codec::{CodecError, MAX_DEPTH, map_of, uniform};
use crate::{Number, ObjectType, Step, Type, Value};

fn read<T: Tree>(json: &T, ty: &Type, depth: usize) -> Result<Value, CodecError> {
    if depth > MAX_DEPTH {
        return Err(CodecError::new("the value is nested too deeply"));
    }
    match (json.node(), ty) {
        (Node::Null, _) => Ok(Value::null(ty.clone())),
        (_, Type::Dynamic) => read_dynamic(json, depth),
        (Node::Bool(b), Type::Bool) => Ok(Value::bool(b)),
        // Bools and numbers in strings are accepted, as by Terraform's decoder.
        (Node::String(s), Type::Bool) => match s {
            "true" | "1" => Ok(Value::bool(true)),
            "false" | "0" => Ok(Value::bool(false)),
            _ => Err(CodecError::new("a bool is required")),
        },
        (_, Type::Bool) => Err(CodecError::new("bool is required")),
        (Node::Number(n), Type::Number) => read_number(n),
        (Node::String(s), Type::Number) => read_number(s),
        (_, Type::Number) => Err(CodecError::new("number is required")),
        (Node::String(s), Type::String) => Ok(Value::string(s)),
        (Node::Number(n), Type::String) => Ok(Value::string(n)),
        (Node::Bool(b), Type::String) => Ok(Value::string(if b { "true" } else { "false" })),
        (_, Type::String) => Err(CodecError::new("string is required")),
        (Node::Array(items), Type::List(element) | Type::Set(element)) => {
            let mut out = Vec::with_capacity(items.len());
            for (i, item) in items.iter().enumerate() {
                out.push(read(item, element, depth + 1).map_err(|e| e.under(Step::Index(Value::number(i))))?);
            }
            let (element, out) = uniform(element, out)?;
            Ok(if matches!(ty, Type::Set(_)) {
                Value::set(element, out)
            } else {
                Value::list(element, out)
            })
        }
        (_, Type::List(_)) => Err(CodecError::new("a list is required")),
        (_, Type::Set(_)) => Err(CodecError::new("a set is required")),
        (Node::Object(items), Type::Map(element)) => {
            let mut out = Vec::with_capacity(items.count());
            for (key, item) in items.members() {
                let key = crate::text::normalize(key);
                let item = read(item, element, depth + 1)
                    .map_err(|e| e.under(Step::Index(Value::shared_string(key.clone()))))?;
                out.push((key, item));
            }
            map_of(element, out)
        }
        (_, Type::Map(_)) => Err(CodecError::new("a map is required")),
        (Node::Array(items), Type::Tuple(types)) => {
            if items.len() != types.len() {
                return Err(CodecError::new(format!(
                    "a tuple of length {} is required",
                    types.len()
                )));
            }
            let mut out = Vec::with_capacity(items.len());
            for (i, (item, ty)) in items.iter().zip(types.iter()).enumerate() {
                out.push(read(item, ty, depth + 1).map_err(|e| e.under(Step::Index(Value::number(i))))?);
            }
            Ok(Value::tuple(out))
        }
        (_, Type::Tuple(_)) => Err(CodecError::new("a tuple is required")),
        (Node::Object(items), Type::Object(o)) => read_object::<T>(items, o, depth),
        (_, Type::Object(_)) => Err(CodecError::new("an object is required")),
    }
}

fn read_number(text: &str) -> Result<Value, CodecError> {
    Number::parse(text)
        .map(Value::number)
        .ok_or_else(|| CodecError::new("a number is required"))
}

fn read_object<T: Tree>(items: &T::Map, ty: &Arc<ObjectType>, depth: usize) -> Result<Value, CodecError> {
    let mut out = Vec::with_capacity(ty.len());
    let mut found = 0;
    for attribute in ty.attributes() {
        out.push(match items.member(&attribute.name) {
            Some(item) => {
                found += 1;
                let step = |e: CodecError| e.under(Step::Attribute(attribute.name.clone()));
                read(item, &attribute.ty, depth + 1).map_err(step)?
            }
            // Absent attributes are null: states may come from a schema that had fewer.
            None => Value::null(attribute.ty.clone()),
        });
    }
    if found < items.count()
        && let Some(extra) = items
            .members()
            .map(|(name, _)| name)
            .find(|name| ty.index_of(name).is_none())
    {
        return Err(CodecError::new(format!("unsupported attribute {extra:?}")));
    }
    Ok(Value::object_of(ty, out))
}

fn read_dynamic<T: Tree>(json: &T, depth: usize) -> Result<Value, CodecError> {
    let Node::Object(parts) = json.node() else {
        return Err(CodecError::new(
            "a value of any type must be an object of its type and itself",
        ));
    };
    if let Some(extra) = parts
        .members()
        .map(|(key, _)| key)
        .find(|key| *key != "type" && *key != "value")
    {
        return Err(CodecError::new(format!(
            "invalid key {extra:?} in dynamically-typed value"
        )));
    }
    let Some(ty) = parts.member("type") else {
        return Err(CodecError::new("missing type in dynamically-typed value"));
    };
    let Some(value) = parts.member("value") else {
        return Err(CodecError::new("missing value in dynamically-typed value"));
    };
    let ty =
        types::read(ty, 0).map_err(|e| CodecError::new(format!("failed to decode type for dynamic value: {e}")))?;
    // Only type constraints have optional attributes; in a value, all attributes are present.
    read(value, &ty.without_optional(), depth + 1)
}

#[cfg(test)]
#[cfg(feature = "serde_json")]
mod tests;
