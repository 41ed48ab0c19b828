//! JSON form of types.

#[cfg(feature = "serde_json")]
use std::collections::BTreeMap;

use super::document::Json;
use super::error::JsonError;
use super::text;
use super::tree::{Members, Node, Tree};
use crate::Type;
use crate::codec::MAX_DEPTH;
use crate::types::{ObjectAttribute, ObjectType};

/// Renders a type as JSON text: `"string"`, `["list","string"]`, `["object",{…}]`.
#[must_use]
pub fn type_text(ty: &Type) -> String {
    let mut text = String::new();
    write(ty, &mut text);
    text
}

// The text is written directly, without a document: the text precedes every value of type `any` in calls of
// plugins.
fn write(ty: &Type, out: &mut String) {
    let pair = |kind: &str, element: &Type, out: &mut String| {
        out.push_str(kind);
        write(element, out);
        out.push(']');
    };
    match ty {
        Type::Dynamic => out.push_str("\"dynamic\""),
        Type::String => out.push_str("\"string\""),
        Type::Number => out.push_str("\"number\""),
        Type::Bool => out.push_str("\"bool\""),
        Type::List(element) => pair("[\"list\",", element, out),
        Type::Set(element) => pair("[\"set\",", element, out),
        Type::Map(element) => pair("[\"map\",", element, out),
        Type::Tuple(types) => {
            out.push_str("[\"tuple\",[");
            for (i, ty) in types.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write(ty, out);
            }
            out.push_str("]]");
        }
        Type::Object(object) => {
            out.push_str("[\"object\",{");
            for (i, attribute) in object.attributes().iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                text::write_string(&attribute.name, out);
                out.push(':');
                write(&attribute.ty, out);
            }
            out.push('}');
            // Go's cty writes this part only if there are optional attributes.
            let optional = object.attributes().iter().filter(|a| a.optional);
            for (i, attribute) in optional.enumerate() {
                out.push_str(if i == 0 { ",[" } else { "," });
                text::write_string(&attribute.name, out);
            }
            out.push_str(if object.attributes().iter().any(|a| a.optional) {
                "]]"
            } else {
                "]"
            });
        }
    }
}

/// Reason why JSON does not describe a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// The text is no JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// The description is nested more deeply than is accepted.
    #[error("the type is nested too deeply")]
    TooDeep,
    /// The name is not that of a primitive type.
    #[error("invalid primitive type name {0:?}")]
    Primitive(String),
    /// The description is neither a name nor an array.
    #[error("invalid type description")]
    Form,
    /// The array does not begin with the kind of a type.
    #[error("invalid complex type kind name")]
    Kind,
    /// The rest of the array does not fit its kind.
    #[error("invalid description of a {0} type")]
    Content(String),
    /// The optional attributes of an object type are not a list of names.
    #[error("the optional attributes of an object type must be names")]
    OptionalNames,
    /// The description continues after its end.
    #[error("unexpected extra data in type description")]
    ExtraData,
    /// An optional attribute is missing among the attributes.
    #[error("optional attribute {0:?} is not an attribute")]
    UnknownOptional(String),
}

/// Decodes the JSON text of a type.
pub(crate) fn type_from_text(text: &[u8]) -> Result<Type, TypeError> {
    read(&Json::parse(text)?, 0)
}

#[cfg(feature = "serde_json")]
pub(super) fn describe(ty: &Type) -> Json {
    let pair = |kind: &str, rest: Json| Json::Array(vec![kind.into(), rest]);
    match ty {
        Type::Dynamic => "dynamic".into(),
        Type::String => "string".into(),
        Type::Number => "number".into(),
        Type::Bool => "bool".into(),
        Type::List(e) => pair("list", describe(e)),
        Type::Set(e) => pair("set", describe(e)),
        Type::Map(e) => pair("map", describe(e)),
        Type::Tuple(types) => pair("tuple", Json::Array(types.iter().map(describe).collect())),
        Type::Object(o) => {
            let attributes: BTreeMap<String, Json> = o
                .attributes()
                .iter()
                .map(|a| (a.name.to_string(), describe(&a.ty)))
                .collect();
            let mut parts = vec!["object".into(), Json::Object(attributes)];
            let optional: Vec<Json> = o
                .attributes()
                .iter()
                .filter(|a| a.optional)
                .map(|a| Json::String(a.name.to_string()))
                .collect();
            // As in Go's cty, which writes this part only if there are optional attributes.
            if !optional.is_empty() {
                parts.push(Json::Array(optional));
            }
            Json::Array(parts)
        }
    }
}

pub(super) fn read<T: Tree>(json: &T, depth: usize) -> Result<Type, TypeError> {
    if depth > MAX_DEPTH {
        return Err(TypeError::TooDeep);
    }
    let parts = match json.node() {
        Node::String("dynamic") => return Ok(Type::Dynamic),
        Node::String("string") => return Ok(Type::String),
        Node::String("number") => return Ok(Type::Number),
        Node::String("bool") => return Ok(Type::Bool),
        Node::String(other) => return Err(TypeError::Primitive(other.to_owned())),
        Node::Array(parts) => parts,
        _ => return Err(TypeError::Form),
    };
    let kind = parts.first().map(Tree::node);
    let (Some(Node::String(kind)), Some(rest)) = (kind, parts.get(1..)) else {
        return Err(TypeError::Kind);
    };
    let inside = rest.first().map(Tree::node);
    match (kind, inside, rest.get(1..).unwrap_or_default()) {
        ("list", Some(_), []) => Ok(Type::list(read(&rest[0], depth + 1)?)),
        ("set", Some(_), []) => Ok(Type::set(read(&rest[0], depth + 1)?)),
        ("map", Some(_), []) => Ok(Type::map(read(&rest[0], depth + 1)?)),
        // Some encoders write null for an empty list or map of parts.
        ("tuple", Some(Node::Null), []) => Ok(Type::tuple([])),
        ("object", Some(Node::Null), []) => Ok(Type::empty_object()),
        ("tuple", Some(Node::Array(elements)), []) => {
            let elements: Result<Vec<Type>, TypeError> = elements.iter().map(|e| read(e, depth + 1)).collect();
            Ok(Type::tuple(elements?))
        }
        ("object", Some(Node::Object(attributes)), optional) => read_object(attributes, optional, depth),
        ("list" | "set" | "map" | "tuple" | "object", ..) => Err(TypeError::Content(kind.to_owned())),
        _ => Err(TypeError::Kind),
    }
}

fn text<T: Tree>(json: &T) -> Option<&str> {
    match json.node() {
        Node::String(text) => Some(text),
        _ => None,
    }
}

fn read_object<T: Tree>(attributes: &T::Map, optional: &[T], depth: usize) -> Result<Type, TypeError> {
    let names: Vec<&str> = match optional {
        [] => Vec::new(),
        [names] => match names.node() {
            Node::Array(names) => {
                let names: Option<Vec<&str>> = names.iter().map(text).collect();
                names.ok_or(TypeError::OptionalNames)?
            }
            _ => return Err(TypeError::ExtraData),
        },
        _ => return Err(TypeError::ExtraData),
    };
    if let Some(unknown) = names.iter().find(|name| attributes.member(name).is_none()) {
        return Err(TypeError::UnknownOptional((*unknown).to_owned()));
    }
    let mut out = Vec::with_capacity(attributes.count());
    for (name, ty) in attributes.members() {
        out.push(ObjectAttribute {
            name: crate::text::normalize(name),
            ty: read(ty, depth + 1)?,
            optional: names.contains(&name),
        });
    }
    Ok(Type::Object(std::sync::Arc::new(ObjectType::new(out))))
}
