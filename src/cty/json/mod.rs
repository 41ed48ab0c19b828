//! The JSON form of values and types, as the plugin protocol, the state file and the plan's JSON use it.
//!
//! Two forms: the typed one ([`to_json`], [`from_json`]), in which a value whose type is `any` carries its type along,
//! and the simple one ([`to_simple_json`], [`from_simple_json`]), which is what users write and read.

mod text;
mod types;

pub use text::to_text;
pub use types::{type_from_json, type_to_json};

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::msgpack::{CodecError, MAX_DEPTH, as_type, map_of, uniform};
use crate::{Kind, Number, ObjectType, Step, Type, Value};

/// Writes a known value (marks ignored) of this type. A value of another type is converted first.
pub fn to_json(value: &Value, ty: &Type) -> Result<Json, CodecError> {
    write(as_type(value, ty)?.as_ref(), ty)
}

/// Reads a value of this type; where the type is `any` the JSON carries `{"value":…,"type":…}`.
pub fn from_json(json: &Json, ty: &Type) -> Result<Value, CodecError> {
    read(json, ty, 0)
}

/// Writes plain JSON without type wrappers: what `jsonencode` and `output -json` contain.
pub fn to_simple_json(value: &Value) -> Result<Json, CodecError> {
    write(value, value.ty())
}

/// The type a JSON document has by itself (objects, tuples, primitives; null is dynamic) and its value: what
/// `jsondecode` gives.
///
/// Fails where a number's exponent is beyond what a [`Number`] can have.
pub fn from_simple_json(json: &Json) -> Result<Value, CodecError> {
    Ok(match json {
        Json::Null => Value::null(Type::Dynamic),
        Json::Bool(b) => Value::bool(*b),
        Json::Number(n) => read_number(n.as_str())?,
        Json::String(s) => Value::string(s),
        Json::Array(items) => {
            let read = |(i, item)| from_simple_json(item).map_err(|e| e.under(Step::Index(Value::number(i))));
            Value::tuple(items.iter().enumerate().map(read).collect::<Result<_, _>>()?)
        }
        Json::Object(items) => {
            let mut out = Vec::with_capacity(items.len());
            for (name, item) in items {
                let name = crate::value::normalize(name);
                let item = from_simple_json(item).map_err(|e| e.under(Step::Attribute(name.clone())))?;
                out.push((name, item));
            }
            Value::object(out)
        }
    })
}

fn write(value: &Value, ty: &Type) -> Result<Json, CodecError> {
    if !value.is_known() {
        return Err(CodecError::new("value is not known"));
    }
    if *ty == Type::Dynamic && *value.ty() != Type::Dynamic {
        let mut wrapped = Map::new();
        wrapped.insert("value".into(), write(value, value.ty())?);
        wrapped.insert("type".into(), type_to_json(value.ty()));
        return Ok(Json::Object(wrapped));
    }
    Ok(match (value.kind(), ty) {
        (Kind::Null, _) => Json::Null,
        (Kind::Bool(b), Type::Bool) => Json::Bool(*b),
        (Kind::String(s), Type::String) => Json::String(s.to_string()),
        (Kind::Number(n), Type::Number) => {
            if n.is_infinite() {
                return Err(CodecError::new("cannot serialize infinity as JSON"));
            }
            match n.to_string().parse() {
                Ok(n) => Json::Number(n),
                Err(_) => return Err(CodecError::new("cannot serialize the number as JSON")),
            }
        }
        (Kind::Seq(items), Type::List(element) | Type::Set(element)) => {
            let set = matches!(ty, Type::Set(_));
            let step = |i: usize| Step::Index(if set { items[i].clone() } else { Value::number(i) });
            let parts = items
                .iter()
                .enumerate()
                .map(|(i, item)| write(item, element).map_err(|e| e.under(step(i))));
            Json::Array(parts.collect::<Result<_, _>>()?)
        }
        (Kind::Seq(items), Type::Tuple(types)) if items.len() == types.len() => {
            let parts = items.iter().zip(types.iter()).enumerate();
            let parts =
                parts.map(|(i, (item, ty))| write(item, ty).map_err(|e| e.under(Step::Index(Value::number(i)))));
            Json::Array(parts.collect::<Result<_, _>>()?)
        }
        (Kind::Map(items), Type::Map(element)) => {
            let parts = items.iter().map(|(key, item)| match write(item, element) {
                Ok(json) => Ok((key.to_string(), json)),
                Err(e) => Err(e.under(Step::Index(Value::shared_string(key.clone())))),
            });
            Json::Object(parts.collect::<Result<_, CodecError>>()?)
        }
        (Kind::Seq(items), Type::Object(o)) if items.len() == o.len() => {
            let parts = o
                .attributes()
                .iter()
                .zip(items.iter())
                .map(|(a, item)| match write(item, &a.ty) {
                    Ok(json) => Ok((a.name.to_string(), json)),
                    Err(e) => Err(e.under(Step::Attribute(a.name.clone()))),
                });
            Json::Object(parts.collect::<Result<_, CodecError>>()?)
        }
        _ => return Err(CodecError::new(format!("{} required", ty.friendly_name()))),
    })
}

