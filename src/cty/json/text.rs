//! Rendering of JSON text as Go's encoder does it.

use std::fmt::Write;

#[cfg(feature = "serde_json")]
use super::encode::{Brackets, Sink};
use super::tree::{Members, Node, Tree};
#[cfg(feature = "serde_json")]
use crate::Type;

/// Renders a document, on one line or indented.
pub(super) fn write<T: Tree>(json: &T, indent: Option<usize>) -> String {
    let mut out = String::new();
    write_at(json, indent, 0, &mut out);
    out
}

/// Compact text under construction.
#[cfg(feature = "serde_json")]
#[derive(Default)]
pub(super) struct Text(String);

#[cfg(feature = "serde_json")]
impl Text {
    pub(super) fn into_string(self) -> String {
        self.0
    }

    /// Adds a comma before a value that is not the first one in its array or object.
    fn separate(&mut self) {
        if !matches!(self.0.as_bytes().last(), None | Some(b'{' | b'[' | b':')) {
            self.0.push(',');
        }
    }
}

#[cfg(feature = "serde_json")]
impl Sink for Text {
    fn null(&mut self) {
        self.separate();
        self.0.push_str("null");
    }

    fn bool(&mut self, value: bool) {
        self.separate();
        self.0.push_str(if value { "true" } else { "false" });
    }

    fn number(&mut self, digits: &str) -> bool {
        self.separate();
        self.0.push_str(digits);
        true
    }

    fn string(&mut self, text: &str) {
        self.separate();
        write_string(text, &mut self.0);
    }

    fn ty(&mut self, ty: &Type) {
        self.separate();
        self.0.push_str(&super::types::type_text(ty));
    }

    fn begin(&mut self, brackets: Brackets, _: usize) {
        self.separate();
        self.0.push(if brackets == Brackets::Array { '[' } else { '{' });
    }

    fn name(&mut self, name: &str) {
        self.separate();
        write_string(name, &mut self.0);
        self.0.push(':');
    }

    fn end(&mut self, brackets: Brackets) {
        self.0.push(if brackets == Brackets::Array { ']' } else { '}' });
    }
}

fn write_at<T: Tree>(json: &T, indent: Option<usize>, level: usize, out: &mut String) {
    match json.node() {
        Node::Null => out.push_str("null"),
        Node::Bool(b) => out.push_str(if b { "true" } else { "false" }),
        Node::Number(n) => out.push_str(n),
        Node::String(s) => write_string(s, out),
        Node::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                new_line(indent, level + 1, out);
                write_at(item, indent, level + 1, out);
            }
            if !items.is_empty() {
                new_line(indent, level, out);
            }
            out.push(']');
        }
        Node::Object(items) => {
            out.push('{');
            for (i, (key, item)) in items.members().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                new_line(indent, level + 1, out);
                write_string(key, out);
                out.push_str(if indent.is_some() { ": " } else { ":" });
                write_at(item, indent, level + 1, out);
            }
            if items.count() > 0 {
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

pub(super) fn write_string(text: &str, out: &mut String) {
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
            // Writing to a string cannot fail; this only drops the result.
            Some(c) => drop(write!(out, "\\u{:04x}", c as u32)),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

fn needs_escape(c: char) -> bool {
    // Go's encoder escapes these for use in HTML, and U+2028 and U+2029 for JavaScript; checksums and comparisons
    // see the difference.
    matches!(
        c,
        '\0'..='\u{1f}' | '"' | '\\' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}'
    )
}
