//! JSON documents in strings.

use cty::Number;
use cty::json::Json;

use super::text::text_type;
use crate::model::ModelError;

/// A JSON document in a string, as `jsonencode` and services write it. All texts of the same document mean the same.
///
/// ```
/// use monoform_sdk::CustomType as _;
/// use monoform_sdk::types::JsonText;
///
/// let one = JsonText::new(r#"{"b": 1.0, "a": [true]}"#)?;
/// assert!(one.same(&JsonText::new(r#"{"a":[true],"b":1}"#)?));
/// assert_eq!(one.document()["b"].to_string(), "1.0");
/// # Ok::<(), monoform_sdk::model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct JsonText {
    text: String,
    document: Json,
}

text_type!(JsonText);

impl JsonText {
    /// Reads a document.
    ///
    /// # Errors
    /// The text is not valid JSON.
    pub fn new(text: impl Into<String>) -> Result<JsonText, ModelError> {
        let text = text.into();
        match Json::parse(text.as_bytes()) {
            Ok(document) => Ok(JsonText { text, document }),
            Err(error) => Err(ModelError::new(format!("it must be JSON, but {error}"))),
        }
    }

    /// Returns the document.
    #[must_use]
    pub fn document(&self) -> &Json {
        &self.document
    }

    fn meaning(&self) -> Json {
        normal(&self.document)
    }
}

impl From<Json> for JsonText {
    /// Writes a document as compact text.
    fn from(document: Json) -> JsonText {
        JsonText {
            text: document.to_string(),
            document,
        }
    }
}

/// Returns the document with equal numbers written alike: `1`, `1.0` and `1e0` are the same number.
fn normal(document: &Json) -> Json {
    match document {
        Json::Number(digits) => Json::Number(Number::parse(digits).map_or_else(|| digits.clone(), |n| n.to_string())),
        Json::Array(items) => Json::Array(items.iter().map(normal).collect()),
        Json::Object(members) => members
            .iter()
            .map(|(name, item)| (name.clone(), normal(item)))
            .collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CustomType as _;

    #[test]
    fn texts_of_one_document_mean_the_same() {
        let read = |text: &str| JsonText::new(text).unwrap();
        let one = read("{\"b\":[1, 2e1],\n \"a\": \"\\u0041\"}");
        assert!(one.same(&read(r#"{"a":"A","b":[1.0,20]}"#)));
        assert!(!one.same(&read(r#"{"a":"A","b":[20,1]}"#)), "elements have an order");
        assert!(!read("null").same(&read("\"null\"")));
        assert_eq!(
            JsonText::from(one.document().clone()).as_str(),
            r#"{"a":"A","b":[1,2e1]}"#
        );
        for wrong in ["", "{", "{a:1}", "1 2"] {
            assert!(JsonText::new(wrong).is_err(), "{wrong}");
        }
    }
}
