//! Encoding of YAML.

use cty::{Kind, Value};

use super::{CallResult, Function, FunctionEnvironment, Returns, any};

pub(super) const FUNCTIONS: &[Function] = &[Function::new(
    "yamlencode",
    &[any("value").null().unknown().dynamic()],
    Returns::String,
    yamlencode,
)
.nullable()];

/// Width after which lines are broken at the next blank.
const WIDTH: usize = 80;

fn yamlencode(args: &[Value], ty: &cty::Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let value = &args[0];
    if !value.is_wholly_known() {
        return Ok(Value::unknown(ty.clone()));
    }
    let mut out = String::new();
    match value.len() {
        Some(n) if n > 0 => block(value, 0, &mut out),
        _ => {
            scalar_line(value, 0, &mut out);
            // A document that is a bare scalar needs an end marker.
            if !out.starts_with(['"', '[', '{', '|']) {
                out.push_str("...\n");
            }
        }
    }
    Ok(Value::string(out))
}

fn spaces(n: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', n));
}

/// Writes a collection that is not empty, in block style. The first line is indented already.
fn block(value: &Value, indent: usize, out: &mut String) {
    if let Some(items) = value.as_seq() {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                spaces(indent, out);
            }
            out.push('-');
            out.push(' ');
            match item.len() {
                Some(n) if n > 0 => block(item, indent + 2, out),
                _ => scalar_line(item, indent, out),
            }
        }
        return;
    }
    for (i, (key, item)) in value.entries().into_iter().flatten().enumerate() {
        if i > 0 {
            spaces(indent, out);
        }
        if is_simple_key(key) {
            out.push_str(&quoted(key));
        } else {
            out.push_str("? ");
            scalar_line(&Value::shared_string(key.clone()), indent, out);
            spaces(indent, out);
        }
        out.push(':');
        match item.len() {
            // Sequences in a mapping are indented like its keys, as Terraform's encoder writes them.
            Some(n) if n > 0 && item.as_seq().is_some() => {
                out.push('\n');
                spaces(indent, out);
                block(item, indent, out);
            }
            Some(n) if n > 0 => {
                out.push('\n');
                spaces(indent + 2, out);
                block(item, indent + 2, out);
            }
            _ => {
                out.push(' ');
                scalar_line(item, indent, out);
            }
        }
    }
}

/// Returns true if a key can be written before its colon in one line.
fn is_simple_key(key: &str) -> bool {
    key.len() <= 128 && !key.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
}

/// Writes a scalar or an empty collection up to the end of the line. Text of several lines becomes a literal block, if
/// it can be one.
fn scalar_line(value: &Value, indent: usize, out: &mut String) {
    match value.as_str() {
        Some(text) if literal_fits(text) => {
            out.push('|');
            // Indentation cannot be detected from a first line that begins with a blank.
            if text.starts_with([' ', '\n']) {
                out.push('2');
            }
            // The chomping indicator is `-` for no line break at the end, and `+` for more than one.
            match text.chars().rev().take_while(|c| *c == '\n').count() {
                0 => out.push('-'),
                1 if text.len() > 1 => {}
                _ => out.push('+'),
            }
            out.push('\n');
            for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
                if !line.is_empty() {
                    spaces(indent + 2, out);
                    out.push_str(line);
                }
                out.push('\n');
            }
        }
        Some(text) => {
            let column = out.rsplit('\n').next().unwrap_or_default().chars().count();
            out.push_str(&folded(text, column, indent + 2));
            out.push('\n');
        }
        None => {
            scalar(value, out);
            out.push('\n');
        }
    }
}

/// Quotes a text that begins at a column, and breaks long lines at blanks; further lines are indented by `indent`.
fn folded(text: &str, mut column: usize, indent: usize) -> String {
    let mut out = String::from('"');
    column += 1;
    let mut after_blank = false;
    let mut chars = text.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        if c == ' ' && !after_blank && column > WIDTH && i > 0 && chars.peek().is_some() {
            out.push('\n');
            spaces(indent, &mut out);
            column = indent;
            if chars.peek().is_some_and(|(_, c)| *c == ' ') {
                // A blank at the beginning of a line would be lost.
                out.push('\\');
                column += 1;
            }
            after_blank = true;
            continue;
        }
        after_blank = c == ' ';
        let before = out.len();
        escaped(c, &mut out);
        column += out[before..].chars().count();
    }
    out.push('"');
    out
}

/// Returns true if a text of several lines can be a literal block.
fn literal_fits(text: &str) -> bool {
    text.contains('\n')
        && !text.ends_with(' ')
        && !text.contains(" \n")
        && text.chars().all(|c| c == '\n' || !c.is_control())
}

fn scalar(value: &Value, out: &mut String) {
    match value.kind() {
        Kind::Null | Kind::Unknown(_) => out.push_str("null"),
        Kind::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Kind::Number(n) if n.is_infinite() => out.push_str(if n.is_negative() { "-.inf" } else { "+.inf" }),
        Kind::Number(n) => out.push_str(&n.to_string()),
        Kind::String(s) => out.push_str(&quoted(s)),
        Kind::Seq(_) if value.as_seq().is_some() => out.push_str("[]"),
        Kind::Seq(_) | Kind::Map(_) => out.push_str("{}"),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    text.chars().for_each(|c| escaped(c, &mut out));
    out.push('"');
    out
}

fn escaped(c: char, out: &mut String) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\0' => out.push_str("\\0"),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0b' => out.push_str("\\v"),
        '\x0c' => out.push_str("\\f"),
        '\x1b' => out.push_str("\\e"),
        '\u{85}' => out.push_str("\\N"),
        '\u{2028}' => out.push_str("\\L"),
        '\u{2029}' => out.push_str("\\P"),
        c if c.is_control() => out.push_str(&format!("\\x{:02X}", u32::from(c))),
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' => out.push_str(&format!("\\u{:04X}", u32::from(c))),
        c if u32::from(c) > 0xffff => out.push_str(&format!("\\U{:08X}", u32::from(c))),
        c => out.push(c),
    }
}