fn read(json: &Json, ty: &Type, depth: usize) -> Result<Value, CodecError> {
    if depth > MAX_DEPTH {
        return Err(CodecError::new("the value is nested too deeply"));
    }
    match (json, ty) {
        (Json::Null, _) => Ok(Value::null(ty.clone())),
        (_, Type::Dynamic) => read_dynamic(json, depth),
        (Json::Bool(b), Type::Bool) => Ok(Value::bool(*b)),
        (Json::String(s), Type::Bool) => match s.as_str() {
            "true" | "1" => Ok(Value::bool(true)),
            "false" | "0" => Ok(Value::bool(false)),
            _ => Err(CodecError::new("a bool is required")),
        },
        (_, Type::Bool) => Err(CodecError::new("bool is required")),
        (Json::Number(n), Type::Number) => read_number(n.as_str()),
        (Json::String(s), Type::Number) => read_number(s),
        (_, Type::Number) => Err(CodecError::new("number is required")),
        (Json::String(s), Type::String) => Ok(Value::string(s)),
        (Json::Number(n), Type::String) => Ok(Value::string(n.as_str())),
        (Json::Bool(b), Type::String) => Ok(Value::string(if *b { "true" } else { "false" })),
        (_, Type::String) => Err(CodecError::new("string is required")),
        (Json::Array(items), Type::List(element) | Type::Set(element)) => {
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
        (Json::Object(items), Type::Map(element)) => {
            let mut out = Vec::with_capacity(items.len());
            for (key, item) in items {
                let key = crate::value::normalize(key);
                let item = read(item, element, depth + 1)
                    .map_err(|e| e.under(Step::Index(Value::shared_string(key.clone()))))?;
                out.push((key, item));
            }
            map_of(element, out)
        }
        (_, Type::Map(_)) => Err(CodecError::new("a map is required")),
        (Json::Array(items), Type::Tuple(types)) => {
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
        (Json::Object(items), Type::Object(o)) => read_object(items, o, depth),
        (_, Type::Object(_)) => Err(CodecError::new("an object is required")),
    }
}

fn read_number(text: &str) -> Result<Value, CodecError> {
    Number::parse(text)
        .map(Value::number)
        .ok_or_else(|| CodecError::new("a number is required"))
}

fn read_object(items: &Map<String, Json>, ty: &Arc<ObjectType>, depth: usize) -> Result<Value, CodecError> {
    let mut out = Vec::with_capacity(ty.len());
    let mut found = 0;
    for attribute in ty.attributes() {
        out.push(match items.get(&*attribute.name) {
            Some(item) => {
                found += 1;
                let step = |e: CodecError| e.under(Step::Attribute(attribute.name.clone()));
                read(item, &attribute.ty, depth + 1).map_err(step)?
            }
            None => Value::null(attribute.ty.clone()),
        });
    }
    if found < items.len()
        && let Some(extra) = items.keys().find(|name| ty.index_of(name).is_none())
    {
        return Err(CodecError::new(format!("unsupported attribute {extra:?}")));
    }
    Ok(Value::object_of(ty, out))
}

fn read_dynamic(json: &Json, depth: usize) -> Result<Value, CodecError> {
    let Json::Object(parts) = json else {
        return Err(CodecError::new(
            "a value of any type must be an object of its type and itself",
        ));
    };
    if let Some(extra) = parts.keys().find(|key| *key != "type" && *key != "value") {
        return Err(CodecError::new(format!(
            "invalid key {extra:?} in dynamically-typed value"
        )));
    }
    let Some(ty) = parts.get("type") else {
        return Err(CodecError::new("missing type in dynamically-typed value"));
    };
    let Some(value) = parts.get("value") else {
        return Err(CodecError::new("missing value in dynamically-typed value"));
    };
    let ty =
        type_from_json(ty).map_err(|e| CodecError::new(format!("failed to decode type for dynamic value: {e}")))?;
    read(value, &ty.without_optional(), depth + 1)
}

#[cfg(test)]
mod tests;
