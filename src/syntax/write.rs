//! The writer of values as expressions and attributes of the configuration language.
//!
//! The text is laid out by [`crate::format`], so that `fmt` leaves it unchanged. Values must be wholly known: there is
//! no expression for an unknown value, and `null` is written in its place. Marks are ignored; callers decide what may
//! be displayed.

use std::fmt::Write as _;

use addrs::text::quoted;
use cty::{Kind, Type, Value};

use crate::format::format_file;
use crate::lexer::is_name;

/// Renders a value as a formatted expression.
#[must_use]
pub fn expression(value: &Value) -> String {
    // The formatter accepts only files, so the expression is formatted as the value of an argument.
    const NAME: &str = "x = ";
    let mut text = String::from(NAME);
    push_expression(&mut text, value);
    text.push('\n');
    let text = formatted(text);
    text.strip_prefix(NAME).unwrap_or(&text).trim_end().to_owned()
}

/// Renders attributes as the text of a file, formatted. The names must be identifiers.
#[must_use]
pub fn attributes<'v>(values: impl IntoIterator<Item = (&'v str, &'v Value)>) -> String {
    let mut text = String::new();
    for (name, value) in values {
        text.push_str(name);
        text.push_str(" = ");
        push_expression(&mut text, value);
        text.push('\n');
    }
    formatted(text)
}

/// Formats a text. An invalid text is returned unchanged: the parser reports the error when it is read again.
#[must_use]
pub fn formatted(text: String) -> String {
    format_file("generated text", text.as_bytes())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or(text)
}

/// Appends a value as an expression without formatting.
pub fn push_expression(out: &mut String, value: &Value) {
    match value.kind() {
        Kind::Unknown(_) | Kind::Null => out.push_str("null"),
        // Writing to a string cannot fail.
        Kind::Bool(b) => drop(write!(out, "{b}")),
        Kind::Number(n) => drop(write!(out, "{n}")),
        Kind::String(s) => out.push_str(&quoted(s)),
        Kind::Seq(items) if !matches!(value.ty(), Type::Object(_)) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                push_expression(out, item);
            }
            out.push(']');
        }
        Kind::Seq(_) | Kind::Map(_) => {
            out.push('{');
            let mut empty = true;
            for (key, item) in value.entries().into_iter().flatten() {
                // An empty object is written on one line.
                if empty {
                    out.push('\n');
                }
                out.push_str(&object_key(key, empty));
                out.push_str(" = ");
                push_expression(out, item);
                out.push('\n');
                empty = false;
            }
            out.push('}');
        }
    }
}

/// Returns the key of an object's attribute: bare if it is an identifier, else quoted. At the beginning of an object,
/// `for` must be quoted, because it would begin an expression.
#[must_use]
pub fn object_key(key: &str, first: bool) -> String {
    if is_name(key) && !(first && key == "for") {
        key.to_owned()
    } else {
        quoted(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        cty::json::from_simple_json(&serde_json::from_str(json).unwrap()).unwrap()
    }

    #[test]
    fn expressions_are_formatted() {
        for (json, expected) in [
            (r#"[1, "x", null, true, [], {}]"#, r#"[1, "x", null, true, [], {}]"#),
            (
                r#"{"a": {"x": 1}, "bbbb": 2, "c": [{"x": 1}], "dddddd": 4, "e": 5}"#,
                "{\n  a = {\n    x = 1\n  }\n  bbbb = 2\n  c = [{\n    x = 1\n  }]\n  dddddd = 4\n  e      = 5\n}",
            ),
            (
                r#"{"o": [{"a": 1}, {"b": 2, "cc": 3}], "t": [[1], [2, [3]]]}"#,
                "{\n  o = [{\n    a = 1\n    }, {\n    b  = 2\n    cc = 3\n  }]\n  t = [[1], [2, [3]]]\n}",
            ),
            (
                r#"{"a b": 1, "for": 2, "1x": 3, "a-b": 4, "é": 5, "": 6, "_x": 7}"#,
                "{\n  \"\"    = 6\n  \"1x\"  = 3\n  _x    = 7\n  \"a b\" = 1\n  a-b   = 4\n  for   = 2\n  é     = 5\n}",
            ),
            (r#"{"for": 1, "if": 2}"#, "{\n  \"for\" = 1\n  if    = 2\n}"),
            (
                r#""a\nb${c}%{d}\"e\\\t\u0001é😀$\u00a0""#,
                r#""a\nb$${c}%%{d}\"e\\\t\u0001é😀$\u00a0""#,
            ),
        ] {
            assert_eq!(expression(&value(json)), expected);
        }
    }

    #[test]
    fn attributes_are_aligned_as_in_a_file() {
        let all = value(r#"{"bool": true, "n": null, "map": {"one": 1}, "name": "x"}"#);
        let entries: Vec<_> = all.entries().into_iter().flatten().collect();
        let text = attributes(entries.iter().map(|(name, value)| (&***name, *value)));
        assert_eq!(text, "bool = true\nmap = {\n  one = 1\n}\nn    = null\nname = \"x\"\n");
        assert_eq!(attributes([]), "");
    }
}
