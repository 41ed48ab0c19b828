//! Attributes of objects: JSON text whose strings and numbers stay as they were written.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cty::{Type, Value};
use serde_json::value::RawValue;

use crate::StateError;

/// Maximum nesting of brackets in a stored value. Each line is indented by its depth, so the size of the text would grow with the square of
/// the depth.
const MAX_DEPTH: usize = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// A JSON object that follows the resource type's schema, in the version that the object records.
    Json(RawJson),
    /// The flat form of states from before Terraform 0.12; only the provider can convert it.
    Flat(Arc<BTreeMap<String, String>>),
}

impl Attributes {
    /// Encodes a value as attributes of this type. The value must be wholly known; its marks are ignored.
    pub fn encode(value: &Value, ty: &Type) -> Result<Attributes, StateError> {
        let text = cty::json::to_json_text(value, ty).map_err(|e| StateError::Value {
            what: "A resource's object".into(),
            message: e.to_string(),
        })?;
        Ok(Attributes::Json(RawJson(text.into())))
    }

    /// Decodes the attributes as a value of this type. The flat form is an error.
    pub fn decode(&self, ty: &Type) -> Result<Value, StateError> {
        let bad = |message: String| StateError::Value {
            what: "A resource's object".into(),
            message,
        };
        match self {
            Attributes::Json(json) => cty::json::from_json_text(json.as_str(), ty).map_err(|e| bad(e.to_string())),
            Attributes::Flat(_) => Err(bad(
                "its attributes are in the flat form of an old state, which only its provider can read".into(),
            )),
        }
    }
}

/// Text of one valid JSON value in compact form: no blanks between its parts, and `<`, `>` and `&` escaped. Strings
/// and numbers are otherwise as they were written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Parses text that must be exactly one JSON value.
    pub fn parse(text: &str) -> Result<RawJson, StateError> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|e| StateError::Value {
            what: "JSON text".into(),
            message: files::json_reason(e),
        })?;
        RawJson::compact(raw.get()).ok_or_else(|| StateError::Value {
            what: "JSON text".into(),
            message: format!("it is nested more than {MAX_DEPTH} levels deep"),
        })
    }

    /// Encodes a JSON value.
    #[must_use]
    pub fn from_value(value: &serde_json::Value) -> RawJson {
        RawJson(cty::json::to_text(value, None).into())
    }

    /// Compacts text that is known to be valid; `None` if it is nested too deeply.
    pub(crate) fn compact(text: &str) -> Option<RawJson> {
        let mut out = String::with_capacity(text.len() / 2 + 16);
        let mut depth = 0;
        let mut inside = false;
        let mut from = 0;
        let bytes = text.as_bytes();
        let mut i = 0;
        while i < bytes.len() {
            // The search compares ASCII bytes, and bytes that cannot occur inside other characters, so every cut is between characters.
            let escape = match bytes[i] {
                b'<' => "\\u003c",
                b'>' => "\\u003e",
                b'&' => "\\u0026",
                0xe2 if bytes[i..].starts_with("\u{2028}".as_bytes()) => "\\u2028",
                0xe2 if bytes[i..].starts_with("\u{2029}".as_bytes()) => "\\u2029",
                b'"' => {
                    inside = !inside;
                    ""
                }
                b'\\' if inside => {
                    i += 1;
                    ""
                }
                b'{' | b'[' if !inside => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return None;
                    }
                    ""
                }
                b'}' | b']' if !inside => {
                    depth -= 1;
                    ""
                }
                b' ' | b'\t' | b'\n' | b'\r' if !inside => {
                    out.push_str(&text[from..i]);
                    i += 1;
                    while matches!(bytes.get(i), Some(b' ' | b'\t' | b'\n' | b'\r')) {
                        i += 1;
                    }
                    from = i;
                    continue;
                }
                _ => "",
            };
            if escape.is_empty() {
                i += 1;
                continue;
            }
            out.push_str(&text[from..i]);
            out.push_str(escape);
            i += if bytes[i] == 0xe2 { 3 } else { 1 };
            from = i;
        }
        out.push_str(text.get(from..)?);
        Some(RawJson(out.into()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the text. Numbers keep all their digits.
    pub fn to_value(&self) -> Result<serde_json::Value, StateError> {
        serde_json::from_str(&self.0).map_err(|e| StateError::Value {
            what: "A resource's object".into(),
            message: files::json_reason(e),
        })
    }
}

/// Writes compact JSON over several lines, as part of a text that is indented by `level` steps.
pub(crate) fn indent(bytes: &[u8], level: usize, out: &mut Vec<u8>) {
    let mut level = level;
    let mut inside = false;
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        out.push(byte);
        i += 1;
        match byte {
            b'"' => inside = !inside,
            b'\\' if inside => {
                out.extend(bytes.get(i));
                i += 1;
            }
            // Long texts (policies, certificates) are copied in blocks up to the next quote or backslash, not byte
            // by byte.
            _ if inside => {
                let rest = &bytes[i..];
                let plain = rest
                    .iter()
                    .position(|b| matches!(b, b'"' | b'\\'))
                    .unwrap_or(rest.len());
                out.extend_from_slice(&rest[..plain]);
                i += plain;
            }
            b'{' | b'[' => {
                if let Some(&close @ (b'}' | b']')) = bytes.get(i) {
                    out.push(close);
                    i += 1;
                } else {
                    level += 1;
                    line(level, out);
                }
            }
            b',' => line(level, out),
            b':' => out.push(b' '),
            _ => {}
        }
        if !inside && matches!(bytes.get(i), Some(b'}' | b']')) {
            level = level.saturating_sub(1);
            line(level, out);
        }
    }
}

/// Appends a line break and the indentation of the next line.
pub(crate) fn line(level: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.resize(out.len() + 2 * level, b' ');
}

/// Prints only the length, because attributes may contain secrets that must not be logged.
impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawJson({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indented(text: &str) -> String {
        let mut out = Vec::new();
        indent(RawJson::parse(text).unwrap().as_str().as_bytes(), 0, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_and_digits_stay_and_blanks_go() {
        let raw = RawJson::parse(" { \"a b\" : [ 1.50, -1e400, \"\\\" , {\\\\\" ] , \"<\" : null } ").unwrap();
        assert_eq!(raw.as_str(), r#"{"a b":[1.50,-1e400,"\" , {\\"],"\u003c":null}"#);
        assert_eq!(
            RawJson::parse("\"\u{2028}é\u{2030}&\"").unwrap().as_str(),
            "\"\\u2028é\u{2030}\\u0026\""
        );
        assert!(RawJson::parse("{").is_err());
        assert!(RawJson::parse("1 2").is_err());
    }

    #[test]
    fn indentation_keeps_empty_brackets_together() {
        assert_eq!(
            indented(r#"{"a":[],"b":{},"c":[[1,"}"],{"x":"a\"[,"}]}"#),
            "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    [\n      1,\n      \"}\"\n    ],\n    {\n      \"x\": \"a\\\"[,\"\n    }\n  ]\n}"
        );
        assert_eq!(indented("3"), "3");
    }

    #[test]
    fn excessive_nesting_is_refused() {
        assert!(RawJson::parse(&"[".repeat(100_000)).is_err());
        assert!(RawJson::parse(&("[".repeat(100_000) + &"]".repeat(100_000))).is_err());
        assert!(RawJson::parse(&("[".repeat(900) + &"]".repeat(900))).is_ok());
    }
}
