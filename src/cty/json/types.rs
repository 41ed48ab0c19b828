//! Types as JSON.

use serde_json::{Map, Value as Json};

use crate::Type;
use crate::msgpack::MAX_DEPTH;
use crate::types::{ObjectAttribute, ObjectType};

/// The JSON form of a type: `"string"`, `["list","string"]`, `["object",{…}]`.
#[must_use]
pub fn type_to_json(ty: &Type) -> Json {
    let pair = |kind: &str, rest: Json| Json::Array(vec![kind.into(), rest]);
    match ty {
        Type::Dynamic => "dynamic".into(),
        Type::String => "string".into(),
        Type::Number => "number".into(),
        Type::Bool => "bool".into(),
        Type::List(e) => pair("list", type_to_json(e)),
        Type::Set(e) => pair("set", type_to_json(e)),
        Type::Map(e) => pair("map", type_to_json(e)),
        Type::Tuple(types) => pair("tuple", Json::Array(types.iter().map(type_to_json).collect())),
        Type::Object(o) => {
            let attributes: Map<String, Json> = o
                .attributes()
                .iter()
                .map(|a| (a.name.to_string(), type_to_json(&a.ty)))
                .collect();
            let mut parts = vec!["object".into(), Json::Object(attributes)];
            let optional: Vec<Json> = o
                .attributes()
                .iter()
                .filter(|a| a.optional)
                .map(|a| Json::String(a.name.to_string()))
                .collect();
            if !optional.is_empty() {
                parts.push(Json::Array(optional));
            }
            Json::Array(parts)
        }
    }
}

/// Reads the JSON form of a type.
pub fn type_from_json(json: &Json) -> Result<Type, String> {
    read(json, 0)
}

fn read(json: &Json, depth: usize) -> Result<Type, String> {
    if depth > MAX_DEPTH {
        return Err("the type is nested too deeply".into());
    }
    let parts = match json {
        Json::String(name) => {
            return match name.as_str() {
                "dynamic" => Ok(Type::Dynamic),
                "string" => Ok(Type::String),
                "number" => Ok(Type::Number),
                "bool" => Ok(Type::Bool),
                other => Err(format!("invalid primitive type name {other:?}")),
            };
        }
        Json::Array(parts) => parts.as_slice(),
        _ => return Err("invalid type description".into()),
    };
    let [Json::String(kind), rest @ ..] = parts else {
        return Err("invalid complex type kind name".into());
    };
    match (kind.as_str(), rest) {
        ("list", [element]) => Ok(Type::list(read(element, depth + 1)?)),
        ("set", [element]) => Ok(Type::set(read(element, depth + 1)?)),
        ("map", [element]) => Ok(Type::map(read(element, depth + 1)?)),
        // Some writers have null for nothing inside.
        ("tuple", [Json::Null]) => Ok(Type::tuple([])),
        ("object", [Json::Null]) => Ok(Type::empty_object()),
        ("tuple", [Json::Array(elements)]) => {
            let elements: Result<Vec<Type>, String> = elements.iter().map(|e| read(e, depth + 1)).collect();
            Ok(Type::tuple(elements?))
        }
        ("object", [Json::Object(attributes), optional @ ..]) => {
            let names: Vec<&str> = match optional {
                [] => Vec::new(),
                [Json::Array(names)] => {
                    let names: Option<Vec<&str>> = names.iter().map(Json::as_str).collect();
                    names.ok_or("the optional attributes of an object type must be names")?
                }
                _ => return Err("unexpected extra data in type description".into()),
            };
            if let Some(unknown) = names.iter().find(|name| !attributes.contains_key(**name)) {
                return Err(format!("optional attribute {unknown:?} is not an attribute"));
            }
            let mut out = Vec::with_capacity(attributes.len());
            for (name, ty) in attributes {
                let optional = names.contains(&name.as_str());
                let name = crate::value::normalize(name);
                out.push(ObjectAttribute {
                    name,
                    ty: read(ty, depth + 1)?,
                    optional,
                });
            }
            Ok(Type::Object(std::sync::Arc::new(ObjectType::new(out))))
        }
        ("list" | "set" | "map" | "tuple" | "object", _) => Err(format!("invalid description of a {kind} type")),
        _ => Err("invalid complex type kind name".into()),
    }
}
