//! JSON form of values and types, as documents of the library serde_json.

use serde_json::{Map, Value as Json};

use super::encode::{self, Brackets, Sink};
use super::parse::Borrowed;
use super::text::Text;
use super::tree::{Members, Node, Tree};
use super::{document, read, read_number, text, types};
use crate::codec::{CodecError, as_type};
use crate::{Step, Type, Value};

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

/// Encodes a known value (marks ignored) of this type. A value of another type is converted first.
pub fn to_json(value: &Value, ty: &Type) -> Result<Json, CodecError> {
    document_of(as_type(value, ty)?.as_ref(), ty)
}

/// Encodes a known value (marks ignored) of this type as compact text: the text of [`to_json`], without building the
/// document.
pub fn to_json_text(value: &Value, ty: &Type) -> Result<String, CodecError> {
    let mut text = Text::default();
    encode::write(as_type(value, ty)?.as_ref(), ty, &mut text)?;
    Ok(text.into_string())
}

/// Decodes a value of this type. Parts of type `any` must have the form `{"value":…,"type":…}`.
pub fn from_json(json: &Json, ty: &Type) -> Result<Value, CodecError> {
    read(json, ty, 0)
}

/// Decodes text to a value of this type: the value of [`from_json`], without building the document.
pub fn from_json_text(text: &str, ty: &Type) -> Result<Value, CodecError> {
    let document = Borrowed::parse(text).map_err(|e| CodecError::new(e.to_string()))?;
    read(&document, ty, 0)
}

/// Encodes a known value as plain JSON without types, as `jsonencode` and `output -json` do.
pub fn to_simple_json(value: &Value) -> Result<Json, CodecError> {
    document_of(value, value.ty())
}

/// Encodes a known value as plain JSON without types, as compact text: the text of [`to_simple_json`], without
/// building the document.
pub fn to_simple_text(value: &Value) -> Result<String, CodecError> {
    let mut text = Text::default();
    encode::write(value, value.ty(), &mut text)?;
    Ok(text.into_string())
}

fn document_of(value: &Value, ty: &Type) -> Result<Json, CodecError> {
    let mut document = Document::default();
    encode::write(value, ty, &mut document)?;
    Ok(document.finished)
}

/// A document under construction.
#[derive(Default)]
struct Document {
    /// Arrays and objects that are not complete yet; for an object with the name of its next member.
    open: Vec<(Json, Option<String>)>,
    finished: Json,
}

impl Document {
    fn put(&mut self, json: Json) {
        match self.open.last_mut() {
            Some((Json::Array(items), _)) => items.push(json),
            Some((Json::Object(members), name)) => {
                members.insert(name.take().unwrap_or_default(), json);
            }
            _ => self.finished = json,
        }
    }
}

impl Sink for Document {
    fn null(&mut self) {
        self.put(Json::Null);
    }

    fn bool(&mut self, value: bool) {
        self.put(Json::Bool(value));
    }

    fn number(&mut self, digits: &str) -> bool {
        match digits.parse() {
            Ok(number) => {
                self.put(Json::Number(number));
                true
            }
            Err(_) => false,
        }
    }

    fn string(&mut self, text: &str) {
        self.put(Json::String(text.to_owned()));
    }

    fn ty(&mut self, ty: &Type) {
        self.put(type_to_json(ty));
    }

    fn begin(&mut self, brackets: Brackets, count: usize) {
        let json = match brackets {
            Brackets::Array => Json::Array(Vec::with_capacity(count)),
            Brackets::Object => Json::Object(Map::with_capacity(count)),
        };
        self.open.push((json, None));
    }

    fn name(&mut self, name: &str) {
        if let Some((_, next)) = self.open.last_mut() {
            *next = Some(name.to_owned());
        }
    }

    fn end(&mut self, _: Brackets) {
        if let Some((json, _)) = self.open.pop() {
            self.put(json);
        }
    }
}

/// Decodes a document to a value of the type that it implies (objects, tuples, primitives; null is dynamic), as
/// `jsondecode` does.
///
/// Fails if a number's exponent is beyond the range of a [`Number`](crate::Number).
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
                // Names are normalized, as strings of values are.
                let name = crate::text::normalize(name);
                let item = from_simple_json(item).map_err(|e| e.under(Step::Attribute(name.clone())))?;
                out.push((name, item));
            }
            Value::object(out)
        }
    })
}

/// Renders a JSON document as Go's encoder does: with escapes for `<`, `>`, `&`, U+2028 and U+2029. With an indent,
/// every element and attribute has a line of its own; empty arrays and objects stay on one line.
#[must_use]
pub fn to_text(json: &Json, indent: Option<usize>) -> String {
    text::write(json, indent)
}

/// Encodes a type as JSON: `"string"`, `["list","string"]`, `["object",{…}]`.
#[must_use]
pub fn type_to_json(ty: &Type) -> Json {
    types::describe(ty).into()
}

/// Decodes the JSON form of a type.
///
/// # Errors
/// The document does not describe a type.
pub fn type_from_json(json: &Json) -> Result<Type, types::TypeError> {
    types::read(json, 0)
}
