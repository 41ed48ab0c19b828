//! Values as text: expressions, and variable files made of them, formatted as `terraform fmt` would.
//!
//! A value is first laid out as lines, each knowing how many brackets it leaves open; indentation and the alignment
//! of equals signs follow from the lines alone, as they do in the formatter.

use monoform_sdk::cty::{Kind, Value};

use crate::is_mapping;

/// The text of an expression for a wholly known value.
pub(crate) fn expression(value: &Value) -> String {
    finish(lay_out(value))
}

/// The text of a variable file that sets a variable for each attribute.
pub(crate) fn tfvars(value: &Value) -> Result<String, String> {
    if !is_mapping(value) {
        return Err(
            "invalid value to encode: must be an object whose attribute names will become the encoded variable \
                    names"
                .to_owned(),
        );
    }
    let mut lines = Vec::new();
    for (name, value) in value.entries().into_iter().flatten() {
        if !is_identifier(name) {
            return Err(format!("invalid variable name {name:?}: must be a valid identifier"));
        }
        assignment(name.to_string(), value, &mut lines);
    }
    let mut text = finish(lines);
    if !text.is_empty() {
        text.push('\n');
    }
    Ok(text)
}

/// A line before it is indented and aligned.
struct Line {
    /// What stands before an equals sign that is aligned with those of the lines around it.
    key: Option<String>,
    text: String,
    /// How many brackets it opens and does not close, or the other way round.
    net: i32,
}

fn line(text: impl Into<String>, net: i32) -> Vec<Line> {
    vec![Line {
        key: None,
        text: text.into(),
        net,
    }]
}

fn lay_out(value: &Value) -> Vec<Line> {
    match value.kind() {
        // There is nothing to write for what is not known; callers do not ask.
        Kind::Unknown(_) | Kind::Null => line("null", 0),
        Kind::Bool(b) => line(b.to_string(), 0),
        Kind::Number(n) => line(n.to_string(), 0),
        Kind::String(s) => line(quoted(s), 0),
        Kind::Seq(_) | Kind::Map(_) => match value.as_seq() {
            Some(items) => sequence(items),
            None => mapping(value),
        },
    }
}

fn sequence(items: &[Value]) -> Vec<Line> {
    let mut lines = line("[", 1);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            append(&mut lines, line(", ", 0));
        }
        append(&mut lines, lay_out(item));
    }
    append(&mut lines, line("]", -1));
    lines
}

fn mapping(value: &Value) -> Vec<Line> {
    let mut lines = line("{", 1);
    for (name, value) in value.entries().into_iter().flatten() {
        let key = if is_identifier(name) {
            name.to_string()
        } else {
            quoted(name)
        };
        assignment(key, value, &mut lines);
    }
    if lines.len() == 1 {
        return line("{}", 0);
    }
    lines.extend(line("}", -1));
    lines
}

/// Only values of one line take part in the alignment.
fn assignment(key: String, value: &Value, lines: &mut Vec<Line>) {
    let mut value = lay_out(value);
    let single = value.len() == 1;
    if let Some(first) = value.first_mut() {
        if single {
            first.key = Some(key);
        } else {
            first.text = format!("{key} = {}", first.text);
        }
    }
    lines.extend(value);
}

/// Goes on in the last line.
fn append(lines: &mut Vec<Line>, more: Vec<Line>) {
    let mut more = more.into_iter();
    if let (Some(last), Some(first)) = (lines.last_mut(), more.next()) {
        last.text.push_str(&first.text);
        last.net += first.net;
    }
    lines.extend(more);
}

/// Indents and aligns.
fn finish(lines: Vec<Line>) -> String {
    // One level of indentation for each line that opens brackets, whatever their number.
    let mut open: Vec<i32> = Vec::new();
    let mut out = Vec::with_capacity(lines.len());
    let widths = widths(&lines);
    for (line, width) in lines.iter().zip(widths) {
        let mut closing = -line.net;
        while closing > 0
            && let Some(last) = open.last_mut()
        {
            let closed = closing.min(*last);
            closing -= closed;
            *last -= closed;
            if *last == 0 {
                open.pop();
            }
        }
        let indent = "  ".repeat(open.len());
        out.push(match &line.key {
            Some(key) => format!(
                "{indent}{key}{} = {}",
                " ".repeat(width - key.chars().count()),
                line.text
            ),
            None => format!("{indent}{}", line.text),
        });
        if line.net > 0 {
            open.push(line.net);
        }
    }
    out.join("\n")
}

/// For each line, the width of the longest key in its run of lines with keys.
fn widths(lines: &[Line]) -> Vec<usize> {
    let mut widths = Vec::with_capacity(lines.len());
    for run in lines.chunk_by(|a, b| a.key.is_some() && b.key.is_some()) {
        let width = run
            .iter()
            .filter_map(|l| l.key.as_ref())
            .map(|key| key.chars().count())
            .max()
            .unwrap_or(0);
        widths.extend(run.iter().map(|_| width));
    }
    widths
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(unicode_ident::is_xid_start)
        && chars.all(|c| c == '-' || unicode_ident::is_xid_continue(c))
}

/// A text between quotes, in which nothing is a template.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '$' | '%' if chars.peek() == Some(&'{') => out.extend([c, c]),
            c if is_invisible(c) => match u32::from(c) {
                code @ 0..=0xffff => out.push_str(&format!("\\u{code:04x}")),
                code => out.push_str(&format!("\\U{code:08x}")),
            },
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Characters that would not be seen in the text.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::json::from_simple_json;

    use super::*;

    fn value(json: &str) -> Value {
        from_simple_json(&serde_json::from_str(json).unwrap()).unwrap()
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
                r#"{"a b": 1, "for": 2, "1x": 3, "a-b": 4, "é": 5, "": 6}"#,
                "{\n  \"\"    = 6\n  \"1x\"  = 3\n  \"a b\" = 1\n  a-b   = 4\n  for   = 2\n  é     = 5\n}",
            ),
            (
                r#""a\nb${c}%{d}\"e\\\t\u0001é😀$""#,
                r#""a\nb$${c}%%{d}\"e\\\t\u0001é😀$""#,
            ),
        ] {
            assert_eq!(expression(&value(json)), expected);
        }
    }

    #[test]
    fn files_have_a_line_for_each_variable() {
        let text = tfvars(&value(r#"{"bool": true, "n": null, "map": {"one": 1}, "name": "x"}"#)).unwrap();
        assert_eq!(text, "bool = true\nmap = {\n  one = 1\n}\nn    = null\nname = \"x\"\n");
        assert_eq!(tfvars(&Value::empty_object()).unwrap(), "");
        assert!(tfvars(&value(r#"{"a b": 1}"#)).is_err());
        assert!(tfvars(&value("[1]")).is_err());
    }
}
