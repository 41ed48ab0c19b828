//! The JSON form of values and types as documents of the library serde_json.

use serde_json::{Map, Value as Json};

use super::tree::{Members, Node, Tree};
use super::{document, read, read_number, text, types};
use crate::msgpack::{CodecError, as_type};
use crate::{Kind, Step, Type, Value};

impl Tree for Json {
    type Map = Map<String, Json>;

    fn node(&self) -> Node<'_, Json> {
        match self {
            Json::Null => Node::Null,
            Json::Bool(value) => Node::Bool(*value),
            Json::Number(number) => Node::Number(number.as_str()),
            Json::String(text) => Node::String(text),
            Json::Array(items) => Node::Array(items),
            Json::Object(members) => Node::Object(members),
        }
    }
}

impl Members<Json> for Map<String, Json> {
    fn count(&self) -> usize {
        self.len()
    }

    fn member(&self, name: &str) -> Option<&Json> {
        self.get(name)
    }

    fn members<'a>(&'a self) -> impl Iterator<Item = (&'a str, &'a Json)>
    where
        Json: 'a,
    {
        self.iter().map(|(name, item)| (name.as_str(), item))
    }
}

impl From<document::Json> for Json {
    fn from(document: document::Json) -> Json {
        match document {
            document::Json::Null => Json::Null,
            document::Json::Bool(value) => Json::Bool(value),
            document::Json::Number(text) => text.parse().map_or(Json::Null, Json::Number),
            document::Json::String(text) => Json::String(text),
            document::Json::Array(items) => items.into_iter().map(Json::from).collect(),
            document::Json::Object(members) => members.into_iter().map(|(k, v)| (k, Json::from(v))).collect(),
        }
    }
}

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
/// Fails where a number's exponent is beyond what a [`Number`](crate::Number) can have.
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

/// The text of a JSON document as Go's encoder writes it: `<`, `>`, `&`, U+2028 and U+2029 escaped. With an indent,
/// every element and attribute has a line of its own; empty arrays and objects stay on one line.
#[must_use]
pub fn to_text(json: &Json, indent: Option<usize>) -> String {
    text::write(json, indent)
}

/// The JSON form of a type: `"string"`, `["list","string"]`, `["object",{…}]`.
#[must_use]
pub fn type_to_json(ty: &Type) -> Json {
    types::describe(ty).into()
}

/// Reads the JSON form of a type.
pub fn type_from_json(json: &Json) -> Result<Type, String> {
    types::read(json, 0)
}
