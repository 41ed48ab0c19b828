//! JSON text as Go's encoder writes it.

use std::fmt::Write;

use serde_json::Value as Json;

/// The text of a JSON document as Go's encoder writes it: `<`, `>`, `&`, U+2028 and U+2029 escaped. With an indent,
/// every element and attribute has a line of its own; empty arrays and objects stay on one line.
#[must_use]
pub fn to_text(json: &Json, indent: Option<usize>) -> String {
    let mut out = String::new();
    write(json, indent, 0, &mut out);
    out
}

fn write(json: &Json, indent: Option<usize>, level: usize, out: &mut String) {
    match json {
        Json::Null => out.push_str("null"),
        Json::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Json::Number(n) => out.push_str(n.as_str()),
        Json::String(s) => write_string(s, out),
        Json::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                new_line(indent, level + 1, out);
                write(item, indent, level + 1, out);
            }
            if !items.is_empty() {
                new_line(indent, level, out);
            }
            out.push(']');
        }
        Json::Object(items) => {
            out.push('{');
            for (i, (key, item)) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                new_line(indent, level + 1, out);
                write_string(key, out);
                out.push_str(if indent.is_some() { ": " } else { ":" });
                write(item, indent, level + 1, out);
            }
            if !items.is_empty() {
                new_line(indent, level, out);
            }
            out.push('}');
        }
    }
}

fn new_line(indent: Option<usize>, level: usize, out: &mut String) {
    if let Some(width) = indent {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', width * level));
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(needs_escape) {
        out.push_str(&rest[..at]);
        let mut chars = rest[at..].chars();
        match chars.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            // Writing to a string cannot fail.
            Some(c) => drop(write!(out, "\\u{:04x}", c as u32)),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

fn needs_escape(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{1f}' | '"' | '\\' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}'
    )
}
