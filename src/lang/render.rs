//! Values in human-readable form, for `console` and `output`.

use crate::functions::is_shown;
use cty::{Kind, Marks, Type, Value};

/// Renders a value as an expression of the language, as far as it can be displayed. Lines after the first are indented.
#[must_use]
pub fn format_value(value: &Value, indent: usize) -> String {
    let mut out = String::new();
    write(value, indent, &mut out);
    out
}

fn write(value: &Value, indent: usize, out: &mut String) {
    let marks = value.marks();
    if marks.contains(Marks::TYPE) {
        // The result of `type` is a tuple that contains its text.
        let text = value.as_seq().and_then(|items| items.first()).and_then(Value::as_str);
        out.push_str(text.unwrap_or_default());
        return;
    }
    if !value.is_known() {
        // Unknown values are checked before the marks, because even a sensitive value is rendered as unknown.
        out.push_str("(known after apply)");
        return;
    }
    if marks.is_sensitive() {
        out.push_str("(sensitive value)");
        return;
    }
    if marks.is_ephemeral() {
        out.push_str("(ephemeral value)");
        return;
    }
    let named = |name: &str, out: &mut String| {
        out.push_str(name);
        out.push('(');
        sequence(value, indent, out);
        out.push(')');
    };
    match (value.kind(), value.ty()) {
        (Kind::Unknown(_), _) => {}
        (Kind::Null, ty) => null(ty, out),
        (Kind::Bool(b), _) => out.push_str(if *b { "true" } else { "false" }),
        (Kind::Number(n), _) => out.push_str(&n.to_string()),
        (Kind::String(s), _) => text(s, indent, out),
        (Kind::Seq(_), Type::Object(_)) => mapping(value, indent, out),
        (Kind::Seq(_), Type::List(_)) => named("tolist", out),
        (Kind::Seq(_), Type::Set(_)) => named("toset", out),
        (Kind::Seq(_), _) => sequence(value, indent, out),
        (Kind::Map(_), _) => {
            out.push_str("tomap(");
            mapping(value, indent, out);
            out.push(')');
        }
    }
}

fn null(ty: &Type, out: &mut String) {
    let element = || ty.element().map(Type::friendly_name).unwrap_or_default();
    out.push_str(&match ty {
        Type::Dynamic => "null".to_owned(),
        Type::String => "tostring(null)".to_owned(),
        Type::Number => "tonumber(null)".to_owned(),
        Type::Bool => "tobool(null)".to_owned(),
        Type::List(_) => format!("tolist(null) /* of {} */", element()),
        Type::Set(_) => format!("toset(null) /* of {} */", element()),
        Type::Map(_) => format!("tomap(null) /* of {} */", element()),
        other => format!("null /* {} */", other.friendly_name()),
    });
}

fn line(indent: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
}

fn mapping(value: &Value, indent: usize, out: &mut String) {
    out.push('{');
    let mut empty = true;
    for (key, element) in value.entries().into_iter().flatten() {
        empty = false;
        line(indent + 2, out);
        text(key, indent + 2, out);
        out.push_str(" = ");
        write(element, indent + 2, out);
    }
    if !empty {
        line(indent, out);
    }
    out.push('}');
}

fn sequence(value: &Value, indent: usize, out: &mut String) {
    out.push('[');
    let items = value.as_seq().unwrap_or_default();
    for item in items {
        line(indent + 2, out);
        write(item, indent + 2, out);
        out.push(',');
    }
    if !items.is_empty() {
        line(indent, out);
    }
    out.push(']');
}

/// Writes a string, as a heredoc if it has several lines.
fn text(text: &str, indent: usize, out: &mut String) {
    if !text.contains('\n') {
        out.push_str(&quote(text));
        return;
    }
    let mut delimiter = String::from("EOT");
    // A line of the text must not be equal to the delimiter.
    while text.split('\n').any(|l| l.trim() == delimiter) {
        delimiter.push('_');
    }
    // A nested heredoc is indented, and `<<-` removes the indentation again.
    out.push_str(if indent > 0 { "<<-" } else { "<<" });
    out.push_str(&delimiter);
    for part in text.split('\n') {
        line(indent, out);
        out.push_str(part);
    }
    line(indent, out);
    out.push_str(&delimiter);
}

/// Quotes a text, with escapes for invisible characters.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            c if u32::from(c) < 0x20 || c == '\x7f' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if !is_shown(c) && u32::from(c) <= 0xffff => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c if !is_shown(c) => out.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Renders a type as the console's `type` function does.
#[must_use]
pub fn format_type(ty: &Type) -> String {
    let mut out = String::new();
    write_type(ty, 0, &mut out);
    out
}

fn write_type(ty: &Type, indent: usize, out: &mut String) {
    let element = |name: &str, e: &Type, out: &mut String| {
        out.push_str(name);
        out.push('(');
        if matches!(e, Type::Object(_) | Type::Tuple(_)) {
            line(indent + 4, out);
            write_type(e, indent + 4, out);
            out.push(',');
            line(indent, out);
        } else {
            write_type(e, indent, out);
        }
        out.push(')');
    };
    match ty {
        Type::Dynamic => out.push_str("dynamic"),
        Type::String => out.push_str("string"),
        Type::Number => out.push_str("number"),
        Type::Bool => out.push_str("bool"),
        Type::List(e) => element("list", e, out),
        Type::Set(e) => element("set", e, out),
        Type::Map(e) => element("map", e, out),
        Type::Object(o) if o.is_empty() => out.push_str("object({})"),
        Type::Object(o) => {
            out.push_str("object({");
            for a in o.attributes() {
                line(indent + 4, out);
                out.push_str(&a.name);
                out.push_str(": ");
                write_type(&a.ty, indent + 4, out);
                out.push(',');
            }
            line(indent, out);
            out.push_str("})");
        }
        Type::Tuple(types) if types.is_empty() => out.push_str("tuple([])"),
        Type::Tuple(types) => {
            out.push_str("tuple([");
            for t in types.iter() {
                line(indent + 4, out);
                write_type(t, indent + 4, out);
                out.push(',');
            }
            line(indent, out);
            out.push_str("])");
        }
    }
}
