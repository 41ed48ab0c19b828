//! JSON text as Go's encoder writes it.

use std::fmt::Write;

use super::tree::{Members, Node, Tree};

/// The text of a document, in one line or indented.
pub(super) fn write<T: Tree>(json: &T, indent: Option<usize>) -> String {
    let mut out = String::new();
    write_at(json, indent, 0, &mut out);
    out
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
