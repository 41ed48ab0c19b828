//! JSON documents without an external library, so that authors of plugins can choose their own JSON library.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Index;
use std::str::FromStr;

use super::error::JsonError;
use super::parse::Borrowed;
use super::text;
use super::tree::{Members, Node, Tree};
use crate::codec::CodecError;
use crate::{Type, Value};

/// A JSON document. Numbers keep all their digits.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Json {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, with the digits as written.
    Number(String),
    /// A string with its escapes decoded.
    String(String),
    /// An array with its elements.
    Array(Vec<Json>),
    /// An object, with its members ordered by name.
    Object(BTreeMap<String, Json>),
}

impl Json {
    /// Builds an object from its members.
    pub fn object<K: Into<String>, V: Into<Json>>(members: impl IntoIterator<Item = (K, V)>) -> Json {
        Json::Object(members.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
    }

    /// Reads JSON text.
    ///
    /// # Errors
    /// The text is not UTF-8, or no JSON document, or nested more than 512 levels deep.
    pub fn parse(text: &[u8]) -> Result<Json, JsonError> {
        let text = std::str::from_utf8(text).map_err(|e| JsonError {
            byte: e.valid_up_to(),
            message: "it is no UTF-8 text",
        })?;
        Borrowed::parse(text).map(Json::from)
    }

    /// Reads the document as a value of this type. Parts of type `any` must have the form `{"value":…,"type":…}`.
    ///
    /// # Errors
    /// The document does not fit the type.
    pub fn to_value(&self, ty: &Type) -> Result<Value, CodecError> {
        super::read(self, ty, 0)
    }

    /// Returns the member with this name, if the document is an object that has one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.get(name),
            _ => None,
        }
    }

    /// Returns the text, if the document is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the value, if the document is a boolean.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Json::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the value, if the document is a whole number that fits 64 bits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Json::Number(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Returns true for `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        *self == Json::Null
    }
}

/// Returns a member of an object; `null` if there is none.
impl Index<&str> for Json {
    type Output = Json;

    fn index(&self, name: &str) -> &Json {
        self.get(name).unwrap_or(&Json::Null)
    }
}

/// Formats the document on one line.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::write(self, None))
    }
}

impl FromStr for Json {
    type Err = JsonError;

    fn from_str(text: &str) -> Result<Json, JsonError> {
        Json::parse(text.as_bytes())
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::String(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::String(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}

impl From<i64> for Json {
    fn from(number: i64) -> Json {
        Json::Number(number.to_string())
    }
}

impl From<u64> for Json {
    fn from(number: u64) -> Json {
        Json::Number(number.to_string())
    }
}

impl From<Vec<Json>> for Json {
    fn from(items: Vec<Json>) -> Json {
        Json::Array(items)
    }
}

impl Tree for Json {
    type Map = BTreeMap<String, Json>;

    fn node(&self) -> Node<'_, Json> {
        match self {
            Json::Null => Node::Null,
            Json::Bool(value) => Node::Bool(*value),
            Json::Number(text) => Node::Number(text),
            Json::String(text) => Node::String(text),
            Json::Array(items) => Node::Array(items),
            Json::Object(members) => Node::Object(members),
        }
    }
}

impl Members<Json> for BTreeMap<String, Json> {
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

impl From<Borrowed<'_>> for Json {
    fn from(document: Borrowed<'_>) -> Json {
        match document {
            Borrowed::Null => Json::Null,
            Borrowed::Bool(value) => Json::Bool(value),
            Borrowed::Number(text) => Json::Number(text.to_owned()),
            Borrowed::String(text) => Json::String(text.into_owned()),
            Borrowed::Array(items) => Json::Array(items.into_iter().map(Json::from).collect()),
            Borrowed::Object(members) => members
                .into_iter()
                .map(|(k, v)| (k.into_owned(), Json::from(v)))
                .collect(),
        }
    }
}

impl FromIterator<(String, Json)> for Json {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(members: I) -> Json {
        Json::Object(members.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_keep_all_their_digits() {
        let text = "[12345678901234567890123456789.5,1e+400,-0,0.10]";
        assert_eq!(Json::parse(text.as_bytes()).unwrap().to_string(), text);
        let value = Json::Number("12345678901234567890123456789.5".into()).to_value(&Type::Number);
        assert_eq!(
            value.unwrap().as_number().unwrap().to_string(),
            "12345678901234567890123456789.5"
        );
    }

    #[test]
    fn text_is_read_and_written() {
        let text = r#" { "a" : [ true , false , null , { } , [ ] ] , "é\u00e9\ud83d\ude00\n" : "\"\\\/\b\f\r\t" } "#;
        let json: Json = text.parse().unwrap();
        assert_eq!(
            json.to_string(),
            "{\"a\":[true,false,null,{},[]],\"éé😀\\n\":\"\\\"\\\\/\\b\\f\\r\\t\"}"
        );
        assert_eq!(json.to_string().parse(), Ok(json.clone()));
        assert_eq!((json["a"].as_str(), json["b"].is_null()), (None, true));
        let made = Json::object([("n", Json::from(7_i64)), ("t", "x".into()), ("b", true.into())]);
        assert_eq!(
            (made["n"].as_i64(), made["t"].as_str(), made["b"].as_bool()),
            (Some(7), Some("x"), Some(true))
        );
        // As in most JSON readers, the last of two members with one name counts.
        assert_eq!(r#"{"a":1,"a":2}"#.parse(), Ok(Json::object([("a", Json::from(2_i64))])));
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        for text in [
            "",
            "{",
            "[",
            "[1",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "tru",
            "nul",
            "01",
            "1.",
            ".5",
            "-",
            "+1",
            "1e",
            "\"",
            "\"\\",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"",
            "\"\n\"",
            "1 2",
            "'a'",
        ] {
            assert!(Json::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Json::parse(b"\"\xff\"").is_err());
        let error = "[1, x]".parse::<Json>().unwrap_err();
        assert_eq!(error.to_string(), "a value is expected (at byte 4)");
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(nested(500).parse::<Json>().is_ok());
        assert!(nested(100_000).parse::<Json>().is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in "\\PC*|[\\[\\]{}\",:0-9eE+.\\\\ntfu -]*") {
            if let Ok(json) = text.parse::<Json>() {
                prop_assert_eq!(json.to_string().parse(), Ok(json));
            }
        }
    }
}
